"""The parts in docs/write-your-own.md pass the tests that the page shows with them."""

import inspect

import pytest

from tests.own_parts import FILES, load

PARTS = [name.removesuffix(".py") for name in FILES if name.startswith("my_") and name.endswith(".py")]


def test_every_part_has_tests() -> None:
    assert len(PARTS) == 8
    assert {f"test_{part}.py" for part in PARTS} <= FILES.keys()


@pytest.mark.parametrize("part", PARTS)
def test_the_tests_of_the_page_pass(part, tmp_path) -> None:
    load(part)  # the tests import it by its name
    tests = [value for name, value in vars(load(f"test_{part}")).items() if name.startswith("test_")]
    assert tests
    for number, test in enumerate(tests):
        test(*([tmp_path / str(number)] if inspect.signature(test).parameters else []))

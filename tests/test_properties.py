"""The examples that a property is tried on are the same whatever else is loaded."""

import sys
from types import ModuleType

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import FIXED, examples


def drawn() -> list[int]:
    found: list[int] = []

    @settings(FIXED, max_examples=200)
    @given(st.integers())
    def draw(number):
        found.append(number)

    draw()
    return found


def test_examples_do_not_depend_on_the_modules_that_are_loaded(tmp_path, monkeypatch):
    before = drawn()
    (tmp_path / "other.py").write_text("\n".join(f"x{k} = {10**9 + k}" for k in range(1000)))
    module = ModuleType("other")
    module.__file__ = str(tmp_path / "other.py")
    monkeypatch.setitem(sys.modules, "other", module)
    assert drawn() == before
    assert not set(range(10**9, 10**9 + 1000)) & set(before)


def test_exploring_tries_more():
    assert examples(10).max_examples >= 10
    assert examples(10).max_examples * FIXED.max_examples == 10 * settings().max_examples

"""new policy: what it writes works as it is."""

import importlib.util
import subprocess
import sys

import pytest

from spillover.cli.example_policy import ExamplePolicy
from spillover.testing import check_policy
from tests.cli.calls import call, refused


def test_the_example_policy_fulfils_the_contract() -> None:
    check_policy(ExamplePolicy())


def test_what_is_written_passes_its_own_test_and_the_contract(here) -> None:
    result = call("new", "policy", "my-idea2", "--folder", "ideas")
    assert result.stdout.splitlines() == [
        "wrote ideas/my_idea2.py",
        "wrote ideas/test_my_idea2.py",
        "now run: pytest ideas/test_my_idea2.py",
    ]
    folder = here / "ideas"
    arguments = ["-q", "-p", "no:cacheprovider", "--doctest-modules", "-W", "error", "."]
    tested = subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=folder, capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "4 passed" in tested.stdout
    spec = importlib.util.spec_from_file_location("my_idea2", folder / "my_idea2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check_policy(module.MyIdea2())
    assert "ExamplePolicy" not in (folder / "my_idea2.py").read_text()


@pytest.mark.parametrize("name", ["my_idea.py", "test_my_idea.py"])
def test_nothing_is_overwritten(name, here) -> None:
    (here / name).write_text("mine")
    refused(call("new", "policy", "my-idea"), f"{name}: already exists")
    assert (here / name).read_text() == "mine"
    assert not [path for path in here.glob("*my_idea.py") if path.name != name]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("My-Idea", "must be lower-case words"),
        ("my_idea", "must be lower-case words"),
        ("../idea", "must be lower-case words"),
        ("2nd", "must be lower-case words"),
        ("", "must be lower-case words"),
        ("ndc-sem", "spillover already has a policy of that name"),
        ("class", "must be a name that is no keyword or module of Python"),
        ("statistics", "must be a name that is no keyword or module of Python"),
        ("numpy", "no package that the policy needs"),
        ("choice", "must not become Choice"),
    ],
)
def test_names_are_checked(name, part, here) -> None:
    before = sorted(here.iterdir())
    refused(call("new", "policy", name), f"name = {name!r}", part)
    assert sorted(here.iterdir()) == before

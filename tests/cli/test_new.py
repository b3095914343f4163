"""new: what it writes works as it is, for each kind of part."""

import json
import os
import subprocess
import sys

import pytest

from spillover.cli.new import KINDS
from tests.cli.calls import call, refused
from tests.waiting import HANG

STUDY = """
name = "mine"
replications = 2
[worlds.w]
kind = {environment}
horizon = 40
[delays.d]
kind = {delay}
[policies.p]
kind = {policy}
graph = {graph}
"""
USUAL = {
    "environment": '"synthetic"\nchanges = []',
    "delay": '"constant"\nrounds = 3',
    "policy": '"ndc-sem"',
    "graph": '{ kind = "sparse" }',
}
QUICK = ("--engine", "serial", "--no-report", "--json")


def python(folder, *arguments, code=0):
    """Python in a folder, without that folder on its path: what `spillover` does, it must do by itself."""
    command = [sys.executable, "-P", "-W", "error", *(str(a) for a in arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG, env=os.environ)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def spillover(folder, *arguments, code=0):
    return python(folder, "-m", "spillover", *arguments, code=code)


def run_with(folder, **kinds):
    (folder / "mine.toml").write_text(STUDY.format(**USUAL | kinds))
    (row,) = json.loads(spillover(folder, "run", "mine.toml", *QUICK))["final_regret"]
    assert row["replications"] == 2


def use_policy(folder):
    run_with(folder, policy='"my_idea2:MyIdea2"\nepsilon = 0.2')
    assert "probability of a random set" in spillover(folder, "policies", "my_idea2:MyIdea2")
    spillover(folder, "next", "--example")
    options = ("--budget", 2, "--policy", "my_idea2:MyIdea2", "--set", "epsilon=1", "--set", "graph.sparsity=0.01")
    assert "a random set is tried" in spillover(folder, "next", "history.csv", *options)
    grid = STUDY.format(**USUAL | {"policy": '"my_idea2:MyIdea2"'}) + "[grid]\nepsilon = [0.1, 0.5]\n"
    (folder / "grid.toml").write_text(grid)
    assert json.loads(spillover(folder, "tune", "grid.toml", "--engine", "serial", "--json"))["best"]


def use_graph(folder):
    run_with(folder, graph='{ kind = "my_idea2:MyIdea2", ridge = 0.1 }')
    run_with(folder, graph='"my_idea2:MyIdea2"')
    spillover(folder, "next", "--example")
    options = ("--budget", 2, "--set", "graph=my_idea2:MyIdea2", "--set", "graph.ridge=0.5")
    assert spillover(folder, "next", "history.csv", *options)


def use_environment(folder):
    run_with(folder, environment='"my_idea2:MyIdea2"\nspill = 0.3')


def use_delay(folder):
    run_with(folder, delay='"my_idea2:MyIdea2"\nperiod = 5')


def use_command(folder):
    assert "Examples:" in spillover(folder, "my_idea2:my_idea2", "--help")
    assert set(json.loads(spillover(folder, "my_idea2:my_idea2", "--rounds", 20, "--json"))) == {"sem-ucb", "random"}


def use_study(folder):
    options = ("--replications", 2, *QUICK)
    found = json.loads(spillover(folder, "reproduce", "my_idea2:MyIdea2", *options))
    assert found["experiment"] == "my-idea2"
    assert len(found["final_regret"]) == 2


USES = {
    "policy": use_policy,
    "environment": use_environment,
    "graph": use_graph,
    "delay": use_delay,
    "command": use_command,
    "study": use_study,
}


def test_every_kind_is_used():
    assert [kind.name for kind in KINDS] == list(USES)


def test_what_is_written_passes_its_own_test(here) -> None:
    """All kinds in one process, as most of the time goes into starting one."""
    for kind in USES:
        result = call("new", kind, f"my-{kind}2", "--folder", "ideas")
        *written, now, use = result.stdout.splitlines()
        module = f"my_{kind}2"
        names = [f"{module}.py", *([f"{module}.toml"] if kind == "study" else []), f"test_{module}.py"]
        assert written == [f"wrote {os.path.join('ideas', name)}" for name in names]
        assert now == f"now run: pytest {os.path.join('ideas', f'test_{module}.py')}"
        assert use.startswith("then use it: in ideas, ")
        for name in names:
            text = (here / "ideas" / name).read_text().lower()
            assert "example" not in text.replace("examples", ""), name
            assert "skeleton" not in text, name
    options = ("-q", "-p", "no:cacheprovider", "--doctest-modules", "-W", "error", ".")
    python(here / "ideas", "-m", "pytest", *options)


@pytest.mark.long  # the test above is the short form
@pytest.mark.parametrize("kind", USES)
def test_what_is_written_is_used(kind, here) -> None:
    assert call("new", kind, "my-idea2").exit_code == 0
    USES[kind](here)


@pytest.mark.parametrize("name", ["my_idea.py", "test_my_idea.py", "my_idea.toml"])
def test_nothing_is_overwritten(name, here) -> None:
    (here / name).write_text("mine")
    refused(call("new", "study", "my-idea"), f"{name}: already exists")
    assert (here / name).read_text() == "mine"
    assert not [path for path in here.glob("*my_idea.*") if path.name != name]


@pytest.mark.parametrize(
    ("kind", "name", "part"),
    [
        ("policy", "My-Idea", "must be lower-case words"),
        ("policy", "my_idea", "must be lower-case words"),
        ("graph", "../idea", "must be lower-case words"),
        ("policy", "2nd", "must be lower-case words"),
        ("policy", "", "must be lower-case words"),
        ("policy", "ndc-sem", "the name of a built-in policy"),
        ("graph", "self-tuned", "the name of a built-in graph"),
        ("environment", "fixed", "the name of a built-in environment"),
        ("delay", "lossy", "the name of a built-in delay"),
        ("study", "covid", "the name of a built-in study"),
        ("command", "next", "the name of a built-in command"),
        ("policy", "class", "must be a name that is no keyword or module of Python"),
        ("delay", "statistics", "must be a name that is no keyword or module of Python"),
        ("policy", "numpy", "no package that the file needs"),
        ("policy", "choice", "must not become Choice"),
        ("command", "compare", "must not become compare"),
    ],
)
def test_names_are_checked(kind, name, part, here) -> None:
    before = sorted(here.iterdir())
    refused(call("new", kind, name), f"name = {name!r}", part)
    assert sorted(here.iterdir()) == before

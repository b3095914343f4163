"""`spillover new policy`: a small working policy and its test, to start your own from."""

import inspect
import keyword
import re
import sys
from pathlib import Path

import click

from spillover.cli import example_policy
from spillover.cli.app import Command, Group
from spillover.files import write_atomically
from spillover.policies import POLICIES

ACCEPTED = "lower-case words and numbers joined by -, such as my-idea"
EXAMPLES = (
    "spillover new policy my-idea",
    "spillover new policy my-idea --folder ideas",
)

TEST = '''"""{kind} fulfils the contract of a policy, and beats random choices."""

import pytest
from {module} import {kind}

import spillover as sp
from spillover.testing import check_policy


def test_fulfils_the_contract() -> None:
    check_policy({kind}())


def test_beats_random_choices() -> None:
    world = sp.SyntheticSEM(horizon=500, changes=())
    runs = [sp.simulate(policy, world, 5, replications=10) for policy in ({kind}(), sp.Uniform())]
    mine, random = (run.final_regret.mean() for run in runs)
    assert mine < random


def test_rejects_a_negative_exploration() -> None:
    with pytest.raises(ValueError, match="exploration = -1"):
        {kind}(exploration=-1)
'''


@click.group(cls=Group, examples=EXAMPLES)
def new() -> None:
    """Create files for something of your own."""


@new.command(cls=Command, examples=EXAMPLES)
@click.argument("name")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(), help="Folder to write to (default: this one)."
)
def policy(name: str, folder: Path) -> None:
    """Write a small, complete policy and its test: the NAME my-idea gives my_idea.py and test_my_idea.py.

    It is an upper-confidence-bound policy that passes spillover.testing.check_policy. Nothing is overwritten.
    """
    module = check_name(name)
    kind = class_name(name)
    files = {
        folder / f"{module}.py": inspect.getsource(example_policy).replace("ExamplePolicy", kind),
        folder / f"test_{module}.py": TEST.format(module=module, kind=kind),
    }
    for path in files:
        if path.exists():
            raise ValueError(f"{path}: already exists and is not overwritten: choose another name or --folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        write_atomically(path, content.encode())
        click.echo(f"wrote {path}")
    click.echo(f"now run: pytest {folder / f'test_{module}.py'}")


def check_name(name: str) -> str:
    """The name of the module, if the name of the policy is valid."""
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"name = {name!r}: must be {ACCEPTED}")
    if name in POLICIES:
        raise ValueError(f"name = {name!r}: must be new: spillover already has a policy of that name")
    # a file random.py would hide Python's own module from all files beside it
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in ("spillover", "numpy", "pytest"):
        accepted = "a name that is no keyword or module of Python, and no package that the policy needs"
        raise ValueError(f"name = {name!r}: must be {accepted}")
    return module


def class_name(name: str) -> str:
    """my-idea -> MyIdea, unless the file uses that name for something else."""
    kind = "".join(word.capitalize() for word in name.split("-"))
    if kind in vars(example_policy):
        raise ValueError(f"name = {name!r}: must not become {kind}, a name that every policy imports")
    return kind

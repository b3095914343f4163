"""`spillover policies`: what there is, taken from the classes themselves."""

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import partial
from typing import Any

import click

from spillover.cli.edge import Command
from spillover.cli.output import json_option, print_json, print_table
from spillover.experiments.toml_errors import suggestion
from spillover.policies import POLICIES
from spillover.types import Informed

EXAMPLES = (
    "spillover policies",
    "spillover policies ndc-sem",
    "spillover policies --json",
)


@click.command(cls=Command, examples=EXAMPLES, short_help="What there is to compare, or one policy in full.")
@click.argument("name", required=False)
@json_option
def policies(name: str | None, as_json: bool) -> None:
    """The policies that can be named in experiment files; with NAME, one of them in full."""
    if name is not None and name not in POLICIES:
        raise ValueError(f"policy = {name!r}: must be one of {', '.join(POLICIES)}{suggestion(name, POLICIES)}")
    found = [describe(each) for each in (POLICIES if name is None else [name])]
    if as_json:
        print_json(found if name is None else found[0])
    elif name is None:
        for each in found:
            click.echo(f"{each['name']} ({each['class']}): {each['description']}")
            click.echo(f"    parameters: {shown_parameters(each)}\n    source: {each['source']}")
    else:
        print_one(found[0])


def describe(name: str) -> dict[str, Any]:
    """A policy as its class, its fields and its docstrings tell it."""
    made = POLICIES[name]
    fixed = made.keywords if isinstance(made, partial) else {}
    kind = made.func if isinstance(made, partial) else made
    about = (inspect.getdoc(kind) or "").split("\n>>> ")[0].strip()
    module = inspect.getdoc(inspect.getmodule(kind)) or ""
    notes = parameter_notes(about)
    return {
        "name": name,
        "class": kind.__name__,
        "description": about.split("\n")[0],
        "source": module.split("\n")[0],
        "module": kind.__module__,
        "about": about,
        "parameters": [
            {"name": f.name, "default": fixed.get(f.name, default_of(f)), "note": notes.get(f.name, "")}
            for f in hyperparameters(kind)
        ],
    }


def hyperparameters(kind: Callable[..., Any]) -> list[Field[Any]]:
    """The fields that are set by who uses it; `world` is what a reference point is told by the simulation."""
    told = issubclass(kind, Informed) if isinstance(kind, type) else False
    return [f for f in fields(kind) if not (told and f.name == "world")]  # type: ignore[arg-type]


def default_of(given: Field[Any]) -> Any:
    if given.default is not MISSING:
        return given.default
    return given.default_factory() if given.default_factory is not MISSING else "required"


def parameter_notes(about: str) -> dict[str, str]:
    """What a docstring says of the parameters: paragraphs that begin with `name: ` or `name, name: `."""
    notes: dict[str, str] = {}
    pattern = r"^(\w+(?:, \w+)*): (.*(?:\n(?:    .*))*)"
    for match in re.finditer(pattern, about, re.MULTILINE):
        for name in match[1].split(", "):
            notes[name] = " ".join(match[2].split())
    return notes


def shown_parameters(found: dict[str, Any]) -> str:
    """Those that are numbers or words; masks and the like are shown when one policy is asked for."""
    listed = [p for p in found["parameters"] if p["default"] is not None]
    return ", ".join(f"{p['name']}={p['default']}" for p in listed) or "-"


def print_one(found: dict[str, Any]) -> None:
    click.echo(f"{found['name']}: {found['class']}, in {found['module']}\n{found['source']}\n\n{found['about']}")
    if found["parameters"]:
        click.echo()
        print_table(["parameter", "default"], [[p["name"], str(p["default"])] for p in found["parameters"]])

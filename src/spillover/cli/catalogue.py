"""`spillover policies`, the policies and their parameters, and `spillover bound`, Theorem 1 in numbers."""

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from functools import partial
from typing import Any

import click

from spillover.cli.app import Command
from spillover.cli.options import with_options
from spillover.cli.output import json_option, note, print_json, print_table
from spillover.contracts.hyperparameters import hyperparameters, value_of
from spillover.environments import SyntheticSEM
from spillover.policies import POLICIES, find_policy
from spillover.rng import Rng
from spillover.theory import RegretBound, regret_bound, world_constants

EXAMPLES = (
    "spillover policies",
    "spillover policies ndc-sem",
    "spillover policies --json",
)


@click.command(cls=Command, examples=EXAMPLES, short_help="List the policies, or show one in full.")
@click.argument("name", required=False)
@json_option
def policies(name: str | None, as_json: bool) -> None:
    """List the policies for experiment files and `next`; with NAME (or module:Class), show one in full."""
    found = [describe(each) for each in (POLICIES.loadable(note) if name is None else [name])]
    if as_json:
        print_json(found if name is None else found[0])
    elif name is None:
        for each in found:
            click.echo(f"{each['name']} ({each['class']}): {each['description']}")
            click.echo(f"    parameters: {parameter_summary(each)}\n    source: {each['source']}")
    else:
        print_policy(found[0])


def describe(name: str) -> dict[str, Any]:
    """A policy, as its class, its fields and its docstrings describe it."""
    made: Any = find_policy(name)
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
        "parts": part_parameters(kind),
    }


def part_parameters(kind: Callable[..., Any]) -> list[dict[str, Any]]:
    """The parameters of the parts that a policy has by default, named as --set and experiment files name them."""
    if not is_dataclass(kind):
        return []
    try:
        policy: Any = kind()
    except TypeError:  # it has parameters without a default
        return []
    found = []
    for part in (f.name for f in fields(policy) if is_dataclass(value_of(policy, f.name))):
        inner = type(value_of(policy, part))
        notes = parameter_notes((inspect.getdoc(inner) or "").split("\n>>> ")[0])
        found += [
            {"name": f"{part}.{f.name}", "default": default_of(f), "note": notes.get(f.name, "")} for f in fields(inner)
        ]
    return found


def default_of(given: Field[Any]) -> Any:
    if given.default is not MISSING:
        return given.default
    return given.default_factory() if given.default_factory is not MISSING else "required"


def parameter_notes(about: str) -> dict[str, str]:
    """The notes on parameters in a docstring: paragraphs that begin with `name: ` or `name, name: `."""
    notes: dict[str, str] = {}
    pattern = r"^(\w+(?:, \w+)*): (.*(?:\n(?:    .*))*)"
    for match in re.finditer(pattern, about, re.MULTILINE):
        for name in match[1].split(", "):
            notes[name] = " ".join(match[2].split())
    return notes


def parameter_summary(found: dict[str, Any]) -> str:
    """The parameters with a default; those that are None by default are shown for a single policy only."""
    with_default = [p for p in found["parameters"] if p["default"] is not None]
    return ", ".join(f"{p['name']}={p['default']}" for p in with_default) or "-"


def print_policy(found: dict[str, Any]) -> None:
    click.echo(f"{found['name']}: {found['class']}, in {found['module']}\n{found['source']}\n\n{found['about']}")
    if found["parameters"]:
        click.echo()
        rows = [[p["name"], str(p["default"])] for p in [*found["parameters"], *found["parts"]]]
        print_table(["parameter", "default"], rows)


BOUND_EXAMPLES = (
    "spillover bound",
    "spillover bound --discount 0.995 --exploration 0.2 --delay 200",
    "spillover bound --seed 7 --json",
    "spillover bound --smallest-gap 0.5 --changes 0 --horizon 100000",
)
DERIVED = ("printed", "corrected", "lean", "trivial", "vacuous", "largest_count", "reachable", "dominant")
CONSTANTS = {  # fields of WorldConstants
    "n_arms": (int, "N: number of arms."),
    "budget": (int, "s: arms that may be chosen in a round."),
    "horizon": (int, "T: number of rounds."),
    "changes": (int, "Upsilon: rounds at which a mean changes."),
    "longest_path": (int, "p: edges on the longest path of the graph."),
    "largest_weight": (float, "w_max: the largest total effect of an arm."),
    "smallest_gap": (float, "Delta_min: the gap of the best suboptimal decision."),
    "largest_gap": (float, "Delta_max: the gap of the worst decision."),
}


constant_options = with_options(
    [
        click.option(f"--{name.replace('_', '-')}", name, type=kind, help=text)
        for name, (kind, text) in CONSTANTS.items()
    ]
)


@click.command(cls=Command, examples=BOUND_EXAMPLES, short_help="Theorem 1, the regret bound of NDC-SEM, in numbers.")
@click.option("--discount", default=0.985, show_default=True, help="gamma, strictly between 0 and 1.")
@click.option("--exploration", default=0.11, show_default=True, help="xi, above 1 / (2 (s + 1)).")
@click.option("--delay", default=50, show_default=True, help="D, or the longest possible delay.")
@click.option("--seed", default=0, show_default=True, help="Which of the paper's random worlds to use.")
@constant_options
@json_option
def bound(discount: float, exploration: float, delay: int, seed: int, as_json: bool, **constants: Any) -> None:
    """The regret bound of NDC-SEM (Theorem 1), term by term, as printed in the paper and corrected.

    It is evaluated for a random world of the paper's synthetic setting (see --seed); the constants given as options
    replace those of that world. The exploration that the paper tunes to (1e-10) is outside the theorem's domain.
    """
    world = world_constants(SyntheticSEM().draw(Rng(seed)))
    given = {name: value for name, value in constants.items() if value is not None}
    found = regret_bound(world._replace(**given), discount=discount, exploration=exploration, delay=delay)
    if as_json:
        print_json(bound_content(found))
    else:
        click.echo(str(found))


def bound_content(found: RegretBound) -> dict[str, Any]:
    """All terms of the bound and the numbers derived from them."""
    constants = found.constants._asdict()
    return asdict(found) | {"constants": constants} | {name: getattr(found, name) for name in DERIVED}

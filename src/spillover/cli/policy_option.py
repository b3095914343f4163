"""A policy from the command line: its name and its parameters."""

import tomllib
from collections.abc import Sequence
from typing import Any

from spillover.cli.catalogue import describe
from spillover.experiments.toml_errors import suggestion
from spillover.history.replay import learns_from_others
from spillover.policies import POLICIES

PREFERRED = ("switching-sem", "ndc-sem")
NEED_RANGE = ("cts",)  # they must know beforehand what y can be
ALL_KNOWING = ("oracle", "delayed-oracle")  # they must be told what nobody knows outside of a simulation


def recommended() -> str:
    """The policy that is taken if none is named."""
    return next(name for name in PREFERRED if name in POLICIES)


def usable() -> list[str]:
    """Policies that need to know no more than a history."""
    told = [name for name in POLICIES if name in ALL_KNOWING or name.endswith("-told-graph")]
    return [name for name, policy in POLICIES.items() if name not in told and learns_from_others(policy)]


def made_policy(name: str, settings: Sequence[str]) -> Any:
    """The policy of that name with the parameters set by NAME=VALUE."""
    if name not in usable():
        lacking = "needs what no file has, the truth or probabilities of past decisions: " if name in POLICIES else ""
        listed = f"{', '.join(usable())}{suggestion(name, usable())}"
        raise ValueError(f"policy = {name!r}: {lacking}must be one of {listed}")
    accepted = [parameter["name"] for parameter in describe(name)["parameters"]]
    given: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key in given:
            raise ValueError(f"set = {setting!r}: must be NAME=VALUE, each name once")
        if key not in accepted:
            listed = f"one of {', '.join(accepted)}" if accepted else f"left out: {name} has no parameters"
            raise ValueError(f"set = {setting!r}: {key} must be {listed}{suggestion(key, accepted)}")
        given[key] = value_of(text)
        if key == "told_graph" and given[key] is True:
            raise ValueError(f"set = {setting!r}: must be left out: a file has no true graph that could be told")
    return POLICIES[name](**given)


def value_of(text: str) -> Any:
    """A number, true or false, a list, as in a TOML file; else the word itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text

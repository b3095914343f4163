"""A policy from the command line: its name and its parameters."""

import tomllib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from spillover.cli.catalogue import describe
from spillover.contracts import Policy, as_policy
from spillover.hyperparameters import with_values
from spillover.policies import POLICIES, find_policy
from spillover.validate import suggestion

RECOMMENDED = "switching-sem"


def usable(policy: Policy) -> bool:
    """Whether the policy needs nothing but a history."""
    return not (policy.needs_world or policy.knows_graph or policy.randomised)


def usable_names() -> list[str]:
    return [name for name in POLICIES.names() if usable(as_policy(find_policy(name)()))]


def build_policy(name: str, settings: Sequence[str]) -> Policy:
    """The policy of that name (or module:Class) with the parameters set by NAME=VALUE; part.NAME for a part of it."""
    if not POLICIES.is_name(name):
        raise ValueError(
            f"policy = {name!r}: must be one of {', '.join(usable_names())}{suggestion(name, usable_names())}"
        )
    given: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key in given:
            raise ValueError(f"set = {setting!r}: must be NAME=VALUE, each name once")
        given[key] = parse_value(text)
    own = {key: value for key, value in given.items() if "." not in key}
    check_names(name, own, [parameter["name"] for parameter in describe(name)["parameters"]])
    policy = as_policy(find_policy(name)(**own))
    inner = {key: value for key, value in given.items() if "." in key}
    check_names(name, inner, part_names(policy))
    if not usable(policy):
        lacking = "needs what a file does not have, the true world or the probabilities of past decisions"
        raise ValueError(f"policy = {name!r}: {lacking}: must be one of {', '.join(usable_names())}")
    return as_policy(with_values(policy, inner))


def check_names(policy: str, given: dict[str, Any], accepted: list[str]) -> None:
    """Refuse a parameter that the policy does not have."""
    for key, value in given.items():
        if key not in accepted:
            known = f"one of {', '.join(accepted)}" if accepted else f"left out: {policy} has no such parameters"
            raise ValueError(f"set = '{key}={value}': {key} must be {known}{suggestion(key, accepted)}")


def part_names(policy: Any) -> list[str]:
    """The parameters of a policy's parts, such as graph.sparsity."""
    parts = {f.name: vars(policy)[f.name] for f in fields(policy)}
    return [f"{name}.{f.name}" for name, part in parts.items() if is_dataclass(part) for f in fields(part)]


def parse_value(text: str) -> Any:
    """A number, true or false, or a list, as in a TOML file; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text

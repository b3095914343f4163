"""A policy from its name and its parameters as text, as the command line and the service take them."""

import tomllib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from spillover.contracts import Policy, as_policy
from spillover.contracts.hyperparameters import hyperparameters, with_values
from spillover.experiments.toml_file import origin_of
from spillover.files import Excessive, parse_toml
from spillover.policies import POLICIES, find_policy
from spillover.validate import suggestion


def lacking(policy: Policy) -> str | None:
    """What a policy needs and a history does not have."""
    if policy.needs_world:
        return "needs the true world"
    if policy.knows_graph:
        return "needs the true graph"
    if policy.knows_structure:
        return "needs to know which edges there can be"
    if policy.randomised:
        return "needs the probabilities of past decisions"
    return None


def usable_names() -> list[str]:
    """Built-in policies that need no more than a history."""
    return [name for name, maker in POLICIES.items() if lacking(as_policy(maker())) is None]


def build_policy(name: str, settings: Sequence[str]) -> Policy:
    """The policy of that name (or module:Class) with the parameters set by NAME=VALUE; part.NAME for a part of it."""
    if not POLICIES.is_name(name):
        known = usable_names()
        raise ValueError(
            f"policy = {name!r}: must be one of {', '.join(known)} or module:Class{suggestion(name, known)}"
        )
    maker = find_policy(name)
    given: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key in given:
            raise ValueError(f"set = {setting!r}: must be NAME=VALUE, each name once")
        given[key] = parse_value(key, text)
    own = {key: value for key, value in given.items() if "." not in key}
    check_names(name, own, [f.name for f in hyperparameters(origin_of(maker))])
    try:
        policy = as_policy(maker(**own))
    except TypeError as error:  # abstract, or with a parameter that must be given
        raise ValueError(f"policy = {name!r}: must be a policy that these settings make: {error}") from error
    inner = {key: value for key, value in given.items() if "." in key}
    check_names(name, inner, part_names(policy))
    if (missing := lacking(policy)) is not None:
        raise ValueError(f"policy = {name!r}: {missing}, which a file does not have: must be another policy or setting")
    require_explanations(name, policy)
    return as_policy(with_values(policy, inner))


def require_explanations(name: str, policy: Policy) -> None:
    if not policy.explains:
        accepted = "derived from spillover.Policy, with an explain(state, rng) and explains = True"
        raise ValueError(f"policy = {name!r}: must explain its decisions: {accepted}")


def check_names(policy: str, given: dict[str, Any], accepted: list[str]) -> None:
    """Refuse a parameter that the policy does not have."""
    for key, value in given.items():
        if key not in accepted:
            known = f"one of {', '.join(accepted)}" if accepted else f"left out: {policy} has no such parameters"
            raise ValueError(f"set = '{key}={value}': {key} must be {known}{suggestion(key, accepted)}")


def part_names(policy: Any) -> list[str]:
    """The parameters of a policy's parts, such as graph.sparsity."""
    parts = {f.name: vars(policy)[f.name] for f in fields(policy)} if is_dataclass(policy) else {}
    return [f"{name}.{f.name}" for name, part in parts.items() if is_dataclass(part) for f in fields(part)]


def parse_value(key: str, text: str) -> Any:
    """A number, true or false, or a list, as in a TOML file; anything else is text."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except Excessive as error:
        raise ValueError(f"set = {key}=...: {error}") from None

"""A question to a history: the options of `spillover next`, also the settings of a stream of the service."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from spillover import validate
from spillover.constraints import Constraint
from spillover.constraints.search import EFFORT, check_effort
from spillover.contracts import AnyPolicy, Policy, as_policy
from spillover.contracts.hyperparameters import hyperparameters, with_values
from spillover.experiments.toml_file import origin_of
from spillover.files import Excessive, parse_toml
from spillover.policies import POLICIES, find_policy
from spillover.state import encode
from spillover.validate import suggestion


def to_json_types(value: Any) -> Any:
    """The same value in types that JSON has."""
    if isinstance(value, dict):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_json_types(item) for item in value]
    if isinstance(value, np.generic):
        return to_json_types(value.item())
    return encode(value) if isinstance(value, int | float | str | bool) or value is None else str(value)


def lacking(policy: Policy) -> str | None:
    """Name what a policy needs and a history does not have."""
    if policy.traits.needs_world:
        return "needs the true world"
    if policy.traits.knows_graph:
        return "needs the true graph"
    if policy.traits.knows_structure:
        return "needs to know which edges there can be"
    if policy.traits.randomised:
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
    if not policy.traits.explains:
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


RECOMMENDED = "switching-sem"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question: what to choose next, with which policy and under which limits.

    >>> Question(budget=2).named_policy is None  # the history says which policy suits it
    True
    """

    budget: int | None = None
    policy: str | AnyPolicy | None = None  # a name, module:Class or the policy; None: one that suits the history
    name: str | None = None  # of the policy, in the answer
    settings: tuple[str, ...] = ()  # NAME=VALUE: parameters of a policy that is named
    reward_range: tuple[float, float] | None = None
    overall_range: tuple[float, float] | None = None
    constraints: tuple[Constraint, ...] = ()
    effort: int | None = None
    seed: int = 0
    explore: bool = False  # choose as the policy explores, instead of by what is known alone
    round: str | None = None  # the name of the round to decide; None: the one that follows in the calendar
    by_command: bool = True  # whether hints name the options of the command

    def built_policy(self) -> Policy:
        """The policy, checked; the recommended one if none is named."""
        if self.policy is None or isinstance(self.policy, str):
            return build_policy(self.policy or RECOMMENDED, self.settings)
        return as_policy(self.policy)

    def check(self) -> None:
        """Refuse what no history could make right."""
        built = self.built_policy()
        for name, given in (("range", self.reward_range), ("overall-range", self.overall_range)):
            if given is not None:
                validate.value_range(name, given)
        if self.budget is not None:
            validate.whole("budget", self.budget, 1)
        if built.traits.needs_overall_range and self.overall_range is None:
            needs = "needs the range of y from the start: must be given with --overall-range LOW HIGH"
            raise ValueError(f"policy = {self.policy!r}: {needs}")

    @property
    def named_policy(self) -> Policy | None:
        """The policy that was asked for; None if the history is to say which one suits it."""
        return self.built_policy() if self.policy is not None or self.settings else None

    @property
    def policy_name(self) -> str:
        """The name of the policy that was asked for, in the answer."""
        return self.name if self.name is not None else str(self.policy or RECOMMENDED)

    @property
    def ranges(self) -> dict[str, Any]:
        """The ranges that were given."""
        given = {"reward_range": self.reward_range, "overall_range": self.overall_range}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def steps(self) -> int:
        """The number of steps that the search for a set may take."""
        return EFFORT if self.effort is None else self.effort


def search_effort(effort: int | None, *, constrained: bool) -> int:
    """Check the number of steps of the search for a set; there is no search without constraints."""
    if effort is None:
        return EFFORT
    check_effort(effort)
    accepted = "left out without --limits or --unavailable: there is nothing to search"
    validate.require(constrained, "effort", effort, accepted)
    return effort

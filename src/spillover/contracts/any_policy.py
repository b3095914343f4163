"""What may be given as a policy: an object with the four functions is enough. And whether it suits a problem."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final, runtime_checkable

from spillover.contracts.policy import Policy, Traits
from spillover.contracts.world import ScoredWorld
from spillover.rng import Rng
from spillover.types import Batch, BoolArray, Choice, Feedback, Problem, State


@runtime_checkable
class FourFunctions(Protocol):
    """A policy written without the base class."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State: ...
    def select(self, state: State, rng: Rng) -> Choice: ...
    def played(self, state: State, x: BoolArray) -> State: ...
    def update(self, state: State, feedback: Feedback, rng: Rng) -> State: ...


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Adapted(Policy):
    """Makes an object with the four functions a policy, with the defaults for everything else."""

    functions: Any

    traits = Traits(order_free=False)  # nothing is promised

    def __repr__(self) -> str:
        return repr(self.functions)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        return self.functions.init(problem, rng, batch)

    def select(self, state: State, rng: Rng) -> Choice:
        choice: Choice = self.functions.select(state, rng)
        return choice

    def played(self, state: State, x: BoolArray) -> State:
        return self.functions.played(state, x)

    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.functions.update(state, feedback, rng)


def as_policy(given: Any) -> Policy:
    """The given policy; an object with only the four functions is wrapped."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, type) or not isinstance(given, FourFunctions):
        raise TypeError(f"policy = {given!r}: must be a policy, such as NDCSEM()")
    return Adapted(functions=given)


def require_explains(policy: Policy, purpose: str) -> None:
    """Raise a TypeError for a policy without explanations."""
    if not policy.traits.explains:
        how = "derive it from spillover.Policy, implement `explain` and set `traits = Traits(explains=True)`"
        raise TypeError(f"policy = {policy!r}: must explain itself {purpose}: {how}")


def require_suits(policy: Policy, problem: Problem) -> None:
    """Raise a ValueError if a problem does not observe what a policy needs."""
    payoff = problem.observes == "payoff"
    if problem.observes != "both" and policy.traits.needs_rewards:
        needed = "the instantaneous rewards z"
    elif payoff and policy.traits.needs_outcomes:
        needed = "the outcome of each arm"
    else:
        return
    name, other = repr(policy).partition("(")[0], "PayoffRegression()" if payoff else "InstrumentalSEM()"
    raise ValueError(
        f"policy = {name}: must be one that does not need {needed}, such as {other}, as the problem observes "
        f"{problem.observes!r} only"
    )


def suited(policy: "AnyPolicy", problem: Problem, world: ScoredWorld | None = None) -> Policy:
    """The policy specialised to a problem; raises a ValueError if the problem does not observe what it needs."""
    player = as_policy(policy).for_problem(problem, world)
    require_suits(player, problem)
    return player


AnyPolicy: TypeAlias = Policy | FourFunctions  # what `as_policy` takes

"""What the parts are: a policy, a world, an environment, a delay.

The required functions of a policy are abstract. All else is optional: traits and methods with a default, which a
policy overrides where it has more to offer. Nothing asks a policy for its type or its name.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, final, runtime_checkable

import numpy as np

from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Outcome, Problem, State

EXPECTED_EFFECT = "expected total effect of playing the arm"


class Policy(ABC):
    """Four functions over arrays with a batch axis; the hyperparameters are the fields of a frozen dataclass.

    Nothing here changes its arguments, with one exception: `update` (and `learn`, `solve`, `catch_up`) may consume the
    state it is given and return the same arrays rewritten (`spillover.state.copy_state` keeps the old one).
    """

    @abstractmethod
    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State:
        """The state before the first round."""

    @abstractmethod
    def select(self, state: State, rng: Rng) -> Choice:
        """What it would play in the next round; changes nothing."""

    @abstractmethod
    def played(self, state: State, x: BoolArray) -> State:
        """Record the decision of a round: its own choice, a recorded one, or a person's override."""

    @abstractmethod
    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        """Learn the outcome of an earlier round, and be ready to decide."""

    # --- optional: what the policy is like -----------------------------------------------------------------------

    @property
    def order_free(self) -> bool:
        """Whether feedback leaves the same state in whatever order it arrives; `check_policy` tests it."""
        return True

    @property
    def grids(self) -> tuple[str, ...]:
        """Hyperparameters that may be arrays, which broadcast over the batch; "graph.sparsity" is one of a part."""
        return ()

    @property
    def quantity(self) -> str:
        """What the scores of its explanations are, in words."""
        return EXPECTED_EFFECT

    @property
    def randomised(self) -> bool:
        """Whether it learns from the probabilities of its own draws, so not from other people's decisions."""
        return False

    @property
    def needs_world(self) -> bool:
        """Whether it must know the world itself: a reference point, not a policy for use."""
        return False

    @property
    def knows_graph(self) -> bool:
        """Whether it must know the true weights (`Problem.weights`)."""
        return False

    @property
    def needs_overall_range(self) -> bool:
        """Whether it must know the range of y beforehand (`Problem.overall_range`)."""
        return False

    @property
    def learns_graph(self) -> bool:
        """Whether it estimates a graph, which `adjacency` returns."""
        return False

    @property
    def explains(self) -> bool:
        """Whether `explain` says why."""
        return False

    @property
    def reuses_memo(self) -> bool:
        """Whether the memo of one choice may stand for those of the rounds after it, when a history is replayed."""
        return False

    # --- optional: what it can do -------------------------------------------------------------------------------

    def learn(self, state: State, feedback: Feedback, rng: Rng) -> State:
        """Learn an outcome; what only decisions need may wait for `solve`."""
        return self.update(state, feedback, rng)

    def solve(self, state: State) -> State:
        """Derive what decisions need, such as the graph, from the outcomes learned so far."""
        return state

    def catch_up(self, state: State, rounds: Feedback, first: int, rng: Rng) -> State:
        """Learn many rounds of one learner in one call: the first axis, in order, each outcome in its own round.

        first: the number of the first of them. `solve` comes after it.
        """
        for row, x in enumerate(rounds.x):
            state = self.played(state, x)
            if rounds.arrived[row]:
                z, y, age, arrived = rounds.z[row], rounds.y[row], rounds.age[row], rounds.arrived[row]
                here = Feedback(x, z, y, np.array(age), np.array(arrived), rounds.probability, rounds.memo)
                state = self.learn(state, here, rng.at(Purpose.LEARNING, first + row))
        return state

    def explain(self, state: State, rng: Rng) -> Explanation:
        """The estimates behind the next decision; `rng` stands where that of `select` does."""
        raise NotImplementedError(f"policy = {self!r}: must have an explain(state, rng) to say why")

    def explain_choice(self, state: State, rng: Rng) -> Explanation:
        """The next decision and the estimates behind it; `rng` stands where that of `select` does."""
        return replace(self.explain(state, rng.restarted()), chosen=self.select(state, rng).x)

    def adjacency(self, state: State) -> Array:
        """The estimated graph, (*batch, n, n), of a policy that learns one."""
        raise NotImplementedError(f"policy = {self!r}: must learn a graph to have an adjacency(state)")

    def signals(self, state: State) -> dict[str, Any]:
        """What health checks can use; `spillover.policies.signals` lists the names."""
        return {}

    def with_world(self, world: "ScoredWorld") -> "Policy":
        """The policy in a given world; only a reference point makes use of it."""
        return self

    # --- optional: policies around a policy ----------------------------------------------------------------------

    @property
    def unconstrained(self) -> "Policy":
        """The policy itself, without constraints around it."""
        return self

    @property
    def constraints(self) -> tuple[Any, ...]:
        """The constraints that its choices keep besides the budget."""
        return ()

    @property
    def arms(self) -> tuple[str, ...] | None:
        """The names of the arms that its constraints use."""
        return None

    @property
    def effort(self) -> int | None:
        """Steps that the search for a set under its constraints may take; None without constraints."""
        return None


@runtime_checkable
class FourFunctions(Protocol):
    """A policy that was written without the base class."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> State: ...
    def select(self, state: State, rng: Rng) -> Choice: ...
    def played(self, state: State, x: BoolArray) -> State: ...
    def update(self, state: State, feedback: Feedback, rng: Rng) -> State: ...


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Adapted(Policy):
    """Four functions as a policy, with the default of everything else."""

    functions: Any

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
    """A policy, or any object with the four functions as one."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, type) or not isinstance(given, FourFunctions):
        raise TypeError(f"policy = {given!r}: must be a policy, such as NDCSEM()")
    return Adapted(functions=given)


def require_explains(policy: Policy, purpose: str) -> None:
    """Refuse a policy that cannot say why."""
    if not policy.explains:
        raise TypeError(f"policy = {policy!r}: must explain itself {purpose} (an `explain`, and `explains = True`)")


AnyPolicy: TypeAlias = Policy | FourFunctions  # what `as_policy` takes


@runtime_checkable
class World(Protocol):
    """One drawn world for each learner: graph, means and change points are fixed, rewards are still to come."""

    @property
    def problem(self) -> Problem: ...
    @property
    def horizon(self) -> int: ...
    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""

    @property
    def changes(self) -> tuple[int, ...]:
        """First rounds of the stationary periods after the first one."""

    @property
    def graph_changes(self) -> tuple[int, ...]:
        """First rounds of the graphs after the first one."""

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome: ...


@runtime_checkable
class ScoredWorld(World, Protocol):
    """A world that can say what a decision is worth, so that regret is defined."""

    def expected(self, t: int, x: BoolArray) -> Array:
        """Expected payoff of a decision, (*batch,)."""

    def best(self, t: int) -> BoolArray:
        """An optimal decision."""

    def matches(self, t: int, x: BoolArray) -> IntArray:
        """How many of the chosen arms belong to an optimal decision; of several optimal ones the nearest counts."""

    def adjacency(self, t: int) -> Array: ...
    def weights(self, t: int) -> Array:
        """1'(I - A)^-1 F, (*batch, n)."""


@runtime_checkable
class Environment(Protocol):
    """A family of worlds; a frozen dataclass."""

    def draw(self, rng: Rng, batch: Batch = ()) -> ScoredWorld: ...


class Delay(ABC):
    """How many rounds pass until the outcome of a round arrives; a frozen dataclass."""

    @abstractmethod
    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        """The delay of round t for each learner; `NEVER` where the outcome is lost."""

    @property
    def constant(self) -> int | None:
        """The delay of every round, where it is the same for all of them."""
        return None

    def check_reach(self, horizon: int, replications: int) -> None:  # noqa: B027 (optional: nothing to refuse)
        """Refuse a horizon or a number of replications that it has no delays for, before anything is played."""

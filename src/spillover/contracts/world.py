"""The contracts of a world and of an environment, a family of worlds; what follows for many rounds of a world."""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from spillover import kernels
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Course, IntArray, Outcome, Problem, Scored


@runtime_checkable
class World(Protocol):
    """One drawn world for each replication: graph, means and change points are fixed, rewards are drawn in `play`."""

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
class ContextualWorld(World, Protocol):
    """A world with context; worlds whose problem has `context = 0` need no such method."""

    def context(self, t: int) -> Array | None:
        """The context of round t, (*batch, k), known before it is played; None if the problem has none."""


@runtime_checkable
class ScoredWorld(World, Protocol):
    """A world that knows the expected payoff of every decision, so that regret is defined.

    The values of round t are those under the context of round t.
    """

    def expected(self, t: int, x: BoolArray) -> Array:
        """Expected payoff of a decision, (*batch,), without the baseline."""

    def best(self, t: int) -> BoolArray:
        """An optimal decision."""

    def matches(self, t: int, x: BoolArray) -> IntArray:
        """How many of the chosen arms belong to an optimal decision; if there are several, to the closest one."""

    def adjacency(self, t: int) -> Array: ...
    def weights(self, t: int) -> Array:
        """1'(I - A)^-1 F, (*batch, n)."""


@runtime_checkable
class StructuredWorld(ScoredWorld, Protocol):
    """A world that tells itself what a policy with `knows_structure` may know of its graph."""

    def structure(self) -> Array:
        """As `Problem.structure`, (*batch, n, n)."""


@runtime_checkable
class ScoredContextualWorld(ScoredWorld, ContextualWorld, Protocol):
    """A world with context in which regret is defined; an oracle whose knowledge is delayed needs it."""

    def scores(self, t: int, as_of: int) -> Array:
        """Expected payoff of each arm, (*batch, n), in the context of round t with graph and means of round `as_of`."""

    def best_set(self, scores: Array) -> BoolArray:
        """The feasible decision with the highest sum of scores."""


def require_context(world: World) -> ContextualWorld:
    """Raise a TypeError for a world that does not tell the context that its problem has."""
    if not isinstance(world, ContextualWorld):
        raise TypeError(f"world = {type(world).__name__}: must have a method context(t), as its problem has context")
    return world


def require_contextual(world: World) -> ScoredContextualWorld:
    """Raise a TypeError for a world that has a context but lacks the methods for it."""
    if not isinstance(world, ScoredContextualWorld):
        lacking = "context(t), scores(t, as_of) and best_set(scores), as its problem has context"
        raise TypeError(f"world = {type(world).__name__}: must have the methods {lacking}")
    return world


@runtime_checkable
class Environment(Protocol):
    """A family of worlds; a frozen dataclass."""

    def draw(self, rng: Rng, batch: Batch = ()) -> ScoredWorld: ...


@runtime_checkable
class ForeseeableWorld(ScoredWorld, Protocol):
    """A world that can draw many rounds in advance, because what they bring does not depend on the decisions."""

    def course(self, first: int, last: int, rng: Rng) -> Course | None:
        """What rounds first to last, which have the same graph, bring; None if that cannot be told in advance.

        rng: the streams of the world's batch. `play` must give the same outcomes, bit for bit, as far as the problem
        observes them.
        """

    def score_rounds(self, first: int, x: BoolArray) -> Scored:
        """Measure the decisions x, (*batch, rounds, n), of rounds first, first + 1, ..., as `score_each` does."""

    def best_of_rounds(self, rounds: IntArray) -> BoolArray:
        """Optimal decisions of one or more rounds, (*batch, rounds, n), as `best_of_each` finds them."""


@runtime_checkable
class SparseWorld(ScoredWorld, Protocol):
    """A world with many arms, whose graph is asked for as a list of edges instead of a matrix."""

    def edges(self, t: int) -> Any:
        """The graph of round t as a `scipy.sparse.coo_array`, (*batch, n, n)."""


def drawn(course: Course, first: int, last: int, rng: Rng) -> Course:
    """A course with the rewards of all arms, from one that leaves them to be drawn; rng: as that of `course`."""
    if course.law == kernels.DRAWN:
        return course
    rounds = np.arange(first, last + 1)[:, None]
    keys, every_arm = rng.keys[..., None, :], np.ones(course.rewards.shape[-1], np.bool_)
    rewards = kernels.draw_rewards(
        course.law, course.rewards, course.concentration, keys, rounds[:, 0].astype(np.uint64), every_arm
    )
    return course._replace(rewards=np.asarray(rewards), law=kernels.DRAWN)


def observed(outcome: Outcome, observes: str) -> Outcome:
    """The observed part of an outcome: z is NaN if it is not observed, y[..., 0] is the sum of y if only that is."""
    if observes == "both":
        return outcome
    y = outcome.y
    if observes == "payoff":
        y = np.zeros_like(outcome.y)
        y[..., 0] = kernels.payoff_of(outcome.y)
    return outcome._replace(z=np.full_like(outcome.z, np.nan), y=y)


def score_each(world: ScoredWorld, first: int, x: BoolArray) -> Scored:
    """Measure the decisions x, (*batch, rounds, n), of rounds first, first + 1, ... one after another."""
    regret, matches, possible = [], [], []
    for row in range(x.shape[-2]):
        t, decision = first + row, x[..., row, :]
        best = world.best(t)
        regret.append(world.expected(t, best) - world.expected(t, decision))
        matches.append(world.matches(t, decision))
        possible.append(best.sum(axis=-1))
    return Scored(*(np.stack(each, axis=-1) for each in (regret, matches, possible)))


def best_of_each(world: ScoredWorld, rounds: IntArray) -> BoolArray:
    """Optimal decisions of some rounds, (*batch, rounds, n), one after another."""
    return np.stack([world.best(int(t)) for t in rounds], axis=-2)

"""The contracts of a world and of an environment, a family of worlds."""

from typing import Protocol, runtime_checkable

from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, IntArray, Outcome, Problem


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

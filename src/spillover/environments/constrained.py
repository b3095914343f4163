"""Worlds with constraints on the decisions: regret is measured against the best feasible set."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spillover.constraints import check_constraints
from spillover.constraints.search import best_set, check_feasible
from spillover.contracts import ScoredContextualWorld, ScoredWorld, require_contextual
from spillover.contracts.world import ForeseeableWorld, SparseWorld, best_of_each, score_each
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Course, IntArray, Outcome, Problem, Scored


@dataclass(frozen=True, kw_only=True)
class ConstrainedSEM:
    """The worlds of an environment, with the best feasible set as the reference for regret.

    Policies do not know the constraints: wrap a policy in `Constrained` to make it satisfy them.

    >>> import spillover as sp
    >>> from spillover.constraints import Exclusive
    >>> free = sp.FixedSEM(adjacency=np.zeros((3, 3)), means=[0.9, 0.8, 0.1], budget=2)
    >>> world = ConstrainedSEM(environment=free, constraints=(Exclusive([0, 1]),)).draw(sp.Rng(0))
    >>> world.best(1).astype(int)
    array([1, 0, 1])
    """

    environment: Any
    constraints: Sequence[Any]
    arms: Sequence[str] | None = None  # names, if constraints use them

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", check_constraints(self.constraints))

    def draw(self, rng: Rng, batch: Batch = ()) -> "ConstrainedWorld":
        world = self.environment.draw(rng, batch)
        names = self.arms if self.arms is not None else world.arms
        check_feasible(self.constraints, world.problem.n_arms, world.problem.budget, names)
        kind = ConstrainedManyArms if isinstance(world, SparseWorld) else ConstrainedWorld
        return kind(world=world, constraints=tuple(self.constraints), arms=tuple(names))


@dataclass(frozen=True, kw_only=True)
class ConstrainedWorld:
    """A world with another best set; everything else is delegated to the world inside."""

    world: ScoredWorld
    constraints: tuple[Any, ...]
    arms: tuple[str, ...]
    cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def problem(self) -> Problem:
        return self.world.problem

    @property
    def horizon(self) -> int:
        return self.world.horizon

    @property
    def changes(self) -> tuple[int, ...]:
        return self.world.changes

    @property
    def graph_changes(self) -> tuple[int, ...]:
        return self.world.graph_changes

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        return self.world.play(t, x, rng)

    def course(self, first: int, last: int, rng: Rng) -> Course | None:
        return self.world.course(first, last, rng) if isinstance(self.world, ForeseeableWorld) else None

    def score_rounds(self, first: int, x: BoolArray) -> Scored:
        return score_each(self, first, x)

    def best_of_rounds(self, rounds: IntArray) -> BoolArray:
        return best_of_each(self, rounds)

    def adjacency(self, t: int) -> Array:
        return self.world.adjacency(t)

    def weights(self, t: int) -> Array:
        return self.world.weights(t)

    def context(self, t: int) -> Array | None:
        return require_contextual(self.world).context(t)

    def scores(self, t: int, as_of: int) -> Array:
        return require_contextual(self.world).scores(t, as_of)

    def best_set(self, scores: Array) -> BoolArray:
        return best_set(scores, self.world.problem.budget, self.constraints, Rng(0), arms=self.arms)

    def payoffs(self, t: int) -> Array:
        """The expected payoff of each arm, (*batch, n): the payoff is linear in the decision."""
        if isinstance(self.world, ScoredContextualWorld):
            return self.world.scores(t, t)
        n, batch = self.world.problem.n_arms, self.world.best(t).shape[:-1]
        alone = np.eye(n, dtype=np.bool_).reshape(n, *(1 for _ in batch), n)
        return np.moveaxis(np.asarray(self.world.expected(t, np.broadcast_to(alone, (n, *batch, n)))), 0, -1)

    def best(self, t: int) -> BoolArray:
        if self.cache.get("t") != t:
            scores = self.payoffs(t)
            # search again only if the scores have changed
            if not np.array_equal(self.cache.get("scores", ()), scores):
                self.cache.update(scores=scores, best=self.best_set(scores))
            self.cache["t"] = t
        best: BoolArray = self.cache["best"]
        return best

    def expected(self, t: int, x: BoolArray) -> Array:
        return self.world.expected(t, x)

    def matches(self, t: int, x: BoolArray) -> IntArray:
        """Count the chosen arms in the best set; all of them if the decision is equally good."""
        best = self.best(t)
        reached = self.expected(t, x) >= self.expected(t, best) * (1 - 1e-12)
        shared, size = (x & best).sum(axis=-1), np.broadcast_to(best.sum(axis=-1), x.shape[:-1])
        return np.where(reached, size, shared)


@dataclass(frozen=True, kw_only=True)
class ConstrainedManyArms(ConstrainedWorld):
    """A constrained world around one that tells its graph as a list of edges."""

    world: SparseWorld

    def edges(self, t: int) -> Any:
        return self.world.edges(t)

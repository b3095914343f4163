"""The paper's graph learner with its sparsity chosen online as the paper's Covid-19 study chooses it."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover.graph.core import CoreGraph
from spillover.graph.edges import ROW_BOUND
from spillover.graph.learner import GraphTraits
from spillover.graph.tuned import AUTO_GRID, HELD_OUT_EVERY, HELD_OUT_PHASE, SelfTunedGraph, TunedGraph, take_fit
from spillover.types import Batch, Finite, IntArray, Problem, Round, Within

HELD_OUT_KEPT = 32  # rounds: absolute errors cannot be had from sums over rounds, and the state must not grow


class PaperTunedState(NamedTuple):
    """The fits of all sparsities, and the held-out rounds themselves.

    >>> import spillover as sp
    >>> PaperTunedGraph().init(sp.Problem(n_arms=3, budget=1)).tuned.adjacency.shape
    (3, 3)
    """

    tuned: TunedGraph
    held_rest: Finite  # (*batch, HELD_OUT_KEPT, n): y - z, times the round's weight; 0 in empty places
    held_overall: Finite  # (*batch, HELD_OUT_KEPT, n): y, likewise
    held_at: Round  # (*batch, HELD_OUT_KEPT): the round of play; 0 in empty places
    choice: Annotated[IntArray, Within(0, len(AUTO_GRID) - 1)]  # (*batch,): position in the grid
    adjacency: Finite  # of the chosen fit
    weights: Finite


@dataclass(frozen=True, kw_only=True)
class PaperTunedGraph(CoreGraph):
    """The sparsity with the lowest error eps(t) = sum ||y - A y - z||_1 / (N K(t)) over K(t) held-out rounds.

    One round of play in ten is held out, and the last 32 of those that have arrived count. The smallest sparsity is
    used while there is none, and the smallest of those with equal errors. `SelfTunedGraph` has the same held-out
    rounds and another rule.

    >>> import spillover as sp
    >>> PaperTunedGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    row_bound: float | None = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    signed: bool = False

    allocates = False
    parts = ("grid",)

    @property
    def bounded(self) -> bool:
        return self.row_bound is not None

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(deferrable=True, signed=self.signed, bounded=self.bounded)

    def __post_init__(self) -> None:
        _ = self.grid  # validates the parameters

    @cached_property
    def grid(self) -> SelfTunedGraph:
        return SelfTunedGraph(
            row_bound=self.row_bound, required=self.required, forbidden=self.forbidden, signed=self.signed
        )

    def init(self, problem: Problem, batch: Batch = ()) -> PaperTunedState:
        tuned, kept = self.grid.init(problem, batch), (*batch, HELD_OUT_KEPT)
        return PaperTunedState(
            tuned=tuned,
            held_rest=np.zeros((*kept, problem.n_arms)),
            held_overall=np.zeros((*kept, problem.n_arms)),
            held_at=np.zeros(kept, np.int64),
            choice=tuned.choice.copy(),
            adjacency=tuned.adjacency.copy(),
            weights=tuned.weights.copy(),
        )

    def prepare(self, g: Any) -> Any:
        return self.grid.prepare(g.tuned)

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        self.grid.absorb_outcome(g.tuned, lesson, expected, weight, room)
        if lesson.round % HELD_OUT_EVERY == HELD_OUT_PHASE:
            # a round has its own place, which only a later one takes: the order of arrival does not matter
            place = (lesson.round // HELD_OUT_EVERY) % HELD_OUT_KEPT
            if lesson.round >= g.held_at[place]:
                g.held_at[place] = lesson.round
                for i in range(g.weights.shape[0]):
                    g.held_rest[place, i] = weight * (lesson.y[i] - lesson.z[i])
                    g.held_overall[place, i] = weight * lesson.y[i]

    def derive(self, g: Any, room: Any) -> None:
        self.grid.fit_all(g.tuned, room)
        fits, least = g.tuned.fits, math.inf
        for k in range(fits.bound.shape[0]):
            error = 0.0  # dividing by N K(t) changes no comparison
            for round in range(HELD_OUT_KEPT):
                for i in range(g.weights.shape[0]):
                    left = g.held_rest[round, i]
                    for j in range(g.weights.shape[0]):
                        left -= fits.adjacency[k, i, j] * g.held_overall[round, j]
                    error += abs(left)
            if error < least:
                least, g.choice = error, k
        take_fit(fits, g.choice, g.adjacency, g.weights)

    def signals(self, graph: PaperTunedState) -> dict[str, Any]:
        """Held-out rounds included."""
        return self.grid.signals(graph.tuned)

"""The paper's graph learner with its sparsity chosen online as the paper's Covid-19 study chooses it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover.graph.edges import ROW_BOUND
from spillover.graph.learner import GraphLearner
from spillover.graph.tuned import AUTO_GRID, HELD_OUT_EVERY, SelfTunedGraph, TunedGraph, held_out, pick
from spillover.types import Array, Batch, BoolArray, Finite, IntArray, Problem, Round, Within

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
class PaperTunedGraph(GraphLearner):
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

    deferrable = True

    @property
    def bounded(self) -> bool:
        return self.row_bound is not None

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

    def absorb(
        self, graph: PaperTunedState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> PaperTunedState:
        graph = graph._replace(tuned=self.grid.absorb(graph.tuned, z, y, weight, played_at))
        held = held_out(weight, played_at)
        if not held.any():
            return graph
        at = np.broadcast_to(played_at, held.shape)[..., None]
        # a round has its own place, which only a later one takes: the order of arrival does not matter
        place = (at // HELD_OUT_EVERY) % HELD_OUT_KEPT == np.arange(HELD_OUT_KEPT)
        new = held[..., None] & place & (at >= graph.held_at)
        kept = np.asarray(weight, float)[..., None, None]
        return graph._replace(
            held_rest=np.where(new[..., None], kept * (y - z)[..., None, :], graph.held_rest),
            held_overall=np.where(new[..., None], kept * y[..., None, :], graph.held_overall),
            held_at=np.where(new, at, graph.held_at),
        )

    def solve(self, graph: PaperTunedState) -> PaperTunedState:
        fits = self.grid.fitter.solve(graph.tuned.fits)
        predicted = graph.held_overall[..., None, :, :] @ np.swapaxes(fits.adjacency, -1, -2)
        error = np.abs(graph.held_rest[..., None, :, :] - predicted).sum(axis=(-2, -1))
        choice = np.asarray(np.argmin(error, axis=-1), np.int64)  # dividing by N K(t) changes no comparison
        adjacency, weights = pick(fits, choice)
        return graph._replace(choice=choice, adjacency=adjacency, weights=weights)

    def gram(self, graph: PaperTunedState) -> Array:
        """Held-out rounds included."""
        return self.grid.gram(graph.tuned)

    def forget(self, graph: PaperTunedState, rows: BoolArray) -> PaperTunedState:
        tuned = self.grid.forget(graph.tuned, rows)
        return PaperTunedState(
            tuned=tuned,
            held_rest=np.where(rows[..., None, None], 0.0, graph.held_rest),
            held_overall=np.where(rows[..., None, None], 0.0, graph.held_overall),
            held_at=np.where(rows[..., None], 0, graph.held_at),
            choice=np.where(rows, 0, graph.choice),
            adjacency=np.where(rows[..., None, None], 0.0, graph.adjacency),
            weights=np.where(rows[..., None], 1.0, graph.weights),
        )

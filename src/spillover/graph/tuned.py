"""The paper's graph learner with its sparsity chosen online, by prediction on held-out rounds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from spillover.core.compiled import inner
from spillover.graph.core import CoreGraph
from spillover.graph.edges import ROW_BOUND
from spillover.graph.learner import GraphTraits
from spillover.graph.sparse import Graph, SparseGraph
from spillover.kernels.evidence import total
from spillover.kernels.graph import (
    absorb_outcome,
    clear_fit,
    drop_infinite_weights,
    refit,
    room_for_refit,
    squared_error,
)
from spillover.types import Amount, Batch, Finite, IntArray, Problem, Round, Within

AUTO_GRID = np.logspace(-5, 6, 12)
HELD_OUT_EVERY = 10
HELD_OUT_PHASE = 5


class TunedGraph(NamedTuple):
    """A fit for each sparsity of a grid, and statistics of the held-out rounds.

    >>> import spillover as sp
    >>> graph = SelfTunedGraph().init(sp.Problem(n_arms=3, budget=1))
    >>> graph.fits.adjacency.shape, graph.adjacency.shape  # all sparsities, and the one in use
    ((12, 3, 3), (3, 3))
    """

    fits: Graph  # batch (*batch, len(grid))
    held_gram: Finite  # (*batch, n, n)
    held_cross: Finite  # (*batch, n, n): sum (y - z) y'
    held_energy: Amount  # (*batch, n): sum (y - z)^2
    held_rounds: Round  # (*batch,)
    choice: Annotated[IntArray, Within(0, len(AUTO_GRID) - 1)]  # (*batch,): position in the grid
    adjacency: Finite  # of the chosen fit
    weights: Finite


@dataclass(frozen=True, kw_only=True)
class SelfTunedGraph(CoreGraph):
    """The sparsity is chosen online, by squared prediction error on rounds held out of the fit.

    One round of play in ten is held out. The largest sparsity whose error is within 1% of the lowest is used; the
    smallest one while no held-out round has arrived, or while all errors are equally good.

    >>> import spillover as sp
    >>> sp.NDCSEM(graph="self-tuned").graph == SelfTunedGraph()
    True
    """

    row_bound: float | None = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    signed: bool = False

    allocates = False
    constants: ClassVar[Mapping[str, int]] = {"bounded": 0}
    helpers = ("fit_all",)

    @property
    def bounded(self) -> bool:
        return self.row_bound is not None

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(deferrable=True, signed=self.signed, bounded=self.bounded)

    def __post_init__(self) -> None:
        _ = self.fitter  # validates the parameters

    @cached_property
    def fitter(self) -> SparseGraph:
        return SparseGraph(
            sparsity=AUTO_GRID,
            row_bound=self.row_bound,
            required=self.required,
            forbidden=self.forbidden,
            signed=self.signed,
        )

    def init(self, problem: Problem, batch: Batch = ()) -> TunedGraph:
        n = problem.n_arms
        for_grid = problem._replace(reward_range=np.asarray(problem.reward_range, float)[..., None, :])
        return TunedGraph(
            fits=self.fitter.init(for_grid, (*batch, len(AUTO_GRID))),
            held_gram=np.zeros((*batch, n, n)),
            held_cross=np.zeros((*batch, n, n)),
            held_energy=np.zeros((*batch, n)),
            held_rounds=np.zeros(batch, np.int64),
            choice=np.zeros(batch, np.int64),
            adjacency=np.zeros((*batch, n, n)),
            weights=np.ones((*batch, n)),
        )

    # --- one graph --------------------------------------------------------------------------------------------------

    def prepare(self, g: Any) -> Any:
        return room_for_refit(g.weights.shape[0]), np.empty(g.fits.bound.shape[0])

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        fits, z, y, n = g.fits, lesson.z, lesson.y, g.weights.shape[0]
        if lesson.round % HELD_OUT_EVERY != HELD_OUT_PHASE:
            for k in range(fits.bound.shape[0]):
                absorb_outcome(fits.gram[k], fits.residual[k], fits.adjacency[k], z, y, weight, False, room[0][0])
            return
        for i in range(n):
            rest = y[i] - z[i]
            g.held_energy[i] += weight * rest**2
            for j in range(n):
                g.held_gram[i, j] += weight * y[i] * y[j]
                g.held_cross[i, j] += weight * rest * y[j]
        g.held_rounds += 1

    def derive(self, g: Any, room: Any) -> None:
        error = room[1]
        self.fit_all(g, room)
        for k in range(error.shape[0]):
            error[k] = squared_error(g.held_gram, g.held_cross, g.held_energy, g.fits.adjacency[k])
        g.choice = largest_near_best(error, total(g.held_energy))
        take_fit(g.fits, g.choice, g.adjacency, g.weights)

    def fit_all(self, g: Any, room: Any) -> None:
        """Solve the graph problem for each sparsity."""
        fits, (work, _) = g.fits, room
        for k in range(fits.bound.shape[0]):
            for i in range(g.weights.shape[0]):
                work[1][i] = 0.0  # nothing is kept from one fit to the next
            refit(
                fits.gram[k], fits.residual[k], fits.adjacency[k], fits.pressure[k], fits.weights[k], fits.penalty[k],
                fits.bound[k], fits.acyclic[k], self.signed, work, False,
            )  # fmt: skip
            if not self.bounded:
                drop_infinite_weights(fits.adjacency[k], fits.weights[k], work[0])

    def forget_all(self, g: Any, room: Any) -> None:
        fits = g.fits
        for k in range(fits.bound.shape[0]):
            clear_fit(fits.gram[k], fits.residual[k], fits.adjacency[k], fits.pressure[k], fits.weights[k], room[0])
        for i in range(g.weights.shape[0]):
            g.held_energy[i], g.weights[i] = 0.0, 1.0
            for j in range(g.weights.shape[0]):
                g.held_gram[i, j] = g.held_cross[i, j] = g.adjacency[i, j] = 0.0
        g.held_rounds = g.choice = 0

    # --- many ---------------------------------------------------------------------------------------------------------

    def signals(self, graph: TunedGraph) -> dict[str, Any]:
        """Held-out rounds included."""
        return {"gram": np.asarray(graph.fits.gram[..., 0, :, :] + graph.held_gram)}


@inner
def take_fit(fits: Any, choice: Any, adjacency: Any, weights: Any) -> None:
    """Copy adjacency and weights of the chosen fit."""
    for i in range(weights.shape[0]):
        weights[i] = fits.weights[choice, i]
        for j in range(weights.shape[0]):
            adjacency[i, j] = fits.adjacency[choice, i, j]


@inner
def largest_near_best(error: Any, energy: Any) -> Any:
    """Position of the last entry within 1% of the lowest; 0 if all of them are.

    An exact fit leaves rounding errors, which may be negative, so errors below 1e-12 of the energy count as equal.

    >>> int(largest_near_best(np.array([1.0, 1.001, 2.0]), energy=10.0))
    1
    """
    least, last, all_near = max(error.min(), 0.0), 0, True
    for k in range(error.shape[0]):
        near = error[k] <= 1.01 * least + 1e-12 * energy
        all_near &= near
        last = k if near else last
    return 0 if all_near else last


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
class PaperTunedGraph(SelfTunedGraph):
    """The sparsity with the lowest error eps(t) = sum ||y - A y - z||_1 / (N K(t)) over K(t) held-out rounds.

    One round of play in ten is held out, and the last 32 of those that have arrived count. The smallest sparsity is
    used while there is none, and the smallest of those with equal errors. `SelfTunedGraph` has the same held-out
    rounds and another rule.

    >>> import spillover as sp
    >>> PaperTunedGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    parts = ("grid",)

    def __post_init__(self) -> None:
        _ = self.grid  # validates the parameters

    @cached_property
    def grid(self) -> SelfTunedGraph:
        return SelfTunedGraph(
            row_bound=self.row_bound, required=self.required, forbidden=self.forbidden, signed=self.signed
        )

    def init(self, problem: Problem, batch: Batch = ()) -> Any:
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

    def signals(self, graph: Any) -> dict[str, Any]:
        """Held-out rounds included."""
        return self.grid.signals(graph.tuned)

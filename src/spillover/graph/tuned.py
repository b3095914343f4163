"""The paper's graph learner with its sparsity chosen online, by prediction on held-out rounds."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover import kernels
from spillover.graph.edges import ROW_BOUND
from spillover.graph.learner import GraphLearner
from spillover.graph.sparse import Graph, SparseGraph
from spillover.types import Amount, Array, Batch, BoolArray, Finite, IntArray, Problem, Round, Within

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
class SelfTunedGraph(GraphLearner):
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

    deferrable = True

    @property
    def bounded(self) -> bool:
        return self.row_bound is not None

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

    def absorb(
        self, graph: TunedGraph, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> TunedGraph:
        held = held_out(weight, played_at)
        fits, fitted = graph.fits, np.where(held, 0.0, weight)
        z, y = np.ascontiguousarray(z), np.ascontiguousarray(y)
        kernels.absorb(fits.gram, fits.residual, fits.adjacency, z[..., None, :], y[..., None, :], fitted[..., None])
        if not held.any():
            return graph
        kept, rest = np.where(held, weight, 0.0)[..., None], y - z
        return graph._replace(
            held_gram=graph.held_gram + (kept * y)[..., :, None] * y[..., None, :],
            held_cross=graph.held_cross + (kept * rest)[..., :, None] * y[..., None, :],
            held_energy=graph.held_energy + kept * rest**2,
            held_rounds=graph.held_rounds + held,
        )

    def solve(self, graph: TunedGraph) -> TunedGraph:
        fits = self.fitter.solve(graph.fits)
        error = kernels.squared_error(
            graph.held_gram[..., None, :, :],
            graph.held_cross[..., None, :, :],
            graph.held_energy[..., None, :],
            fits.adjacency,
        )
        choice = largest_near_best(error, graph.held_energy.sum(axis=-1))
        adjacency, weights = pick(fits, choice)
        return graph._replace(choice=choice, adjacency=adjacency, weights=weights)

    def gram(self, graph: TunedGraph) -> Array:
        """Held-out rounds included."""
        return np.asarray(graph.fits.gram[..., 0, :, :] + graph.held_gram)

    def forget(self, graph: TunedGraph, rows: BoolArray) -> TunedGraph:
        self.fitter.forget(graph.fits, rows)
        return graph._replace(
            held_gram=np.where(rows[..., None, None], 0.0, graph.held_gram),
            held_cross=np.where(rows[..., None, None], 0.0, graph.held_cross),
            held_energy=np.where(rows[..., None], 0.0, graph.held_energy),
            held_rounds=np.where(rows, 0, graph.held_rounds),
            choice=np.where(rows, 0, graph.choice),
            adjacency=np.where(rows[..., None, None], 0.0, graph.adjacency),
            weights=np.where(rows[..., None], 1.0, graph.weights),
        )


def held_out(weight: Array | BoolArray, played_at: IntArray) -> BoolArray:
    """Whether the rounds that have arrived are held out of the fit, (*batch,)."""
    return np.asarray((played_at % HELD_OUT_EVERY == HELD_OUT_PHASE) & (np.asarray(weight, float) > 0))


def pick(fits: Graph, choice: IntArray) -> tuple[Array, Array]:
    """Adjacency and weights of the chosen fit of each row of the batch."""
    picked = choice[..., None, None]
    adjacency = np.take_along_axis(fits.adjacency, picked[..., None], axis=-3)[..., 0, :, :]
    return adjacency, np.take_along_axis(fits.weights, picked, axis=-2)[..., 0, :]


def largest_near_best(error: Array, energy: Array) -> IntArray:
    """Position of the last entry within 1% of the lowest; 0 if all of them are.

    An exact fit leaves rounding errors, which may be negative, so errors below 1e-12 of the energy count as equal.

    >>> largest_near_best(np.array([1.0, 1.001, 2.0]), energy=np.array(10.0)).item()
    1
    """
    least = np.maximum(error.min(axis=-1, keepdims=True), 0.0)
    near = error <= 1.01 * least + 1e-12 * energy[..., None]
    last = error.shape[-1] - 1 - np.argmax(near[..., ::-1], axis=-1)
    return np.asarray(np.where(near.all(axis=-1), 0, last))

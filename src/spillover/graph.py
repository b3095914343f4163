"""Learning the graph (eq. Optimization-A): sufficient statistics in, adjacency and weights out.

Row i of the estimate minimises a'Ga - 2c'a + sparsity * sum(a) over a >= 0 on the columns allowed for it, with
G = sum y y' and c = sum (y_i - z_i) y. G and the residual correlations Q = (Y - Z)Y' - A G are kept by rank-one
updates, so a round costs the same however many came before; rows whose optimality conditions still hold are skipped.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from spillover import kernels, validate
from spillover.types import Array, Batch, BoolArray, IntArray, Problem

ROW_BOUND = 0.95
AUTO_GRID = np.logspace(-5, 6, 12)
HELD_OUT_EVERY = 10
HELD_OUT_PHASE = 5


class Graph(NamedTuple):
    """Sufficient statistics and the current minimiser."""

    gram: Array  # (*batch, n, n): G
    residual: Array  # (*batch, n, n): Q = (Y - Z)Y' - A G
    adjacency: Array  # (*batch, n, n): A[i, j] is the effect of arm j on arm i
    pressure: Array  # (*batch, n): multiplier of each row's bound
    weights: Array  # (*batch, n): 1'(I - A)^-1
    penalty: Array  # (*batch, n, n): sparsity / 2; 0 for edges known to exist, inf for impossible ones
    bound: Array  # (*batch,): most that a row may sum to
    acyclic: BoolArray  # (*batch,)


class TunedGraph(NamedTuple):
    """A fit for each sparsity of a grid, and what the held-out rounds say of them."""

    fits: Graph  # batch (*batch, len(grid))
    held_gram: Array  # (*batch, n, n)
    held_cross: Array  # (*batch, n, n): sum (y - z) y'
    held_energy: Array  # (*batch, n): sum (y - z)^2
    held_rounds: IntArray  # (*batch,)
    choice: IntArray  # (*batch,): position in the grid
    adjacency: Array  # of the chosen fit
    weights: Array


class GraphLearner(Protocol):
    """Exchangeable learners of the graph; a learned graph has at least `adjacency` and `weights`."""

    def init(self, problem: Problem, batch: Batch = ()) -> Any: ...
    def absorb(self, graph: Any, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray) -> Any: ...
    def solve(self, graph: Any) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class SparseGraph:
    """The paper's learner at a fixed sparsity (its lambda); absorb and solve rewrite the graph they are given.

    `required` and `forbidden` are boolean (n, n) masks of edges known to exist (never penalised) and known to be
    impossible. Without a known order (`Problem(acyclic=False)`) each row of A sums to at most `row_bound`, so that
    the spill-over dies out and weights exist.
    """

    sparsity: Any = 1e-3
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None

    def __post_init__(self) -> None:
        validate.number("sparsity", self.sparsity, 'a finite number >= 0, or "auto"', low=0, high=np.inf)
        validate.number("row_bound", self.row_bound, "a number strictly between 0 and 1", low=0, high=1, open_ends=True)
        validate.require(np.ndim(self.row_bound) == 0, "row_bound", self.row_bound, "a single number")

    def init(self, problem: Problem, batch: Batch = ()) -> Graph:
        n = problem.n_arms
        square, line = (*batch, n, n), (*batch, n)
        penalty = np.zeros(square)
        penalty += np.asarray(self.sparsity, float)[..., None, None] / 2
        penalty[..., edge_mask("required", self.required, n)] = 0.0
        penalty[..., impossible_edges(problem, self.required, self.forbidden)] = np.inf
        return Graph(
            gram=np.zeros(square),
            residual=np.zeros(square),
            adjacency=np.zeros(square),
            pressure=np.zeros(line),
            weights=np.ones(line),
            penalty=penalty,
            bound=np.full(batch, np.inf if problem.acyclic else self.row_bound),
            acyclic=np.full(batch, problem.acyclic),
        )

    def absorb(self, graph: Graph, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray) -> Graph:
        z, y = np.ascontiguousarray(z), np.ascontiguousarray(y)
        kernels.absorb(graph.gram, graph.residual, graph.adjacency, z, y, weight)
        return graph

    def solve(self, graph: Graph) -> Graph:
        kernels.fit(
            graph.gram,
            graph.residual,
            graph.adjacency,
            graph.pressure,
            graph.weights,
            graph.penalty,
            graph.bound,
            graph.acyclic,
        )
        return graph


class EmptyGraph(NamedTuple):
    """No edges: every arm's weight is 1."""

    adjacency: Array  # (*batch, n, n)
    weights: Array  # (*batch, n)


@dataclass(frozen=True, kw_only=True)
class NoGraph:
    """Learns no graph: what a policy is without one."""

    def init(self, problem: Problem, batch: Batch = ()) -> EmptyGraph:
        n = problem.n_arms
        return EmptyGraph(np.zeros((*batch, n, n)), np.ones((*batch, n)))

    def absorb(self, graph: EmptyGraph, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray) -> EmptyGraph:
        return graph

    def solve(self, graph: EmptyGraph) -> EmptyGraph:
        return graph


@dataclass(frozen=True, kw_only=True)
class SelfTunedGraph:
    """`sparsity="auto"`: the sparsity is chosen online by squared prediction error on rounds held out of the fit.

    One round in ten is held out, by its round of play. Of the sparsities whose error is within 1% of the best the
    largest is taken; the smallest while nothing held out has arrived, or while it cannot tell them apart.
    """

    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None

    @cached_property
    def fitter(self) -> SparseGraph:
        return SparseGraph(
            sparsity=AUTO_GRID, row_bound=self.row_bound, required=self.required, forbidden=self.forbidden
        )

    def init(self, problem: Problem, batch: Batch = ()) -> TunedGraph:
        n = problem.n_arms
        return TunedGraph(
            fits=self.fitter.init(problem, (*batch, len(AUTO_GRID))),
            held_gram=np.zeros((*batch, n, n)),
            held_cross=np.zeros((*batch, n, n)),
            held_energy=np.zeros((*batch, n)),
            held_rounds=np.zeros(batch, np.int64),
            choice=np.zeros(batch, np.int64),
            adjacency=np.zeros((*batch, n, n)),
            weights=np.ones((*batch, n)),
        )

    def absorb(self, graph: TunedGraph, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray) -> TunedGraph:
        held = (moment % HELD_OUT_EVERY == HELD_OUT_PHASE) & (weight > 0)
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
        picked = choice[..., None, None]
        return graph._replace(
            choice=choice,
            adjacency=np.take_along_axis(fits.adjacency, picked[..., None], axis=-3)[..., 0, :, :],
            weights=np.take_along_axis(fits.weights, picked, axis=-2)[..., 0, :],
        )


def largest_near_best(error: Array, energy: Array) -> IntArray:
    """Position of the last entry within 1% of the least; 0 where all of them are.

    An exact fit leaves rounding, which may be negative: errors below 1e-12 of what there was to predict are alike.
    """
    least = np.maximum(error.min(axis=-1, keepdims=True), 0.0)
    near = error <= 1.01 * least + 1e-12 * energy[..., None]
    last = error.shape[-1] - 1 - np.argmax(near[..., ::-1], axis=-1)
    return np.asarray(np.where(near.all(axis=-1), 0, last))


def graph_learner(
    sparsity: Any, row_bound: float = ROW_BOUND, required: Any = None, forbidden: Any = None
) -> GraphLearner:
    """The learner that the parameters of a policy ask for."""
    shared = {"row_bound": row_bound, "required": required, "forbidden": forbidden}
    if isinstance(sparsity, str):
        validate.require(sparsity == "auto", "sparsity", sparsity, 'a finite number >= 0, or "auto"')
        return SelfTunedGraph(**shared)
    return SparseGraph(sparsity=sparsity, **shared)


def edge_mask(name: str, edges: Any, n: int) -> BoolArray:
    """An (n, n) mask of edges, all False when none are given."""
    if edges is None:
        return np.zeros((n, n), np.bool_)
    return validate.decision(name, edges, (n, n))


def impossible_edges(problem: Problem, required: Any, forbidden: Any) -> BoolArray:
    """Edges that cannot be: self-loops, against the order of an acyclic graph, or known to be impossible."""
    n = problem.n_arms
    outside = np.tri(n, dtype=np.bool_) if problem.acyclic else np.eye(n, dtype=np.bool_)
    outside |= edge_mask("forbidden", forbidden, n)
    clash = np.argwhere(outside & edge_mask("required", required, n))
    if len(clash):
        i, j = clash[0]
        raise ValueError(
            f"required[{i}, {j}] = True: must be False for an edge that is forbidden, a self-loop, "
            "or against the order of an acyclic graph (an edge j -> i needs i < j)"
        )
    return outside

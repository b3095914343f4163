"""ExampleGraph, a graph learner to start from: ridge regression of each arm's spill-over on all outcomes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.graph import GraphLearner
from spillover.graph.edges import ROW_BOUND, impossible_edges
from spillover.graph.learner import largest_reward
from spillover.types import Array, Batch, BoolArray, IntArray, Problem


class ExampleGraphState(NamedTuple):
    """All that is learned: arrays whose first axes are the batch's."""

    gram: Array  # (*batch, n, n): sum of y y'
    cross: Array  # (*batch, n, n): sum of (y - z) y'
    possible: BoolArray  # (*batch, n, n): the edges that there can be
    ridge: Array  # (*batch,): for rewards in their own units
    bound: Array  # (*batch,): the most that a row may sum to
    adjacency: Array  # (*batch, n, n): adjacency[i, j] is the effect of arm j on arm i
    weights: Array  # (*batch, n): 1'(I - A)^-1, what a reward of 1 brings in all


@dataclass(frozen=True, kw_only=True)
class ExampleGraph(GraphLearner):
    """Row i of the graph minimises |y_i - z_i - a'y|^2 + ridge |a|^2; effects below 0 count as 0.

    ridge: how strongly effects are shrunk towards 0, > 0, for rewards of at most 1; an array makes a grid.

    >>> import spillover as sp
    >>> learner = ExampleGraph(ridge=1e-6)
    >>> graph = learner.init(sp.Problem(n_arms=2, budget=2))
    >>> graph = learner.absorb(graph, np.array([0.0, 1.0]), np.array([0.5, 1.0]), np.array(1.0), np.array(1))
    >>> learner.solve(graph).weights.round(3)
    array([1. , 1.5])
    """

    ridge: Any = 1.0

    deferrable = True  # `solve` needs nothing but sums, so it may wait for the end of a history
    grids = ("ridge",)  # hyperparameters that may be arrays, over the batch

    def __post_init__(self) -> None:
        validate.number("ridge", self.ridge, "a finite number > 0", low=0, high=np.inf, open_ends=True)

    def init(self, problem: Problem, batch: Batch = ()) -> ExampleGraphState:
        n = problem.n_arms
        square = (*batch, n, n)
        possible = np.broadcast_to(~impossible_edges(problem, None, None), square).copy()
        return ExampleGraphState(
            gram=np.zeros(square),
            cross=np.zeros(square),
            possible=possible,
            ridge=np.broadcast_to(self.ridge * largest_reward(problem) ** 2, batch).copy(),
            bound=np.full(batch, np.inf if problem.acyclic else ROW_BOUND),
            adjacency=np.zeros(square),
            weights=np.ones((*batch, n)),
        )

    def absorb(
        self, graph: ExampleGraphState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> ExampleGraphState:
        """Add an outcome to the sums; a weight of 0 says that there is none."""
        weighted = np.asarray(weight, float)[..., None, None] * y[..., None, :]
        return graph._replace(
            gram=graph.gram + y[..., :, None] * weighted,
            cross=graph.cross + (y - z)[..., :, None] * weighted,
        )

    def solve(self, graph: ExampleGraphState) -> ExampleGraphState:
        """A regression for each row, on the columns that are possible in it; then the weights."""
        n = graph.weights.shape[-1]
        allowed = graph.possible[..., :, None] & graph.possible[..., None, :]  # (*batch, row, n, n)
        gram = np.where(allowed, graph.gram[..., None, :, :], 0.0)
        gram = gram + graph.ridge[..., None, None, None] * np.eye(n)
        cross = np.where(graph.possible, graph.cross, 0.0)
        effects = np.maximum(np.linalg.solve(gram, cross[..., None])[..., 0], 0.0)
        # where there may be cycles, rows sum to less than 1: then the spill-over dies out
        adjacency = effects / np.maximum(effects.sum(axis=-1, keepdims=True) / graph.bound[..., None, None], 1.0)
        total = np.linalg.solve(np.eye(n) - adjacency.swapaxes(-1, -2), np.ones((*graph.weights.shape, 1)))
        return graph._replace(adjacency=adjacency, weights=total[..., 0])

    def forget(self, graph: ExampleGraphState, rows: BoolArray) -> ExampleGraphState:
        """Start afresh for the learners of a mask."""
        square = rows[..., None, None]
        return graph._replace(
            gram=np.where(square, 0.0, graph.gram),
            cross=np.where(square, 0.0, graph.cross),
            adjacency=np.where(square, 0.0, graph.adjacency),
            weights=np.where(rows[..., None], 1.0, graph.weights),
        )

    def gram(self, graph: ExampleGraphState) -> Array:
        return graph.gram

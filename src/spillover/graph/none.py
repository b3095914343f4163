"""No graph at all."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import methods_of, unchanged
from spillover.graph.learner import LEARNING, MANY_ARMS, GraphLearner, GraphParts
from spillover.types import Array, Batch, BoolArray, Constant, IntArray, Problem


class EmptyGraph(NamedTuple):
    """No edges: every arm's weight is 1.

    >>> import spillover as sp
    >>> NoGraph().init(sp.Problem(n_arms=2, budget=1)).adjacency
    array([[0., 0.],
           [0., 0.]])
    """

    weights: Constant[Array]  # (*batch, n)

    @property
    def adjacency(self) -> Array:
        return np.zeros((*self.weights.shape, self.weights.shape[-1]))


@dataclass(frozen=True, kw_only=True)
class NoGraph(GraphLearner):
    """Learns no graph: all weights are 1.

    >>> import spillover as sp
    >>> NoGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    deferrable = True
    learns = False

    @property
    def fuses(self) -> bool:
        return unchanged(self, AS_COMPILED)

    def for_problem(self, problem: Problem) -> GraphLearner:
        """Itself, or a form that no kernel for matrices plays, if there are many arms."""
        return self if problem.n_arms <= MANY_ARMS else NoGraphOfMany()

    def init(self, problem: Problem, batch: Batch = ()) -> EmptyGraph:
        return EmptyGraph(np.ones((*batch, problem.n_arms)))

    def edges(self, graph: EmptyGraph) -> Any:
        from scipy.sparse import coo_array

        return coo_array((*graph.weights.shape, graph.weights.shape[-1]))

    def absorb(
        self, graph: EmptyGraph, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> EmptyGraph:
        return graph

    def absorb_rounds(
        self, graph: EmptyGraph, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> EmptyGraph:
        if unchanged(self, AS_COMPILED):
            return graph
        own: EmptyGraph = super().absorb_rounds(graph, z, y, weight, played_at)
        return own

    def solve(self, graph: EmptyGraph) -> EmptyGraph:
        return graph

    def parts(self, graph: EmptyGraph) -> GraphParts:
        weights, idle = graph.weights, graph.adjacency  # nothing but the weights is used
        return GraphParts(weights, idle, idle, idle, weights, idle, np.array(np.inf), np.array(True))


AS_COMPILED = methods_of(NoGraph, LEARNING)


@dataclass(frozen=True, kw_only=True)
class NoGraphOfMany(NoGraph):
    """The same for many arms, without any array of n * n zeros."""

    fuses = False

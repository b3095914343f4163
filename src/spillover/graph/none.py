"""No graph at all."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover.graph.core import CoreGraph
from spillover.graph.learner import GraphTraits
from spillover.types import Array, Batch, Constant, Problem


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

    @property
    def edges(self) -> Any:
        from scipy.sparse import coo_array

        return coo_array((*self.weights.shape, self.weights.shape[-1]))


@dataclass(frozen=True, kw_only=True)
class NoGraph(CoreGraph):
    """Learns no graph: all weights are 1.

    >>> import spillover as sp
    >>> NoGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    allocates = False
    traits = GraphTraits(deferrable=True, learns=False)

    def init(self, problem: Problem, batch: Batch = ()) -> EmptyGraph:
        return EmptyGraph(np.ones((*batch, problem.n_arms)))

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        """There is nothing to learn."""

    def show(self, g: Any, adjacency: Any) -> None:
        for i in range(adjacency.shape[0]):
            for j in range(adjacency.shape[1]):
                adjacency[i, j] = 0.0

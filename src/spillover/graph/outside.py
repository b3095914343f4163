"""A graph that is kept outside of what a policy of one learner knows, as its learner is written for batches."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover.graph.core import CoreGraph
from spillover.types import Array, Batch, IntArray, Problem


class OutsideGraph(NamedTuple):
    """The weights of a graph, and the outcome that is to be handed on to its learner."""

    weights: Array  # (*batch, n)
    z: Array  # (*batch, n)
    y: Array  # (*batch, n)
    expected: Array  # (*batch, n)
    round: IntArray  # (*batch,): in which it was played
    weight: Array  # (*batch,): 0 if there is none


def outside(weights: Array) -> OutsideGraph:
    """The graph with these weights."""
    z, y, expected = (np.zeros(weights.shape) for _ in range(3))
    batch = weights.shape[:-1]
    return OutsideGraph(np.ascontiguousarray(weights), z, y, expected, np.zeros(batch, np.int64), np.zeros(batch))


@dataclass(frozen=True, kw_only=True)
class Outside(CoreGraph):
    """Notes what a policy wants its graph to learn."""

    allocates = False

    def init(self, problem: Problem, batch: Batch = ()) -> OutsideGraph:
        return outside(np.ones((*batch, problem.n_arms)))

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        for i in range(expected.shape[0]):
            g.z[i], g.y[i], g.expected[i] = lesson.z[i], lesson.y[i], expected[i]
        g.round, g.weight = lesson.round, weight

"""Weights from a regression of the payoff on z, without order, sparsity or acyclicity, for any direct effects F."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.graph.core import CoreGraph
from spillover.graph.learner import GraphTraits
from spillover.graph.regression import Regression, empty_regression, learn
from spillover.kernels.evidence import total
from spillover.kernels.regression import clear_regression, room_for_regression, shrink_weights
from spillover.types import Array, Batch, Finite, Problem

# Prior variance of a weight around 1: most spill-over is smaller than the reward itself.
PRIOR_VARIANCE = 1.0
# Weights are positive, because 0 times an infinite index is not a number.
LEAST_WEIGHT = 1e-6


class PayoffGraph(NamedTuple):
    """Weights without the graph behind them.

    >>> import spillover as sp
    >>> sp.graph.PayoffWeights().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    regression: Regression  # of the payoff: m = 1
    weights: Finite  # (*batch, n)

    @property
    def adjacency(self) -> Array:
        """Unknown: the payoff alone does not identify it."""
        n = self.weights.shape[-1]
        return np.full((*self.weights.shape, n), np.nan)


@dataclass(frozen=True, kw_only=True)
class PayoffWeights(CoreGraph):
    """The payoff is w'z plus noise that is independent of z, so w follows from a regression of the payoff on z.

    The prior is w = 1. Estimates are shrunk towards it by variance / (variance + 1), with the noise learned so far:
    not at all without noise, and fully if the rounds do not separate an arm from others. Direct effects are not
    separated from spill-over: they count as 1, as in the paper.

    signed: weights may be negative. unit_gain: the direct effects F are known to be 1, so that w >= 1 unless signed.

    >>> import spillover as sp
    >>> learner = PayoffWeights()
    >>> graph = learner.init(sp.Problem(n_arms=2, budget=2))
    >>> graph = learner.absorb(graph, np.array([0.0, 1.0]), np.array([0.5, 2.0]), np.array(1.0), np.array(1))
    >>> learner.solve(graph).weights.round(6)
    array([1. , 2.5])
    """

    signed: bool = False
    unit_gain: bool = False

    allocates = False

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(signed=self.signed)

    def __post_init__(self) -> None:
        validate.require(isinstance(self.signed, bool), "signed", self.signed, "True or False")
        validate.require(isinstance(self.unit_gain, bool), "unit_gain", self.unit_gain, "True or False")

    def init(self, problem: Problem, batch: Batch = ()) -> PayoffGraph:
        prior = np.ones((1, problem.n_arms))
        return PayoffGraph(empty_regression(problem, prior, batch), np.ones((*batch, problem.n_arms)))

    def prepare(self, g: Any) -> Any:
        return room_for_regression(g.weights.shape[0])

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        payoff = room[2]
        payoff[0] = total(lesson.y)
        learn(g.regression, lesson.z, payoff, weight, room)

    def derive(self, g: Any, room: Any) -> None:
        known, least = g.regression, 1.0 if self.unit_gain else LEAST_WEIGHT
        shrink_weights(
            known.root, known.effects[0], known.scatter[0, 0], known.freedom, PRIOR_VARIANCE,
            -math.inf if self.signed else least, g.weights,
        )  # fmt: skip

    def show(self, g: Any, adjacency: Any) -> None:
        for i in range(adjacency.shape[0]):
            for j in range(adjacency.shape[1]):
                adjacency[i, j] = math.nan

    def forget_all(self, g: Any, room: Any) -> None:
        known = g.regression
        clear_regression(known.root, known.effects, known.scatter, known.ridge, False)
        known.freedom = 0.0
        for i in range(g.weights.shape[0]):
            g.weights[i] = 1.0

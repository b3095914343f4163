"""Weights from a regression of the payoff on z, without order, sparsity or acyclicity, for any direct effects F."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import methods_of, unchanged
from spillover.graph.learner import GraphLearner
from spillover.graph.regression import Regression, empty_regression, forget_rounds, regress, regress_rounds
from spillover.types import Array, Batch, BoolArray, Finite, IntArray, Problem

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
class PayoffWeights(GraphLearner):
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

    def __post_init__(self) -> None:
        validate.require(isinstance(self.signed, bool), "signed", self.signed, "True or False")
        validate.require(isinstance(self.unit_gain, bool), "unit_gain", self.unit_gain, "True or False")

    def init(self, problem: Problem, batch: Batch = ()) -> PayoffGraph:
        prior = np.ones((1, problem.n_arms))
        return PayoffGraph(empty_regression(problem, prior, batch), np.ones((*batch, problem.n_arms)))

    def absorb(
        self, graph: PayoffGraph, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> PayoffGraph:
        regression, _ = regress(graph.regression, z, kernels.payoff_of(y)[..., None], weight)
        return graph._replace(regression=regression)

    def absorb_rounds(
        self, graph: PayoffGraph, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> PayoffGraph:
        if not unchanged(self, ABSORBING):
            one_by_one: PayoffGraph = super().absorb_rounds(graph, z, y, weight, played_at)
            return one_by_one
        payoff = kernels.payoff_of(y)[..., None]
        return graph._replace(regression=regress_rounds(graph.regression, z, payoff, weight))

    def solve(self, graph: PayoffGraph) -> PayoffGraph:
        known = graph.regression
        effects, scatter = known.effects[..., 0, :], known.scatter[..., 0, 0]
        weights = kernels.shrunk_weights(known.root, effects, scatter, known.freedom, PRIOR_VARIANCE)
        return graph._replace(weights=clip_weights(weights, self.signed, self.unit_gain))

    def forget(self, graph: PayoffGraph, rows: BoolArray) -> PayoffGraph:
        prior = np.ones((1, graph.weights.shape[-1]))
        graph.weights[rows] = 1.0
        return graph._replace(regression=forget_rounds(graph.regression, prior, rows))


def clip_weights(weights: Array, signed: bool, unit_gain: bool) -> Array:
    """Weights in their possible range: positive unless signed, at least 1 if the direct effects are 1."""
    if signed:
        return weights
    return np.maximum(weights, 1.0 if unit_gain else LEAST_WEIGHT)


ABSORBING = methods_of(PayoffWeights, ("absorb",))

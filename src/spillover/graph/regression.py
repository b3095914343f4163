"""Graph learners by regression on z: weights from the payoff, the graph from all total effects, and tests of both.

Least squares by rank-one updates need no assumptions about the graph: neither order nor sparsity nor acyclicity.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.core.compiled import inner
from spillover.graph.core import CoreGraph
from spillover.graph.edges import edge_mask
from spillover.graph.learner import GraphTraits, largest_reward
from spillover.kernels.evidence import total
from spillover.kernels.inversion import structure
from spillover.kernels.regression import clear_regression, learn_outcome, room_for_regression, shrink_weights
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Finite, Problem

# Relative to the squared rewards. It only makes the inverse exist: its bias is too small to affect decisions.
RIDGE = 1e-9
# Lower bound on the variance of a residual, relative to the squared rewards. An effect of up to 10 that is observed for
# the first time leaves a recursive residual of at most 100 ridges, which must not look like noise or like a change.
FLOOR = 100 * RIDGE


class Regression(NamedTuple):
    """Effects of z on m outcomes, and their uncertainty; the prior is that an arm affects only itself."""

    root: Finite  # (*batch, n, n): a root of (Z Z' + ridge)^-1
    effects: Finite  # (*batch, m, n): B, outcomes per unit of z
    scatter: Finite  # (*batch, m, m): sum of outer products of recursive residuals
    freedom: Amount  # (*batch,): degrees of freedom of the scatter
    ridge: Constant[Array]  # (*batch,)


def empty_regression(problem: Problem, prior: Array, batch: Batch) -> Regression:
    """A regression without outcomes: the effects are the prior, (m, n)."""
    m, n = prior.shape
    ridge = np.broadcast_to(RIDGE * largest_reward(problem) ** 2, batch).copy()
    return Regression(
        root=np.eye(n) / np.sqrt(ridge)[..., None, None],
        effects=np.broadcast_to(prior, (*batch, m, n)).copy(),
        scatter=np.zeros((*batch, m, m)),
        freedom=np.zeros(batch),
        ridge=ridge,
    )


@inner
def learn(known: Any, z: Any, outcome: Any, weight: Any, room: Any) -> Any:
    """Learn from a round; returns how much of it the past could have predicted, from 0 to 1."""
    squares, held, _ = room
    certainty = learn_outcome(known.root, known.effects, known.scatter, z, outcome, weight, squares, held)
    known.freedom += certainty
    return certainty


def floor_of(known: Any) -> Any:
    """The lower bound on the variance of a residual."""
    return (FLOOR / RIDGE) * known.ridge


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


# New information for each arm before the graph is estimated again: less would change it by a fraction of its standard
# errors only, and an estimate costs n^3, too much for every round.
ENOUGH_INFORMATION = 0.025
UNKNOWN = 0.5  # an arm's effects count as unknown while more than this share of their prior variance is left


class InstrumentState(NamedTuple):
    """Total effects and the graph derived from them.

    >>> import spillover as sp
    >>> sp.graph.InstrumentGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    regression: Regression  # of y: m = n
    new_information: Amount  # (*batch,): since the graph was last estimated
    bars: Constant[Array]  # (*batch, n, n): standard errors an edge must exceed; 0: it is known, inf: it is impossible
    gain_bars: Constant[Array]  # (*batch, n): the same for a gain other than 1
    adjacency: Finite  # (*batch, n, n)
    gain: Finite  # (*batch, n): diagonal of F
    weights: Finite  # (*batch, n): 1'(I - A)^-1 F


@dataclass(frozen=True, kw_only=True)
class InstrumentGraph(CoreGraph):
    """Inverts the regression of y on z: z are the instruments, so noise in the equations causes no bias.

    B = Y Z'(Z Z')^-1 estimates (I - A)^-1 F. Then H = B^-1 has F^-1 on its diagonal, and A = I - F H. An edge is kept
    if it exceeds sqrt(2 log(n (n - 1))) standard errors, about the largest value that n (n - 1) absent edges reach by
    chance; gains likewise, around 1. Without noise absent edges are exactly 0. There are no edges while the rounds do
    not separate the arms.

    signed: edges may be negative. required, forbidden: (n, n) masks of edges known to exist and to be impossible. The
    order of an acyclic problem is neither needed nor used.

    >>> import spillover as sp
    >>> learner = InstrumentGraph()
    >>> graph = learner.init(sp.Problem(n_arms=2, budget=2, acyclic=False))
    >>> for z, y in (([0.0, 1.0], [0.5, 1.25]), ([1.0, 0.0], [1.25, 0.625])):  # a cycle
    ...     graph = learner.absorb(graph, np.array(z), np.array(y), np.array(1.0), np.array(1))
    >>> learner.solve(graph).adjacency.round(6)
    array([[0. , 0.4],
           [0.5, 0. ]])
    """

    signed: bool = False
    required: Any = None
    forbidden: Any = None

    allocates = False

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(order_free=False, signed=self.signed)  # estimated when enough information has arrived

    def __post_init__(self) -> None:
        validate.require(isinstance(self.signed, bool), "signed", self.signed, "True or False")

    def init(self, problem: Problem, batch: Batch = ()) -> InstrumentState:
        n = problem.n_arms
        usual = np.sqrt(2.0 * np.log(max(n * (n - 1), 2)))
        required, forbidden = edge_mask("required", self.required, n), edge_mask("forbidden", self.forbidden, n)
        impossible = forbidden | np.eye(n, dtype=np.bool_)
        validate.require(
            not (required & impossible).any(), "required", required, "False for forbidden edges and self-loops"
        )
        bars = np.where(impossible, np.inf, np.where(required, 0.0, usual))
        return InstrumentState(
            regression=empty_regression(problem, np.eye(n), batch),
            new_information=np.zeros(batch),
            bars=np.broadcast_to(bars, (*batch, n, n)).copy(),
            gain_bars=np.full((*batch, n), usual),
            adjacency=np.zeros((*batch, n, n)),
            gain=np.ones((*batch, n)),
            weights=np.ones((*batch, n)),
        )

    def prepare(self, g: Any) -> Any:
        return room_for_regression(g.weights.shape[0])

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        add_information(g, learn(g.regression, lesson.z, lesson.y, weight, room))

    def derive(self, g: Any, room: Any) -> None:
        """Estimate the graph again if there is enough new information."""
        known = g.regression
        if g.new_information > ENOUGH_INFORMATION * g.weights.shape[0]:
            structure(
                known.effects, known.root, known.scatter, known.freedom, g.bars, g.gain_bars,
                FLOOR / RIDGE * known.ridge, self.signed, UNKNOWN / known.ridge, LEAST_WEIGHT, g.adjacency, g.gain,
                g.weights,
            )  # fmt: skip
            g.new_information = 0.0

    def forget_all(self, g: Any, room: Any) -> None:
        known = g.regression
        clear_regression(known.root, known.effects, known.scatter, known.ridge, True)
        known.freedom = g.new_information = 0.0
        for i in range(g.weights.shape[0]):
            g.gain[i] = g.weights[i] = 1.0
            for j in range(g.weights.shape[0]):
                g.adjacency[i, j] = 0.0

    def gain(self, graph: InstrumentState) -> Array:
        return graph.gain


@inner
def add_information(g: Any, certainty: Any) -> None:
    """Count what was new in a round, from how much of it the past could have predicted (0: there was no round)."""
    if certainty > 0.0:
        g.new_information += 1.0 - certainty


MARGIN = 3.0  # standard errors above the usual bar of an edge: chance alone then hardly ever contradicts
FEWEST_FREE = 10.0  # degrees of freedom, besides one for each arm, before anything is said


def effects_against_order(graph: InstrumentState) -> BoolArray:
    """Total effects of earlier arms on later ones that clearly exist, (*batch, n, n): entry (i, j) with j < i.

    If causes come after effects, total effects are upper triangular, as the graph is.
    """
    known = graph.regression
    backwards = np.tri(known.effects.shape[-1], k=-1, dtype=np.bool_)
    clear = np.abs(known.effects) > bar(graph) * standard_errors(known)
    return np.asarray(clear & backwards & observed(known)[..., None, :])


def negative_effects(graph: InstrumentState) -> BoolArray:
    """Total effects that are clearly negative, (*batch, n, n), though positive edges have positive total effects."""
    known = graph.regression
    return np.asarray((known.effects < -bar(graph) * standard_errors(known)) & observed(known)[..., None, :])


@inner
def lowers_outcomes(g: Any) -> Any:
    """Whether there are any `negative_effects`."""
    known, n = g.regression, g.weights.shape[0]
    if known.freedom < n + FEWEST_FREE:
        return False
    for j in range(n):
        square = 0.0
        for k in range(n):
            square += known.root[j, k] ** 2
        if square * known.ridge < UNKNOWN:
            for i in range(n):
                variance = max(known.scatter[i, i] / known.freedom, FLOOR / RIDGE * known.ridge)
                if known.effects[i, j] < -(g.gain_bars[0] + MARGIN) * math.sqrt(variance * square):
                    return True
    return False


def own_slopes(graph: InstrumentState) -> Array:
    """The slope of each arm's y on its own z, (*batch, n): 1 unless it clearly differs from 1, NaN if not known."""
    known = graph.regression
    slopes, errors = (np.diagonal(part, axis1=-2, axis2=-1) for part in (known.effects, standard_errors(known)))
    clear = np.abs(slopes - 1.0) > bar(graph)[..., 0] * errors
    return np.where(observed(known), np.where(clear, slopes, 1.0), np.nan)


def bar(graph: InstrumentState) -> Array:
    """Standard errors that an effect must exceed, (*batch, 1, 1)."""
    return graph.gain_bars[..., :1, None] + MARGIN


def standard_errors(known: Regression) -> Array:
    """Of every total effect, (*batch, n, n)."""
    noise = np.diagonal(known.scatter, axis1=-2, axis2=-1) / np.maximum(known.freedom, 1.0)[..., None]
    variance = np.maximum(noise, floor_of(known)[..., None])
    return np.asarray(np.sqrt(variance[..., :, None] * (known.root**2).sum(axis=-1)[..., None, :]))


def observed(known: Regression) -> BoolArray:
    """Arms that the rounds separate from others, (*batch, n); none while there are few rounds."""
    separate = (known.root**2).sum(axis=-1) * known.ridge[..., None] < UNKNOWN
    enough = known.freedom >= known.effects.shape[-1] + FEWEST_FREE
    return np.asarray(separate & enough[..., None])

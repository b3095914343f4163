"""The graph by k-class regression: it is right with baselines, noise and hidden common causes."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spillover import validate
from spillover.core.compiled import inner, rare
from spillover.graph.core import CoreGraph
from spillover.graph.edges import edge_mask, impossible_edges
from spillover.graph.learner import GraphErrors, GraphTraits, largest_reward
from spillover.kernels.confounding import test_doubts
from spillover.kernels.inversion import spectral_radius, total_effects
from spillover.kernels.kclass import BASELINE_SCALE, EDGE_SCALE, FLAT, absorb_moments, k_class
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Finite, Probability, Problem

ALARM = float(np.log(1000.0))  # log Bayes factor: by Ville's inequality false with probability 0.001 over all rounds
CLEAR = 4.0  # standard errors from 0 of a clear baseline
SUSPICION = 2.0  # log Bayes factor of a hidden common cause from which z is no longer an instrument, without an order
MORE_ROUNDS = 1.03  # test and estimate are repeated when there are so many times the rounds of the last one
ROUNDS_FOR_ARMS = 0.1  # and the estimate, whose cost grows as n^4, after at least so many rounds for each arm
LARGEST_RADIUS = 0.9  # a graph with a larger spectral radius is damped, so that spill-over dies out
LARGEST_WEIGHT = 1e9  # a graph with larger total effects is not one, but an estimate from too few rounds
BY_EVIDENCE = -1.0
NOISE_PRIOR = 0.02  # variance of a row's error before any outcome, in squared units of the largest reward


class KClassState(NamedTuple):
    """Sums over the rounds, and the estimates from them.

    >>> import spillover as sp
    >>> sp.graph.KClassGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    moments: Finite  # (*batch, 3n + 1, 3n + 1): of (y, z, expected z, 1)
    tested: Amount  # (*batch,): rounds in the last test
    solved: Amount  # (*batch,): rounds in the last estimate
    possible: Constant[BoolArray]  # (*batch, n, n)
    required: Constant[BoolArray]  # (*batch, n, n)
    ordered: Constant[BoolArray]  # (*batch,): causes come before effects
    unit: Constant[Array]  # (*batch,): the square of the largest reward
    noise: Amount  # (*batch, n): variance of each row's error
    adjacency: Finite  # (*batch, n, n): posterior mean
    variance: Amount  # (*batch, n, n): of each edge
    probability: Probability  # (*batch, n, n): that each edge exists
    own_baseline: Finite  # (*batch, n): the constant of each row
    own_baseline_variance: Amount  # (*batch, n)
    trust: Probability  # (*batch, n): in what instruments do not explain; 1: least squares, 0: two-stage least squares
    confounded: Finite  # (*batch,): log Bayes factor of a hidden common cause of z and y
    constant: Finite  # (*batch,): log Bayes factor of outcomes that are not 0 where z is
    weights: Finite  # (*batch, n)
    weights_variance: Amount  # (*batch, n)


@dataclass(frozen=True, kw_only=True)
class KClassGraph(CoreGraph):
    """The graph, with a baseline for each arm, where z and y may have hidden common causes.

    In row i, y_i - z_i is regressed on the y of its possible causes and on a constant. The instruments are what the
    policy expected of z when it chose: they depend on the decision and the past only, so no hidden cause moves them.
    The estimate is between two-stage least squares, which is right whatever is hidden, and the more precise least
    squares (without a known order: z as instruments), by the evidence that the two agree. Edges are then 0, or positive
    (any sign if `signed`), by a spike-and-slab prior. Direct effects are taken to be 1.

    signed: edges may be negative. required, forbidden: (n, n) masks of edges known to exist and to be impossible.
    trust: in least squares, from 0 to 1; None: by the evidence.

    >>> import spillover as sp
    >>> learner = KClassGraph()
    >>> graph = learner.init(sp.Problem(n_arms=2, budget=1))
    >>> for t in range(40):  # arm 1 affects arm 0 by 0.5; baselines of 1 and 2
    ...     z = np.array([t % 2, (t + 1) % 2], float)
    ...     y = np.array([z[0] + 0.5 * (z[1] + 2.0) + 1.0, z[1] + 2.0])
    ...     graph = learner.solve(learner.absorb(graph, z, y, np.array(1.0), np.array(t + 1)))
    >>> graph.adjacency.round(2)[0, 1], graph.own_baseline.round(2)
    (np.float64(0.5), array([1., 2.]))
    """

    signed: bool = False
    required: Any = None
    forbidden: Any = None
    trust: float | None = None

    allocates = False
    constants: ClassVar[Mapping[str, int]] = {"given_trust": 0}
    helpers = ("test_if_due", "estimate")

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(order_free=False, signed=self.signed, fits_baseline=True)  # estimated once in so many rounds

    def __post_init__(self) -> None:
        validate.require(isinstance(self.signed, bool), "signed", self.signed, "True or False")
        if self.trust is not None:
            validate.number("trust", self.trust, "a number from 0 to 1, or None", low=0, high=1)

    def init(self, problem: Problem, batch: Batch = ()) -> KClassState:
        n = problem.n_arms
        line, square = (*batch, n), (*batch, n, n)
        possible = ~impossible_edges(problem, self.required, self.forbidden)
        unit = np.broadcast_to(largest_reward(problem) ** 2, batch).copy()
        return KClassState(
            moments=np.zeros((*batch, 3 * n + 1, 3 * n + 1)),
            tested=np.zeros(batch),
            solved=np.zeros(batch),
            possible=np.broadcast_to(possible, square).copy(),
            required=np.broadcast_to(edge_mask("required", self.required, n), square).copy(),
            ordered=np.full(batch, problem.acyclic),
            unit=unit,
            noise=np.broadcast_to(NOISE_PRIOR * unit[..., None], line).copy(),
            adjacency=np.zeros(square),
            variance=np.zeros(square),
            probability=np.zeros(square),
            own_baseline=np.zeros(line),
            own_baseline_variance=np.zeros(line),
            trust=np.ones(line),
            confounded=np.zeros(batch),
            constant=np.zeros(batch),
            weights=np.ones(line),
            weights_variance=np.zeros(line),
        )

    # --- one graph --------------------------------------------------------------------------------------------------

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        absorb_moments(g.moments, lesson.y, lesson.z, expected, weight)

    def derive(self, g: Any, room: Any) -> None:
        self.test_if_due(g)
        if is_due(g):
            self.estimate(g)

    def test_if_due(self, g: Any) -> None:
        """Test again where there are enough new rounds."""
        last = 3 * g.weights.shape[0]
        rounds = g.moments[last, last]
        if rounds > MORE_ROUNDS * g.tested:
            test_z(g)
            g.tested = rounds

    def estimate(self, g: Any) -> None:
        """Estimate again; what is not usable, with too few rounds for so many arms, stays as it was.

        Without an order z serves as an instrument until a hidden cause is suspected.
        """
        fixed = self.given_trust
        if fixed < 0.0 and not g.ordered:
            fixed = 0.0 if g.confounded > SUSPICION else 1.0
        estimate_k_class(g, self.signed, fixed)

    def forget_all(self, g: Any, room: Any) -> None:
        n = g.weights.shape[0]
        for i in range(n):
            g.own_baseline[i] = g.own_baseline_variance[i] = g.weights_variance[i] = 0.0
            g.noise[i], g.trust[i], g.weights[i] = NOISE_PRIOR * g.unit, 1.0, 1.0
            for j in range(n):
                g.adjacency[i, j] = g.variance[i, j] = g.probability[i, j] = 0.0
        for i in range(3 * n + 1):
            for j in range(3 * n + 1):
                g.moments[i, j] = 0.0
        g.confounded = g.constant = g.tested = g.solved = 0.0

    @property
    def given_trust(self) -> float:
        """How much of what the instruments do not explain is used; negative: by the evidence, row by row."""
        return BY_EVIDENCE if self.trust is None else float(self.trust)

    # --- many ---------------------------------------------------------------------------------------------------------

    def errors(self, graph: KClassState) -> GraphErrors:
        """Standard errors; those of the total effects are smaller where z was its own instrument.

        That is so where nobody expected anything of z, as in a table of rewards and outcomes: then hidden common causes
        cannot be told, and the errors of a row's edges are those of one regression.
        """
        found = self.wide_errors(graph)
        n = graph.weights.shape[-1]
        expected, own = graph.moments[..., 2 * n : 3 * n, n:], graph.moments[..., n : 2 * n, n:]
        for row in np.argwhere((expected == own).all(axis=(-1, -2)) & (graph.solved > 0)):
            with suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):  # extreme moments: the wide ones stay
                variance = joint_variance(KClassState(*(part[tuple(row)] for part in graph)))
                if (variance >= 0.0).all() and np.isfinite(variance).all():
                    found.weights_variance[tuple(row)] = variance
        return found

    def is_due_in(self, graph: KClassState) -> bool:
        """Whether some graphs of a batch would be estimated again."""
        n = graph.weights.shape[-1]
        rounds = graph.moments[..., 3 * n, 3 * n]
        due = (rounds > MORE_ROUNDS * graph.solved) & (rounds >= graph.solved + ROUNDS_FOR_ARMS * n)
        return bool(due.any())

    def wide_errors(self, graph: KClassState, baseline: Array | None = None) -> GraphErrors:
        """Standard errors that allow for hidden common causes. baseline: to give with them, instead of its own."""
        return GraphErrors(
            baseline=self.baseline(graph) if baseline is None else baseline,
            weights_variance=graph.weights_variance.copy(),
            edge_variance=graph.variance.copy(),
            edge_probability=graph.probability.copy(),
        )

    def baseline(self, graph: KClassState) -> Array:
        n = graph.weights.shape[-1]
        found = np.linalg.solve(np.eye(n) - graph.adjacency, graph.own_baseline[..., None])
        return np.asarray(found[..., 0], np.float64)

    def signals(self, graph: KClassState) -> dict[str, Any]:
        n = graph.weights.shape[-1]
        gram = graph.moments[..., :n, :n]
        return {"gram": gram, "confounded": graph.confounded > ALARM, "baseline": clear_baseline(graph)}


@inner
def is_due(g: Any) -> Any:
    """Whether there are enough new rounds to estimate again."""
    n = g.weights.shape[0]
    rounds = g.moments[3 * n, 3 * n]
    return rounds > MORE_ROUNDS * g.solved and rounds >= g.solved + ROUNDS_FOR_ARMS * n


@inner
def test_z(g: Any) -> None:
    """Test for hidden common causes and for a baseline."""
    g.confounded, g.constant = test_doubts(g.moments, g.weights.shape[0], g.unit)


@rare
def estimate_k_class(g: Any, signed: Any, fixed: Any) -> None:
    """Estimate edges, baselines and total effects, unless they are not usable."""
    n = g.weights.shape[0]
    squares, lines, radius = np.empty((3, n, n)), np.empty((6, n)), np.empty(1)
    adjacency, variance, probability = squares[0], squares[1], squares[2]
    noise, baseline, doubt, trust, weights, spread = lines[0], lines[1], lines[2], lines[3], lines[4], lines[5]
    for i in range(n):
        noise[i] = g.noise[i]
        for j in range(n):
            adjacency[i, j] = g.adjacency[i, j]
    k_class(
        g.moments, g.possible, g.required, g.ordered, signed, g.unit, fixed, adjacency, noise, variance, probability,
        baseline, doubt, trust,
    )  # fmt: skip
    usable = True
    for i in range(n):
        for j in range(n):
            usable &= abs(adjacency[i, j]) < math.inf and abs(variance[i, j]) < math.inf
    if not usable:
        return
    spectral_radius(adjacency, LARGEST_RADIUS, radius)
    factor = min(LARGEST_RADIUS / max(radius[0], 1e-12), 1.0)  # so that spill-over dies out
    for i in range(n):
        for j in range(n):
            adjacency[i, j] *= factor
    total_effects(adjacency, variance, weights, spread)
    for i in range(n):
        usable &= abs(weights[i]) < LARGEST_WEIGHT and abs(spread[i]) < math.inf
    if not usable:
        return
    for i in range(n):
        g.noise[i], g.trust[i], g.weights[i], g.weights_variance[i] = noise[i], trust[i], weights[i], spread[i]
        g.own_baseline[i], g.own_baseline_variance[i] = baseline[i], doubt[i]
        for j in range(n):
            g.adjacency[i, j], g.variance[i, j] = adjacency[i, j], variance[i, j]
            g.probability[i, j] = probability[i, j]
    g.solved = g.moments[3 * n, 3 * n]


def clear_baseline(graph: KClassState) -> BoolArray:
    """Whether the outcomes of some arm are clearly not 0 where nothing is chosen, (*batch,)."""
    far: BoolArray = np.abs(graph.own_baseline) > CLEAR * np.sqrt(graph.own_baseline_variance)
    return np.asarray((graph.constant > ALARM) & far.any(axis=-1))


def joint_variance(graph: KClassState) -> Array:
    """The variances of the total effects, to first order, if the edges of a row are estimated together; no batch.

    An edge exists with its probability, whatever others do; those that exist have the covariance C of the regression
    with their prior. So the covariance of two edges is p_a p_b C_ab, and the variance of one p C + p (1 - p) m^2, where
    m is its mean if it exists.
    """
    n = len(graph.weights)
    moments = np.array(graph.moments)
    moments[:n, n:] = moments[n:, :n].T
    outcomes, instruments = [*range(n), 3 * n], [*range(2 * n, 3 * n), 3 * n]
    reach = np.linalg.inv(np.eye(n) - graph.adjacency)
    unit = np.sqrt(np.where(moments.diagonal() > 0, moments.diagonal(), 1.0))[instruments]  # whatever units z has
    half = moments[np.ix_(instruments, outcomes)] / unit[:, None]
    within = moments[np.ix_(instruments, instruments)] / np.outer(unit, unit)
    strong = half.T @ np.linalg.pinv(within, hermitian=True) @ half
    rest = moments[np.ix_(outcomes, outcomes)] - strong if graph.ordered else np.zeros_like(strong)
    variance = np.zeros(n)
    for i in range(n):
        edges = np.flatnonzero(graph.possible[i])
        regressors = [*edges, n]
        prior = [*np.where(graph.required[i, edges], FLAT, EDGE_SCALE**-2), 1.0 / (BASELINE_SCALE**2 * graph.unit)]
        gram = (strong + graph.trust[i] * rest)[np.ix_(regressors, regressors)]
        covariance = np.linalg.inv(gram / graph.noise[i] + np.diag(prior))[:-1, :-1]
        chance, mean = graph.probability[i, edges], graph.adjacency[i, edges]
        size = np.divide(mean, chance, out=np.zeros(len(edges)), where=chance > 0)
        alone = chance * (1.0 - chance) * (covariance.diagonal() + size**2)
        both = covariance * np.outer(chance, chance) + np.diag(alone)
        variance += graph.weights[i] ** 2 * np.einsum("aj,ab,bj->j", reach[edges], both, reach[edges])
    return variance

"""The graph by k-class regression: it is right with baselines, noise and hidden common causes."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import methods_of, unchanged
from spillover.graph.edges import edge_mask, impossible_edges
from spillover.graph.learner import GraphErrors, GraphLearner, largest_reward
from spillover.kernels.kclass import BASELINE_SCALE, EDGE_SCALE, FLAT
from spillover.state import repeat_in_place
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Finite, IntArray, Probability, Problem

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
class KClassGraph(GraphLearner):
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

    order_free = False  # the graph is estimated when there are enough new rounds
    fits_baseline = True

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

    def absorb(
        self, graph: KClassState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> KClassState:
        return self.absorb_expected(graph, z, y, weight, played_at, z)

    def absorb_rounds(
        self, graph: KClassState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> KClassState:
        return self.absorb_expected_rounds(graph, z, y, weight, played_at, z)

    def absorb_expected(
        self, graph: KClassState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray, expected: Array
    ) -> KClassState:
        y, z, expected = (np.ascontiguousarray(part) for part in (y, z, expected))
        kernels.absorb_moments(graph.moments, y, z, expected, weight)
        return graph

    def absorb_expected_rounds(
        self, graph: KClassState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray, expected: Array
    ) -> KClassState:
        if not unchanged(self, ABSORBING):
            one_by_one: KClassState = super().absorb_expected_rounds(graph, z, y, weight, played_at, expected)
            return one_by_one
        y, z, expected = (np.ascontiguousarray(part) for part in (y, z, expected))
        kernels.absorb_moments(repeat_in_place(graph.moments, len(z)), y, z, expected, weight)
        return graph

    def solve(self, graph: KClassState) -> KClassState:
        return self.estimate(self.test_if_due(graph), np.ones_like(graph.ordered))

    def estimate(self, graph: KClassState, rows: BoolArray) -> KClassState:
        """Estimate again in the rows of a mask, where there are enough new rounds; rewrites its argument."""
        rounds = graph.moments[..., -1, -1]
        due: BoolArray = np.greater(rounds, MORE_ROUNDS * graph.solved) & rows
        due &= rounds >= graph.solved + ROUNDS_FOR_ARMS * graph.weights.shape[-1]
        if not due.any():
            return graph
        adjacency, noise = (np.ascontiguousarray(part[due]) for part in (graph.adjacency, graph.noise))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is left out below
            variance, probability, baseline, doubt, trust = kernels.k_class(
                graph.moments[due],
                graph.possible[due],
                graph.required[due],
                graph.ordered[due],
                self.signed,
                graph.unit[due],
                self.trust_in_z(graph)[due],
                adjacency,
                noise,
            )
            usable = np.isfinite(adjacency).all(axis=(-1, -2)) & np.isfinite(variance).all(axis=(-1, -2))
            adjacency = damped(np.where(usable[..., None, None], adjacency, 0.0))
            weights, weights_variance = total_effects(adjacency, variance)
        usable &= (np.abs(weights) < LARGEST_WEIGHT).all(axis=-1) & np.isfinite(weights_variance).all(axis=-1)
        if not usable.all():  # too few rounds for so many arms: what was estimated before stays
            due = replaced(due, due, usable)
            adjacency, variance, probability, weights, weights_variance, baseline, doubt, noise, trust = (
                part[usable]
                for part in (
                    *(adjacency, variance, probability, weights, weights_variance),
                    *(baseline, doubt, noise, trust),
                )
            )
        graph.adjacency[due], graph.variance[due], graph.probability[due] = adjacency, variance, probability
        graph.own_baseline[due], graph.own_baseline_variance[due] = baseline, doubt
        graph.noise[due], graph.trust[due] = noise, trust
        graph.weights[due], graph.weights_variance[due] = weights, weights_variance
        return graph._replace(solved=np.where(due, rounds, graph.solved))

    def test_if_due(self, graph: KClassState) -> KClassState:
        """Test again where there are enough new rounds; rewrites its argument."""
        rounds = graph.moments[..., -1, -1]
        due: BoolArray = np.greater(rounds, MORE_ROUNDS * graph.tested)
        if not due.any():
            return graph
        return self.test(graph, due)._replace(tested=np.where(due, rounds, graph.tested))

    def test(self, graph: KClassState, rows: BoolArray) -> KClassState:
        """Test for hidden common causes and for a baseline in the rows of a mask; rewrites its argument."""
        arms = np.ones(graph.weights.shape[-1], np.bool_)
        found = (graph.confounded[..., None], graph.constant[..., None])
        kernels.doubts(graph.moments, arms, graph.unit, rows, *found)
        return graph

    def trust_in_z(self, graph: KClassState) -> Array:
        """How much of what the instruments do not explain is used, (*batch,); negative: by the evidence, row by row.

        Without an order z serves as an instrument until a hidden cause is suspected.
        """
        if self.trust is not None:
            return np.full(graph.confounded.shape, float(self.trust))
        return np.where(graph.ordered, BY_EVIDENCE, np.where(graph.confounded > SUSPICION, 0.0, 1.0))

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

    def wide_errors(self, graph: KClassState) -> GraphErrors:
        """Standard errors that allow for hidden common causes."""
        return GraphErrors(
            baseline=self.baseline(graph),
            weights_variance=graph.weights_variance.copy(),
            edge_variance=graph.variance.copy(),
            edge_probability=graph.probability.copy(),
        )

    def baseline(self, graph: KClassState) -> Array:
        n = graph.weights.shape[-1]
        found = np.linalg.solve(np.eye(n) - graph.adjacency, graph.own_baseline[..., None])
        return np.asarray(found[..., 0], np.float64)

    def signals(self, graph: KClassState) -> dict[str, Any]:
        return {"confounded": graph.confounded > ALARM, "baseline": clear_baseline(graph)}

    def gram(self, graph: KClassState) -> Array:
        n = graph.weights.shape[-1]
        return graph.moments[..., :n, :n]

    def forget(self, graph: KClassState, rows: BoolArray) -> KClassState:
        for part in (graph.moments, graph.adjacency, graph.variance, graph.probability, graph.weights_variance):
            part[rows] = 0.0
        for part in (graph.own_baseline, graph.own_baseline_variance, graph.confounded, graph.constant):
            part[rows] = 0.0
        graph.noise[rows] = NOISE_PRIOR * graph.unit[rows][..., None]
        graph.trust[rows], graph.weights[rows] = 1.0, 1.0
        tested, solved = (np.where(rows, 0.0, part) for part in (graph.tested, graph.solved))
        return graph._replace(tested=tested, solved=solved)


ABSORBING = methods_of(KClassGraph, ("absorb", "absorb_expected"))


def clear_baseline(graph: KClassState) -> BoolArray:
    """Whether the outcomes of some arm are clearly not 0 where nothing is chosen, (*batch,)."""
    far: BoolArray = np.abs(graph.own_baseline) > CLEAR * np.sqrt(graph.own_baseline_variance)
    return np.asarray((graph.constant > ALARM) & far.any(axis=-1))


def replaced(mask: BoolArray, where: BoolArray, values: BoolArray) -> BoolArray:
    """The mask with other values where `where` is True."""
    found = np.array(mask)
    found[where] = values
    return found


def damped(adjacency: Array) -> Array:
    """A graph whose spill-over dies out: scaled down where its spectral radius is too large."""
    radius = kernels.spectral_radius(adjacency, LARGEST_RADIUS)
    return np.asarray(adjacency * np.minimum(LARGEST_RADIUS / np.maximum(radius, 1e-12), 1.0)[..., None, None])


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


def total_effects(adjacency: Array, variance: Array) -> tuple[Array, Array]:
    """Weights 1'(I - A)^-1 and their variances, to first order; who calls checks that they are finite."""
    weights, weights_variance = kernels.total_effects(adjacency, variance)
    return weights, weights_variance

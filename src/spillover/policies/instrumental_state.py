"""The state of InstrumentalSEM: its belief about own effects, the structural equations and their statistics."""

from typing import Any, NamedTuple

import numpy as np

from spillover.policies.instrumental_equations import (
    BASELINE_DEVIATION,
    EDGE_SCALE,
    FIRST_ROW_NOISE,
    SLOPE_DEVIATION,
    edge_prior,
)
from spillover.policies.switching_state import HYPOTHESES, SHARES
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Constant,
    Finite,
    IntArray,
    Likelihood,
    Probability,
    Round,
    Rounds,
)

PRIOR_DEVIATION = 1.0 / np.sqrt(12.0)  # of an own effect, in units of the range: as if uniform on the range


class Belief(NamedTuple):
    """The posterior over the hypotheses "the last change was at round r", with sums of what was observed.

    An observation is a vector of m = 2 n + p + q + 1 numbers: the regressors (outcomes of all arms, 1 and context,
    context again for the effects), the arm's own outcome, and the doses of all arms.
    """

    change_round: Round  # (*batch, k): r; 0 for the hypothesis that nothing has ever changed
    mass: Probability  # (*batch, k, shares): joint probability of r and of the share of arms that changed at r
    base: Finite  # (*batch, k, n, m): average observation before r
    base_share: Finite  # (*batch, k, n): the share of the prior in what was known before r
    base_mean: Finite  # (*batch, k, n): the own effect before r, under the present graph
    base_weight: Finite  # (*batch, k, n): observations that this is worth
    sums: Finite  # (*batch, n, m): of all observations of an arm
    sums_at: Finite  # (*batch, k, n, m): the same at r
    total: Finite  # (*batch, n): sum of the own effects, under the present graph
    total_at: Finite  # (*batch, k, n)
    weight: Amount  # (*batch, n): number of observations
    weight_at: Amount  # (*batch, k, n)
    ratio: Likelihood  # (*batch, k, n): likelihood ratio of the observations since r, changed against unchanged
    idle_prior: Probability  # (*batch, k, n): prior probability of each arm, if the change was of one idle arm
    changed: Probability  # (*batch, k, n): probability under r that the arm changed at r
    seen: Round  # (*batch, n): latest round of play with an observation of the arm
    latest: Round  # (*batch,): latest round of play of which an outcome has arrived
    detected: Round  # (*batch, 2): changes detected so far, and the likeliest round of the last one


class Equations(NamedTuple):
    """Estimates of the structural equations, with d = n + p + q coefficients each."""

    coefficients: Finite  # (*batch, n, d): edges, baseline and what context does to it, what context does to the effect
    edge_variance: Amount  # (*batch, n, n)
    slope: Finite  # (*batch, n, p + q, n): by how much a larger edge lowers the other coefficients
    rest_covariance: Finite  # (*batch, n, p + q, p + q): of the other coefficients, given the edges
    noise: Amount  # (*batch, n, 2): variance of an equation's error, while its arm is not chosen and while it is
    pooled: Amount  # (*batch, 2): variance of an observed effect, over all arms; the unit of all priors, from the data
    total_effects: Finite  # (*batch, n, n): (I - A)^-1
    weights: Finite  # (*batch, n): its column sums
    weight_variance: Amount  # (*batch, n)
    probability: Probability  # (*batch, n, n): of each edge
    trust: Probability  # (*batch, n): between 0, two-stage least squares, and 1, least squares
    covariance: Finite  # (*batch, n, n, n): of the edges into an arm
    site_precision: Finite  # (*batch, n, n): of the normal factor that stands for the prior of an edge
    site_product: Finite  # (*batch, n, n): its mean times this precision
    evidence: Finite  # (*batch, n, 2): for hidden common causes, beyond what is expected without; this expectation


class Shocks(NamedTuple):
    """Which errors of the equations go together, so that those of arms not chosen predict the others.

    Products: of the errors of arms i and j, of i and i, of j and j, and the rounds; they fade with every solution.
    """

    free_products: Finite  # (*batch, n, n, 4): rounds in which neither was chosen
    chosen_products: Finite  # (*batch, n, n, 4): rounds in which only i was chosen
    shared: Finite  # (*batch, n, n): covariances of errors if neither is chosen
    shared_chosen: Finite  # (*batch, n, n): if only i is chosen


class Statistics(NamedTuple):
    """Sums of products for each equation, for rounds in which its arm was not chosen and in which it was.

    f are the regressors, q the instruments (what the decision moves the outcomes by), y the outcome less its shock.
    """

    ff: Finite  # (*batch, n, 2, d, d)
    qf: Finite
    qq: Finite
    fy: Finite  # (*batch, n, 2, d)
    qy: Finite
    yy: Finite  # (*batch, n, 2)
    rounds: Amount  # (*batch, n, 2): their number
    squares: Amount  # (*batch, n, 2): of the residuals
    freedom: Amount  # (*batch, n, 2): their number, uncertain ones counted less
    moments: Finite  # (*batch, n, 3): number, mean and sum of squared deviations of each arm's outcomes
    decisions: Amount  # (*batch, n): sum of the doses of each arm
    learned: Round  # (*batch,): rounds learned


class Reduced(NamedTuple):
    """Sums of the regression of all outcomes on decisions and context, without a graph, since the last change."""

    gram: Finite  # (*batch, s, s): regressors (1 and context, dose of each arm, dose times context)
    products: Finite  # (*batch, n, s): of outcomes and regressors
    squares: Finite  # (*batch, n, n): of outcomes
    rounds: Amount  # (*batch,)
    chosen: Amount  # (*batch, n): rounds with each arm
    levels: Finite  # (*batch, n + 2, n, 6): number, mean and squared deviations of each outcome, of their sum and of
    # the sum of all other arms, in rounds with and without each arm
    changes: Round  # (*batch,): changes detected so far


class InstrumentalState(NamedTuple):
    """What InstrumentalSEM has learned; outcomes are in units of the width of the reward range."""

    rounds: Rounds  # (*batch,): rounds played
    n_arms: Constant[IntArray]  # (*batch,)
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z
    last_pull: Round  # (*batch, n): its round
    in_flight: Amount  # (*batch, n): pulls whose outcome is still expected
    longest_delay: Amount  # (*batch,): of recent arrivals; old extremes decay
    context: Finite  # (*batch, k): of the coming round
    prior: Finite  # (*batch, 2): mean and deviation of an own effect
    reference: Finite  # (*batch, n, 2): first outcome of each arm, which others are compared with; 1 if there is one
    allowed: Constant[BoolArray]  # (*batch, n, n): edges that may exist
    ordered: Constant[BoolArray]  # (*batch,): whether the order of the arms is known
    solved: Round  # (*batch,): rounds learned when the equations were last solved
    tested: Round  # (*batch,): rounds learned when the graph was last tested
    belief: Belief
    equations: Equations
    statistics: Statistics
    reduced: Reduced
    shocks: Shocks
    rejected: BoolArray  # (*batch, n): arms whose effects come from the regression, as it contradicts the graph


def rest_variance(p: int, q: int) -> Array:
    """The prior variance of baselines and of what context does."""
    return np.append(np.full(p, BASELINE_DEVIATION**2), np.full(q, SLOPE_DEVIATION**2))


def empty_belief(n: int, rest: int, prior_mean: Array) -> Belief:
    batch, m = prior_mean.shape, 2 * n + rest + 1
    by_arm = (*batch, HYPOTHESES, n)
    mass = np.zeros((*batch, HYPOTHESES, len(SHARES)))
    mass[..., 0, 0] = 1.0  # no change so far
    return Belief(
        change_round=np.zeros((*batch, HYPOTHESES), np.int64),
        mass=mass,
        base=np.zeros((*by_arm, m)),
        base_share=np.ones(by_arm),
        base_mean=np.broadcast_to(prior_mean[..., None, None], by_arm).copy(),
        base_weight=np.full(by_arm, 2.0),
        sums=np.zeros((*batch, n, m)),
        sums_at=np.zeros((*by_arm, m)),
        total=np.zeros((*batch, n)),
        total_at=np.zeros(by_arm),
        weight=np.zeros((*batch, n)),
        weight_at=np.zeros(by_arm),
        ratio=np.ones(by_arm),
        idle_prior=np.zeros(by_arm),
        changed=np.zeros(by_arm),
        seen=np.zeros((*batch, n), np.int64),
        latest=np.zeros(batch, np.int64),
        detected=np.zeros((*batch, 2), np.int64),
    )


def prior_equations(allowed: BoolArray, rest_variance: Array, signed: bool, batch: Batch) -> Equations:
    """Before any outcome: each edge that may exist has its prior mean, unless it may be negative."""
    n, rest = allowed.shape[-1], len(rest_variance)
    probability = np.where(allowed, edge_prior(n), 0.0)
    edges = probability * (0.0 if signed else EDGE_SCALE * np.sqrt(2.0 / np.pi))
    total_effects = np.linalg.inv(np.eye(n) - edges)
    weights = total_effects.sum(axis=-2)
    variance = probability * EDGE_SCALE**2 - edges**2
    variance_of_weights = (weights[..., None, :] ** 2 @ (variance @ total_effects**2))[..., 0, :]
    observed = 2.0 * PRIOR_DEVIATION**2
    values = (
        np.concatenate([edges, np.zeros((*edges.shape[:-1], rest))], axis=-1),
        variance,
        np.zeros((n, rest, n)),
        np.broadcast_to(np.diag(rest_variance), (n, rest, rest)),
        np.broadcast_to([FIRST_ROW_NOISE, observed], (n, 2)),
        np.array([observed, 1.0]),
        total_effects,
        weights,
        variance_of_weights,
        probability,
        np.ones(n),
        np.eye(n) * variance[..., None, :],
        np.divide(1.0, variance, out=np.zeros(variance.shape), where=allowed),
        np.divide(edges, variance, out=np.zeros(variance.shape), where=allowed),
        np.zeros((n, 2)),
    )
    shapes = [(n, n + rest), (n, n), (n, rest, n), (n, rest, rest), (n, 2), (2,), (n, n), (n,), (n,), (n, n), (n,)]
    shapes += [(n, n, n), (n, n), (n, n), (n, 2)]
    spread = (np.broadcast_to(v, (*batch, *shape)).copy() for v, shape in zip(values, shapes, strict=True))
    return Equations(*spread)


def empty_statistics(n: int, rest: int, batch: Batch) -> Statistics:
    d = n + rest
    shapes = [(n, 2, d, d)] * 3 + [(n, 2, d)] * 2 + [(n, 2)] * 4 + [(n, 3), (n,)]
    sums: list[Any] = [np.zeros((*batch, *shape)) for shape in shapes]
    return Statistics(*sums, np.zeros(batch, np.int64))  # type: ignore[call-arg]


def empty_reduced(n: int, p: int, q: int, batch: Batch) -> Reduced:
    size = p + n + n * q
    shapes = ((size, size), (n, size), (n, n), (), (n,), (n + 2, n, 6))
    sums: list[Any] = [np.zeros((*batch, *shape)) for shape in shapes]
    return Reduced(*sums, np.zeros(batch, np.int64))  # type: ignore[call-arg]


def empty_shocks(n: int, batch: Batch) -> Shocks:
    return Shocks(*(np.zeros((*batch, *shape)) for shape in ((n, n, 4), (n, n, 4), (n, n), (n, n))))


def observations(belief: Belief) -> Array:
    """The expected number of observations behind each own effect, over the hypotheses."""
    probability = belief.mass.sum(axis=-1)[..., None]
    since = belief.weight[..., None, :] - belief.weight_at
    unchanged = since + belief.base_weight * (1.0 - belief.base_share)
    return np.asarray((probability * (unchanged + belief.changed * (since - unchanged))).sum(axis=-2))

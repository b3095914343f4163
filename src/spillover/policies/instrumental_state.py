"""What InstrumentalSEM has learned: its belief about own effects, the structural equations and their statistics."""

from typing import Any, NamedTuple

import numpy as np

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
    rejected: (
        BoolArray  # (*batch, n): arms whose effects come from the regression on decisions, as it contradicts the graph
    )


def zeros(kind: Any, shapes: list[tuple[int, ...]], batch: Batch, whole: tuple[str, ...] = ()) -> Any:
    """A part of the state of such shapes, all 0; whole: numbers of rounds and changes."""
    each = zip(kind._fields, shapes, strict=True)
    return kind(*(np.zeros((*batch, *shape), np.int64 if name in whole else np.float64) for name, shape in each))


def empty_parts(n: int, p: int, q: int, batch: Batch) -> tuple[Belief, Equations, Statistics, Reduced, Shocks]:
    """All numbers are 0."""
    d, m, size, by_arm = n + p + q, 2 * n + p + q + 1, p + n + n * q, (HYPOTHESES, n)
    belief = [(HYPOTHESES,), (HYPOTHESES, len(SHARES)), (*by_arm, m), *[by_arm] * 3, (n, m), (*by_arm, m), (n,), by_arm]
    belief += [(n,), *[by_arm] * 4, (n,), (), (2,)]
    equations = [(n, d), (n, n), (n, p + q, n), (n, p + q, p + q), (n, 2), (2,), (n, n), (n,), (n,), (n, n), (n,)]
    equations += [(n, n, n), (n, n), (n, n), (n, 2)]
    statistics = [(n, 2, d, d)] * 3 + [(n, 2, d)] * 2 + [(n, 2)] * 4 + [(n, 3), (n,), ()]
    reduced = [(size, size), (n, size), (n, n), (), (n,), (n + 2, n, 6), ()]
    return (
        zeros(Belief, belief, batch, ("change_round", "seen", "latest", "detected")),
        zeros(Equations, equations, batch),
        zeros(Statistics, statistics, batch, ("learned",)),
        zeros(Reduced, reduced, batch, ("changes",)),
        zeros(Shocks, [(n, n, 4), (n, n, 4), (n, n), (n, n)], batch),
    )


def observations(belief: Belief) -> Array:
    """The expected number of observations behind each own effect, over the hypotheses."""
    probability = belief.mass.sum(axis=-1)[..., None]
    since = belief.weight[..., None, :] - belief.weight_at
    unchanged = since + belief.base_weight * (1.0 - belief.base_share)
    return np.asarray((probability * (unchanged + belief.changed * (since - unchanged))).sum(axis=-2))

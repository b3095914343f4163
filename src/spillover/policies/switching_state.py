"""What SwitchingSEM knows: hypotheses about changes, means that drift, arms that do not report."""

from typing import Any, NamedTuple

import numpy as np

from spillover.types import (
    Amount,
    Array,
    Batch,
    Constant,
    Finite,
    IntArray,
    Likelihood,
    Probability,
    Round,
    Rounds,
)

HYPOTHESES = 20  # about the time of the last change; a new one replaces the least probable
SHARES = np.array([0.0, 0.2, 0.9])  # of the arms that a change affects; the first is for changes of one idle arm
DOUBT = 10.0  # weight, in rewards, of the prior that continuous rewards vary as much as Bernoulli draws
DRIFT_SCALE = 1000.0  # rounds over which a drifting mean stays about the same
DRIFT_VARIANCE = 0.06  # of a drifting mean, in units of the squared range
DRIFT_PRIOR = 0.1  # probability that the means of a world drift


class Belief(NamedTuple):
    """The posterior over the hypotheses "the last change was at round r", with Beta counts (ones, zeros)."""

    change_round: Round  # (*batch, k): r; 0 for the hypothesis that nothing has ever changed
    mass: Probability  # (*batch, k, shares): joint probability of r and of the share of arms that changed at r
    counts_unchanged: Amount  # (*batch, k, n, 2): counts of an arm if it did not change at r
    counts_since: Amount  # (*batch, k, n, 2): counts since r
    ratio: Likelihood  # (*batch, k, n): likelihood ratio of the rewards since r, changed against unchanged
    idle_prior: Probability  # (*batch, k, n): prior probability of each arm, if the change was of one idle arm
    changed: Probability  # (*batch, k, n): probability under r that the arm changed at r
    seen: Round  # (*batch, n): latest round of play with a reward of the arm
    latest: Round  # (*batch, 1): latest round of play whose outcome has arrived
    detected: Round  # (*batch, 2): changes detected so far, and the likeliest round of the last one
    spread: Amount  # (*batch, 2): sums of m (1 - m) and of z (1 - z), which give the precision of a reward
    changes: Amount  # (*batch, k): expected number of changes together before r
    redrawn: Probability  # (*batch, 2): the part of the range in which a mean is after a change


class Drift(NamedTuple):
    """The posterior if the means drift smoothly, and the probability of that."""

    track: Finite  # (*batch, n, 5): level - 1/2 and slope, their variances and covariance, in round `latest`
    probability: Probability  # (*batch, 1)
    latest: Round  # (*batch, 1): latest round of play whose outcome has arrived


class Silence(NamedTuple):
    """Whether an arm that never reports had a reward of 0."""

    answers: Amount  # (*batch, n, 3): rewards, rewards of 0 and silences, older ones with less weight
    odds: Finite  # (*batch, 1): logarithm of the odds that silence means 0, against outcomes lost by chance


class SwitchingState(NamedTuple):
    """What SwitchingSEM has learned."""

    rounds: Rounds  # (*batch,): rounds played
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z
    last_pull: Round  # (*batch, n): its round
    in_flight: Amount  # (*batch, n): pulls whose outcome is still expected
    longest_delay: Amount  # (*batch,): of recent arrivals; old extremes decay
    typical_delay: Amount  # (*batch,): a running average, in which extremes are cut off
    rewards_seen: Amount  # (*batch, n): sum of the rewards that have arrived, in units of the range
    prior: Constant[Array]  # (*batch, n): prior weights
    belief: Belief
    drift: Drift
    silence: Silence
    graph: Any


def empty_belief(n_arms: int, batch: Batch) -> Belief:
    hypotheses = (*batch, HYPOTHESES, n_arms)
    mass = np.zeros((*batch, HYPOTHESES, len(SHARES)))
    mass[..., 0, 0] = 1.0  # no change so far
    return Belief(
        change_round=np.zeros((*batch, HYPOTHESES), np.int64),
        mass=mass,
        counts_unchanged=np.ones((*hypotheses, 2)),
        counts_since=np.ones((*hypotheses, 2)),
        ratio=np.ones(hypotheses),
        idle_prior=np.zeros(hypotheses),
        changed=np.zeros(hypotheses),
        seen=np.zeros((*batch, n_arms), np.int64),
        latest=np.zeros((*batch, 1), np.int64),
        detected=np.zeros((*batch, 2), np.int64),
        spread=np.broadcast_to([DOUBT / 4.0, 0.0], (*batch, 2)).copy(),
        changes=np.zeros((*batch, HYPOTHESES)),
        redrawn=np.broadcast_to([0.0, 1.0], (*batch, 2)).copy(),
    )


def empty_drift(n_arms: int, batch: Batch) -> Drift:
    """Every arm at the middle of the range, with the variances of the stationary process."""
    start = [0.0, 0.0, DRIFT_VARIANCE, 0.0, 3.0 * DRIFT_VARIANCE / DRIFT_SCALE**2]
    return Drift(
        track=np.broadcast_to(start, (*batch, n_arms, 5)).copy(),
        probability=np.full((*batch, 1), DRIFT_PRIOR),
        latest=np.zeros((*batch, 1), np.int64),
    )


def empty_silence(n_arms: int, batch: Batch) -> Silence:
    return Silence(np.zeros((*batch, n_arms, 3)), np.zeros((*batch, 1)))


def observations(belief: Belief) -> Array:
    """The expected number of observations behind each mean, over the hypotheses."""
    probability = belief.mass.sum(axis=-1)[..., None]
    unchanged, since = belief.counts_unchanged.sum(axis=-1) - 2.0, belief.counts_since.sum(axis=-1) - 2.0
    return np.asarray((probability * (unchanged + belief.changed * (since - unchanged))).sum(axis=-2))


def belief_moments(belief: Belief) -> tuple[Array, Array]:
    """Mean and expected square of each arm's mean, over the hypotheses, in units of the range."""
    probability = belief.mass.sum(axis=-1)[..., None]
    mean, square = np.zeros(belief.seen.shape), np.zeros(belief.seen.shape)
    for counts, share in ((belief.counts_unchanged, 1.0 - belief.changed), (belief.counts_since, belief.changed)):
        ones, total = counts[..., 0], counts.sum(axis=-1)
        mean += (probability * share * ones / total).sum(axis=-2)
        square += (probability * share * ones * (ones + 1.0) / (total * (total + 1.0))).sum(axis=-2)
    return mean, square

"""What SwitchingSEM and its relatives assume and keep: changes of means, means that drift, pulls, silent arms."""

import math
from typing import Any, NamedTuple

import numpy as np

from spillover.core import inner
from spillover.graph.learner import GraphErrors
from spillover.kernels.averages import fading as faded
from spillover.kernels.averages import start_pulls
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

HAZARD = 1e-3  # probability a round of a change that may affect many arms, before anything is observed
IDLE_HAZARD = 1e-4  # probability a round that an arm that is not played changes unobserved
SHARE_PRIOR = np.array([0.0, 0.5, 0.5])
HAZARDS = np.array([1.0, 1.0 / HAZARD])  # the hazard is learned, as if one change in so many rounds had been observed
OTHER_WORLD = 1e-3  # probability a round that means that drift begin to switch, or the other way round
HORIZON = 20.0  # rounds over which a better arm pays off, if outcomes arrive at once
HORIZON_OF_DELAY = 0.25  # and so much longer for each round of the typical delay
RECENT = 0.99  # decay of the longest delay with every shorter one
TYPICAL = 0.02  # weight of a new delay in the typical one
SOON = 20.0  # delays of up to so many rounds are always expected
PATIENCE = 2.0  # a pull is dropped after about so many times the longest delay so far


def fading(longest_delay: Array, any_arrived: BoolArray) -> Array:
    """The share of a pull in flight that remains after a round: late pulls fade, faster if delays have been short."""
    expected = np.maximum(longest_delay, SOON)
    return np.asarray(np.where(any_arrived, 1.0 - 1.0 / (PATIENCE * (expected + 1.0)), 1.0))


HYPOTHESES = 20  # about the time of the last change; a new one replaces the least probable
SHARES = np.array([0.0, 0.2, 0.9])  # of the arms that a change affects; the first is for changes of one idle arm
DOUBT = 10.0  # weight, in rewards, of the prior that continuous rewards vary as much as Bernoulli draws
DRIFT_SCALE = 1000.0  # rounds over which a drifting mean stays about the same
DRIFT_VARIANCE = 0.06  # of a drifting mean, in units of the squared range
DRIFT_PRIOR = 0.1  # probability that the means of a world drift


class Belief(NamedTuple):
    """The posterior over the hypotheses "the last change was at round r", with Beta counts (ones, zeros).

    Arrays by arm and hypothesis are filled in with the first reward of an arm: the others take no time.
    """

    change_round: Round  # (*batch, k): r; 0 for the hypothesis that nothing has ever changed
    mass: Probability  # (*batch, shares, k): joint probability of r and of the share of arms that changed at r
    untried: Amount  # (*batch, 2, 2k): counts of all arms without rewards, as below
    counts: Amount  # (*batch, n, 2, 2k): ones and zeros, if the arm did not change at r, for each r; then since each r
    ratio: Likelihood  # (*batch, n, k): likelihood ratio of the rewards since r, changed against unchanged
    idle_prior: Probability  # (*batch, n, k): prior probability of each arm, if the change was of one idle arm
    changed: Probability  # (*batch, n, shares, k): probability that the arm changed at r, for each share
    mean: Probability  # (*batch, n): of the arm's mean, over all hypotheses
    square: Probability  # (*batch, n): of its square
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


class Crowd(NamedTuple):
    """With many arms: which of them are up to date, and what those without rewards share."""

    checked: Round  # (*batch, n): the latest outcome by which the arm's hypotheses were brought up to date
    shared: Probability  # (*batch, 2): mean and expected square of the mean of an arm without rewards
    arrivals: Rounds  # (*batch, 1): outcomes so far


class NoCrowd(NamedTuple):
    """With few arms all are up to date: no arrays, and nothing on disk."""


class SwitchingState(NamedTuple):
    """What SwitchingSEM has learned."""

    rounds: Rounds  # (*batch,): rounds played
    n_arms: Constant[IntArray]  # (*batch,)
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
    crowd: Any = NoCrowd()


def empty_belief(n_arms: int, batch: Batch) -> Belief:
    shares = len(SHARES)
    mass = np.zeros((*batch, shares, HYPOTHESES))
    mass[..., 0, 0] = 1.0  # no change so far
    return Belief(
        change_round=np.zeros((*batch, HYPOTHESES), np.int64),
        mass=mass,
        untried=np.ones((*batch, 2, 2 * HYPOTHESES)),
        counts=np.zeros((*batch, n_arms, 2, 2 * HYPOTHESES)),
        ratio=np.zeros((*batch, n_arms, HYPOTHESES)),
        idle_prior=np.zeros((*batch, n_arms, HYPOTHESES)),
        changed=np.zeros((*batch, n_arms, shares, HYPOTHESES)),
        mean=np.full((*batch, n_arms), 1.0 / 2.0),
        square=np.full((*batch, n_arms), 1.0 / 3.0),
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


def empty_crowd(n_arms: int, batch: Batch) -> Crowd:
    return Crowd(
        checked=np.zeros((*batch, n_arms), np.int64),
        shared=np.broadcast_to([1.0 / 2.0, 1.0 / 3.0], (*batch, 2)).copy(),
        arrivals=np.zeros((*batch, 1), np.int64),
    )


def observations(belief: Belief) -> Array:
    """The expected number of observations behind each mean, over the hypotheses; 0 for an arm without rewards."""
    unchanged, since = np.split(belief.counts.sum(axis=-2) - 2.0, 2, axis=-1)
    gone = (belief.mass[..., None, :, :] * belief.changed).sum(axis=-2)
    expected = belief.mass.sum(axis=-2)[..., None, :] * unchanged + gone * (since - unchanged)
    return np.where(belief.seen > 0, expected.sum(axis=-1), 0.0)


@inner
def fade_of(s: Any, any_arrived: Any) -> Any:
    """The share of a pull in flight that remains after a round."""
    return faded(s.longest_delay, any_arrived, SOON, PATIENCE)


@inner
def note_pulls(s: Any, x: Any, any_arrived: Any) -> None:
    """Round s.rounds was played."""
    start_pulls(s.last_pull, s.in_flight, x, s.rounds, fade_of(s, any_arrived))


@inner
def end_pull(s: Any, arm: Any, remains: Any) -> None:
    """The outcome of a pull has arrived; remains: what was left of it, `fade_of` to the power of its age."""
    s.in_flight[arm] = max(s.in_flight[arm] - remains, 0.0)


@inner
def note_delay(s: Any, age: Any) -> None:
    """An outcome arrived so late; old extremes decay."""
    s.longest_delay = max(RECENT * s.longest_delay, age)


@inner
def rivals(effects: Any, budget: Any, ordered: Any) -> Any:
    """The effect of the s-th best arm and of the next one, or 0 if that is more; ordered: room for s + 1 numbers."""
    wanted = min(budget + 1, effects.shape[0])
    for k in range(wanted):
        ordered[k] = -math.inf
    for i in range(effects.shape[0]):
        value, k = effects[i], wanted - 1
        if value > ordered[k]:
            while k > 0 and ordered[k - 1] < value:
                ordered[k] = ordered[k - 1]
                k -= 1
            ordered[k] = value
    return max(ordered[budget - 1], 0.0), (max(ordered[budget], 0.0) if budget < effects.shape[0] else 0.0)


WIDTH = 1.959963984540054  # standard deviations on each side of a 95% interval of a normal distribution
SIDES = np.array([-WIDTH, WIDTH])


def around(middle: Array, variance: Array) -> Array:
    """95% intervals, with the axis (low, high) last."""
    return np.asarray(middle[..., None] + np.sqrt(np.maximum(variance, 0.0))[..., None] * SIDES)


def intervals(
    adjacency: Any, weights: Array, gain: Array, mean: Array, deviation: Array, errors: GraphErrors | None
) -> dict[str, Any]:
    """The fields of an explanation about baselines, effects and intervals, as far as they are known.

    mean, deviation: of each arm's own reward. The errors of means and graph are taken to be independent. Where the
    graph is sparse, for many arms, there is nothing about each pair of them.
    """
    own = {"direct_interval": around(gain * mean, (gain * deviation) ** 2)}
    if errors is None:
        return own
    spill, of_mean, of_graph = weights - gain, deviation**2, errors.weights_variance
    beyond = of_graph * (mean**2 + of_mean)
    own |= {
        "baseline": errors.baseline,
        "spill_interval": around(spill * mean, spill**2 * of_mean + beyond),
        "total_interval": around(weights * mean, weights**2 * of_mean + beyond),
    }
    if not isinstance(adjacency, np.ndarray):
        return own
    known = np.isfinite(adjacency).all(axis=(-1, -2), keepdims=True)
    reach = np.linalg.inv(np.eye(mean.shape[-1]) - (adjacency if known.all() else np.nan_to_num(adjacency)))
    effects = reach * (gain * mean)[..., None, :]
    edges = around(adjacency, errors.edge_variance)
    return own | {
        "effects": np.where(known, effects, np.nan),
        "edge_probability": errors.edge_probability,
        "edge_interval": edges,
    }

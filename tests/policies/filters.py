"""The steps of SwitchingSEM's filter by themselves, compiled, as Python calls them."""

import numpy as np

from spillover.core.compiled import entry
from spillover.kernels.drifting import drifting_arrival, drifting_forecast, weigh_silence
from spillover.kernels.switching import learn_rewards
from spillover.kernels.switching_scores import MOST_SORTED, value_arms
from spillover.policies.switching_state import DRIFT_PRIOR, DRIFT_SCALE, DRIFT_VARIANCE

DRIFT = DRIFT_SCALE, DRIFT_VARIANCE


@entry
def learn_rounds(belief, x, reward, weight, played_at, model):
    """Learn rewards of some rounds, (rounds, n); what was expected of the last ones."""
    shares, prior, hazards, idle_hazard = model
    room = np.empty((4 + belief.mass.shape[0], 2 * belief.change_round.shape[0]))
    expected, counted, likely = np.empty(x.shape[1]), np.empty(x.shape[1]), np.empty(x.shape[1])
    for r in range(x.shape[0]):
        learn_rewards(
            belief.change_round, belief.mass, belief.untried, belief.counts, belief.ratio, belief.idle_prior,
            belief.changed, belief.mean, belief.square, belief.seen, belief.latest, belief.detected, belief.spread,
            belief.changes, belief.redrawn, x[r], reward[r], weight, played_at[r], shares, prior, hazards, idle_hazard,
            room, expected, counted, likely,
        )  # fmt: skip
    return expected


@entry
def index_of(
    belief, drift_mean, drift_deviation, weights, last_pull, flight, now, budget, reward_range, model, horizon
):
    """Weights, means and index of means that do not drift, (3, n)."""
    shares, share_prior, hazards, idle_hazard = model
    n, found = weights.shape[0], np.empty((3, weights.shape[0]))
    room, best = np.empty((5, 2 * belief.change_round.shape[0])), np.empty(MOST_SORTED + 1)
    value_arms(
        belief.mass, belief.untried, belief.counts, belief.changed, belief.changes, belief.redrawn, belief.mean,
        belief.seen, belief.latest[0], 0.0, drift_mean, drift_deviation, weights, weights, np.zeros(n), last_pull,
        flight, now, budget, reward_range, hazards, shares, share_prior, idle_hazard, horizon, room, best, np.empty(n),
        np.empty(n), found[0], found[1], found[2],
    )  # fmt: skip
    return found


@entry
def learn_drift(drift, x, reward, likely, weight, played_at, other_world):
    """Learn the rewards of a round."""
    drifting_arrival(
        drift.track, drift.probability, drift.latest, x, reward, reward, likely, 1.0, weight, played_at, DRIFT_SCALE,
        DRIFT_VARIANCE, DRIFT_PRIOR, other_world,
    )  # fmt: skip


@entry
def forecast(track, elapsed):
    """Mean and standard deviation of each arm."""
    mean, deviation = np.empty(track.shape[0]), np.empty(track.shape[0])
    drifting_forecast(track, elapsed, DRIFT_SCALE, DRIFT_VARIANCE, mean, deviation)
    return mean, deviation


@entry
def weigh(answers, odds, x, known, z, reward_range):
    """The probability that silence means no reward, after a round."""
    return weigh_silence(answers, odds, x, known, z, reward_range)

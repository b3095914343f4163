"""A round of SwitchingSEM on an adaptive graph, step by step, with all that the learner knows in blocks.

The steps are made of the functions that the kernels of other files are made of, so both give the same numbers, bit for
bit.
"""

import math
from collections import namedtuple

import numpy as np
from numba import njit, uint64

from spillover.kernels.confounding import test_doubts
from spillover.kernels.drawing import take_top
from spillover.kernels.drifting import drifting_arrival, drifting_forecast
from spillover.kernels.evidence import favourite, judge_pair, judge_weights, total, use_weights
from spillover.kernels.gram import absorb
from spillover.kernels.graph import fit, fit_signed
from spillover.kernels.inversion import structure
from spillover.kernels.kclass import absorb_moments
from spillover.kernels.pulls import start_pulls, take_rewards
from spillover.kernels.regression import learn_outcome, shrunk_weights, test_and_learn
from spillover.kernels.rounds import CHOICE
from spillover.kernels.silences import weigh_silence
from spillover.kernels.switching import learn_rewards
from spillover.kernels.switching_scores import value_arms

# As kernels are, so that loops vectorise: nothing is raised. And without counts of references: blocks outlive a call.
compiled = njit(error_model="numpy", _nrt=False)
allocating = njit(error_model="numpy", _nrt=True)  # said, because a function takes over what its caller has
inlined = njit(inline="always")
drifting_arrival, drifting_forecast = compiled(drifting_arrival), compiled(drifting_forecast)
start_pulls, take_rewards, weigh_silence = compiled(start_pulls), compiled(take_rewards), compiled(weigh_silence)
absorb, shrunk_weights = allocating(absorb), compiled(shrunk_weights)
absorb_moments, structure = allocating(absorb_moments), allocating(structure)
take_top = allocating(take_top.py_func)
fit, fit_signed, test_doubts = allocating(fit), allocating(fit_signed), allocating(test_doubts.py_func)
learn_rewards, value_arms = compiled(learn_rewards.py_func), compiled(value_arms.py_func)

# why the kernel stops, and what Python has to do
DONE, ALARM, ESTIMATE, FAULT = range(4)
K_CLASS = 4  # the candidate that does not trust z

# positions in the array of settings
SETTINGS = (
    *("hypotheses", "idle_hazard", "other_world", "drift_scale", "drift_variance", "drift_prior", "horizon"),
    *("horizon_of_delay", "recent", "typical", "soon", "patience"),
    *("signed", "quiet", "floor", "ridge", "enough_information", "unknown", "least_weight", "prior_variance"),
    *("more_rounds", "rounds_for_arms", "alarm", "suspicion", "noisy"),
)
(
    HYPOTHESES, IDLE_HAZARD, OTHER_WORLD, DRIFT_SCALE, DRIFT_VARIANCE, DRIFT_PRIOR, HORIZON,
    HORIZON_OF_DELAY, RECENT, TYPICAL, SOON, PATIENCE,
    SIGNED, QUIET, FLOOR, RIDGE, ENOUGH_INFORMATION, UNKNOWN, LEAST_WEIGHT, PRIOR_VARIANCE,
    MORE_ROUNDS, ROUNDS_FOR_ARMS, RAISED, SUSPICION, NOISY,
) = range(len(SETTINGS))  # fmt: skip

Scratch = namedtuple("Scratch", "laws index lines squares held payoff done one")


@njit(inline="always")
def scratch_for(n, k, g):
    """Memory for the steps of a round."""
    return Scratch(
        np.empty((4 + g, 2 * k)),  # of `learn_rewards`
        np.empty((6, max(2 * k, n + 1))),  # of `value_arms`
        np.empty((10, n)),
        np.empty((5, n)),  # of the regressions
        np.empty(n, np.int64),
        np.empty(1),
        np.empty(1, np.bool_),
        np.empty(1),
    )


@inlined
def decide(s, w, settings, hazards, shares, share_prior, key, room, x):
    """The decision for the next round."""
    lines = room.lines
    drift_mean, drift_deviation, weights, mean, index = lines[0], lines[1], lines[2], lines[3], lines[4]
    now, budget = w.rounds[0], w.budget[0]
    elapsed = now + 1 - w.drift_latest[0]
    drifting_forecast(
        s.track, elapsed, settings[DRIFT_SCALE], settings[DRIFT_VARIANCE], drift_mean, drift_deviation
    )  # fmt: skip
    value_arms(
        s.mass, s.untried, s.counts, s.changed, s.changes, s.redrawn, s.mean, w.seen, w.latest[0], s.drifts[0],
        drift_mean, drift_deviation, s.weights, s.prior, s.rewards_seen, w.last_pull, s.in_flight, now, budget,
        s.reward_range, hazards, shares, share_prior, settings[IDLE_HAZARD],
        settings[HORIZON] + settings[HORIZON_OF_DELAY] * s.typical_delay[0], room.index, weights, mean, index,
    )  # fmt: skip
    for i in range(x.shape[0]):
        index[i] = weights[i] * index[i] if weights[i] != 0.0 else 0.0
    take_top(index, budget, key, uint64(0), uint64(now + 1), CHOICE, room.index[5], x)


@inlined
def remember(s, memo):
    """The current weights of each candidate with a graph; zeros while there is little data."""
    ripe = s.freedom[0] >= memo.shape[1]
    for i in range(memo.shape[1]):
        memo[0, i] = s.sparse_weights[i] if ripe else 0.0
        memo[1, i] = s.instrument_weights[i] if ripe else 0.0
        memo[2, i] = s.full_weights[i] if ripe else 0.0


@inlined
def record_play(s, w, settings, x):
    """A round was played."""
    w.rounds[0] += 1
    start_pulls(
        w.last_pull, s.in_flight, x, w.rounds[0], s.longest_delay[0], w.latest[0] > 0, settings[SOON],
        settings[PATIENCE], w.last_pull, s.in_flight,
    )  # fmt: skip


@inlined
def learn_means(s, w, settings, hazards, shares, share_prior, x, z, played_at, room, expected):
    """Learn the rewards of a round; `expected`: what was expected of z."""
    lines = room.lines
    reward, counted, likely = lines[0], lines[1], lines[2]
    age, low, high = w.rounds[0] - played_at, s.reward_range[0], s.reward_range[1]
    take_rewards(
        s.in_flight, s.rewards_seen, x, z, s.reward_range, age, s.longest_delay[0], w.latest[0] > 0, settings[SOON],
        settings[PATIENCE], True, s.in_flight, s.rewards_seen, reward,
    )  # fmt: skip
    precision = learn_rewards(
        w.change_round, s.mass, s.untried, s.counts, s.ratio, s.idle_prior, s.changed, s.mean, s.square, w.seen,
        w.latest, w.detected, s.spread, s.changes, s.redrawn, x, reward, 1.0, played_at, shares, share_prior, hazards,
        settings[IDLE_HAZARD], room.laws, expected, counted, likely,
    )  # fmt: skip
    drifting_arrival(
        s.track, s.drifts, w.drift_latest, x, reward, counted, likely, precision, 1.0, played_at,
        settings[DRIFT_SCALE], settings[DRIFT_VARIANCE], settings[DRIFT_PRIOR], settings[OTHER_WORLD], True, room.one,
    )  # fmt: skip
    ordinary = min(float(age), 2.0 * s.typical_delay[0] + settings[SOON])
    s.longest_delay[0] = max(settings[RECENT] * s.longest_delay[0], float(age))
    s.typical_delay[0] += settings[TYPICAL] * (ordinary - s.typical_delay[0])
    weigh_silence(s.answers, s.odds, x, x, z, s.reward_range, True, room.one)
    for i in range(x.shape[0]):
        expected[i] = low + (high - low) * expected[i] if x[i] else 0.0


@inlined
def absorb_outcome(s, w, f, settings, z, y, memo, played_at, room, expected):
    """Add an outcome to the statistics of the graph; True if it revealed a change, and then without the last steps."""
    judge_weights(s.errors, s.lead, s.doubt, s.cross, s.power, s.observed, memo, z, y)
    current = 1.0 if played_at >= w.since[0] else 0.0
    trusted = 0.0 if f.baseline[0] or f.confounded[0] else current
    alarm, certainty = False, 0.0
    if trusted != 0.0:
        alarm, certainty = test_and_learn(
            s.root, s.effects, s.scatter, s.freedom, s.suspicion, s.risen, s.fallen, z, y,
            settings[FLOOR] / settings[RIDGE] * s.ridge[0], math.sqrt(s.ridge[0] / settings[RIDGE]), settings[QUIET],
            trusted, room.squares, room.held,
        )  # fmt: skip
    if f.noisy[0] and trusted > 0.0 and not alarm:
        usual = room.lines[3]
        use_weights(
            favourite(s.errors, s.lead, s.doubt, s.power), s.sparse_weights, s.instrument_weights, s.full_weights, usual
        )  # fmt: skip
        judge_pair(
            s.x_errors, s.x_lead, s.x_doubt, s.x_cross, s.x_power, s.x_observed, s.k_weights, usual, expected, y
        )  # fmt: skip
    s.new_information[0] += 1.0 - certainty if certainty > 0.0 else 0.0
    room.payoff[0] = total(y)
    s.full_freedom[0] += learn_outcome(
        s.full_root, s.full_effects, s.full_scatter, z, room.payoff, 1.0, room.squares, room.held
    )  # fmt: skip
    if not alarm:
        absorb(s.gram, s.residual, s.adjacency, z, y, trusted, room.done)
        absorb_moments(s.moments, y, z, expected, current, room.done)
    return alarm


@inlined
def solve_candidates(s, f, settings, room):
    """Estimate the graphs again that trust z."""
    n, signed = s.weights.shape[0], settings[SIGNED] != 0.0
    rows = (s.gram, s.residual, s.adjacency, s.pressure, s.sparse_weights, s.penalty)
    if signed:
        fit_signed(*rows, s.bound[0], f.acyclic[0], room.done)
    else:
        fit(*rows, s.bound[0], f.acyclic[0], room.done)
    if s.new_information[0] > settings[ENOUGH_INFORMATION] * n:
        structure(
            s.effects, s.root, s.scatter, s.freedom[0], s.bars, s.gain_bars,
            settings[FLOOR] / settings[RIDGE] * s.ridge[0], signed, settings[UNKNOWN] / s.ridge[0],
            settings[LEAST_WEIGHT], True, s.instrument_adjacency, s.gain, s.instrument_weights, room.done,
        )  # fmt: skip
        s.new_information[0] = 0.0
    shrunk_weights(
        s.full_root, s.full_effects[0], s.full_scatter[0, 0], s.full_freedom[0], settings[PRIOR_VARIANCE],
        s.full_weights,
    )  # fmt: skip
    if not signed:
        for i in range(n):
            s.full_weights[i] = max(s.full_weights[i], settings[LEAST_WEIGHT])


@inlined
def doubt_z(s, f, settings):
    """Test again whether z can be trusted, if it is due; True if the k-class estimate is due, and may be used."""
    n = s.weights.shape[0]
    rounds = s.moments[3 * n, 3 * n]
    if rounds > settings[MORE_ROUNDS] * s.tested[0]:
        s.log_confounding[0], s.log_baseline[0] = test_doubts(s.moments, n, s.unit[0])
        s.tested[0] = rounds
    f.baseline[0] |= s.log_baseline[0] > settings[RAISED]
    f.confounded[0] |= s.log_confounding[0] > settings[RAISED]
    equal_gains, largest = True, 0.0
    for i in range(n):
        equal_gains &= s.gain[i] == 1.0
        largest = max(largest, s.scatter[i, i])
    variance = largest / max(s.freedom[0], 1.0)
    suitable = s.log_confounding[0] > settings[SUSPICION] or (not f.ordered[0] and equal_gains)
    f.noisy[0] = suitable and variance > settings[NOISY] * (settings[FLOOR] / settings[RIDGE] * s.ridge[0])
    due = rounds > settings[MORE_ROUNDS] * s.solved[0] and rounds >= s.solved[0] + settings[ROUNDS_FOR_ARMS] * n
    return due and (f.baseline[0] or f.confounded[0] or f.noisy[0])


@inlined
def use_best(s, w, f):
    """The candidate in use, and its weights."""
    misled = f.baseline[0] or f.confounded[0]
    if misled or (f.noisy[0] and favourite(s.x_errors, s.x_lead, s.x_doubt, s.x_power) == 0):
        w.used[0] = K_CLASS
        for i in range(s.weights.shape[0]):
            s.weights[i] = s.k_weights[i]
    else:
        w.used[0] = favourite(s.errors, s.lead, s.doubt, s.power)
        use_weights(w.used[0], s.sparse_weights, s.instrument_weights, s.full_weights, s.weights)


@inlined
def learn_round(s, w, f, settings, hazards, shares, share_prior, x, z, y, memo, played_at, room, expected):
    """Learn the outcome of a round and solve for the graph; returns whether, and why, Python must do the rest."""
    learn_means(s, w, settings, hazards, shares, share_prior, x, z, played_at, room, expected)
    if absorb_outcome(s, w, f, settings, z, y, memo, played_at, room, expected):
        return ALARM
    solve_candidates(s, f, settings, room)
    if doubt_z(s, f, settings):
        return ESTIMATE
    use_best(s, w, f)
    return DONE


@inlined
def copy_graph(s, w, snapshot):
    """The adjacency matrix of the candidate in use; NaN if it has none."""
    used, n = w.used[0], s.weights.shape[0]
    for i in range(n):
        for j in range(n):
            if used == 0:
                snapshot[i, j] = s.adjacency[i, j]
            elif used == 1:
                snapshot[i, j] = s.instrument_adjacency[i, j]
            elif used == K_CLASS:
                snapshot[i, j] = s.k_adjacency[i, j]
            else:
                snapshot[i, j] = math.nan if used == 2 else 0.0

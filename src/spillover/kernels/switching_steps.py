"""A round of SwitchingSEM on an adaptive graph, step by step, with all that the learner knows in a block.

The steps are made of the functions that the kernels of other files are made of, so both give the same numbers, bit for
bit.
"""

import math

from numba import njit, uint64

from spillover.kernels.arrivals import NEVER
from spillover.kernels.confounding import test_doubts
from spillover.kernels.drawing import take_top
from spillover.kernels.drifting import drifting_arrival, drifting_forecast
from spillover.kernels.evidence import favourite, judge_pair, judge_weights, total, use_weights
from spillover.kernels.gram import absorb_outcome
from spillover.kernels.graph import fit, fit_signed
from spillover.kernels.inversion import structure
from spillover.kernels.kclass import absorb_moments
from spillover.kernels.pulls import start_pulls, take_rewards
from spillover.kernels.regression import learn_outcome, shrunk_weights, test_and_learn
from spillover.kernels.rounds import CHOICE, date_of
from spillover.kernels.silences import weigh_silence
from spillover.kernels.switching import learn_rewards
from spillover.kernels.switching_block import (
    belief_of,
    changes_of,
    constants_of,
    drift_of,
    evidence_of,
    flags_of,
    full_history_of,
    given_x_of,
    instrument_of,
    k_class_of,
    own_of,
    scratch_of,
    silence_of,
    sparse_of,
    whole_of,
)
from spillover.kernels.switching_scores import value_arms

# As kernels are, so that loops vectorise: nothing is raised. And without counts of references: a block outlives a call.
compiled = njit(error_model="numpy", _nrt=False)
allocating = njit(error_model="numpy", _nrt=True)  # said, because a function takes over what its caller has
drifting_arrival, drifting_forecast = compiled(drifting_arrival), compiled(drifting_forecast)
start_pulls, take_rewards, weigh_silence = compiled(start_pulls), compiled(take_rewards), compiled(weigh_silence)
shrunk_weights = compiled(shrunk_weights)
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
    *("more_rounds", "rounds_for_arms", "alarm", "suspicion", "noisy", "assumed_delay"),
)
(
    HYPOTHESES, IDLE_HAZARD, OTHER_WORLD, DRIFT_SCALE, DRIFT_VARIANCE, DRIFT_PRIOR, HORIZON,
    HORIZON_OF_DELAY, RECENT, TYPICAL, SOON, PATIENCE,
    SIGNED, QUIET, FLOOR, RIDGE, ENOUGH_INFORMATION, UNKNOWN, LEAST_WEIGHT, PRIOR_VARIANCE,
    MORE_ROUNDS, ROUNDS_FOR_ARMS, RAISED, SUSPICION, NOISY, ASSUMED_DELAY,
) = range(len(SETTINGS))  # fmt: skip


@compiled
def decide(learner, key, x):
    """The decision for the next round."""
    own, belief, drift, whole = own_of(learner), belief_of(learner), drift_of(learner), whole_of(learner)
    constants, room = constants_of(learner), scratch_of(learner)
    settings, lines = constants.settings, room.lines
    drift_mean, drift_deviation, weights, mean, index = lines[0], lines[1], lines[2], lines[3], lines[4]
    now, budget = whole.rounds[0], whole.budget[0]
    elapsed = now + 1 - whole.drift_latest[0]
    drifting_forecast(
        drift.track, elapsed, settings[DRIFT_SCALE], settings[DRIFT_VARIANCE], drift_mean, drift_deviation
    )  # fmt: skip
    value_arms(
        belief.mass, belief.untried, belief.counts, belief.changed, belief.changes, belief.redrawn, belief.mean,
        whole.seen, whole.latest[0], drift.drifts[0], drift_mean, drift_deviation, changes_of(learner).weights,
        own.prior, own.rewards_seen, whole.last_pull, own.in_flight, now, budget, own.reward_range, constants.hazards,
        constants.shares, constants.share_prior, settings[IDLE_HAZARD],
        settings[HORIZON] + settings[HORIZON_OF_DELAY] * own.typical_delay[0], room.index, weights, mean, index,
    )  # fmt: skip
    for i in range(x.shape[0]):
        index[i] = weights[i] * index[i] if weights[i] != 0.0 else 0.0
    take_top(index, budget, key, uint64(0), uint64(now + 1), CHOICE, room.index[5], x)


@compiled
def remember(learner, memo):
    """The current weights of each candidate with a graph; zeros while there is little data."""
    instrument, sparse, full_history = instrument_of(learner), sparse_of(learner), full_history_of(learner)
    ripe = instrument.freedom[0] >= memo.shape[1]
    for i in range(memo.shape[1]):
        memo[0, i] = sparse.weights[i] if ripe else 0.0
        memo[1, i] = instrument.weights[i] if ripe else 0.0
        memo[2, i] = full_history.weights[i] if ripe else 0.0


@compiled
def record_play(learner, x):
    """A round was played; returns its number."""
    own, whole, settings = own_of(learner), whole_of(learner), constants_of(learner).settings
    whole.rounds[0] += 1
    start_pulls(
        whole.last_pull, own.in_flight, x, whole.rounds[0], own.longest_delay[0], whole.latest[0] > 0, settings[SOON],
        settings[PATIENCE], whole.last_pull, own.in_flight,
    )  # fmt: skip
    return whole.rounds[0]


@compiled
def dated(learner, played):
    """The round in which an outcome is taken to have been played; see `SwitchingSEM.assumed_delay`."""
    return date_of(played, whole_of(learner).rounds[0], int(constants_of(learner).settings[ASSUMED_DELAY]))


@compiled
def learn_arms(learner, x, z, weight, played_at, expected):
    """Learn rewards of some arms of a round; `expected`: what was expected of them, in units of the range."""
    own, belief, drift, whole = own_of(learner), belief_of(learner), drift_of(learner), whole_of(learner)
    constants, room = constants_of(learner), scratch_of(learner)
    settings, reward, counted, likely = constants.settings, room.lines[0], room.lines[1], room.lines[2]
    take_rewards(
        own.in_flight, own.rewards_seen, x, z, own.reward_range, whole.rounds[0] - played_at, own.longest_delay[0],
        whole.latest[0] > 0, settings[SOON], settings[PATIENCE], True, reward,
    )  # fmt: skip
    precision = learn_rewards(
        whole.change_round, belief.mass, belief.untried, belief.counts, belief.ratio, belief.idle_prior,
        belief.changed, belief.mean, belief.square, whole.seen, whole.latest, whole.detected, belief.spread,
        belief.changes, belief.redrawn, x, reward, weight, played_at, constants.shares, constants.share_prior,
        constants.hazards, settings[IDLE_HAZARD], room.laws, expected, counted, likely,
    )  # fmt: skip
    drifting_arrival(
        drift.track, drift.drifts, whole.drift_latest, x, reward, counted, likely, precision, weight, played_at,
        settings[DRIFT_SCALE], settings[DRIFT_VARIANCE], settings[DRIFT_PRIOR], settings[OTHER_WORLD], True, room.one,
    )  # fmt: skip


@compiled
def note_delay(learner, played_at):
    """Take in how late an outcome arrived."""
    own, settings = own_of(learner), constants_of(learner).settings
    age = float(whole_of(learner).rounds[0] - played_at)
    ordinary = min(age, 2.0 * own.typical_delay[0] + settings[SOON])
    own.longest_delay[0] = max(settings[RECENT] * own.longest_delay[0], age)
    own.typical_delay[0] += settings[TYPICAL] * (ordinary - own.typical_delay[0])


@compiled
def note_answers(learner, x, known, z):
    """Learn which arms of a complete round have reported; the probability that silence means no reward."""
    silence, room = silence_of(learner), scratch_of(learner)
    weigh_silence(silence.answers, silence.odds, x, known, z, own_of(learner).reward_range, True, room.one)
    return room.one[0]


@compiled
def rescale(learner, x, share, expected):
    """Rewards of the chosen arms from their position in the range."""
    low, high = own_of(learner).reward_range[0], own_of(learner).reward_range[1]
    for i in range(x.shape[0]):
        expected[i] = low + (high - low) * share[i] if x[i] else 0.0


@compiled
def learn_means(learner, x, z, played_at, expected):
    """Learn the rewards of a round; `expected`: what was expected of z."""
    learn_arms(learner, x, z, 1.0, played_at, expected)
    note_delay(learner, played_at)
    note_answers(learner, x, x, z)
    rescale(learner, x, expected, expected)


@compiled
def learn_news(learner, x, z, arrival, played_at, expected):
    """Learn the rewards of the arms of a round that have just reported; True if all of its arms have by now.

    If no more will come, arms that have not reported never will. arrival: the round in which each arm reports.
    """
    now, own, room = whole_of(learner).rounds[0], own_of(learner), scratch_of(learner)
    known, some, unused, nothing = room.marks[0], room.marks[1], room.lines[5], room.lines[6]
    rescale(learner, x, belief_of(learner).mean, expected)
    news, lacking, complete = False, False, True
    for i in range(x.shape[0]):
        known[i], some[i] = arrival[i] <= now, x[i] and arrival[i] == now
        news |= some[i]
        lacking |= not known[i]
        complete &= known[i] or arrival[i] == NEVER
    if news:
        learn_arms(learner, some, z, 1.0, played_at, unused)
        note_delay(learner, played_at)
    if complete:
        weight = note_answers(learner, x, known, z)
        silent = False
        for i in range(x.shape[0]):
            some[i], nothing[i] = x[i] and not known[i], min(max(0.0, own.reward_range[0]), own.reward_range[1])
            silent |= some[i]
        if silent:
            learn_arms(learner, some, nothing, weight, played_at, unused)
    return not lacking


@compiled
def least_variance(learner):
    """The lower bound on the variance of a residual."""
    settings = constants_of(learner).settings
    return settings[FLOOR] / settings[RIDGE] * instrument_of(learner).ridge[0]


@compiled
def usual_weights(learner, weights):
    """The weights of the candidate that the evidence favours; returns which it is."""
    evidence = evidence_of(learner)
    used = favourite(evidence.errors, evidence.lead, evidence.doubt, evidence.power)
    use_weights(
        used, sparse_of(learner).weights, instrument_of(learner).weights, full_history_of(learner).weights, weights
    )  # fmt: skip
    return used


@compiled
def test_outcome(learner, z, y, trusted):
    """Test an outcome for a change of the graph, and learn the effects from it unless it reveals one."""
    instrument, changes, settings = instrument_of(learner), changes_of(learner), constants_of(learner).settings
    room = scratch_of(learner)
    alarm, certainty = test_and_learn(
        instrument.root, instrument.effects, instrument.scatter, instrument.freedom, changes.suspicion, changes.risen,
        changes.fallen, z, y, least_variance(learner), math.sqrt(instrument.ridge[0] / settings[RIDGE]),
        settings[QUIET], trusted, room.squares, room.held,
    )  # fmt: skip
    instrument.new_information[0] += 1.0 - certainty if certainty > 0.0 else 0.0
    return alarm


@compiled
def learn_outcomes(learner, z, y, memo, played_at, expected):
    """Add an outcome to the statistics of the graph; True if it revealed a change, and then without the last steps."""
    whole, flags, held, room = whole_of(learner), flags_of(learner), evidence_of(learner), scratch_of(learner)
    judge_weights(held.errors, held.lead, held.doubt, held.cross, held.power, held.observed, memo, z, y)
    current = 1.0 if played_at >= whole.since[0] else 0.0
    trusted = 0.0 if flags.baseline[0] or flags.confounded[0] else current
    alarm = trusted != 0.0 and test_outcome(learner, z, y, trusted)
    if flags.noisy[0] and trusted > 0.0 and not alarm:
        usual, given = room.lines[3], given_x_of(learner)
        usual_weights(learner, usual)
        judge_pair(
            given.errors, given.lead, given.doubt, given.cross, given.power, given.observed,
            k_class_of(learner).weights, usual, expected, y,
        )  # fmt: skip
    full_history = full_history_of(learner)
    room.payoff[0] = total(y)
    full_history.freedom[0] += learn_outcome(
        full_history.root, full_history.effects, full_history.scatter, z, room.payoff, 1.0, room.squares, room.held
    )  # fmt: skip
    if not alarm:
        sparse = sparse_of(learner)
        if trusted != 0.0:
            absorb_outcome(sparse.gram, sparse.residual, sparse.adjacency, z, y, trusted, False, room.lines[4])
        absorb_moments(k_class_of(learner).moments, y, z, expected, current, room.done)
    return alarm


@compiled
def solve_graphs(learner):
    """Estimate the graphs again that trust z."""
    sparse, instrument, full_history = sparse_of(learner), instrument_of(learner), full_history_of(learner)
    settings, acyclic, room = constants_of(learner).settings, flags_of(learner).acyclic[0], scratch_of(learner)
    signed = settings[SIGNED] != 0.0
    if signed:
        fit_signed(
            sparse.gram, sparse.residual, sparse.adjacency, sparse.pressure, sparse.weights, sparse.penalty,
            sparse.bound[0], acyclic, room.done,
        )  # fmt: skip
    else:
        fit(
            sparse.gram, sparse.residual, sparse.adjacency, sparse.pressure, sparse.weights, sparse.penalty,
            sparse.bound[0], acyclic, room.done,
        )  # fmt: skip
    if instrument.new_information[0] > settings[ENOUGH_INFORMATION] * learner.arms:
        structure(
            instrument.effects, instrument.root, instrument.scatter, instrument.freedom[0], instrument.bars,
            instrument.gain_bars, least_variance(learner), signed, settings[UNKNOWN] / instrument.ridge[0],
            settings[LEAST_WEIGHT], True, instrument.adjacency, instrument.gain, instrument.weights, room.done,
        )  # fmt: skip
        instrument.new_information[0] = 0.0
    shrunk_weights(
        full_history.root, full_history.effects[0], full_history.scatter[0, 0], full_history.freedom[0],
        settings[PRIOR_VARIANCE], full_history.weights,
    )  # fmt: skip
    if not signed:
        for i in range(learner.arms):
            full_history.weights[i] = max(full_history.weights[i], settings[LEAST_WEIGHT])


@compiled
def doubt_z(learner):
    """Test again whether z can be trusted, if it is due; True if the k-class estimate is due, and may be used."""
    n, settings, k_class = learner.arms, constants_of(learner).settings, k_class_of(learner)
    flags, instrument = flags_of(learner), instrument_of(learner)
    rounds = k_class.moments[3 * n, 3 * n]
    if rounds > settings[MORE_ROUNDS] * k_class.tested[0]:
        k_class.log_confounding[0], k_class.log_baseline[0] = test_doubts(k_class.moments, n, k_class.unit[0])
        k_class.tested[0] = rounds
    flags.baseline[0] |= k_class.log_baseline[0] > settings[RAISED]
    flags.confounded[0] |= k_class.log_confounding[0] > settings[RAISED]
    equal_gains, largest = True, 0.0
    for i in range(n):
        equal_gains &= instrument.gain[i] == 1.0
        largest = max(largest, instrument.scatter[i, i])
    variance = largest / max(instrument.freedom[0], 1.0)
    suitable = k_class.log_confounding[0] > settings[SUSPICION] or (not flags.ordered[0] and equal_gains)
    flags.noisy[0] = suitable and variance > settings[NOISY] * least_variance(learner)
    due = rounds > settings[MORE_ROUNDS] * k_class.solved[0]
    due &= rounds >= k_class.solved[0] + settings[ROUNDS_FOR_ARMS] * n
    return due and (flags.baseline[0] or flags.confounded[0] or flags.noisy[0])


@compiled
def use_best(learner):
    """The candidate in use, and its weights."""
    flags, given, weights = flags_of(learner), given_x_of(learner), changes_of(learner).weights
    misled = flags.baseline[0] or flags.confounded[0]
    if misled or (flags.noisy[0] and favourite(given.errors, given.lead, given.doubt, given.power) == 0):
        whole_of(learner).used[0] = K_CLASS
        for i in range(learner.arms):
            weights[i] = k_class_of(learner).weights[i]
    else:
        whole_of(learner).used[0] = usual_weights(learner, weights)


@compiled
def learn_graph(learner, z, y, memo, played_at, expected):
    """Learn the graph from the outcome of a round, and solve for it; returns what `learn_round` does."""
    if learn_outcomes(learner, z, y, memo, played_at, expected):
        return ALARM
    solve_graphs(learner)
    if doubt_z(learner):
        return ESTIMATE
    use_best(learner)
    return DONE


@compiled
def learn_round(learner, x, z, y, memo, arrival, played, expected):
    """Learn the outcome of a round, or what is new of it; returns whether, and why, Python must do the rest.

    arrival: the round in which each arm reports; (0,) if they do so together. The graph needs whole rounds.
    """
    played_at = dated(learner, played)
    if arrival.shape[0] == 0:
        learn_means(learner, x, z, played_at, expected)
    elif not learn_news(learner, x, z, arrival, played_at, expected):
        return DONE
    return learn_graph(learner, z, y, memo, played_at, expected)


@compiled
def copy_graph(learner, snapshot):
    """The adjacency matrix of the candidate in use; NaN if it has none."""
    used, sparse = whole_of(learner).used[0], sparse_of(learner).adjacency
    instrument, k_class = instrument_of(learner).adjacency, k_class_of(learner).adjacency
    for i in range(learner.arms):
        for j in range(learner.arms):
            if used == 0:
                snapshot[i, j] = sparse[i, j]
            elif used == 1:
                snapshot[i, j] = instrument[i, j]
            elif used == K_CLASS:
                snapshot[i, j] = k_class[i, j]
            else:
                snapshot[i, j] = math.nan if used == 2 else 0.0

"""Switching means of many arms: a round takes time for the arms that are active in it, and little for the others.

The functions are those of `switching.py` and `drifting.py`, called for fewer arms. Arms without rewards share what is
known of them. Of the arms with rewards, those that have just reported are brought up to date, and of the others every
`turns`-th: all in turn, or all at once when the hypotheses become much more or less probable.
"""

from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.arithmetic import listed
from spillover.kernels.decorators import allocating
from spillover.kernels.drifting import learn_drift, move_arm, transition
from spillover.kernels.switching import (
    MOST_ALONE,
    add_shares,
    expected_changes,
    moments,
    note_change,
    open_counts,
    open_mass,
    precision_of,
    redraw_range,
    start_arm,
    weakest,
    weigh_reward,
    within_reach,
)

UNSETTLED: Final = 0.2  # if so much probability moves between hypotheses in a round, all arms are brought up to date


@njit
def taken_from(line, arms):
    """What a line has at these arms."""
    found = np.empty(arms.shape[0], line.dtype)
    for q in range(arms.shape[0]):
        found[q] = line[arms[q]]
    return found


@njit(error_model="numpy")
def open_missed(i, change_round, counts, ratio, idle_prior, changed, mean, square, checked, shares, fresh):
    """Give an arm the hypotheses that were opened since it was last brought up to date; it did not report then."""
    for k in range(change_round.shape[0]):
        if change_round[k] > checked[i]:
            idle_prior[i, k] = changed[i, 0, k] = 0.0
            for g in range(1, shares.shape[0]):
                changed[i, g, k] = shares[g]
            ratio[i, k] = 1.0
            open_counts(counts[i], k, mean[i], square[i], fresh)


@njit(error_model="numpy")
def moved_mass(mass, before):
    """How much probability has moved between the hypotheses."""
    moved = 0.0
    for g in range(mass.shape[0]):
        for k in range(mass.shape[1]):
            moved += abs(mass[g, k] - before[g, k])
    return 0.5 * moved


@njit(error_model="numpy")
def learn_crowd(
    change_round, mass, untried, counts, ratio, idle_prior, changed, mean, square, seen, latest, detected, spread,
    changes, redrawn, checked, shared, arrivals, chosen, tried, reward, weight, played_at, shares, prior, hazards,
    idle_hazard, turns, expected, counted, likely,
):  # fmt: skip
    """`learn_rewards` of switching.py for the chosen arms; `tried`: the arms with rewards before.

    expected, counted, likely: of the chosen arms, in their order.
    """
    n, hypotheses = seen.shape[0], change_round.shape[0]
    room = np.empty((4 + mass.shape[0], 2 * hypotheses))
    totals, there = room[3, :hypotheses], room[3, hypotheses:]
    before, precision = mass.copy(), precision_of(spread)
    opened, fresh = latest[0], redrawn[0] + redrawn[1]
    arrivals[0] += 1
    new_arms = 0
    add_shares(mass, totals)
    for q in range(chosen.shape[0]):
        i = chosen[q]
        if seen[i] == 0:
            start_arm(untried, counts[i], ratio[i], idle_prior[i], changed[i], shares)
            mean[i], square[i] = shared[0], shared[1]
            new_arms += 1
        elif checked[i] < opened:
            open_missed(i, change_round, counts, ratio, idle_prior, changed, mean, square, checked, shares, fresh)
            mean[i], square[i] = moments(mass, totals, counts[i, 0], counts[i, 1], changed[i], room)
        checked[i] = opened
        expected[q], counted[q] = mean[i], within_reach(reward[i], mean[i], square[i], precision)
        spread[0] += weight * mean[i] * (1.0 - mean[i])
        spread[1] += weight * reward[i] * (1.0 - reward[i])
    if played_at > latest[0] > 0:  # the hypothesis of a change just before, instead of the least probable one
        slot, changes_seen = weakest(totals), expected_changes(mass, totals, changes)
        redraw_range(taken_from(mean, tried), taken_from(seen, tried), latest[0], redrawn)
        fresh, total_idle = redrawn[0] + redrawn[1], 0.0
        for i in chosen:
            if played_at > seen[i]:
                total_idle += 1.0 - (1.0 - idle_hazard) ** (played_at - seen[i])
        if tried.shape[0] < n:
            open_counts(untried, slot, shared[0], shared[1], fresh)
        for i in chosen:
            idle = (1.0 - (1.0 - idle_hazard) ** max(played_at - seen[i], 0)) / max(total_idle, 1e-300)
            idle_prior[i, slot] = changed[i, 0, slot] = idle
            for g in range(1, shares.shape[0]):
                changed[i, g, slot] = shares[g]
            ratio[i, slot] = 1.0
            open_counts(counts[i], slot, mean[i], square[i], fresh)
            checked[i] = played_at
        change_round[slot], changes[slot] = played_at, changes_seen
        hazard = (hazards[0] + changes_seen) / (hazards[1] + latest[0])
        together = 1.0 - (1.0 - hazard) ** (played_at - latest[0])
        open_mass(mass, totals, slot, together, min(total_idle, MOST_ALONE * (1.0 - together)), prior)
        opened = played_at
    latest[0] = max(latest[0], played_at)
    all_there = True
    for k in range(hypotheses):
        there[k] = 1.0 if change_round[k] <= played_at else 0.0
        all_there &= change_round[k] <= played_at
    for q in range(chosen.shape[0]):
        i = chosen[q]
        likely[q] = weigh_reward(
            there, all_there, mass, counts[i], ratio[i], idle_prior[i], changed[i], shares, counted[q], reward[i],
            weight * precision, room,
        )  # fmt: skip
        seen[i] = max(seen[i], played_at)
    add_shares(mass, totals)
    for i in chosen:
        mean[i], square[i] = moments(mass, totals, counts[i, 0], counts[i, 1], changed[i], room)
    everyone = moved_mass(mass, before) > UNSETTLED
    for i in tried:
        if everyone or (arrivals[0] + i) % turns == 0:
            open_missed(i, change_round, counts, ratio, idle_prior, changed, mean, square, checked, shares, fresh)
            checked[i] = opened
            mean[i], square[i] = moments(mass, totals, counts[i, 0], counts[i, 1], changed[i], room)
    if tried.shape[0] + new_arms < n:
        taking_part = room[4:, :hypotheses]
        for g in range(mass.shape[0]):
            for k in range(hypotheses):
                taking_part[g, k] = shares[g] if g > 0 else 0.0
        shared[0], shared[1] = moments(mass, totals, untried[0], untried[1], taking_part, room)
    note_change(change_round, totals, detected)
    return precision


@njit(error_model="numpy")
def learn_drifting(
    track, drifts, latest, chosen, tried, reward, counted, likely, precision, weight, played_at, scale, variance,
    prior, hazard,
):  # fmt: skip
    """`drifting_arrival` of drifting.py: arms without rewards stay where every arm begins."""
    elapsed = played_at - latest[0]
    if elapsed > 0:
        if latest[0] > 0:
            moves = transition(scale, variance, elapsed)
            for i in tried:
                move_arm(track, i, moves)
            drifts[0] += (1.0 - (1.0 - hazard) ** elapsed) * (prior - drifts[0])
        latest[0] = played_at
    moved = 0.0
    if elapsed < 0:
        moved = 2.0 * variance * (1.0 - transition(scale, variance, -elapsed)[0])
    for q in range(chosen.shape[0]):
        i = chosen[q]
        learn_drift(track, i, drifts, reward[i], counted[q], likely[q], weight, precision, moved)


@allocating
def learn_arms_of_many(
    change_round, mass, untried, counts, ratio, idle_prior, changed, mean, square, seen, latest, detected, spread,
    changes, redrawn, checked, shared, arrivals, track, drifts, drift_latest, x, reward, weight, played_at, shares,
    prior, hazards, idle_hazard, scale, variance, drift_prior, other_world, turns, expected,
):  # fmt: skip
    """`learn_rewards` and `drifting_arrival`; fills in what was expected of the chosen arms."""
    chosen, tried = listed(x), listed(seen)
    size = chosen.shape[0]
    means, counted, likely = np.empty(size), np.empty(size), np.empty(size)
    precision = learn_crowd(
        change_round, mass, untried, counts, ratio, idle_prior, changed, mean, square, seen, latest, detected,
        spread, changes, redrawn, checked, shared, arrivals, chosen, tried, reward, weight, played_at, shares,
        prior, hazards, idle_hazard, turns, means, counted, likely,
    )  # fmt: skip
    learn_drifting(
        track, drifts, drift_latest, chosen, tried, reward, counted, likely, precision, weight, played_at, scale,
        variance, drift_prior, other_world,
    )  # fmt: skip
    for q in range(size):
        expected[chosen[q]] = means[q]

"""SwitchingSEM for many arms: what an arm is worth, and what rewards say, in time for the arms that are active."""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.arithmetic import BLOCK, enter, listed
from spillover.kernels.decorators import allocating, bare
from spillover.kernels.drifting import LEAST_MEAN, learn_drift, move_arm, transition
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
from spillover.kernels.switching_scores import (
    ABOUT,
    MANY_ARMS,
    MOST_SORTED,
    expected_miss,
    normal_excess,
    thresholds,
    weigh_laws,
    weigh_untried,
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


@njit
def pulled_or_seen(last_pull, seen, found):
    """The arms that differ from those that were never pulled, in order; found: room for all arms."""
    n, size = seen.shape[0], 0
    whole = n - n % BLOCK
    for start in range(0, whole, BLOCK):
        marks = 0
        for k in range(BLOCK):
            marks |= last_pull[start + k] | seen[start + k]
        if marks != 0:
            for i in range(start, start + BLOCK):
                size = enter(found, size, i, (last_pull[i] | seen[i]) != 0)
    for i in range(whole, n):
        size = enter(found, size, i, (last_pull[i] | seen[i]) != 0)
    return found[:size]


@njit
def drift_start(scale, variance):
    """The track of an arm without rewards, as a row of its own."""
    return np.array([[0.0, 0.0, variance, 0.0, 3.0 * variance / scale**2]])


@njit(inline="always", error_model="numpy")
def drift_of_arm(track, i, moves):
    """Mean and standard deviation of an arm in the coming round, if the means drift."""
    f00, f01, _, _, q00, _, _ = moves
    level = 0.5 + f00 * track[i, 0] + f01 * track[i, 1]
    spread = f00 * f00 * track[i, 2] + 2.0 * f00 * f01 * track[i, 3] + f01 * f01 * track[i, 4] + q00
    return min(max(level, LEAST_MEAN), 1.0 - LEAST_MEAN), math.sqrt(max(spread, 1e-12))


@njit(inline="always", error_model="numpy")
def redrawn_miss(redrawn, level, inside):
    """E[(m - level)+] for a mean that is uniform on `redrawn`, or of its negative if the arm is inside."""
    middle, span = 0.5 * (redrawn[0] + redrawn[1]), redrawn[1] - redrawn[0]
    below, above = max(level - redrawn[0], 0.0), max(redrawn[1] - level, 0.0)
    if inside:
        return 0.5 * below**2 / span if above > 0.0 else level - middle
    return 0.5 * above**2 / span if below > 0.0 else middle - level


@bare
def value_of_trying(ones, zeros, laws, idle, drifting, deviation, level, inside, pulls, known):
    """The bonus of an arm: the expected gain from trying it, or the expected loss from keeping it if it is inside."""
    redrawn, drifts, scale, gaps, deviations, parts = known
    if inside and level == 0.0:
        return 0.0  # nothing can be better
    missed = expected_miss(ones, zeros, laws, level, -1.0 if inside else 1.0, gaps, deviations, parts)
    missed += idle * (redrawn_miss(redrawn, level, inside) - missed)
    missed *= 1.0 - drifts
    if not inside:
        missed += drifts * normal_excess(drifting - level, deviation)
    crowd = 1.0 + pulls
    return scale * missed / (crowd * math.sqrt(crowd))


@bare
def value_active(
    active, idle, moves, mass, totals, untried, counts, changed, seen, track, in_flight, shares, weight, scores,
    weights, new, rivals, known, index,
):  # fmt: skip
    """Add the bonuses of the arms that were pulled."""
    threshold, runner_up, offset = rivals
    for q in range(active.shape[0]):
        i = active[q]
        inside = scores[i] >= threshold and scores[i] > 0.0
        rival = runner_up if inside else threshold
        if weights[i] <= 0.0 or weights[i] * (1.0 + offset) <= rival:
            continue  # out of reach even with the best mean
        level = max(rival / weights[i] - offset, 0.0)
        if seen[i] > 0:
            ones, zeros = counts[i, 0], counts[i, 1]
            weigh_laws(mass, totals, changed[i], weight)
            drifting, deviation = drift_of_arm(track, i, moves)
        else:
            ones, zeros = untried[0], untried[1]
            weigh_untried(mass, totals, shares, weight)
            drifting, deviation = new
        index[i] += value_of_trying(
            ones, zeros, weight, idle[q], drifting, deviation, level, inside, in_flight[i], known
        )  # fmt: skip


@bare
def value_new(last_pull, seen, untried, weight, scores, weights, new, rivals, known, index):
    """Add the bonuses of the arms that were never pulled."""
    threshold, runner_up, offset = rivals
    idle, drifting, deviation = new
    n, best = index.shape[0], 1.0 + offset
    about = ABOUT if n > MANY_ARMS else 0.0
    held_weight, held_inside, held_bonus = 0.0, False, 0.0  # of the last one with a bonus of its own
    for start in range(0, n, BLOCK):
        if start + BLOCK <= n:
            near = 0
            for k in range(BLOCK):
                near += weights[start + k] * best > runner_up
            if near == 0:
                continue  # all of them are out of reach
        for i in range(start, min(start + BLOCK, n)):
            inside = scores[i] >= threshold and scores[i] > 0.0
            rival = runner_up if inside else threshold
            if weights[i] <= 0.0 or weights[i] * best <= rival or (last_pull[i] | seen[i]) != 0:
                continue
            same = abs(weights[i] - held_weight) * rival <= about * weights[i] * held_weight
            if not same or inside != held_inside or held_weight == 0.0:
                level = max(rival / weights[i] - offset, 0.0)
                held_weight, held_inside = weights[i], inside
                held_bonus = value_of_trying(
                    untried[0], untried[1], weight, idle, drifting, deviation, level, inside, 0.0, known
                )  # fmt: skip
            index[i] += held_bonus


@allocating
def index_crowd(
    mass, untried, counts, changed, changes, redrawn, believed, seen, latest, shared, track, drifts, drift_latest,
    scale, variance, learned, prior, rewards_seen, last_pull, in_flight, now, budget, reward_range, hazards, shares,
    share_prior, idle_hazard, horizon, places, scores, weights, mean, index,
):  # fmt: skip
    """`value_arms` of switching_scores.py: arms that were never pulled differ in their weights only.

    They share what follows from the rest. places, scores: scratch memory. mean may have no room: then it is left out.
    """
    kinds, hypotheses = mass.shape
    n = learned.shape[0]
    low, width = reward_range[0], reward_range[1] - reward_range[0]
    offset, middle = low / width, 0.5 * (redrawn[0] + redrawn[1])
    room = np.empty((5, 2 * hypotheses))
    totals, weight, parts, gaps, deviations = room[0, :hypotheses], room[1], room[2], room[3], room[4]
    add_shares(mass, totals)
    changes_seen, share = 0.0, 0.0
    for k in range(hypotheses):
        changes_seen += totals[k] * (changes[k] + 1.0) - mass[0, k]
    hazard = (hazards[0] + changes_seen) / (hazards[1] + latest)
    for g in range(kinds):
        share += shares[g] * share_prior[g]
    stays = 1.0 - share * (1.0 - (1.0 - hazard) ** max(now - latest, 0))
    moves = transition(scale, variance, now + 1 - drift_latest)
    new_drift, new_deviation = drift_of_arm(drift_start(scale, variance), 0, moves)
    new_idle = 1.0 - stays * (1.0 - idle_hazard) ** now
    new_mean = shared[0] + new_idle * (middle - shared[0])
    new_mean += drifts * (new_drift - new_mean)
    new_worth, new_reward = new_mean + offset, low + width * new_mean
    for i in range(n):  # as if none had been pulled: without branches, so that processors do several at once
        weights[i] = learned[i] + max(prior[i] - learned[i], 0.0)
        scores[i] = weights[i] * new_worth
        index[i] = new_reward
    active = pulled_or_seen(last_pull, seen, places)
    idle = np.empty(active.shape[0])
    for q in range(active.shape[0]):
        i = active[q]
        weights[i] = learned[i] + max(prior[i] - learned[i], 0.0) / (1.0 + rewards_seen[i]) ** 2
        idle[q] = 1.0 - stays * (1.0 - idle_hazard) ** (now - last_pull[i])
        level = believed[i] if seen[i] > 0 else shared[0]
        expected = level + idle[q] * (middle - level)
        drifting = drift_of_arm(track, i, moves)[0] if seen[i] > 0 else new_drift
        expected += drifts * (drifting - expected)
        scores[i] = weights[i] * (expected + offset)
        index[i] = low + width * expected
    for i in range(mean.shape[0]):
        mean[i] = index[i]
    threshold, runner_up = thresholds(scores, budget, np.empty(min(budget, MOST_SORTED) + 1))
    known = redrawn, drifts, width * horizon, gaps, deviations, parts
    rivals = threshold, runner_up, offset
    value_active(
        active, idle, moves, mass, totals, untried, counts, changed, seen, track, in_flight, shares, weight, scores,
        weights, (new_drift, new_deviation), rivals, known, index,
    )  # fmt: skip
    weigh_untried(mass, totals, shares, weight)
    new = new_idle, new_drift, new_deviation
    value_new(last_pull, seen, untried, weight, scores, weights, new, rivals, known, index)

"""Scores of switching means of many arms: arms that were never pulled share what is known of them.

The functions are those of `switching_scores.py` and `drifting.py`, called for fewer arms.
"""

import math

import numpy as np
from numba import njit

from spillover.kernels.arithmetic import BLOCK, enter
from spillover.kernels.decorators import allocating, bare
from spillover.kernels.drifting import LEAST_MEAN, transition
from spillover.kernels.switching import add_shares
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
        weights[i] = learned[i] + (prior[i] - learned[i])
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

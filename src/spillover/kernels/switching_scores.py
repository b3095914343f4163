"""Switching means: expected rewards averaged over the hypotheses, and the value of information."""

import math
from typing import Final

from numba import float64, njit, uint64

from spillover.kernels.arithmetic import bits_of, double_of
from spillover.kernels.compiling import gufunc
from spillover.kernels.decorators import bare
from spillover.kernels.drawing import selected_border
from spillover.kernels.switching import added

MOST_SORTED: Final = 32  # as many of the best scores are found by insertion, more by selection from all
MANY_ARMS: Final = 500  # with more, arms without rewards share what is expected of them at levels that are about equal
ABOUT: Final = 1e-3  # in units of the range
FAR: Final = 6.0  # deviations beyond which a mean certainly exceeds a level, or certainly does not
# E[(z - a)+] for a standard normal z and a from 0 to FAR: the polynomial in a / 3 - 1 through 21 Chebyshev points. Its
# error is below 4e-10. Unlike exp and erfc, the processor computes it for several hypotheses at once.
EVEN: Final = (
    *(0.0003821543170475922, 0.019943313867554255, 0.11966020073950029, 0.13461098611068453),
    *(-0.06916719702964831, -0.03757319475129948, 0.04795909423025812, -0.019100436010854205),
    *(0.0021695884143226422, 0.0008364659593654485, -0.0002498357051260436),
)
ODD: Final = (
    *(-0.004049690067488662, -0.0598302485510977, -0.16153452176346525, -0.03467847937106457),
    *(0.09553111663404125, -0.032947024623754234, -0.011821933078044883, 0.014473580097481134),
    *(-0.005422987927792544, 0.0008090487157210544),
)


@njit(inline="always", error_model="numpy")
def normal_excess(gap, deviation):
    """E[m+] for a normal m with mean `gap`. Even and odd powers apart: two short chains are faster than a long one."""
    distance = abs(gap) / deviation
    u = (distance if distance < FAR else FAR) * (2.0 / FAR) - 1.0
    s = u * u
    low = EVEN[0] + s * (EVEN[1] + s * (EVEN[2] + s * (EVEN[3] + s * (EVEN[4] + s * EVEN[5]))))
    high = EVEN[6] + s * (EVEN[7] + s * (EVEN[8] + s * (EVEN[9] + s * EVEN[10])))
    odd_low = ODD[0] + s * (ODD[1] + s * (ODD[2] + s * (ODD[3] + s * ODD[4])))
    odd_high = ODD[5] + s * (ODD[6] + s * (ODD[7] + s * (ODD[8] + s * ODD[9])))
    s2 = s * s
    s5 = s2 * s2 * s
    loss = (low + s5 * s * high) + u * (odd_low + s5 * odd_high)
    return (gap if gap > 0.0 else 0.0) + (deviation * loss if distance < FAR else 0.0)


@gufunc((float64, float64, float64[:]), "(),()->()")
def excess_of_normal(gap, deviation, found):
    """E[m+] for a normal m with mean `gap`; the error is below 4e-10 deviations."""
    found[0] = normal_excess(gap, deviation)


@njit(inline="always", error_model="numpy")
def weigh_laws(mass, totals, changed, weight):
    """The probability of each Beta distribution of an arm: unchanged under each hypothesis, then changed."""
    hypotheses = totals.shape[0]
    unchanged, since = weight[:hypotheses], weight[hypotheses:]
    for k in range(hypotheses):
        since[k] = mass[0, k] * changed[0, k]
    for g in range(1, mass.shape[0]):
        for k in range(hypotheses):
            since[k] += mass[g, k] * changed[g, k]
    for k in range(hypotheses):
        unchanged[k] = totals[k] - since[k]


@njit(inline="always", error_model="numpy")
def weigh_untried(mass, totals, shares, weight):
    """The same for arms without rewards: each took part in a change with the probability of the share."""
    hypotheses = totals.shape[0]
    for k in range(hypotheses):
        since = 0.0
        for g in range(1, mass.shape[0]):
            since += mass[g, k] * shares[g]
        weight[k], weight[hypotheses + k] = totals[k] - since, since


@njit(inline="always", error_model="numpy")
def expected_miss(ones, zeros, weight, level, side, gaps, deviations, parts):
    """E[(side (m - level))+] over Beta distributions of m with these probabilities, in the normal approximation.

    In two loops, of which the processor overlaps more than of one. gaps, deviations, parts: scratch memory.
    """
    for k in range(weight.shape[0]):
        n = ones[k] + zeros[k]
        inverse = 1.0 / (n * (n + 1.0))
        mean = ones[k] * (n + 1.0) * inverse
        gaps[k] = side * (mean - level)
        deviations[k] = math.sqrt(mean * (1.0 - mean) * n * inverse)
    for k in range(weight.shape[0]):
        parts[k] = weight[k] * normal_excess(gaps[k], deviations[k])
    return added(parts)


@njit(error_model="numpy", _nrt=True)  # it allocates memory, unlike those who call it
def selected_thresholds(scores, budget):
    """`thresholds` for large budgets, in O(n). Numba's sort takes longer to compile than all the rest of the index."""
    last, held = selected_border(scores, budget)
    if held < budget:
        return 0.0, 0.0
    reached, following = 0, uint64(0)
    for i in range(scores.shape[0]):
        reached += scores[i] >= last
        lower = (scores[i] > 0.0) & (scores[i] < last)
        following = max(
            following, bits_of(scores[i]) if lower else uint64(0)
        )  # doubles > 0 are ordered like their bits
    return last, last if reached > budget else double_of(following)


@njit(inline="always", error_model="numpy")
def thresholds(scores, budget, best):
    """The budget-th best score and the next one, at least 0; best: room for budget + 1 scores."""
    n = scores.shape[0]
    if budget > MOST_SORTED:
        return selected_thresholds(scores, budget)
    held, most = 0, min(budget + 1, n)
    for i in range(n):  # best[:held] is kept sorted, highest first
        if held < most or scores[i] > best[held - 1]:
            place = held if held < most else most - 1
            while place > 0 and best[place - 1] < scores[i]:
                best[place] = best[place - 1]
                place -= 1
            best[place] = scores[i]
            held = min(held + 1, most)
    return max(best[budget - 1], 0.0), max(best[budget], 0.0) if budget < n else 0.0


@bare
def value_arms(
    mass, untried, counts, changed, changes, redrawn, believed, seen, latest, drifts, drift_mean, drift_deviation,
    learned, prior, rewards_seen, last_pull, in_flight, now, budget, reward_range, hazards, shares, share_prior,
    idle_hazard, horizon, room, best, scores, idle, weights, mean, index,
):  # fmt: skip
    """Weights, expected rewards, and expected rewards plus the value of information over `horizon` rounds.

    counts: ones and zeros of each arm's Beta distributions, two for each hypothesis; untried: those of arms without
    rewards. believed: their means. Weights are the learned ones, raised towards the prior for arms with few rewards:
    never lowered, or an arm whose outcomes show that it spills over much would not be tried.

    The bonus of an arm outside the s best is horizon E[(w m - threshold)+] / w, where the threshold is the score of
    the s-th best. For an arm among the s best it is the expected loss from keeping it, horizon E[(threshold - w m)+] /
    w, with the score of the next best arm as the threshold. Both are divided by (1 + pulls in flight)^1.5, because the
    outcomes of those pulls will arrive without another try.
    room, best, scores, idle: to work in, of at least 5 times 2 hypotheses, MOST_SORTED + 1 and twice n numbers.
    """
    kinds, hypotheses = mass.shape
    n = learned.shape[0]
    low, width = reward_range[0], reward_range[1] - reward_range[0]
    offset = low / width  # in units of the range, rewards are from 0 to 1 plus this
    middle, span = 0.5 * (redrawn[0] + redrawn[1]), redrawn[1] - redrawn[0]
    totals, weight, parts, gaps, deviations = room[0, :hypotheses], room[1], room[2], room[3], room[4]
    changes_seen = 0.0  # expected number of changes together
    for k in range(hypotheses):
        totals[k] = mass[0, k]
        for g in range(1, kinds):
            totals[k] += mass[g, k]
        changes_seen += totals[k] * (changes[k] + 1.0) - mass[0, k]
    hazard = (hazards[0] + changes_seen) / (hazards[1] + latest)
    share = 0.0  # expected, of the next change
    for g in range(kinds):
        share += shares[g] * share_prior[g]
    stays = 1.0 - share * (1.0 - (1.0 - hazard) ** max(now - latest, 0))  # no change since the latest outcome
    for i in range(n):
        weights[i] = learned[i] + max(prior[i] - learned[i], 0.0) / (1.0 + rewards_seen[i]) ** 2
        idle[i] = 1.0 - stays * (1.0 - idle_hazard) ** (now - last_pull[i])
        mean[i] = believed[i] + idle[i] * (middle - believed[i])
        mean[i] += drifts * (drift_mean[i] - mean[i])
        scores[i] = weights[i] * (mean[i] + offset)
    threshold, runner_up = thresholds(scores, budget, best)
    new_level, new_inside, new_missed = -1.0, False, 0.0
    about = ABOUT if n > MANY_ARMS else 0.0
    for i in range(n):
        inside = scores[i] >= threshold and scores[i] > 0.0
        rival = runner_up if inside else threshold
        index[i], mean[i] = low + width * mean[i], low + width * mean[i]
        if weights[i] <= 0.0 or weights[i] * (1.0 + offset) <= rival:
            continue  # out of reach even with the best mean
        level = max(rival / weights[i] - offset, 0.0)
        if inside and level == 0.0:
            continue  # nothing can be better
        ones, zeros, asked = untried[0], untried[1], True
        if seen[i] > 0:
            ones, zeros = counts[i, 0], counts[i, 1]
            weigh_laws(mass, totals, changed[i], weight)
        else:  # arms without rewards often have the same weight
            asked = abs(level - new_level) > about or inside != new_inside
            if asked:
                new_level, new_inside = level, inside
                weigh_untried(mass, totals, shares, weight)
        missed = new_missed
        if asked:
            side = -1.0 if inside else 1.0
            missed = expected_miss(ones, zeros, weight, level, side, gaps, deviations, parts)
        if seen[i] == 0:
            new_missed = missed
        # for a mean uniform on `redrawn`
        below, above = max(level - redrawn[0], 0.0), max(redrawn[1] - level, 0.0)
        if inside:
            redrawn_missed = 0.5 * below**2 / span if above > 0.0 else level - middle
        else:
            redrawn_missed = 0.5 * above**2 / span if below > 0.0 else middle - level
        missed += idle[i] * (redrawn_missed - missed)
        missed *= 1.0 - drifts
        if not inside:
            missed += drifts * normal_excess(drift_mean[i] - level, drift_deviation[i])
        crowd = 1.0 + in_flight[i]
        index[i] += width * horizon * missed / (crowd * math.sqrt(crowd))

"""Switching means: expected rewards under all hypotheses, and what finding out may be worth."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc

NEGLIGIBLE: Final = 1e-6  # probability of a hypothesis below which it does not move a decision


@gufunc((float64[:], boolean[:], float64, int64, boolean, float64[:]), "(n),(n),(),(),()->(n)")
def end_pulls(flight, x, fade, age, arrived, left):
    """Pulls in flight without those of a round that has arrived, of each of which fade^age was left."""
    remains = fade**age if arrived else 0.0
    for i in range(flight.shape[0]):
        left[i] = max(flight[i] - remains, 0.0) if x[i] else flight[i]


@njit(inline="always")
def expected_excess(ones, zeros, level):
    """E[(m - level)+] for a mean m with this Beta law, taken as normal."""
    n = ones + zeros
    mean = ones / n
    deviation = math.sqrt(mean * (1.0 - mean) / (n + 1.0))
    z = (mean - level) / deviation
    if z < -6.0:
        return 0.0
    return deviation * (math.exp(-0.5 * z * z) * 0.3989422804014327 + 0.5 * z * math.erfc(-z * 0.7071067811865476))


@njit
def mixture_mean(totals, kept, fresh, changed, arm):
    mean = 0.0
    for k in range(totals.shape[0]):
        if totals[k] > 0.0:
            m_kept = kept[k, arm, 0] / (kept[k, arm, 0] + kept[k, arm, 1])
            m_fresh = fresh[k, arm, 0] / (fresh[k, arm, 0] + fresh[k, arm, 1])
            mean += totals[k] * (m_kept + changed[k, arm] * (m_fresh - m_kept))
    return mean


@njit
def mixture_missed(sharpened, kept, fresh, changed, arm, level, inside):
    """E[(m - level)+], what leaving an arm out may miss; of a chosen one E[(level - m)+], what keeping it may."""
    missed = 0.0
    side, other = (1, 0) if inside else (0, 1)
    height = 1.0 - level if inside else level
    for k in range(sharpened.shape[0]):
        if sharpened[k] < NEGLIGIBLE:
            continue
        of_fresh = sharpened[k] * changed[k, arm]
        if of_fresh > NEGLIGIBLE:
            missed += of_fresh * expected_excess(fresh[k, arm, side], fresh[k, arm, other], height)
        of_kept = sharpened[k] - of_fresh
        if of_kept > NEGLIGIBLE:
            missed += of_kept * expected_excess(kept[k, arm, side], kept[k, arm, other], height)
    return missed


@gufunc(
    (
        float64[:, :],
        float64[:, :, :],
        float64[:, :, :],
        float64[:, :],
        float64[:],
        int64[:],
        float64[:],
        int64,
        int64,
        float64,
        float64,
        float64,
        float64[:],
        float64[:],
    ),
    "(k,g),(k,n,t),(k,n,t),(k,n),(n),(n),(n),(),(),(),(),()->(n),(n)",
)
def switching_index(
    mass, kept, fresh, changed, weights, pulled, flight, now, budget, offset, idle_hazard, horizon, mean, index
):
    """Expected rewards, and the same plus what finding out may be worth over `horizon` rounds; in [0, 1] + offset.

    An arm outside the s best in expectation gains horizon E[(w m - threshold)+] / w, the threshold being the score of
    the s-th best; one of the s best horizon E[(threshold - w m)+] / w, with that of the next one: what is at stake as
    long as it is not known better. Both over (1 + pulls in flight)^2: what is under way need not be asked again.
    """
    hypotheses, n = mass.shape[0], weights.shape[0]
    totals = np.empty(hypotheses)
    squares = 0.0
    for k in range(hypotheses):
        totals[k] = 0.0
        for g in range(mass.shape[1]):
            totals[k] += mass[k, g]
        squares += totals[k] * totals[k]
    scores = np.empty(n)
    idle = np.empty(n)
    for i in range(n):
        idle[i] = 1.0 - (1.0 - idle_hazard) ** (now - pulled[i])
        mean[i] = (1.0 - idle[i]) * mixture_mean(totals, kept, fresh, changed, i) + idle[i] * 0.5
        index[i] = mean[i]
        scores[i] = weights[i] * (mean[i] + offset)
    ordered = np.sort(scores)
    threshold = max(ordered[n - budget], 0.0)
    runner_up = max(ordered[n - budget - 1], 0.0) if budget < n else 0.0
    for k in range(hypotheses):
        totals[k] *= totals[k] / squares  # squared: a change that is hardly likely shows itself in pulls under way
    for i in range(n):
        inside = scores[i] >= threshold and scores[i] > 0.0
        rival = runner_up if inside else threshold
        if weights[i] <= 0.0 or weights[i] * (1.0 + offset) <= rival:
            continue  # out of reach even with the best mean
        level = max(rival / weights[i] - offset, 0.0)
        if inside and level == 0.0:
            continue  # nothing can be better
        missed = 0.5 * level**2 if inside else 0.5 * (1.0 - level) ** 2  # by a mean of which nothing is known
        missed = idle[i] * missed + (1.0 - idle[i]) * mixture_missed(totals, kept, fresh, changed, i, level, inside)
        index[i] += horizon * missed / (1.0 + flight[i]) ** 2

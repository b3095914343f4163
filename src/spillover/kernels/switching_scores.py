"""Switching means: expected rewards averaged over the hypotheses, and the value of information."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc

NEGLIGIBLE: Final = 1e-6  # hypotheses less probable than this do not affect a decision
CROWDING: Final = 1.5  # the bonus of an arm falls with this power of its pulls in flight


@gufunc((float64[:], boolean[:], float64, int64, boolean, float64[:]), "(n),(n),(),(),()->(n)")
def end_pulls(in_flight, x, fade, age, arrived, left):
    """Remove the pulls of a round that has arrived from the pulls in flight; of each, fade^age was left."""
    remains = fade**age if arrived else 0.0
    for i in range(in_flight.shape[0]):
        left[i] = max(in_flight[i] - remains, 0.0) if x[i] else in_flight[i]


@njit(inline="always")
def normal_excess(mean, deviation):
    """E[m+] for a normal m."""
    z = mean / deviation
    if z < -6.0:
        return 0.0
    return deviation * (math.exp(-0.5 * z * z) * 0.3989422804014327 + 0.5 * z * math.erfc(-z * 0.7071067811865476))


@njit(inline="always")
def expected_excess(ones, zeros, level):
    """E[(m - level)+] for a mean m with this Beta distribution, in the normal approximation."""
    n = ones + zeros
    mean = ones / n
    return normal_excess(mean - level, math.sqrt(mean * (1.0 - mean) / (n + 1.0)))


@njit
def mixture_mean(totals, counts_unchanged, counts_since, changed, arm):
    mean = 0.0
    for k in range(totals.shape[0]):
        if totals[k] > 0.0:
            m_unchanged = counts_unchanged[k, arm, 0] / (counts_unchanged[k, arm, 0] + counts_unchanged[k, arm, 1])
            m_since = counts_since[k, arm, 0] / (counts_since[k, arm, 0] + counts_since[k, arm, 1])
            mean += totals[k] * (m_unchanged + changed[k, arm] * (m_since - m_unchanged))
    return mean


@njit
def mixture_missed(totals, counts_unchanged, counts_since, changed, arm, level, inside):
    """The expected loss from leaving an arm out, E[(m - level)+], or from keeping a chosen one, E[(level - m)+]."""
    missed = 0.0
    side, other = (1, 0) if inside else (0, 1)
    height = 1.0 - level if inside else level
    for k in range(totals.shape[0]):
        if totals[k] < NEGLIGIBLE:
            continue
        of_since = totals[k] * changed[k, arm]
        if of_since > NEGLIGIBLE:
            missed += of_since * expected_excess(counts_since[k, arm, side], counts_since[k, arm, other], height)
        of_unchanged = totals[k] - of_since
        if of_unchanged > NEGLIGIBLE:
            missed += of_unchanged * expected_excess(
                counts_unchanged[k, arm, side], counts_unchanged[k, arm, other], height
            )
    return missed


@gufunc(
    (
        float64[:, :],
        float64[:, :, :],
        float64[:, :, :],
        float64[:, :],
        float64[:],
        float64[:],
        int64,
        float64,
        float64[:],
        float64[:],
        float64[:],
        int64[:],
        float64[:],
        int64,
        int64,
        float64,
        float64[:],
        float64,
        float64,
        float64,
        float64[:],
        float64[:],
    ),
    "(k,g),(k,n,t),(k,n,t),(k,n),(k),(t),(),(),(n),(n),(n),(n),(n),(),(),(),(t),(),(),()->(n),(n)",
)
def switching_index(
    mass,
    counts_unchanged,
    counts_since,
    changed,
    changes,
    redrawn,
    latest,
    drifts,
    drift_mean,
    drift_deviation,
    weights,
    last_pull,
    in_flight,
    now,
    budget,
    offset,
    hazards,
    share,
    idle_hazard,
    horizon,
    mean,
    index,
):
    """Expected rewards, and the same plus the value of information over `horizon` rounds; in [0, 1] + offset.

    The bonus of an arm outside the s best is horizon E[(w m - threshold)+] / w, where the threshold is the score of
    the s-th best. For an arm among the s best it is the expected loss from keeping it, horizon E[(threshold - w m)+] /
    w, with the score of the next best arm as the threshold. Both are divided by (1 + pulls in flight)^1.5, because the
    outcomes of those pulls will arrive without another try.
    """
    hypotheses, n = mass.shape[0], weights.shape[0]
    totals = np.empty(hypotheses)
    seen = 0.0  # expected number of changes together
    for k in range(hypotheses):
        totals[k] = 0.0
        for g in range(mass.shape[1]):
            totals[k] += mass[k, g]
        seen += totals[k] * (changes[k] + 1.0) - mass[k, 0]
    hazard = (hazards[0] + seen) / (hazards[1] + latest)
    stays = 1.0 - share * (1.0 - (1.0 - hazard) ** max(now - latest, 0))  # no change since the latest outcome
    middle, width = 0.5 * (redrawn[0] + redrawn[1]), redrawn[1] - redrawn[0]
    scores = np.empty(n)
    idle = np.empty(n)
    for i in range(n):
        idle[i] = 1.0 - stays * (1.0 - idle_hazard) ** (now - last_pull[i])
        mean[i] = (1.0 - idle[i]) * mixture_mean(totals, counts_unchanged, counts_since, changed, i) + idle[i] * middle
        mean[i] += drifts * (drift_mean[i] - mean[i])
        index[i] = mean[i]
        scores[i] = weights[i] * (mean[i] + offset)
    ordered = np.sort(scores)
    threshold = max(ordered[n - budget], 0.0)
    runner_up = max(ordered[n - budget - 1], 0.0) if budget < n else 0.0
    for i in range(n):
        inside = scores[i] >= threshold and scores[i] > 0.0
        rival = runner_up if inside else threshold
        if weights[i] <= 0.0 or weights[i] * (1.0 + offset) <= rival:
            continue  # out of reach even with the best mean
        level = max(rival / weights[i] - offset, 0.0)
        if inside and level == 0.0:
            continue  # nothing can be better
        # for a mean uniform on `redrawn`
        below, above = max(level - redrawn[0], 0.0), max(redrawn[1] - level, 0.0)
        if inside:
            missed = 0.5 * below**2 / width if above > 0.0 else level - middle
        else:
            missed = 0.5 * above**2 / width if below > 0.0 else middle - level
        missed = idle[i] * missed + (1.0 - idle[i]) * mixture_missed(
            totals, counts_unchanged, counts_since, changed, i, level, inside
        )
        missed *= 1.0 - drifts
        if drifts > NEGLIGIBLE and not inside:
            missed += drifts * normal_excess(drift_mean[i] - level, drift_deviation[i])
        index[i] += horizon * missed / (1.0 + in_flight[i]) ** CROWDING

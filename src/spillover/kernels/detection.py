"""The likelihood-ratio test for a change of a mean."""

import math

from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc


@njit
def bernoulli_divergence(p, q):
    """kl(p, q) of two Bernoulli distributions, q inside (0, 1)."""
    divergence = 0.0
    if p > 0.0:
        divergence += p * math.log(p / q)
    if p < 1.0:
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return divergence


@njit
def likelihood_ratio(counts, totals, used, unit):
    """(n, max over split points of n_1 kl(mean_1, mean) + n_2 kl(mean_2, mean)) for observations in buckets."""
    n, total = 0.0, 0.0
    for b in range(used):
        n += counts[b]
        total += totals[b] / unit
    mean = total / n
    best, left, left_total = 0.0, 0.0, 0.0
    if mean <= 0.0 or mean >= 1.0:
        return n, best  # all observations are equal
    for b in range(used - 1):
        left += counts[b]
        left_total += totals[b] / unit
        right, right_total = n - left, total - left_total
        before = min(max(left_total / left, 0.0), 1.0)
        after = min(max(right_total / right, 0.0), 1.0)
        ratio = left * bernoulli_divergence(before, mean) + right * bernoulli_divergence(after, mean)
        best = max(best, ratio)
    return n, best


@njit
def merge_buckets(counts, totals):
    """Merge the two neighbours whose joint size is smallest relative to the number of observations after them."""
    buckets = counts.shape[0]
    place, least, newer = 0, math.inf, 1.0
    for b in range(buckets - 2, -1, -1):
        size = (counts[b] + counts[b + 1]) / newer
        if size < least:
            place, least = b, size
        newer += counts[b + 1]
    counts[place] += counts[place + 1]
    totals[place] += totals[place + 1]
    for b in range(place + 1, buckets - 1):
        counts[b], totals[b] = counts[b + 1], totals[b + 1]


@gufunc(
    (
        float64[:, ::1],
        float64[:, ::1],
        int64[::1],
        boolean[:],
        float64[:],
        float64,
        float64,
        boolean,
        boolean[:],
    ),
    "(n,b),(n,b),(n),(n),(n),(),(),()->()",
    writes=("counts", "totals", "used"),
)
def detect_change(counts, totals, used, x, reward, unit, false_alarms, arrived, alarm):
    """Add a reward to the history of each played arm, and test the history for a change at level `false_alarms`.

    A history is kept in buckets, so memory is constant. A new observation gets a bucket of its own; when all are in
    use, two neighbours are merged, so that the size of a bucket grows in proportion to its age.
    """
    alarm[0] = False
    if not arrived:
        return
    buckets = counts.shape[1]
    for i in range(x.shape[0]):
        if x[i]:
            if used[i] == buckets:
                merge_buckets(counts[i], totals[i])
                used[i] -= 1
            counts[i, used[i]], totals[i, used[i]] = 1.0, reward[i]
            used[i] += 1
            n, ratio = likelihood_ratio(counts[i], totals[i], used[i], unit)
            if ratio > math.log(3.0 / false_alarms) + 1.5 * math.log(n):
                alarm[0] = True

"""The likelihood-ratio test for a change of a mean."""

import math
from typing import Final

from numba import float64, int64, njit, uint64

from spillover.kernels.build import gufunc
from spillover.kernels.drawing import philox, take_top, to_unit
from spillover.kernels.inner import bare

NOBODY: Final = -1  # no arm is due for a forced trial
LONGEST: Final = 2.0**62
BELOW: Final = 1.0 - 1e-9  # so that rounding leaves no split point out


@bare
def bernoulli_divergence(p, q):
    """kl(p, q) of two Bernoulli distributions, q inside (0, 1)."""
    divergence = 0.0
    if p > 0.0:
        divergence += p * math.log(p / q)
    if p < 1.0:
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return divergence


@bare
def likelihood_ratio(counts, totals, used, unit, least):
    """max over split points of n_1 kl(mean_1, mean) + n_2 kl(mean_2, mean) of observations in buckets.

    What is not above `least` may be any smaller number.

    kl(p, q) <= (p - q)^2 / (q (1 - q)), so most split points are seen to be below the least one that matters without a
    logarithm.
    """
    n, total = 0.0, 0.0
    for b in range(used):
        n += counts[b]
        total += totals[b] / unit
    mean = total / n
    best, left, left_total, spread = 0.0, 0.0, 0.0, mean * (1.0 - mean)
    if mean <= 0.0 or mean >= 1.0:
        return best  # all observations are equal
    for b in range(used - 1):
        left += counts[b]
        left_total += totals[b] / unit
        right, right_total = n - left, total - left_total
        off = left_total - left * mean
        if off * off * n < BELOW * max(best, least) * left * right * spread:
            continue
        before = min(max(left_total / left, 0.0), 1.0)
        after = min(max(right_total / right, 0.0), 1.0)
        ratio = left * bernoulli_divergence(before, mean) + right * bernoulli_divergence(after, mean)
        best = max(best, ratio)
    return best


@bare
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


@bare
def note_and_test(counts, totals, used, x, reward, unit, false_alarms):
    """Add a reward to the history of each played arm; returns whether one has changed, at level `false_alarms`.

    A history is kept in buckets, so memory is constant. A new observation gets a bucket of its own; when all are in
    use, two neighbours are merged, so that the size of a bucket grows in proportion to its age.
    """
    alarm, buckets = False, counts.shape[1]
    for i in range(x.shape[0]):
        if x[i]:
            if used[i] == buckets:
                merge_buckets(counts[i], totals[i])
                used[i] -= 1
            counts[i, used[i]], totals[i, used[i]] = 1.0, reward[i]
            used[i] += 1
            n = 0.0
            for b in range(used[i]):
                n += counts[i, b]
            least = math.log(3.0 / false_alarms) + 1.5 * math.log(n)
            alarm |= likelihood_ratio(counts[i], totals[i], used[i], unit, least) > least
    return alarm


@njit(inline="always")
def due_arm(n, since, rate):
    """The arm that is due for a forced trial: each once in every n / rate rounds since the restart."""
    if rate == 0.0:
        return NOBODY
    turn = since % int64(max(min(n / rate, LONGEST), n))
    return turn if turn < n else NOBODY


@gufunc((float64[:], int64, float64, int64[:]), "(n),(),()->()")
def forced_arm(arms, since, rate, due):
    """`due_arm` of as many arms as the length of `arms`."""
    due[0] = due_arm(arms.shape[0], since, rate)


@njit(inline="always")
def force_arm(since, rate, budget, key, call, at_round, purpose, scores, best, x):
    """Replace x by a random set with the arm that is due for a forced trial, if one is; scores, best: to work in."""
    n = x.shape[0]
    due = due_arm(n, since, rate)
    if due != NOBODY:
        for i in range(n):
            words = philox(uint64(i // 4 * 4), call, at_round, purpose, key[0], key[1])
            scores[i] = to_unit(words[i % 4]) + 1.0
        scores[due] = math.inf
        take_top(scores, budget, key, call + uint64(1), at_round, purpose, best, x)

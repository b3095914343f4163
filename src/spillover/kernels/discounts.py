"""Averages under several discounts side by side, the likelihood of their predictions, and draws from one of them.

Tables of powers may be empty: they say the same as the exponential function, in less time.
"""

import math

from numba import njit, uint64

from spillover.kernels.averages import power
from spillover.kernels.drawing import philox, to_unit
from spillover.kernels.inner import bare, eight_doubles, eight_integers
from spillover.kernels.laws import ARMS_AT_ONCE, draw_betas


@bare
def add_side_by_side(
    sums, counts, stamps, evidence, discounts, evidence_discount, powers, x, z, reward_range, played_at,
    latest_observed,
):  # fmt: skip
    """Score every discount's prediction of the rewards of a round, then learn the rewards."""
    fading = math.exp(abs(played_at - latest_observed) * math.log(evidence_discount))
    weight = 1.0
    if played_at < latest_observed:
        weight = fading
    else:
        for k in range(discounts.shape[0]):
            evidence[k] *= fading
    for k in range(discounts.shape[0]):
        log_discount = math.log(discounts[k])
        worth = 0.0
        for i in range(x.shape[0]):
            if x[i]:
                lag = played_at - stamps[i]
                decay = power(powers[k], abs(lag), log_discount)
                total, count = sums[k, i] * decay, counts[k, i] * decay
                reward = min(max((z[i] - reward_range[0]) / (reward_range[1] - reward_range[0]), 0.0), 1.0)
                if reward > 0.0:  # a reward at an end of the range needs one logarithm
                    worth += reward * math.log((total + 1.0) / (count + 2.0))
                if reward < 1.0:
                    worth += (1.0 - reward) * math.log((count - total + 1.0) / (count + 2.0))
                if lag >= 0:
                    sums[k, i], counts[k, i] = total + reward, count + 1.0
                else:
                    sums[k, i] += decay * reward
                    counts[k, i] += decay
        evidence[k] += weight * worth
    for i in range(x.shape[0]):
        if x[i] and played_at > stamps[i]:
            stamps[i] = played_at


@njit(inline="always")
def add_pulls_side_by_side(pulls, stamps, discounts, powers, x, played_at):
    """Count the pulls of a round under every discount, as of each played arm's latest one (its stamp)."""
    for k in range(discounts.shape[0]):
        log_discount = math.log(discounts[k])
        for i in range(x.shape[0]):
            if x[i]:
                pulls[k, i] = pulls[k, i] * power(powers[k], played_at - stamps[i], log_discount) + 1.0
    for i in range(x.shape[0]):
        if x[i]:
            stamps[i] = played_at


@njit(inline="always")
def draw_discount(evidence, n, key, call, at_round, purpose):
    """Draw the position of a discount in proportion to exp(evidence); n: number of arms, whose draws come before."""
    best = evidence[0]
    for k in range(evidence.shape[0]):
        best = max(best, evidence[k])
    total = 0.0
    for k in range(evidence.shape[0]):
        total += math.exp(evidence[k] - best)
    point = total * to_unit(philox(uint64(2 * n), call, at_round, purpose, key[0], key[1])[0])
    lead = 0
    while lead < evidence.shape[0] - 1 and point >= math.exp(evidence[lead] - best):
        point -= math.exp(evidence[lead] - best)
        lead += 1
    return lead


@bare
def fill_means(
    sums, counts, stamps, pulls, latest, evidence, discounts, powers, now, latest_observed, key, call, at_round,
    purpose, draw, mean, count, flying,
):  # fmt: skip
    """`side_by_side_draw`; returns the position of the discount."""
    n = draw.shape[0]
    ones, zeros = eight_doubles(), eight_doubles()
    found, arms = eight_doubles(), eight_integers()
    lead = draw_discount(evidence, n, key, call, at_round, purpose)
    log_discount = math.log(discounts[lead])
    for start in range(0, n, ARMS_AT_ONCE):
        size = min(n - start, ARMS_AT_ONCE)
        for j in range(size):
            i = start + j
            decay = power(powers[lead], latest_observed - stamps[i], log_discount)
            good, seen = sums[lead, i] * decay, counts[lead, i] * decay
            played = pulls[lead, i] * power(powers[lead], now - latest[i], log_discount)
            arrived = counts[lead, i] * power(powers[lead], now - stamps[i], log_discount)
            flying[i] = max(played - arrived, 0.0)
            count[i] = seen
            mean[i] = (good + 1.0) / (seen + 2.0)
            ones[j], zeros[j], arms[j] = good + 1.0, seen - good + 1.0, i
        draw_betas(ones, zeros, arms, size, call, at_round, purpose, key[0], key[1], found)
        for j in range(size):
            i = start + j
            seen = count[i]
            draw[i] = mean[i] + (found[j] - mean[i]) * math.sqrt((seen + 2.0) / (seen + 2.0 + flying[i]))
    return lead

"""Discounted means, pulls in flight, and the indices made of them."""

import math
from typing import Final

from numba import float64, njit

from spillover.kernels.build import gufunc

# An arm whose bonus is so many times the width of the reward range is forgotten: it counts as never observed.
FORGOTTEN: Final = 1e6
LARGEST_EXPONENT: Final = 700.0


@njit(inline="always")
def power(powers, lag, log_discount):
    """discount^lag; from a table of these numbers as far as it reaches."""
    return powers[lag] if 0 <= lag < powers.shape[0] else math.exp(lag * log_discount)


@njit(inline="always")
def growth(growths, lag, log_discount):
    """discount^(-lag / 2), the growth of a bonus; from a table of these numbers as far as it reaches."""
    return growths[lag] if 0 <= lag < growths.shape[0] else math.exp(min(-0.5 * lag * log_discount, LARGEST_EXPONENT))


@gufunc((float64, float64[:], float64[:], float64[:]), "(),(l)->(l),(l)")
def discount_tables(discount, size, powers, growths):
    """The tables of `power` and `growth`, as long as `size`."""
    log_discount, none = math.log(discount), powers[:0]
    for lag in range(powers.shape[0]):
        powers[lag], growths[lag] = power(none, lag, log_discount), growth(none, lag, log_discount)


@njit(inline="always")
def add_rewards(sums, counts, stamps, x, z, played_at, log_discount, powers):
    """Add the rewards of a round to each played arm's discounted sum and count."""
    for i in range(x.shape[0]):
        if x[i]:
            lag = played_at - stamps[i]
            if counts[i] == 0.0:
                sums[i], counts[i], stamps[i] = z[i], 1.0, played_at
            elif lag >= 0:
                decay = power(powers, lag, log_discount)
                sums[i] = sums[i] * decay + z[i]
                counts[i] = counts[i] * decay + 1.0
                stamps[i] = played_at
            else:
                decay = power(powers, -lag, log_discount)
                sums[i] += decay * z[i]
                counts[i] += decay


@njit(inline="always")
def upper_bounds(sums, counts, stamps, now, clock, log_discount, width, unit, cap, range_width, growths, index):
    """mean / unit + sqrt(width log(clock) / discounted count), at most `cap`; range_width: that of mean / unit."""
    explores = width * math.log(max(clock, 1.0)) > 0.0
    for i in range(sums.shape[0]):
        index[i] = growth(growths, now - stamps[i], log_discount) if explores else 1.0
    grown_bounds(sums, counts, clock, width, unit, cap, range_width, index)


@njit(inline="always")
def grown_bounds(sums, counts, clock, width, unit, cap, range_width, index):
    """`upper_bounds`, in place of the growth of each bonus since the arm was last observed."""
    largest = FORGOTTEN * range_width
    width *= math.log(max(clock, 1.0))
    for i in range(sums.shape[0]):  # no branch, so that several arms are computed at once
        seen = counts[i] if counts[i] > 0.5 else 0.5  # a count is 0 or at least 1
        bonus = math.sqrt(width / seen) * index[i]
        value = sums[i] / (seen * unit) + bonus
        known = (counts[i] > 0.5) & (bonus <= largest) & (value < cap)
        index[i] = value if known else cap


@njit(inline="always")
def add_pulls(pulls, stamps, x, played_at, log_discount, powers):
    """Count the pulls of a round in each played arm's discounted number, as of its latest one (its stamp)."""
    for i in range(x.shape[0]):
        if x[i]:
            pulls[i] = pulls[i] * power(powers, played_at - stamps[i], log_discount) + 1.0
            stamps[i] = played_at


@njit(inline="always")
def pending_bounds(
    sums, counts, stamps, pulls, latest, now, clock, log_discount, width, unit, low, high, growths, index
):  # fmt: skip
    """mean / unit + sqrt(width log(clock) / discounted pulls); low, high: the range of mean / unit."""
    largest = FORGOTTEN * (high - low)
    width *= math.log(max(clock, 1.0))
    for i in range(sums.shape[0]):
        if counts[i] == 0.0 and pulls[i] == 0.0:
            index[i] = math.inf
            continue
        value = sums[i] / unit / counts[i] if counts[i] > 0.0 else high
        if width > 0.0:
            bonus = math.inf
            if counts[i] > 0.0:
                bonus = min(bonus, math.sqrt(width / counts[i]) * growth(growths, now - stamps[i], log_discount))
            if pulls[i] > 0.0:
                bonus = min(bonus, math.sqrt(width / pulls[i]) * growth(growths, now - latest[i], log_discount))
            value = math.inf if bonus > largest else value + bonus
        index[i] = value

"""Weights times upper bounds of means, as `choose_by_means` computes them, four arms at a time."""

import math

from numba import njit

from spillover.kernels.averages import FORGOTTEN, growth
from spillover.kernels.lanes import (
    LANES,
    above,
    least,
    load,
    magnitude,
    over,
    pack,
    plus,
    root,
    splat,
    store,
    times,
    where,
)


@njit(inline="always")
def growths_from(growths, stamps, now, log_discount, j):
    """The growth of the bonuses of four arms since they were last observed."""
    return pack(
        growth(growths, now - stamps[j], log_discount),
        growth(growths, now - stamps[j + 1], log_discount),
        growth(growths, now - stamps[j + 2], log_discount),
        growth(growths, now - stamps[j + 3], log_discount),
    )


@njit(inline="always")
def divisor(counts):
    """Counts to divide by: they are at least 1, or 0, which becomes 1/2.

    Not by asking for 0: the compiler would find out that the quotient is not used then, and divide by 0.
    """
    return where(above(counts, splat(0.5)), counts, splat(0.5))


@njit(inline="always")
def upper_four(sums, counts, stamps, now, log_discount, width, unit, range_width, growths, j):
    """`upper_bounds` of four arms, for a width > 0 and without a cap."""
    endless, seen = splat(math.inf), load(counts, j)
    known, seen = above(seen, splat(0.0)), divisor(seen)
    mean = over(load(sums, j), times(seen, splat(unit)))
    bonus = times(root(over(splat(width), seen)), growths_from(growths, stamps, now, log_discount, j))
    value = where(above(bonus, splat(FORGOTTEN * range_width)), endless, plus(mean, bonus))
    return where(known, value, endless)


@njit(inline="always")
def pending_four(
    sums, counts, stamps, pulls, latest, now, log_discount, width, unit, low, high, growths, j
):  # fmt: skip
    """`pending_bounds` of four arms, for a width > 0."""
    endless, seen, played = splat(math.inf), load(counts, j), load(pulls, j)
    known, tried = above(seen, splat(0.0)), above(played, splat(0.0))
    seen, played = divisor(seen), divisor(played)
    mean = where(known, over(over(load(sums, j), splat(unit)), seen), splat(high))
    observed = times(root(over(splat(width), seen)), growths_from(growths, stamps, now, log_discount, j))
    counted = times(root(over(splat(width), played)), growths_from(growths, latest, now, log_discount, j))
    bonus = least(where(known, observed, endless), where(tried, counted, endless))
    return where(above(bonus, splat(FORGOTTEN * (high - low))), endless, plus(mean, bonus))


@njit(inline="always")
def score_arms(
    sums, counts, stamps, pulls, latest, now, width, low, high, unit, log_discount, pending, in_range, weights, growths,
    scores,
):  # fmt: skip
    """Weights times index of four or more arms; width: with the logarithm of the clock, > 0."""
    last = scores.shape[0] - LANES
    range_width = high / unit - low / unit if in_range else 1.0
    for k in range(0, last + LANES, LANES):
        j = min(k, last)  # the last four overlap with those before them
        if pending:
            bounds = pending_four(
                sums, counts, stamps, pulls, latest, now, log_discount, width, unit, low / unit, high / unit, growths, j
            )  # fmt: skip
        else:
            bounds = upper_four(sums, counts, stamps, now, log_discount, width, unit, range_width, growths, j)
        weight = load(weights, j)
        scored = times(weight, times(bounds, splat(unit)))
        store(scores, j, where(above(magnitude(weight), splat(0.0)), scored, splat(0.0)))

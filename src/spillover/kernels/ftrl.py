"""FTRL: the marginals of its hybrid regulariser."""

import math
from typing import Final

import numpy as np
from numba import float64, int64, njit

from spillover.kernels.build import gufunc

# The multiplier is found once the two sides that it balances differ by less than this, relative to each other: the last
# Newton step, taken to first order, leaves an error of about the square.
BALANCED: Final = 1e-7
# Likewise for a step in a logit, whose error is of the third order.
LAST_STEP: Final = 1e-5
# A step in a logit that is smaller than this, relative to the logit, is rounding.
ROUNDING: Final = 1e-14
# Differences of losses are clipped to this: marginals of 1e-301 and 1.
FARTHEST: Final = 1e150


@njit(inline="always")
def hybrid_slope(logit, mixture):
    """(x, 1 - x, h, -h', h'') at a logit, for h = 1 / (2 sqrt(x)) + mixture log(1 - x), which falls in x."""
    small = math.exp(-abs(logit))
    major = 1.0 / (1.0 + small)
    minor = small * major
    x, rest = (major, minor) if logit >= 0.0 else (minor, major)
    root = 0.5 / math.sqrt(x)
    height = root - mixture * (max(logit, 0.0) + math.log(1.0 + small))  # absolute precision is enough; log1p is slow
    half = 0.5 * root * rest
    return x, rest, height, half + mixture * x, half * (x + 0.5 * rest) - mixture * x * rest


@njit(inline="always")
def rough_logit(height, mixture):
    """A logit at which h has about a given height, by its asymptotes: never off by more than about 2."""
    at_zero = math.sqrt(0.5) - mixture * math.log(2.0)
    if height < at_zero:
        return (at_zero - height) / mixture
    return -2.0 * math.log(2.0 * (height + mixture * math.log(2.0)))


@njit(inline="always")
def hybrid_logit(height, mixture, guess):
    """The logit at which h takes a given height, with x, 1 - x and -h' there.

    Newton steps with Halley's correction; once the solution is bracketed, steps stay inside the bracket.
    """
    low, high, logit = -math.inf, math.inf, guess
    for _ in range(100):
        x, rest, found, fall, curvature = hybrid_slope(logit, mixture)
        if found > height:
            low = logit
        else:
            high = logit
        step = (found - height) / fall
        step /= max(1.0 - 0.5 * step * curvature / fall, 0.5)
        if not low <= logit + step <= high:
            step = 0.5 * (low + high) - logit
        logit += step
        if abs(step) <= LAST_STEP + ROUNDING * abs(logit):
            break
    step += 0.5 * step * step * (rest - x)  # x and 1 - x follow the last step to second order
    return logit, x + x * rest * step, rest - x * rest * step, fall


@njit
def ranked(values, rank):
    """The value at position `rank` in sorted order: Hoare's selection, which reorders the values."""
    first, last = 0, values.shape[0] - 1
    while first < last:
        pivot = values[(first + last) // 2]
        left, right = first, last
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if rank <= right:
            last = right
        elif rank >= left:
            first = left
        else:
            break
    return values[rank]


@njit
def mark_cheapest(losses, budget, cheapest):
    """Mark the `budget` arms with the smallest losses, ties by position; returns the largest loss among them."""
    border = ranked(losses.copy(), budget - 1)
    places = budget
    for i in range(losses.shape[0]):
        cheapest[i] = losses[i] < border
        places -= cheapest[i]
    for i in range(losses.shape[0]):
        if places > 0 and losses[i] == border:
            cheapest[i] = True
            places -= 1
    return border


@njit
def balance(gaps, cheapest, mixture, multiplier, moved, logits, slopes):
    """Solve for the logits at a multiplier; returns missing mass inside, mass outside, and their derivatives."""
    missing, outside, falls, rises = 0.0, 0.0, 0.0, 0.0
    for i in range(gaps.shape[0]):
        height = min(max(gaps[i] - multiplier, -FARTHEST), FARTHEST)
        change = moved * slopes[i]
        guess = logits[i] + change if abs(change) < 1.0 else rough_logit(height, mixture)
        logits[i], x, rest, fall = hybrid_logit(height, mixture, guess)
        slopes[i] = 1.0 / fall
        if cheapest[i]:
            missing += rest
            falls += x * rest / fall
        else:
            outside += x
            rises += x * rest / fall
    return missing, outside, falls, rises


@njit
def multiplier_bracket(gaps, cheapest, budget, mixture):
    """Two multipliers between which the marginals sum to the budget.

    The last arm inside has a marginal of at least 1 / (n - s + 1), the first one outside at most s / (s + 1).
    """
    least, most = 1.0 / (gaps.shape[0] - budget + 1.0), budget / (budget + 1.0)
    nearest = FARTHEST
    for i in range(gaps.shape[0]):
        if not cheapest[i]:
            nearest = min(nearest, gaps[i])
    low = -0.5 / math.sqrt(least) - mixture * math.log(1.0 - least)
    high = nearest - 0.5 / math.sqrt(most) - mixture * math.log(1.0 - most)
    return low, min(high, 2.0 * math.log(2.0 * FARTHEST))


@njit
def solve_multiplier(gaps, cheapest, budget, mixture, logits):
    """Find the multiplier of sum(x) = budget: the mass of the arms outside equals the mass that those inside lack.

    Newton's method on the logarithm of the ratio of the two, which is nearly linear even if both are tiny; a bracket
    safeguards it.
    """
    n = gaps.shape[0]
    slopes = np.full(n, math.inf)  # no logits to start from yet
    low, high = multiplier_bracket(gaps, cheapest, budget, mixture)
    share = budget / n
    multiplier = min(max(-0.5 / math.sqrt(share) - mixture * math.log(1.0 - share), low), high)
    step = 1.0
    for _ in range(200):
        missing, outside, falls, rises = balance(gaps, cheapest, mixture, multiplier, step, logits, slopes)
        if outside < missing:
            low = multiplier
        else:
            high = multiplier
        step = 0.5 * (low + high) - multiplier
        if missing > 0.0:
            newton = math.log(missing / outside) / (rises / outside + falls / missing)
            if abs(outside - missing) <= BALANCED * outside:
                step = newton
                break
            if low <= multiplier + newton <= high:
                step = newton
        multiplier += step
    for i in range(n):
        logits[i] += step * slopes[i]


@gufunc((float64[:], float64, int64, float64, float64[:], float64[:]), "(n),(),(),()->(n),(n)")
def hybrid_marginals(losses, rate, budget, mixture, marginals, logits):
    """Minimise <x, losses> + sum(-sqrt(x) + mixture (1 - x) log(1 - x)) / rate over x in [0, 1]^n, sum(x) = budget.

    Also returns the logits of x, which give 1 - x where x rounds to 1.
    """
    n = losses.shape[0]
    if budget == n:
        marginals[:] = 1.0
        logits[:] = math.inf
        return
    gaps = np.empty(n)
    cheapest = np.empty(n, np.bool_)
    # Relative to the last arm inside, the losses that matter and the multiplier are small: no precision is lost.
    border = mark_cheapest(losses, budget, cheapest)
    for i in range(n):
        gaps[i] = rate * (losses[i] - border)
    solve_multiplier(gaps, cheapest, budget, mixture, logits)
    for i in range(n):
        marginals[i] = hybrid_slope(logits[i], mixture)[0]

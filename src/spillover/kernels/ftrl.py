"""FTRL: the marginals of its hybrid regulariser.

At the optimum h(x) = rate loss - multiplier for every arm, with h(x) = 1 / (2 sqrt(x)) + mixture log(1 - x). We solve
for the *excess* v = 1 / (2 sqrt(x)) - 1 / 2 of each arm, in relative terms. So x = 1 / (1 + 2 v)^2 and
1 - x = 4 v (1 + v) x are precise however close x is to 0 or 1, and h = 1 / 2 + v + mixture log(1 - x) takes a logarithm
only. It is nearly linear in v where v is large, and in log(v) where v is small.
"""

import math
from typing import Final

from numba import njit

from spillover.kernels.arithmetic import exp_of, log_of
from spillover.kernels.decorators import EIGHT, bare, eight_doubles

# Newton's method ends with a step that changes no excess by more than this, relative to it. What is then left is about
# a third of its square.
LAST_STEP: Final = 1e-7
# Longest step in the logarithm of an excess. If the multiplier changes by more than this, the arms start anew.
LONGEST: Final = 1.0
# Steps that Newton's method for arms and multiplier together may take. It needs 3 or 4, seldom up to 8.
ATTEMPTS: Final = 16
# Differences of losses are clipped to this: marginals of 2.5e-281 and 1.
FARTHEST: Final = 1e140
# -log(4 v) is at most this: such an arm lacks nothing that counts beside such a marginal.
DEEPEST: Final = 690.0
LEAST_EXCESS: Final = 0.25 * math.exp(-DEEPEST)
# The rows of the scratch memory, which have a number for each arm.
GAP, INSIDE, OUTSIDE, EXCESS, STEP, SLOPE, BEND, ROWS = range(8)


@bare
def moved_ahead(values, first, end, pivot, ties):
    """Move the values below a pivot (with ties: all that are not above it) ahead; returns where the others start."""
    border = first
    for i in range(first, end):
        value = values[i]
        values[i], values[border] = (
            values[border],
            value,
        )  # without a branch, which would be guessed wrong half the time
        border += (not value > pivot) if ties else value < pivot
    return border


@bare
def ranked(values, rank):
    """The value at position `rank` in sorted order, and how many are below it: quickselect, which reorders them."""
    first, end = 0, values.shape[0]
    while end - first > 1:
        pivot = values[(first + end) // 2]
        border = moved_ahead(values, first, end, pivot, False)
        if rank < border:
            end = border
            continue
        first = border
        border = moved_ahead(values, first, end, pivot, True)
        if rank < border:
            return pivot, first
        first = border
    return values[first], first


@bare
def fill_gaps(losses, rate, budget, marginals, room):
    """Fill in the gaps, and mark the `budget` arms with the smallest losses, ties by position, as inside.

    A gap is rate times the loss, relative to that of the last arm inside: so what matters and the multiplier are small,
    and no precision is lost. Returns the smallest gap of an arm outside. `marginals` is scratch memory here.
    """
    n = losses.shape[0]
    for i in range(n):
        marginals[i] = losses[i]
    last, below = ranked(marginals, budget - 1)
    places, nearest = budget - below, FARTHEST
    for i in range(n):
        block, j = i // EIGHT, i % EIGHT
        tied = (losses[i] == last) & (places > 0)
        places -= tied
        inside = (losses[i] < last) | tied
        gap = min(max(rate * (losses[i] - last), -FARTHEST), FARTHEST)
        nearest = min(nearest, FARTHEST if inside else gap)
        room[block, GAP, j] = gap
        room[block, INSIDE, j], room[block, OUTSIDE, j] = (1.0, 0.0) if inside else (0.0, 1.0)
    for i in range(n, EIGHT * room.shape[0]):  # the rest of the last block counts for nothing
        block, j = i // EIGHT, i % EIGHT
        room[block, GAP, j], room[block, INSIDE, j], room[block, OUTSIDE, j] = 0.0, 0.0, 0.0
    return nearest


@bare
def start_arms(room, multiplier, mixture):
    """Excesses by the asymptotes of h, off by at most 7% for a mixture of 1 and 17% down to 0.25."""
    excess = eight_doubles()
    second = max(3.0 - 1.0 / mixture, -1.0)  # of the series of a small excess
    for block in range(room.shape[0]):
        for j in range(EIGHT):
            height = room[block, GAP, j] - multiplier - 0.5
            large = max(height, 0.0)
            small = 0.25 * exp_of(max(min(height / mixture, 0.0), -DEEPEST))
            excess[j] = large + small * (1.0 + second * small) / ((1.0 + large) * (1.0 + large))
        for j in range(EIGHT):
            room[block, EXCESS, j] = excess[j]


@njit(inline="always", error_model="numpy")
def arm_at(v, height, mixture):
    """For an arm with excess v: (x, 1 - x, -dx/dt), and Newton's step to h = height; all in t = log(v).

    The step is followed by dt/dh, and half the second derivative of h relative to the first.
    """
    a = 1.0 / ((1.0 + v) * (0.5 + v))
    b = a * (1.0 + v)  # 1 / (1/2 + v)
    x, rest = 0.25 * b * b, (v * b) * ((1.0 + v) * b)
    slope = 1.0 / (v + 0.5 * mixture * a)
    step = (height - (0.5 + v + mixture * log_of(rest))) * slope
    bend = 0.5 * v * (1.0 - mixture * (0.75 + v) * a * a) * slope
    return x, rest, 2.0 * v * b * x, step, slope, bend


@bare
def look(room, multiplier, mixture):
    """Newton's step of each arm for this multiplier, and what a step of the multiplier depends on.

    Returns log(mass outside / mass missing inside), how the steps of the arms change it, and its derivative by the
    multiplier. Where all arms are far from the border both masses are tiny, but their logarithms are nearly linear.
    """
    step, slope, bend = eight_doubles(), eight_doubles(), eight_doubles()
    mass, mass_step, mass_slope = eight_doubles(), eight_doubles(), eight_doubles()
    lack, lack_step, lack_slope = eight_doubles(), eight_doubles(), eight_doubles()
    for j in range(EIGHT):
        mass[j], mass_step[j], mass_slope[j], lack[j], lack_step[j], lack_slope[j] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    deepest = 0.5 - DEEPEST * mixture
    for block in range(room.shape[0]):
        for j in range(EIGHT):
            height = max(room[block, GAP, j] - multiplier, deepest)
            x, rest, fall, step[j], slope[j], bend[j] = arm_at(room[block, EXCESS, j], height, mixture)
            outside, inside = room[block, OUTSIDE, j], room[block, INSIDE, j]
            mass[j] += outside * x
            mass_step[j] -= outside * fall * step[j]
            mass_slope[j] += outside * fall * slope[j]
            lack[j] += inside * rest
            lack_step[j] += inside * fall * step[j]
            lack_slope[j] -= inside * fall * slope[j]
        for j in range(EIGHT):  # one row at a time, so that eight numbers are stored at once
            room[block, STEP, j] = step[j]
        for j in range(EIGHT):
            room[block, SLOPE, j] = slope[j]
        for j in range(EIGHT):
            room[block, BEND, j] = bend[j]
    out, lacking = total(mass), total(lack)
    drift = total(mass_step) / out - total(lack_step) / lacking
    return log_of(out / lacking), drift, total(mass_slope) / out - total(lack_slope) / lacking


@bare
def total(eight):
    """The sum of eight numbers, by halves."""
    return ((eight[0] + eight[4]) + (eight[2] + eight[6])) + ((eight[1] + eight[5]) + (eight[3] + eight[7]))


@bare
def move(room, change):
    """Take the steps of all arms, with Chebyshev's correction, for a multiplier that changes; returns the largest."""
    excess, largest = eight_doubles(), eight_doubles()
    for j in range(EIGHT):
        largest[j] = 0.0
    for block in range(room.shape[0]):
        for j in range(EIGHT):
            newton = room[block, STEP, j] - change * room[block, SLOPE, j]
            largest[j] = max(largest[j], abs(newton))
            step = newton - newton * min(max(room[block, BEND, j] * newton, -0.5), 0.5)
            excess[j] = max(room[block, EXCESS, j] * exp_of(min(max(step, -LONGEST), LONGEST)), LEAST_EXCESS)
        for j in range(EIGHT):
            room[block, EXCESS, j] = excess[j]
    most = largest[0]
    for j in range(1, EIGHT):
        most = max(most, largest[j])
    return most


@bare
def solve_together(room, nearest, mixture):
    """Newton's method for the arms and the multiplier at once; returns whether it came to an end.

    It starts as if the two arms at the border shared one place and all others were far from it.
    """
    multiplier = mixture * math.log(2.0) - math.sqrt(0.5) + 0.5 * min(nearest, DEEPEST * mixture)
    start_arms(room, multiplier, mixture)
    for _ in range(ATTEMPTS):
        imbalance, drift, slope = look(room, multiplier, mixture)
        change = -(imbalance + drift) / slope
        multiplier += change
        if abs(change) > LONGEST:
            start_arms(room, multiplier, mixture)
        elif move(room, change) <= LAST_STEP:
            return True
    return False


@bare
def bracket(n, nearest, budget, mixture):
    """Two multipliers between which the marginals sum to the budget.

    The last arm inside has a marginal of at least 1 / (n - s + 1), the first one outside at most s / (s + 1) and at
    least 1 / (2 FARTHEST)^2.
    """
    least, most = 1.0 / (n - budget + 1.0), budget / (budget + 1.0)
    low = -0.5 / math.sqrt(least) - mixture * log_of(1.0 - least)
    high = nearest - 0.5 / math.sqrt(most) - mixture * log_of(1.0 - most)
    return low, min(high, mixture * log_of(budget * 4.0 * FARTHEST * FARTHEST))


@bare
def solve_in_turn(room, low, high, mixture):
    """Newton's method for the multiplier, safeguarded by a bracket: at each multiplier the arms are solved first.

    It is several times slower. There are two methods because the one for all at once has no safeguard: with mixtures
    below 0.03 arms can start too far off, and it goes round in circles. FTRL's mixtures are above 0.25.
    """
    multiplier = 0.5 * (low + high)
    for _ in range(200):
        start_arms(room, multiplier, mixture)
        for _ in range(100):
            look(room, multiplier, mixture)
            if move(room, 0.0) <= LAST_STEP:
                break
        imbalance, _, slope = look(room, multiplier, mixture)
        if imbalance < 0.0:
            low = multiplier
        else:
            high = multiplier
        ahead = multiplier - imbalance / slope
        if move(room, ahead - multiplier) <= LAST_STEP:
            break
        multiplier = ahead if low <= ahead <= high else 0.5 * (low + high)


@bare
def marginals_into(losses, rate, budget, mixture, marginals, room):
    """Minimise <x, losses> + sum(-sqrt(x) + mixture (1 - x) log(1 - x)) / rate over x in [0, 1]^n, sum(x) = budget.

    room: scratch memory of shape (blocks(n), ROWS, EIGHT).
    """
    n = losses.shape[0]
    if budget == n:
        for i in range(n):
            marginals[i], room[i // EIGHT, EXCESS, i % EIGHT] = 1.0, 0.0
        return
    nearest = fill_gaps(losses, rate, budget, marginals, room)
    if not solve_together(room, nearest, mixture):
        solve_in_turn(room, *bracket(n, nearest, budget, mixture), mixture)
    for i in range(n):
        root = 1.0 + 2.0 * room[i // EIGHT, EXCESS, i % EIGHT]
        marginals[i] = 1.0 / (root * root)


@njit(inline="always")
def blocks(n):
    """Blocks of eight for n arms."""
    return (n + EIGHT - 1) // EIGHT

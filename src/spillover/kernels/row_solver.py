"""One row of the graph problem: a lasso with non-negative entries whose sum is bounded."""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.inner import NONE_YET, bare, inside, within
from spillover.kernels.vectors import add_multiple

# A row is solved again once one of its optimality conditions is violated by this, relative to G_jj; the solution is far
# more accurate than that.
RESOLVE_TOLERANCE: Final = 5e-9
# Coordinates enter the support while their condition is violated by more than this, relative to G_jj.
ENTER: Final = 1e-12
# Below this, relative to G_jj, a Cholesky pivot is rounding: the column depends on the ones before it.
DEPENDENT: Final = 1e-11
FROZEN: Final = 1e200
# An arm whose overall rewards are smaller than this explains nothing, and dividing by it would overflow.
FAINTEST: Final = 1e-200
POLISHED: Final = 1e-11
MOST_POLISH: Final = 3
RUNAWAY: Final = 1e2


@njit(inline="always")
def is_off(allowed, residual, row, penalty, pressure):
    """Whether a row violates one of its optimality conditions; no early exit, so that many are looked at at once."""
    off = False
    for j in range(allowed.shape[0]):
        slack = residual[j] - penalty[j] - pressure
        off |= (abs(slack) if row[j] > 0.0 else slack) > allowed[j]
    return off


@njit(inline="always")
def row_margin(allowed, residual, row, penalty, pressure):
    """How far a row is from violating one of its optimality conditions."""
    margin = math.inf
    for j in range(allowed.shape[0]):
        slack = residual[j] - penalty[j] - pressure
        margin = min(margin, allowed[j] - (abs(slack) if row[j] > 0.0 else slack))
    return margin


@njit(inline="always")
def positive(divisor):
    """The divisor, which is positive; compiled code may divide before it knows that, and NumPy would warn of a 0."""
    return divisor if divisor > 0.0 else 1.0


@inside
def room_for_solving(n):
    """Memory for `solve_row`: support, refused entries, the Cholesky factor, and two vectors on the support."""
    return np.empty(n, np.int64), np.empty(n, np.bool_), np.empty((n, n)), np.empty(n), np.empty(n)


@within
def extend_cholesky(gram, support, done, size, factor, pivot):
    """Columns done..size-1 of the Cholesky factor of G on the support; returns whether one of them is dependent.

    A dependent column gets a tiny pivot, a ridge far below the tolerance: the step along the null direction is then so
    long that a constraint a >= 0 stops it. `pivot`, if not 0, takes its place: with FROZEN there is no step at all.
    """
    dependent = False
    for p in range(done, size):
        column = support[p]
        rest = gram[column, column]
        for q in range(p):
            value = gram[column, support[q]]
            for r in range(q):
                value -= factor[p, r] * factor[q, r]
            value /= factor[q, q]
            factor[p, q] = value
            rest -= value * value
        least = DEPENDENT * gram[column, column]
        if rest < least:
            dependent = True
            rest = pivot if pivot > 0.0 else least
        factor[p, p] = math.sqrt(rest)
    return dependent


@within
def cholesky_solve(factor, size, vector):
    """Solve L L' v = vector in place."""
    for p in range(size):
        value = vector[p]
        for q in range(p):
            value -= factor[p, q] * vector[q]
        vector[p] = value / factor[p, p]
    for p in range(size - 1, -1, -1):
        value = vector[p]
        for q in range(p + 1, size):
            value -= factor[q, p] * vector[q]
        vector[p] = value / factor[p, p]


@within
def newton_step(factor, support, size, residual, row, penalty, bound, guess, step, ones):
    """The step to the minimiser on the support with the row's sum at most `bound`; returns the bound's multiplier.

    Relative to a guess of the multiplier: with a good one the right-hand side is small, and so is the rounding error
    where the support is nearly dependent and solutions are large.
    """
    total = 0.0
    for p in range(size):
        j = support[p]
        step[p] = residual[j] - penalty[j] - guess
    cholesky_solve(factor, size, step)
    for p in range(size):
        total += row[support[p]] + step[p]
    if guess == 0.0 and total <= bound:
        return 0.0
    ones_total = 0.0
    for p in range(size):
        ones[p] = 1.0
    cholesky_solve(factor, size, ones)
    for p in range(size):
        ones_total += ones[p]
    pressure = guess + (total - bound) / positive(ones_total)
    if pressure <= 0.0:  # the bound is not active
        for p in range(size):
            step[p] += guess * ones[p]
        return 0.0
    total = 0.0
    for p in range(size):
        step[p] -= (pressure - guess) * ones[p]
        total += row[support[p]] + step[p]
    for p in range(size):  # correct the rounding error in the sum
        step[p] += (bound - total) / positive(ones_total) * ones[p]
    return pressure


@within
def first_wall(support, size, row, step):
    """How much of a step stays inside a >= 0, and the position on the support where it ends (-1: nowhere)."""
    length, wall = 1.0, -1
    for p in range(size):
        j = support[p]
        if row[j] + step[p] <= 0.0:
            # not a step of 0: the processor may divide before it knows, and NumPy would warn
            reach = row[j] / (-step[p] if step[p] < 0.0 else 1.0)
            if reach < length or wall < 0:
                length, wall = min(reach, 1.0), p
    return length, wall


@njit(inline="always")
def runs_away(gram, support, size, step):
    """Whether a step changes an arm's part in the prediction by far more than there is to predict."""
    far, largest = 0, 0.0
    for j in range(gram.shape[0]):
        largest = max(largest, gram[j, j])
    for p in range(size):
        far += step[p] * step[p] * gram[support[p], support[p]] > RUNAWAY * RUNAWAY * largest
    return far > 0


@njit(inline="always")
def is_polished(gram, support, size, residual, penalty, pressure):
    """Whether the optimality conditions on the support hold far more accurately than required."""
    off = 0
    for p in range(size):
        j = support[p]
        off += abs(residual[j] - penalty[j] - pressure) > POLISHED * gram[j, j]
    return off == 0


@bare
def solve_row(gram, residual, row, penalty, bound, room):
    """Minimise a'Ga/2 - (c - penalty)'a over a >= 0 with sum(a) <= bound; returns the bound's multiplier.

    Warm-started active-set method (Lawson and Hanson's, with one more constraint): exact minimisers on growing and
    shrinking supports. residual = c - G a is kept up to date. room: see `room_for_solving`.
    """
    n = row.shape[0]
    support, refused, factor, step, ones = room
    size = NONE_YET
    for j in range(n):
        refused[j] = False
        support[size] = j
        size += row[j] > 0.0
    done = NONE_YET
    pressure = 0.0
    entered = -1
    dependent = False
    polished = 0
    for _ in range(10 * n + 50):
        # 1. the minimiser on the support, or the first wall on the way to it
        while size > 0:
            dependent = extend_cholesky(gram, support, done, size, factor, 0.0) or (dependent and done > 0)
            done = size
            pressure = newton_step(factor, support, size, residual, row, penalty, bound, pressure, step, ones)
            length, wall = first_wall(support, size, row, step)
            if dependent and wall < 0 and pressure == 0.0 and runs_away(gram, support, size, step):
                # no constraint stops the step along a null direction: it would gain nothing but rounding error
                done = NONE_YET
                last = factor[size - 1, size - 1] ** 2
                if support[size - 1] == entered and last < 2.0 * DEPENDENT * gram[entered, entered]:
                    refused[entered] = True
                    size -= 1
                    continue
                extend_cholesky(gram, support, done, size, factor, FROZEN)
                pressure = newton_step(factor, support, size, residual, row, penalty, bound, 0.0, step, ones)
                length, wall = first_wall(support, size, row, step)
            for p in range(size):
                change = length * step[p]
                if change != 0.0:
                    j = support[p]
                    if p == wall:
                        change = -row[j]
                    row[j] += change
                    add_multiple(residual, -change, gram[j])
            if wall < 0:
                break
            gone = support[wall]
            row[gone] = 0.0
            if gone == entered and length == 0.0:
                refused[gone] = True  # it entered through rounding error
            for p in range(wall, size - 1):
                support[p] = support[p + 1]
            size -= 1
            done = wall
        if size == 0:
            pressure = 0.0
        # 2. the coordinate whose optimality condition is violated most
        entered = -1
        worst = ENTER
        for j in range(n):
            slack = residual[j] - penalty[j] - pressure
            # most entries are far from it, and a multiplication is faster than a division
            if slack > 0.5 * worst * gram[j, j] and row[j] == 0.0 and gram[j, j] > FAINTEST and not refused[j]:
                relative = slack / positive(gram[j, j])
                if relative > worst:
                    worst, entered = relative, j
        if entered < 0:
            if polished == MOST_POLISH or is_polished(gram, support, size, residual, penalty, pressure):
                break
            polished += 1  # repeat the step, to correct the rounding error of the last one
            continue
        support[size] = entered
        size += 1
    return pressure

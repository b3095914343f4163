"""The rows of the graph on candidate edges: each a small lasso of its own; and the weights, by pushing changes on.

The solver is that of `graph.py`, because no compiled call crosses a file.
"""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int8, int32, int64, njit

from spillover.kernels.build import gufunc

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
# Changes of a weight below this are not pushed on.
PUSHED: Final = 1e-15
CHANGED: Final = 2  # a touched row that was solved anew


@njit
def row_is_optimal(allowed, residual, row, penalty, pressure):
    """Whether the optimality conditions of a row hold; no early exit, so that the loop vectorises."""
    violations = 0
    for j in range(row.shape[0]):
        slack = residual[j] - penalty[j] - pressure
        violations += (slack > allowed[j]) | ((row[j] > 0.0) & (slack < -allowed[j]))
    return violations == 0


@njit
def extend_cholesky(gram, support, done, size, factor, frozen):
    """Columns done..size-1 of the Cholesky factor of G on the support; returns whether one of them is dependent.

    A dependent column gets a tiny pivot, a ridge far below the tolerance: the step along the null direction is then so
    long that a constraint a >= 0 stops it. With `frozen` the pivot is huge, so that there is no step at all.
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
            rest = FROZEN if frozen else least
        factor[p, p] = math.sqrt(rest)
    return dependent


@njit
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


@njit
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
    pressure = guess + (total - bound) / ones_total
    if pressure <= 0.0:  # the bound is not active
        for p in range(size):
            step[p] += guess * ones[p]
        return 0.0
    total = 0.0
    for p in range(size):
        step[p] -= (pressure - guess) * ones[p]
        total += row[support[p]] + step[p]
    for p in range(size):  # correct the rounding error in the sum
        step[p] += (bound - total) / ones_total * ones[p]
    return pressure


@njit
def first_wall(support, size, row, step):
    """How much of a step stays inside a >= 0, and the position on the support where it ends (-1: nowhere)."""
    length, wall = 1.0, -1
    for p in range(size):
        j = support[p]
        if row[j] + step[p] <= 0.0:
            reach = row[j] / -step[p] if step[p] < 0.0 else 0.0
            if reach < length or wall < 0:
                length, wall = min(reach, 1.0), p
    return length, wall


@njit
def runs_away(gram, support, size, step, largest):
    """Whether a step changes an arm's part in the prediction by far more than there is to predict."""
    far = 0
    for p in range(size):
        far += step[p] * step[p] * gram[support[p], support[p]] > RUNAWAY * RUNAWAY * largest
    return far > 0


@njit
def is_polished(gram, support, size, residual, penalty, pressure):
    """Whether the optimality conditions on the support hold far more accurately than required."""
    off = 0
    for p in range(size):
        j = support[p]
        off += abs(residual[j] - penalty[j] - pressure) > POLISHED * gram[j, j]
    return off == 0


@njit
def solve_row(gram, residual, row, penalty, bound):
    """Minimise a'Ga/2 - (c - penalty)'a over a >= 0 with sum(a) <= bound; returns the bound's multiplier.

    Warm-started active-set method (Lawson and Hanson's, with one more constraint): exact minimisers on growing and
    shrinking supports. residual = c - G a is kept up to date.
    """
    n = row.shape[0]
    support = np.empty(n, np.int64)
    factor = np.empty((n, n))
    step = np.empty(n)
    ones = np.empty(n)
    refused = np.zeros(n, np.bool_)
    size, largest = 0, 0.0
    for j in range(n):
        largest = max(largest, gram[j, j])
        if row[j] > 0.0:
            support[size] = j
            size += 1
    done = 0
    pressure = 0.0
    entered = -1
    dependent = False
    polished = 0
    for _ in range(10 * n + 50):
        # 1. the minimiser on the support, or the first wall on the way to it
        while size > 0:
            dependent = extend_cholesky(gram, support, done, size, factor, False) or (dependent and done > 0)
            done = size
            pressure = newton_step(factor, support, size, residual, row, penalty, bound, pressure, step, ones)
            length, wall = first_wall(support, size, row, step)
            if dependent and wall < 0 and pressure == 0.0 and runs_away(gram, support, size, step, largest):
                # no constraint stops the step along a null direction: it would gain nothing but rounding error
                done = 0
                last = factor[size - 1, size - 1] ** 2
                if support[size - 1] == entered and last < 2.0 * DEPENDENT * gram[entered, entered]:
                    refused[entered] = True
                    size -= 1
                    continue
                extend_cholesky(gram, support, 0, size, factor, True)
                pressure = newton_step(factor, support, size, residual, row, penalty, bound, 0.0, step, ones)
                length, wall = first_wall(support, size, row, step)
            for p in range(size):
                change = length * step[p]
                if change != 0.0:
                    j = support[p]
                    if p == wall:
                        change = -row[j]
                    row[j] += change
                    for i in range(n):
                        residual[i] -= gram[j, i] * change
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
            if row[j] == 0.0 and gram[j, j] > FAINTEST and not refused[j]:
                slack = (residual[j] - penalty[j] - pressure) / gram[j, j]
                if slack > worst:
                    worst, entered = slack, j
        if entered < 0:
            if polished == MOST_POLISH or is_polished(gram, support, size, residual, penalty, pressure):
                break
            polished += 1  # repeat the step, to correct the rounding error of the last one
            continue
        support[size] = entered
        size += 1
    return pressure


@njit
def signed_row_is_optimal(allowed, residual, row, penalty, pressure):
    """Whether the optimality conditions hold for a row with entries of either sign."""
    violations = 0
    for j in range(row.shape[0]):
        hold = penalty[j] + pressure
        if row[j] > 0.0:
            violations += abs(residual[j] - hold) > allowed[j]
        elif row[j] < 0.0:
            violations += abs(residual[j] + hold) > allowed[j]
        else:
            violations += abs(residual[j]) - hold > allowed[j]
    return violations == 0


@njit
def solve_signed_row(gram, residual, row, penalty, bound):
    """Minimise a'Ga/2 - c'a + penalty'|a| with sum(|a|) <= bound; returns the bound's multiplier.

    For given signs this is the non-negative problem on columns multiplied by their signs. If an entry stays at 0 though
    the other sign would be better, its sign is flipped and the problem solved again. The objective falls each time, so
    this ends.
    """
    n = row.shape[0]
    signs = np.empty(n)
    turned = np.empty((n, n))
    for j in range(n):
        signs[j] = 1.0 if row[j] > 0.0 or (row[j] == 0.0 and residual[j] >= 0.0) else -1.0
    pressure = 0.0
    for _ in range(10 * n + 50):
        for i in range(n):
            row[i] *= signs[i]
            residual[i] *= signs[i]
            for j in range(n):
                turned[i, j] = signs[i] * signs[j] * gram[i, j]
        pressure = solve_row(turned, residual, row, penalty, bound)
        worst, other = ENTER, -1
        for j in range(n):
            if row[j] == 0.0 and gram[j, j] > FAINTEST:
                slack = (-residual[j] - penalty[j] - pressure) / gram[j, j]
                if slack > worst:
                    worst, other = slack, j
        for j in range(n):
            row[j] *= signs[j]
            residual[j] *= signs[j]
        if other < 0:
            break
        signs[other] = -signs[other]
    return pressure


@njit
def push(weights, cause, edge, moved, change, queued, waiting):
    """Add the changes of weights in a queue, and what follows from them: w_j = 1 + sum of A[i, j] w_i.

    moved: (n), its first `waiting` arms are the queue, a ring; `queued` says who is in it. change: what to add to each.
    """
    n, k = cause.shape
    head = 0
    while waiting > 0:
        i = moved[head]
        head = head + 1 if head + 1 < n else 0
        waiting -= 1
        amount = change[i]
        change[i], queued[i] = 0.0, False
        weights[i] += amount
        for p in range(k):
            j = cause[i, p]
            if j < 0 or abs(amount * edge[i, p]) <= PUSHED:
                continue
            change[j] += amount * edge[i, p]
            if not queued[j]:
                tail = head + waiting
                moved[tail if tail < n else tail - n] = j
                queued[j] = True
                waiting += 1


@njit
def push_errors(weights, cause, edge, moved, change, queued):
    """Push what rounding has left: by how much each weight differs from 1 + sum of A[i, j] w_i."""
    n, k = cause.shape
    for j in range(n):
        change[j] = 1.0 - weights[j]
    for i in range(n):
        for p in range(k):
            if cause[i, p] >= 0:
                change[cause[i, p]] += edge[i, p] * weights[i]
    for j in range(n):
        moved[j], queued[j] = j, True
    push(weights, cause, edge, moved, change, queued, n)


@gufunc(
    (
        *(int32[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1], float64[::1], float64[::1]),
        *(int8[::1], float64[:, ::1], int64[::1], float64, boolean, int64[:]),
    ),
    "(n,k),(n,k),(n,k,k),(n,k),(n),(n),(n),(n,k),(e),(),()->()",
    writes=("edge", "residual", "pressure", "weights", "touched"),
)
def solve_candidates(cause, edge, gram, residual, pressure, weights, touched, penalty, clock, bound, signed, solved):
    """Solve the touched rows whose optimality conditions no longer hold."""
    solved[0] = 0
    n, k = cause.shape
    allowed, before = np.empty(k), np.empty(k)
    moved, change, queued = np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_)
    for i in range(n):
        if not touched[i]:
            continue
        for p in range(k):
            allowed[p] = RESOLVE_TOLERANCE * gram[i, p, p]
            before[p] = edge[i, p]
        if signed:
            if signed_row_is_optimal(allowed, residual[i], edge[i], penalty[i], pressure[i]):
                continue
            pressure[i] = solve_signed_row(gram[i], residual[i], edge[i], penalty[i], bound)
        else:
            if row_is_optimal(allowed, residual[i], edge[i], penalty[i], pressure[i]):
                continue
            pressure[i] = solve_row(gram[i], residual[i], edge[i], penalty[i], bound)
        touched[i] = CHANGED
        if solved[0] == 0:
            moved, change, queued = np.empty(n, np.int64), np.zeros(n), np.zeros(n, np.bool_)
        solved[0] += 1
        count = 0
        for p in range(k):
            if edge[i, p] != before[p]:
                moved[count] = cause[i, p]
                change[cause[i, p]], queued[cause[i, p]] = (edge[i, p] - before[p]) * weights[i], True
                count += 1
        push(weights, cause, edge, moved, change, queued, count)
    if clock[0] % n == 0 and solved[0] > 0:  # now and then, so that rounding does not add up
        push_errors(weights, cause, edge, moved, change, queued)

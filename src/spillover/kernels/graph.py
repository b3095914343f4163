"""The graph problem: one lasso for each row, non-negative, or of either sign where spill-over may hurt."""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.arithmetic import add_multiple, multiply
from spillover.kernels.decorators import NONE_YET, bare, inside, within


@njit(inline="always")
def absorb_outcome(gram, residual, adjacency, z, y, weight, acyclic, errors):
    """The rank-one updates of all rows; errors: how many times y was added to the residual of each.

    If acyclic, A is 0 below its diagonal.
    """
    multiply(adjacency, y, acyclic, errors)
    for i in range(y.shape[0]):
        errors[i] = weight * (y[i] - z[i] - errors[i])
        if errors[i] != 0.0:
            add_multiple(residual[i], errors[i], y)
        if y[i] * weight != 0.0:
            add_multiple(gram[i], y[i] * weight, y)


@njit(inline="always")
def squared_error(gram, cross, energy, adjacency):
    """sum ||y - A y - z||^2 over rounds, from G = sum y y', C = sum (y - z) y' and sum (y - z)^2."""
    n = energy.shape[0]
    error = 0.0
    for i in range(n):
        error += energy[i]
        for j in range(n):
            if adjacency[i, j] != 0.0:
                fitted = 0.0
                for k in range(n):
                    fitted += gram[j, k] * adjacency[i, k]
                error += adjacency[i, j] * (fitted - 2.0 * cross[i, j])
    return error


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


MOST_OF_MARGIN: Final = 0.99  # how far a row may move before it is looked at again
WEIGHT_ERROR: Final = 1e-6  # relative, of weights that solve their equation: far more than rounding leaves
ROUNDING: Final = 1e-15  # of a residual in an update, relative to what it is made of, with some to spare


@njit(inline="always")
def acyclic_weights(adjacency, weights):
    """w = 1' (I - A)^-1 for a strictly upper triangular A."""
    n = weights.shape[0]
    for j in range(n):
        weights[j] = 1.0
    for i in range(n):
        start = i // 4 * 4  # from a multiple of four on; what is added on and below the diagonal is 0
        add_multiple(weights[start:], weights[i], adjacency[i, start:])


@bare
def cyclic_weights(adjacency, weights, matrix):
    """w = 1' (I - A)^-1 by elimination; rows sum to less than 1, so I - A is diagonally dominant: no pivots.

    matrix: room for (n, n) numbers.
    """
    n = weights.shape[0]
    for i in range(n):
        for j in range(n):
            matrix[i, j] = (1.0 if i == j else 0.0) - adjacency[j, i]  # the transpose: (I - A)' w = 1
        weights[i] = 1.0
    for k in range(n):
        for i in range(k + 1, n):
            ratio = matrix[i, k] / positive(matrix[k, k])
            if ratio != 0.0:
                for j in range(k + 1, n):
                    matrix[i, j] -= ratio * matrix[k, j]
                weights[i] -= ratio * weights[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            weights[k] -= matrix[k, j] * weights[j]
        weights[k] /= positive(matrix[k, k])


@njit(inline="always")
def signed_row_margin(allowed, residual, row, penalty, pressure):
    """`row_margin` for entries of either sign."""
    margin = math.inf
    for j in range(allowed.shape[0]):
        hold = penalty[j] + pressure
        if row[j] > 0.0:
            off = abs(residual[j] - hold)
        elif row[j] < 0.0:
            off = abs(residual[j] + hold)
        else:
            off = abs(residual[j]) - hold
        margin = min(margin, allowed[j] - off)
    return margin


@bare
def solve_signed_row(gram, residual, row, penalty, bound, room, signs, turned):
    """Minimise a'Ga/2 - c'a + penalty'|a| with sum(|a|) <= bound; returns the bound's multiplier.

    For given signs this is the non-negative problem on columns multiplied by their signs. If an entry stays at 0 though
    the other sign would be better, its sign is flipped and the problem solved again. The objective falls each time, so
    this ends. signs, turned: room for n and (n, n) numbers.
    """
    n = row.shape[0]
    for j in range(n):
        signs[j] = 1.0 if row[j] > 0.0 or (row[j] == 0.0 and residual[j] >= 0.0) else -1.0
    pressure = 0.0
    for _ in range(10 * n + 50):
        for i in range(n):
            row[i] *= signs[i]
            residual[i] *= signs[i]
            for j in range(n):
                turned[i, j] = signs[i] * signs[j] * gram[i, j]
        pressure = solve_row(turned, residual, row, penalty, bound, room)
        worst, other = ENTER, -1
        for j in range(n):
            if row[j] == 0.0 and gram[j, j] > FAINTEST:
                slack = (-residual[j] - penalty[j] - pressure) / positive(gram[j, j])
                if slack > worst:
                    worst, other = slack, j
        for j in range(n):
            row[j] *= signs[j]
            residual[j] *= signs[j]
        if other < 0:
            break
        signs[other] = -signs[other]
    return pressure


@inside
def room_for_refit(n):
    """Memory for `refit`: tolerances, what is left to each row, its charge, signs, and for solving one row."""
    lines = np.zeros((4, n))
    return lines[0], lines[1], lines[2], lines[3], np.empty((n, n)), room_for_solving(n)


@njit(inline="always")
def note_moves(y, errors, room):
    """Take from what is left to each row how far its residual may have moved; returns whether a row has none left."""
    left, charge = room[1], room[2]
    largest, spent = 0.0, False
    for j in range(y.shape[0]):
        largest = max(largest, abs(y[j]))
    for i in range(y.shape[0]):
        left[i] -= abs(errors[i]) * largest + charge[i]
        spent |= left[i] <= 0.0
    return spent


@njit(inline="always")
def is_spent(room):
    """Return whether a row has nothing left (`note_moves`)."""
    left, spent = room[1], False
    for i in range(left.shape[0]):
        spent |= left[i] <= 0.0
    return spent


@bare
def refit(gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, signed, room, kept):
    """Solve the rows whose optimality conditions no longer hold, and update the weights; returns whether any was.

    Rows that have something left (`note_moves`) are passed over: they were optimal, and cannot have moved far enough
    since. What is left to a row is most of its distance from a violation when it was last looked at. Tolerances only
    grow with G, and the rest is far more than all rounding. kept: whether the room is used again for the next outcome.
    """
    n, changed = weights.shape[0], False
    allowed, left, charge, signs, square, solving = room
    for j in range(n):
        allowed[j] = RESOLVE_TOLERANCE * gram[j, j]
    for i in range(n):
        if left[i] > 0.0:
            continue
        margin = -1.0
        if signed:
            margin = signed_row_margin(allowed, residual[i], adjacency[i], penalty[i], pressure[i])
        elif not is_off(allowed, residual[i], adjacency[i], penalty[i], pressure[i]):
            if not kept:
                continue
            margin = row_margin(allowed, residual[i], adjacency[i], penalty[i], pressure[i])
        if margin >= 0.0:
            scale = pressure[i]
            for j in range(n):
                scale = max(scale, allowed[j])
                if penalty[i, j] < math.inf:
                    scale = max(scale, penalty[i, j] + pressure[i])
            left[i], charge[i] = MOST_OF_MARGIN * margin, ROUNDING * scale
            continue
        changed = True
        if signed:
            pressure[i] = solve_signed_row(gram, residual[i], adjacency[i], penalty[i], bound, solving, signs, square)
        else:
            pressure[i] = solve_row(gram, residual[i], adjacency[i], penalty[i], bound, solving)
    if changed and acyclic:
        acyclic_weights(adjacency, weights)
    elif changed:
        cyclic_weights(adjacency, weights, square)
    return changed


@njit(inline="always")
def drop_infinite_weights(adjacency, weights, line):
    """Set the weights of a graph A >= 0 with a spectral radius of 1 or more to 0: they do not exist.

    The radius is below 1 if and only if w = 1 + A'w has a positive solution, so the weights prove it themselves.
    """
    n, exist = weights.shape[0], True
    for j in range(n):
        line[j] = 0.0
    for i in range(n):
        for j in range(n):
            line[j] += weights[i] * adjacency[i, j]
    for j in range(n):
        exist &= weights[j] > 0.0 and abs(1.0 + line[j] - weights[j]) <= WEIGHT_ERROR * weights[j]
    if not exist:
        for j in range(n):
            weights[j] = 0.0


@njit(inline="always")
def clear_fit(gram, residual, adjacency, pressure, weights, room):
    """Start again from nothing."""
    for i in range(weights.shape[0]):
        for j in range(weights.shape[0]):
            gram[i, j] = residual[i, j] = adjacency[i, j] = 0.0
        pressure[i] = room[1][i] = room[2][i] = 0.0
        weights[i] = 1.0

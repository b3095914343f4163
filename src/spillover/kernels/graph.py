"""The graph problem: one lasso for each row, non-negative, or of either sign where spill-over may hurt."""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.inner import bare, inside
from spillover.kernels.row_solver import (
    ENTER,
    FAINTEST,
    RESOLVE_TOLERANCE,
    is_off,
    positive,
    room_for_solving,
    row_margin,
    solve_row,
)
from spillover.kernels.vectors import add_multiple

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

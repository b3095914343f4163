"""The graph problem: one lasso for each row, non-negative, or of either sign where spill-over may hurt."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, njit

from spillover.kernels.build import gufunc
from spillover.kernels.inner import NONE_YET, bare
from spillover.kernels.row_group import room_for_group, solve_due
from spillover.kernels.row_solver import (
    ENTER,
    FAINTEST,
    RESOLVE_TOLERANCE,
    positive,
    room_for_solving,
    row_margin,
    solve_row,
)
from spillover.kernels.short_rows import are_few, weights_of_few


@njit(inline="always")
def acyclic_weights(adjacency, weights):
    """w = 1' (I - A)^-1 for a strictly upper triangular A."""
    n = weights.shape[0]
    if are_few(n):
        weights_of_few(adjacency, weights)
        return
    weights[0] = 1.0
    for j in range(1, n):
        total = 1.0
        for i in range(j):
            total += adjacency[i, j] * weights[i]
        weights[j] = total


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
def update_weights(adjacency, weights, acyclic, matrix):
    """matrix: room for (n, n) numbers."""
    if acyclic:
        acyclic_weights(adjacency, weights)
    else:
        cyclic_weights(adjacency, weights, matrix)


# shared by `fit` and `fit_signed`
FIT_SIGNATURE: Final = (
    *(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[:, ::1]),
    *(float64, boolean, boolean[:]),
)
FIT_LAYOUT: Final = "(n,n),(n,n),(n,n),(n),(n),(n,n),(),()->()"
FIT_WRITES: Final = ("residual", "adjacency", "pressure", "weights")


@njit(inline="always")
def set_tolerances(gram, allowed, entering):
    """How far the optimality conditions of each column may be off before a row is solved again, and when it is."""
    for j in range(gram.shape[0]):
        allowed[j], entering[j] = RESOLVE_TOLERANCE * gram[j, j], ENTER * gram[j, j]


@gufunc(FIT_SIGNATURE, FIT_LAYOUT, writes=FIT_WRITES)
def fit(gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, changed):
    """Solve the rows whose optimality conditions no longer hold, and update the weights."""
    n, count = weights.shape[0], NONE_YET
    tolerances, due = np.empty((2, n)), np.empty(n, np.int64)
    allowed, entering = tolerances[0], tolerances[1]
    set_tolerances(gram, allowed, entering)
    for i in range(n):
        due[count] = i
        count += row_margin(allowed, residual, adjacency, penalty, pressure[i], i) < 0.0
    changed[0] = count > 0
    if count > 0:
        room = room_for_solving(n)
        solve_due(
            gram, residual, adjacency, pressure, penalty, bound, entering, due, count, room, room_for_group(n)
        )  # fmt: skip
        update_weights(adjacency, weights, acyclic, room[2])


@njit(inline="always")
def signed_row_margin(allowed, residual, adjacency, penalty, pressure, i):
    """`row_margin` for entries of either sign."""
    margin = math.inf
    for j in range(allowed.shape[0]):
        hold = penalty[i, j] + pressure
        if adjacency[i, j] > 0.0:
            off = abs(residual[i, j] - hold)
        elif adjacency[i, j] < 0.0:
            off = abs(residual[i, j] + hold)
        else:
            off = abs(residual[i, j]) - hold
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


@njit(inline="always")
def refit(
    gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, signed, allowed, entering, due, room, group,
    signs, turned,
):  # fmt: skip
    """`fit`, or `fit_signed`, in memory that it is given: for kernels that play rounds."""
    count = NONE_YET
    set_tolerances(gram, allowed, entering)
    for i in range(weights.shape[0]):
        due[count] = i
        if not signed:
            count += row_margin(allowed, residual, adjacency, penalty, pressure[i], i) < 0.0
        elif signed_row_margin(allowed, residual, adjacency, penalty, pressure[i], i) < 0.0:
            pressure[i] = solve_signed_row(gram, residual[i], adjacency[i], penalty[i], bound, room, signs, turned)
            count += 1
    if not signed:
        solve_due(gram, residual, adjacency, pressure, penalty, bound, entering, due, count, room, group)
    if count > 0:
        update_weights(adjacency, weights, acyclic, turned)


@gufunc(FIT_SIGNATURE, FIT_LAYOUT, writes=FIT_WRITES)
def fit_signed(gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, changed):
    """`fit` for entries of either sign."""
    changed[0] = False
    n = weights.shape[0]
    tolerances = np.empty((2, n))
    set_tolerances(gram, tolerances[0], tolerances[1])
    allowed, room, signs, turned = tolerances[0], room_for_solving(n), np.empty(n), np.empty((n, n))
    for i in range(n):
        if signed_row_margin(allowed, residual, adjacency, penalty, pressure[i], i) < 0.0:
            changed[0] = True
            pressure[i] = solve_signed_row(gram, residual[i], adjacency[i], penalty[i], bound, room, signs, turned)
    if changed[0]:
        update_weights(adjacency, weights, acyclic, turned)

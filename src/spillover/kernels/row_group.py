"""Rows of the graph problem that are due to be solved again: those with a few causes four at a time.

Between two outcomes the causes of most rows stay the same, and then a row's solution is one Newton step away: a small
system of equations. Four of them are solved side by side, so that the processor need not wait for each division, and
rows with fewer causes than others do the same with zeros, because a branch for each row takes longer.
"""

import math
from typing import Final

import numpy as np
from numba import njit, uint64

from spillover.kernels.inner import NONE_YET, bare, inside
from spillover.kernels.lanes import LANES, above, least, load, minus, over, pack, plus, splat, store, times, where
from spillover.kernels.row_solver import DEPENDENT, least_lane, margins_at, solve_row

FEW: Final = 2  # causes of a row that has a closed form
UNKNOWN: Final = -1  # instead of how many causes a row has
MOST: Final = 8  # causes of a row that is solved beside others
LINE: Final = MOST * MOST * LANES  # where a line of the factor starts, before it is scaled
STEP: Final = LINE + MOST * LANES  # and the step
GOOD: Final = STEP + MOST * LANES  # and what is positive where the step can be taken
ROOM: Final = GOOD + LANES


@inside
def room_for_group(n):
    """Memory for `solve_due`: the rows in order, the causes of each and how many there are, and numbers.

    What it says of causes holds as long as nothing else changes rows.
    """
    return np.empty(n, np.uint64), np.zeros((n, MOST + 1), np.uint64), np.full(n, UNKNOWN), np.empty(ROOM)


@njit(inline="always")
def list_causes(row, causes):
    """Write down the first causes of a row; returns how many it has."""
    size = NONE_YET
    for j in range(row.shape[0]):
        causes[min(size, MOST)] = uint64(j)
        size += row[j] > 0.0
    return size


@njit(inline="always")
def entry(gram, causes, rows, p, q):
    """G of the p-th and the q-th cause of four rows."""
    a, b, c, d = rows
    return pack(
        gram[causes[a, p], causes[a, q]],
        gram[causes[b, p], causes[b, q]],
        gram[causes[c, p], causes[c, q]],
        gram[causes[d, p], causes[d, q]],
    )


@njit(inline="always")
def at_cause(matrix, causes, rows, p):
    """What a matrix has at the p-th cause of four rows."""
    a, b, c, d = rows
    return pack(matrix[a, causes[a, p]], matrix[b, causes[b, p]], matrix[c, causes[c, p]], matrix[d, causes[d, p]])


@njit(inline="always")
def numbers_of_causes(sizes, rows):
    a, b, c, d = rows
    return pack(float(sizes[a]), float(sizes[b]), float(sizes[c]), float(sizes[d]))


@njit(inline="always")
def step_of_few(gram, residual, penalty, causes, sizes, rows, numbers):
    """The steps to the minimisers of four rows with one or two causes; returns what is positive if they are good."""
    one, nothing = splat(1.0), splat(0.0)
    two = above(numbers_of_causes(sizes, rows), one)
    slack = minus(at_cause(residual, causes, rows, 0), at_cause(penalty, causes, rows, 0))
    other = where(two, minus(at_cause(residual, causes, rows, 1), at_cause(penalty, causes, rows, 1)), nothing)
    g11, g22 = entry(gram, causes, rows, 0, 0), where(two, entry(gram, causes, rows, 1, 1), one)
    g12 = where(two, entry(gram, causes, rows, 0, 1), nothing)
    product = times(g11, g22)
    determinant = minus(product, times(g12, g12))
    inverse = over(one, where(above(determinant, nothing), determinant, one))
    store(numbers, STEP, times(minus(times(g22, slack), times(g12, other)), inverse))
    store(numbers, STEP + LANES, times(minus(times(g11, other), times(g12, slack)), inverse))
    return minus(determinant, times(product, splat(DEPENDENT)))


@njit(inline="always")
def place(p, q):
    """Where entry (p, q) of the factor starts; the inverse pivots are on its diagonal."""
    return (p * MOST + q) * LANES


@njit(inline="always")
def step_of_more(gram, residual, penalty, causes, sizes, rows, most, numbers):
    """The steps to the minimisers of four rows with `most` causes at most; returns what is positive if they are good.

    By L D L' without pivoting. A row with fewer causes than others has rows of the identity instead.
    """
    nothing, one, lowest = splat(0.0), splat(1.0), splat(math.inf)
    given = numbers_of_causes(sizes, rows)
    for p in range(most):
        used = above(given, splat(float(p)))
        own = where(used, entry(gram, causes, rows, p, p), one)
        slack = minus(at_cause(residual, causes, rows, p), at_cause(penalty, causes, rows, p))
        pivot, rest = own, where(used, slack, nothing)
        for q in range(p):
            value = where(used, entry(gram, causes, rows, p, q), nothing)
            for r in range(q):
                value = minus(value, times(load(numbers, LINE + r * LANES), load(numbers, place(q, r))))
            scaled = times(value, load(numbers, place(q, q)))
            store(numbers, LINE + q * LANES, value)
            store(numbers, place(p, q), scaled)
            pivot = minus(pivot, times(value, scaled))
            rest = minus(rest, times(scaled, load(numbers, STEP + q * LANES)))
        lowest = least(lowest, minus(pivot, times(own, splat(DEPENDENT))))
        store(numbers, place(p, p), over(one, where(above(pivot, nothing), pivot, one)))
        store(numbers, STEP + p * LANES, rest)
    for p in range(most - 1, -1, -1):
        value = times(load(numbers, STEP + p * LANES), load(numbers, place(p, p)))
        for q in range(p + 1, most):
            value = minus(value, times(load(numbers, place(q, p)), load(numbers, STEP + q * LANES)))
        store(numbers, STEP + p * LANES, value)
    return lowest


@njit(inline="always")
def check_steps(adjacency, bound, causes, sizes, rows, most, good, numbers):
    """Where a step ends outside of a >= 0 or above the bound, it is not good either."""
    given, nothing, one = numbers_of_causes(sizes, rows), splat(0.0), splat(1.0)
    total = nothing
    for p in range(most):
        used = above(given, splat(float(p)))
        value = plus(at_cause(adjacency, causes, rows, p), load(numbers, STEP + p * LANES))
        total = plus(total, where(used, value, nothing))
        good = least(good, where(used, value, one))
    store(numbers, GOOD, where(above(total, splat(bound)), nothing, good))


@njit(inline="always")
def take_step(gram, residual, row, penalty, entering, causes, most, numbers, lane):
    """Take the step of one of four rows; returns its margin, as `row_margin`.

    The last four numbers overlap with those before them, so they are computed first and stored last.
    """
    for p in range(most):
        row[causes[p]] += numbers[STEP + p * LANES + lane]
    last = residual.shape[0] - LANES
    end = after_step(gram, residual, causes, most, numbers, lane, last)
    margins = margins_at(end, load(row, last), load(penalty, last), 0.0, entering, last)
    for j in range(0, last, LANES):
        four = after_step(gram, residual, causes, most, numbers, lane, j)
        margins = least(margins, margins_at(four, load(row, j), load(penalty, j), 0.0, entering, j))
        store(residual, j, four)
    store(residual, last, end)
    return least_lane(margins)


@njit(inline="always")
def after_step(gram, residual, causes, most, numbers, lane, j):
    """Four numbers of a residual, from the j-th on, after the step of its row."""
    four = load(residual, j)
    for p in range(most):
        four = minus(four, times(load(gram[causes[p]], j), splat(numbers[STEP + p * LANES + lane])))
    return four


@njit(inline="always")
def finish_group(
    gram, residual, adjacency, pressure, penalty, bound, entering, room, order, start, size, causes, sizes, most,
    numbers,
):  # fmt: skip
    """Take the steps of some rows; where one cannot be taken, or misses the minimiser, `solve_row` does the rest."""
    for lane in range(size):
        i = order[start + lane]
        solved = numbers[GOOD + lane] > 0.0
        if solved:
            margin = take_step(gram, residual[i], adjacency[i], penalty[i], entering, causes[i], most, numbers, lane)
            solved = margin >= 0.0
        pressure[i] = 0.0
        if not solved:
            pressure[i] = solve_row(gram, residual[i], adjacency[i], penalty[i], bound, room)
            sizes[i] = UNKNOWN


@bare
def solve_due(gram, residual, adjacency, pressure, penalty, bound, entering, due, count, room, group):
    """Solve the rows due[:count], whose optimality conditions no longer hold.

    room, group: see `room_for_solving` and `room_for_group`.
    """
    order, causes, sizes, numbers = group
    together, waiting = residual.shape[0] >= LANES, NONE_YET
    for d in range(count):
        i = due[d]
        size = sizes[i]
        if size == UNKNOWN:
            size = sizes[i] = list_causes(adjacency[i], causes[i])
        if together and 0 < size <= MOST:
            order[waiting] = uint64(i)
            waiting += 1
        else:
            pressure[i] = solve_row(gram, residual[i], adjacency[i], penalty[i], bound, room)
            sizes[i] = UNKNOWN
    end = waiting - 1
    for start in range(0, waiting, LANES):
        rows = (
            order[start],
            order[min(start + 1, end)],
            order[min(start + 2, end)],
            order[min(start + 3, end)],
        )
        most = max(max(sizes[rows[0]], sizes[rows[1]]), max(sizes[rows[2]], sizes[rows[3]]))
        if most <= FEW:
            most = FEW
            good = step_of_few(gram, residual, penalty, causes, sizes, rows, numbers)
        else:
            good = step_of_more(gram, residual, penalty, causes, sizes, rows, most, numbers)
        check_steps(adjacency, bound, causes, sizes, rows, most, good, numbers)
        finish_group(
            gram, residual, adjacency, pressure, penalty, bound, entering, room, order, start,
            min(waiting - start, LANES), causes, sizes, most, numbers,
        )  # fmt: skip

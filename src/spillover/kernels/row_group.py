"""Rows of the graph problem that are due to be solved again: those with a few causes four at a time.

Between two outcomes the causes of most rows stay the same, and then a row's solution is one Newton step away: a small
system of equations. Four of them are solved side by side, so that the processor need not wait for each division, and
rows with fewer causes than others do the same with zeros, because a branch for each row takes longer.
"""

from typing import Final

import numpy as np
from numba import njit, uint64

from spillover.kernels.group_steps import steps_of_2, steps_of_3, steps_of_4, steps_of_5, steps_of_6, steps_of_8
from spillover.kernels.inner import NONE_YET, bare, inside, within
from spillover.kernels.lanes import LANES, lane, least, load, minus, splat_at, store, times
from spillover.kernels.row_solver import least_lane, margins_at, solve_row

UNKNOWN: Final = -1  # instead of how many causes a row has
MOST: Final = 8  # causes of a row that is solved beside others
STEPS: Final = LANES  # where the steps of a group start, after what is positive where they can be taken
GROUP: Final = STEPS + MOST * LANES  # numbers of a group
TWO, THREE, FOUR, FIVE, SIX, EIGHT = (np.int64(most) for most in (2, 3, 4, 5, 6, 8))


@inside
def room_for_group(n):
    """Memory for `solve_due`: the rows in order, the causes of each and how many there are, and numbers.

    What it says of causes holds as long as nothing else changes rows.
    """
    groups = (n + LANES - 1) // LANES
    return np.empty(n, np.uint64), np.zeros((n, MOST + 1), np.uint64), np.full(n, UNKNOWN), np.empty(groups * GROUP)


@njit(inline="always")
def list_causes(row, causes):
    """Write down the first causes of a row; returns how many it has."""
    size = NONE_YET
    for j in range(row.shape[0]):
        causes[min(size, MOST)] = uint64(j)
        size += row[j] > 0.0
    return size


@njit(inline="always")
def rows_of(order, start, end):
    """The rows of a group; the last one again where there are fewer than four."""
    return order[start], order[min(start + 1, end)], order[min(start + 2, end)], order[min(start + 3, end)]


@njit(inline="always")
def most_of(sizes, rows):
    """The most causes that a row of a group has."""
    a, b, c, d = rows
    return max(max(sizes[a], sizes[b]), max(sizes[c], sizes[d]))


@njit(inline="always")
def find_steps(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at):
    """The steps to the minimisers of four rows, and whether they are good."""
    most = most_of(sizes, rows)
    if most <= TWO:
        steps_of_2(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    elif most == THREE:
        steps_of_3(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    elif most == FOUR:
        steps_of_4(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    elif most == FIVE:
        steps_of_5(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    elif most == SIX:
        steps_of_6(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    else:
        steps_of_8(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)


@njit(inline="always")
def after_step(gram, residual, causes, most, numbers, at, j):
    """Four numbers of a residual, from the j-th on, after the step of its row."""
    four = load(residual, j)
    for p in range(most):
        four = minus(four, times(load(gram[causes[p]], j), splat_at(numbers, at + p * LANES)))
    return four


@within
def take_step(gram, residual, row, penalty, entering, causes, most, numbers, at):
    """Take a step at the first `most` causes of a row; returns its margin, as `row_margin`.

    `most` is a constant where this is called, so that its loops are unrolled. The last four numbers overlap with those
    before them, so they are computed first and stored last. A step that is good keeps what is above 0, so the row is
    read before it is changed: the processor would have to wait for the change.
    """
    last = residual.shape[0] - LANES
    end = after_step(gram, residual, causes, most, numbers, at, last)
    margins = margins_at(end, load(row, last), load(penalty, last), 0.0, entering, last)
    for j in range(0, last, LANES):
        four = after_step(gram, residual, causes, most, numbers, at, j)
        margins = least(margins, margins_at(four, load(row, j), load(penalty, j), 0.0, entering, j))
        store(residual, j, four)
    store(residual, last, end)
    for p in range(most):
        row[causes[p]] += lane(splat_at(numbers, at + p * LANES), 0)
    return least_lane(margins)


@njit(inline="always")
def take_listed(gram, residual, row, penalty, entering, causes, most, numbers, at):
    """`take_step` at as many causes as the rows of its group have at most."""
    if most <= TWO:
        return take_step(gram, residual, row, penalty, entering, causes, TWO, numbers, at)
    if most == THREE:
        return take_step(gram, residual, row, penalty, entering, causes, THREE, numbers, at)
    if most == FOUR:
        return take_step(gram, residual, row, penalty, entering, causes, FOUR, numbers, at)
    if most == FIVE:
        return take_step(gram, residual, row, penalty, entering, causes, FIVE, numbers, at)
    if most == SIX:
        return take_step(gram, residual, row, penalty, entering, causes, SIX, numbers, at)
    return take_step(gram, residual, row, penalty, entering, causes, EIGHT, numbers, at)


@bare
def solve_due(gram, residual, adjacency, pressure, penalty, bound, entering, due, count, room, group):
    """Solve the rows due[:count], whose optimality conditions no longer hold.

    Those of a few causes by a step; where it cannot be taken, or misses the minimiser, `solve_row` does the rest.
    room, group: see `room_for_solving` and `room_for_group`.
    """
    order, causes, sizes, numbers = group
    together, waiting, left = residual.shape[0] >= LANES, NONE_YET, NONE_YET
    for d in range(count):
        i = due[d]
        size = sizes[i]
        if size == UNKNOWN:
            size = sizes[i] = list_causes(adjacency[i], causes[i])
        if together and 0 < size <= MOST:
            order[waiting] = uint64(i)
            waiting += 1
        else:
            due[left] = i
            left += 1
    for start in range(0, waiting, LANES):
        rows = rows_of(order, start, waiting - 1)
        at = start // LANES * GROUP
        find_steps(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    for place in range(waiting):
        i, at = order[place], place // LANES * GROUP + place % LANES
        most = most_of(sizes, rows_of(order, place // LANES * LANES, waiting - 1))
        pressure[i] = 0.0
        if not (
            lane(splat_at(numbers, at), 0) > 0.0
            and take_listed(
                gram, residual[i], adjacency[i], penalty[i], entering, causes[i], most, numbers, at + STEPS
            ) >= 0.0
        ):
            due[left] = i
            left += 1
    for d in range(left):
        i = due[d]
        pressure[i] = solve_row(gram, residual[i], adjacency[i], penalty[i], bound, room)
        sizes[i] = UNKNOWN

"""Rows of the graph problem that are due to be solved again: those with a few causes four at a time.

Between two outcomes the causes of most rows stay the same, and then a row's solution is one Newton step away: a small
system of equations. Four of them are solved side by side, so that the processor need not wait for each division, and
rows with fewer causes than others do the same with rows of the identity, because a branch for each takes longer.
"""

from typing import Final

import numpy as np
from numba import njit, uint64

from spillover.kernels.group_steps import (
    step_at_2,
    step_at_3,
    step_at_4,
    step_at_5,
    step_at_6,
    step_at_8,
    steps_of_2,
    steps_of_3,
    steps_of_4,
    steps_of_5,
    steps_of_6,
    steps_of_8,
)
from spillover.kernels.inner import NONE_YET, bare, inside
from spillover.kernels.lanes import LANES, lane, splat_at
from spillover.kernels.row_solver import least_lane, solve_row

UNKNOWN: Final = -1  # instead of how many causes a row has
MOST: Final = 8  # causes of a row that is solved beside others
STEPS: Final = LANES  # where the steps of a group start, after what is positive where they can be taken
GROUP: Final = STEPS + MOST * LANES  # numbers of a group


@inside
def room_for_group(n):
    """Memory for `solve_due`: the rows in order, the causes of each and how many there are, numbers, and a ranking.

    What it says of causes holds as long as nothing else changes rows. Those that come by the ranking are in groups with
    about as many causes each, and a group takes as long as its row with the most causes.
    """
    groups = (n + LANES - 1) // LANES
    causes, sizes = np.zeros((n, MOST + 1), np.uint64), np.full(n, UNKNOWN)
    return np.empty(n, np.uint64), causes, sizes, np.empty(groups * GROUP), np.arange(n)


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
    if most <= 2:
        steps_of_2(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    elif most == 3:
        steps_of_3(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    elif most == 4:
        steps_of_4(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    elif most == 5:
        steps_of_5(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    elif most == 6:
        steps_of_6(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
    else:
        steps_of_8(gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)


@njit(inline="always")
def take_step(gram, residual, row, penalty, entering, causes, most, numbers, at):
    """Take the step of a row whose group has so many causes at most; returns its margins."""
    if most <= 2:
        return step_at_2(gram, residual, row, penalty, entering, causes, numbers, at)
    if most == 3:
        return step_at_3(gram, residual, row, penalty, entering, causes, numbers, at)
    if most == 4:
        return step_at_4(gram, residual, row, penalty, entering, causes, numbers, at)
    if most == 5:
        return step_at_5(gram, residual, row, penalty, entering, causes, numbers, at)
    if most == 6:
        return step_at_6(gram, residual, row, penalty, entering, causes, numbers, at)
    return step_at_8(gram, residual, row, penalty, entering, causes, numbers, at)


@njit(inline="always")
def rank(sizes, ranked):
    """Sort rows by how many causes they have, the most first; few are out of order."""
    for place in range(1, ranked.shape[0]):
        i = ranked[place]
        size, k = sizes[i], place
        while k > 0 and sizes[ranked[k - 1]] < size:
            ranked[k] = ranked[k - 1]
            k -= 1
        ranked[k] = i


@bare
def solve_due(gram, residual, adjacency, pressure, penalty, bound, entering, due, count, room, group):
    """Solve the rows due[:count], whose optimality conditions no longer hold.

    Those of a few causes by a step; where it cannot be taken, or misses the minimiser, `solve_row` does the rest.
    Returns how many rows that were: their causes may be others now.
    room, group: see `room_for_solving` and `room_for_group`.
    """
    order, causes, sizes, numbers, _ = group
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
    for start in range(0, waiting, LANES):
        most = most_of(sizes, rows_of(order, start, waiting - 1))
        for place in range(start, min(start + LANES, waiting)):
            i, at = order[place], start // LANES * GROUP + place - start
            good = lane(splat_at(numbers, at), 0) > 0.0
            if good:
                margins = take_step(
                    gram, residual[i], adjacency[i], penalty[i], entering, causes[i], most, numbers, at + STEPS
                )
                good = least_lane(margins) >= 0.0
            pressure[i] = 0.0
            if not good:
                due[left] = i
                left += 1
    for d in range(left):
        i = due[d]
        pressure[i] = solve_row(gram, residual[i], adjacency[i], penalty[i], bound, room)
        sizes[i] = list_causes(adjacency[i], causes[i])
    return left

"""The graph on candidate edges: what an outcome adds to the statistics.

Row i of the graph has at most k candidate causes, its slots (-1: empty). The slots of a cause are a linked list, so an
outcome reaches only the rows that it concerns. The last outcomes are kept sparsely, one after another in a ring, as
their active arms: those with a noticeable y.
"""

from typing import Final

import numpy as np
from numba import boolean, int32, njit

from spillover.kernels.build import gufunc
from spillover.kernels.drawing import ranked
from spillover.kernels.inner import BLOCK, allocating

CONCERNED: Final = 1  # a row that the last outcome reaches
SURPRISED: Final = 2  # and that did not predict it
# while an outcome is absorbed, added to these:
ACTIVE: Final = 4
REACHED: Final = 8  # by way of a candidate


@njit
def link(following, previous, j, node):
    """Put a slot at the head of the list of cause j: row * (k + 1) + place; place k of following[j] is the head."""
    width = following.shape[1]
    old = following[j, width - 1]
    following[node // width, node % width], previous[node // width, node % width] = old, -1
    following[j, width - 1] = node
    if old >= 0:
        previous[old // width, old % width] = node


@njit
def unlink(following, previous, j, node):
    width = following.shape[1]
    before, after = previous[node // width, node % width], following[node // width, node % width]
    if before >= 0:
        following[before // width, before % width] = after
    else:
        following[j, width - 1] = after
    if after >= 0:
        previous[after // width, after % width] = before


@gufunc(
    (int32[:, ::1], int32[:, ::1], int32[:, ::1], boolean[:]),
    "(n,k),(n,w),(n,w)->()",
    writes=("following", "previous"),
)
def link_candidates(cause, following, previous, linked):
    """The lists of all slots, from scratch."""
    linked[0] = True
    following[:], previous[:] = -1, -1
    n, k = cause.shape
    for i in range(n):
        for p in range(k):
            if cause[i, p] >= 0:
                link(following, previous, cause[i, p], i * (k + 1) + p)


@njit
def louder(y, faintest, found):
    """List the arms with |y| above `faintest`, in order, as far as there is room; returns how many there are."""
    n, room, size = y.shape[0], found.shape[0], 0
    for start in range(0, n, BLOCK):
        stop, loud = min(start + BLOCK, n), 0
        if stop == start + BLOCK:  # of most blocks no arm is
            for k in range(BLOCK):
                loud += abs(y[start + k]) > faintest
            if loud == 0:
                continue
        for j in range(start, stop):
            if abs(y[j]) > faintest:
                if size < room:
                    found[size] = j
                size += 1
    return size


@njit
def loudest(y, faintest, count, found):
    """List the arms with the largest |y| of the `count` above `faintest`, as many as there is room for, in order."""
    n, room = y.shape[0], found.shape[0]
    sizes, held, size = np.empty(count), 0, 0
    for j in range(n):
        if abs(y[j]) > faintest:
            sizes[held] = abs(y[j])
            held += 1
    bits = sizes.view(np.uint64)
    bits[0] = ranked(bits, room)
    border, tied = sizes[0], room
    for j in range(n):
        tied -= abs(y[j]) > border
    for j in range(n):
        take = abs(y[j]) > border
        if not take and tied > 0 and abs(y[j]) == border:  # the first of those at the border
            take = True
            tied -= 1
        if take:
            found[size] = j
            size += 1
    return border


@njit
def active_arms(y, faintest, found):
    """The arms with |y| above `faintest`, in order: the largest if there are too many; how many, and the border."""
    count = louder(y, faintest, found)
    if count <= found.shape[0]:
        return count, faintest
    return found.shape[0], loudest(y, faintest, count, found)


@njit(inline="always")
def concern(rows, concerned, touched, i):
    """Enter a row into the list of those that the last outcome reaches; a saved list may be full already."""
    if touched[i] == 0 and concerned[0] < rows.shape[0]:
        touched[i] = CONCERNED
        rows[concerned[0]] = i
        concerned[0] += 1


@njit
def keep_outcome(heard_arm, heard_y, heard_rest, heard_start, heard_count, heard_at, written, at, active, root, z, y):
    """Append the active arms of an outcome to the ring of the history; they are next to each other there."""
    room, size = heard_arm.shape[0], active.shape[0]
    begin = written[0] % room
    if begin + size > room:  # the end of the ring stays empty
        written[0] += room - begin
        begin = 0
    heard_start[at], heard_count[at] = written[0], size
    written[0] += size
    for q in range(size):
        j = active[q]
        heard_arm[begin + q], heard_y[begin + q], heard_rest[begin + q] = j, root * y[j], root * (y[j] - z[j])


@allocating
def candidate_arrival(
    cause, edge, gram, residual, following,
    heard_arm, heard_y, heard_rest, heard_start, heard_count, heard_at, written,
    active_at, active_y, active_rest, active_count, energy, clock, border,
    rows, concerned, touched, z, y, weight, faintest, least, most,
):  # fmt: skip
    """Add an outcome to the history and to the statistics of the rows that it concerns, which are listed in `rows`.

    most: active arms that are kept. A row that misses the outcome by more than `least` is surprised.
    """
    n, k = cause.shape
    root = np.sqrt(weight)
    clock[0] += 1
    at = clock[0] % heard_at.shape[0]
    room = np.empty(min(most, heard_arm.shape[0]), np.int64)
    size, border[0] = active_arms(y, faintest, room)
    active = room[:size]
    heard_at[at] = clock[0]
    keep_outcome(heard_arm, heard_y, heard_rest, heard_start, heard_count, heard_at, written, at, active, root, z, y)
    worth = max(least, border[0])
    for j in active:
        concern(rows, concerned, touched, j)
        if abs(y[j] - z[j]) > worth:
            touched[j] = SURPRISED
        touched[j] |= ACTIVE
        place = active_count[j] % active_at.shape[1]
        active_at[j, place], active_y[j, place], active_rest[j, place] = clock[0], root * y[j], root * (y[j] - z[j])
        active_count[j] += 1
        energy[j] += weight * y[j] * y[j]
    value, at_slot = np.empty(k), np.empty(k, np.int64)
    for q in range(size):
        node = following[active[q], k]
        for _ in range(n):  # an arm has a slot at most in every row
            if node < 0:
                break
            i = node // (k + 1)
            node = following[i, node % (k + 1)]
            if touched[i] & REACHED:
                continue
            concern(rows, concerned, touched, i)
            error, found = y[i] - z[i], 0
            for p in range(k):
                if cause[i, p] >= 0 and touched[cause[i, p]] & ACTIVE:
                    value[found], at_slot[found] = y[cause[i, p]], p
                    error -= edge[i, p] * value[found]
                    found += 1
            touched[i] = (SURPRISED if abs(error) > worth else CONCERNED) | REACHED | (touched[i] & ACTIVE)
            for a in range(found):
                p = at_slot[a]
                residual[i, p] += weight * error * value[a]
                for b in range(found):
                    gram[i, p, at_slot[b]] += weight * value[a] * value[b]
    for q in range(min(concerned[0], n)):
        touched[rows[q]] &= ~(ACTIVE | REACHED)

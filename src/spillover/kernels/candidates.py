"""The graph on candidate edges: what an outcome adds to the statistics, and which causes come into question.

Row i of the graph has at most k candidate causes, its slots (-1: empty). The slots of a cause are a linked list, so an
outcome reaches only the rows that it concerns. The last outcomes are kept sparsely, as their active arms: those with a
noticeable y.
"""

from typing import Final

import numpy as np
from numba import boolean, float64, int8, int32, int64, njit, uint64

from spillover.kernels.build import gufunc

LEAST_EDGE: Final = 1e-6  # an arm that would not get an edge above this explains nothing
OUT: Final = 1e9
KEPT: Final = 0.1  # share of the evidence beyond the history that stays when a row is built anew
# relative to what is worth a search:
FAINT: Final = 0.05  # y behind an edge of which the history holds nothing, so that it stays as it is
NOTHING: Final = 1e-7  # a miss that is rounding
CHANGED: Final = 2  # a touched row that was solved anew
PATIENCE: Final = 16  # searches of a row that stays unexplained; after them it waits, longer and longer
LONGEST_WAIT: Final = 16_000
NEXT_ROWS: Final = 7919  # where the search goes on after a round; a prime, so that it comes everywhere


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
def ranked(keys, rank):
    """The bits of the rank-th largest of some doubles >= 0, which are ordered like their bits; rewrites the keys.

    A radix selection: eight passes at most, each over the keys that agree with the answer so far.
    """
    size = keys.shape[0]
    count = np.empty(256, np.int64)
    for byte in range(7, -1, -1):
        shift = uint64(8 * byte)
        count[:] = 0
        for p in range(size):
            count[(keys[p] >> shift) & uint64(255)] += 1
        digit = 255
        while rank > count[digit]:
            rank -= count[digit]
            digit -= 1
        kept = 0
        for p in range(size):
            if (keys[p] >> shift) & uint64(255) == uint64(digit):
                keys[kept] = keys[p]
                kept += 1
        size = kept
        if size == 1:
            break
    return keys[0]


@njit
def active_arms(y, faintest, found):
    """The arms with |y| above `faintest`, in order: the largest if there are too many; how many, and the border."""
    n, room = y.shape[0], found.shape[0]
    count = 0
    for j in range(n):
        count += abs(y[j]) > faintest
    border, tied = faintest, 0
    if count > room:
        sizes = np.empty(count)
        held = 0
        for j in range(n):
            if abs(y[j]) > faintest:
                sizes[held] = abs(y[j])
                held += 1
        bits = sizes.view(np.uint64)
        bits[0] = ranked(bits, room)
        border, tied = sizes[0], room
        for j in range(n):
            tied -= abs(y[j]) > border
    size = 0
    for j in range(n):
        take = abs(y[j]) > border
        if not take and tied > 0 and abs(y[j]) == border:  # the first of those at the border
            take = True
            tied -= 1
        if take:
            found[size] = j
            size += 1
    return size, border


@gufunc(
    (
        *(int32[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1]),
        *(int32[:, ::1], int32[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int64[::1]),
        *(int64[:, ::1], float64[:, ::1], int64[::1], float64[::1], int64[::1], float64[::1], int8[::1]),
        *(float64[::1], float64[::1], float64, float64, boolean[:]),
    ),
    "(n,k),(n,k),(n,k,k),(n,k),(n,w),(m,c),(m,c),(m,c),(m),(m),(n,l),(n,l),(n),(n),(e),(e),(n),(n),(n),(),()->()",
    writes=(
        *("gram", "residual", "heard_arm", "heard_y", "heard_rest", "heard_count", "heard_at"),
        *("active_at", "active_y", "active_count", "energy", "clock", "border", "touched"),
    ),
)
def candidate_arrival(
    cause, edge, gram, residual, following, heard_arm, heard_y, heard_rest, heard_count, heard_at,
    active_at, active_y, active_count, energy, clock, border, touched, z, y, weight, faintest, absorbed,
):  # fmt: skip
    """Add an outcome to the history and to the statistics of the rows that it concerns, which become `touched`."""
    absorbed[0] = weight != 0.0
    if weight == 0.0:
        return
    n, k = cause.shape
    root = np.sqrt(weight)
    clock[0] += 1
    at = clock[0] % heard_arm.shape[0]
    active = np.empty(heard_arm.shape[1], np.int64)
    size, border[0] = active_arms(y, faintest, active)
    heard_count[at], heard_at[at] = size, clock[0]
    is_active, done = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for q in range(size):
        j = active[q]
        is_active[j], touched[j] = True, 1
        heard_arm[at, q], heard_y[at, q], heard_rest[at, q] = j, root * y[j], root * (y[j] - z[j])
        place = active_count[j] % active_at.shape[1]
        active_at[j, place], active_y[j, place] = clock[0], root * y[j]
        active_count[j] += 1
        energy[j] += weight * y[j] * y[j]
    value = np.empty(k)
    for q in range(size):
        node = following[active[q], k]
        for _ in range(n):  # an arm has a slot at most in every row
            if node < 0:
                break
            i = node // (k + 1)
            node = following[i, node % (k + 1)]
            if done[i]:
                continue
            done[i], touched[i] = True, 1
            error = y[i] - z[i]
            for p in range(k):
                value[p] = y[cause[i, p]] if cause[i, p] >= 0 and is_active[cause[i, p]] else 0.0
                error -= edge[i, p] * value[p]
            for p in range(k):
                if value[p] != 0.0:
                    residual[i, p] += weight * error * value[p]
                    for o in range(k):
                        gram[i, p, o] += weight * value[p] * value[o]


@njit
def place_of(arms, size, i):
    """Where arm i is in a sorted list; -1 if it is not."""
    low, high = 0, min(size, arms.shape[0])
    size = high
    while low < high:
        middle = (low + high) >> 1
        if arms[middle] < i:
            low = middle + 1
        else:
            high = middle
    return low if low < size and arms[low] == i else -1


@njit
def missed(heard_arm, heard_y, heard_rest, size, i, cause, edge):
    """What row i cannot explain of an outcome: y_i - z_i - sum of its edges times the y of its causes."""
    at = place_of(heard_arm, size, i)
    error = heard_rest[at] if at >= 0 else 0.0
    for p in range(cause.shape[0]):
        if cause[p] >= 0 and edge[p] != 0.0:
            at = place_of(heard_arm, size, cause[p])
            if at >= 0:
                error -= edge[p] * heard_y[at]
    return error


@njit
def older_energy(active_y, active_count, energy, i, j):
    """The sum of y_j^2 over the outcomes of j before its last ones: where i was quiet for sure, and the rest."""
    recent = active_y.shape[1]
    older = active_count[j] - recent
    if older <= 0:
        return 0.0, 0.0
    total = energy[j]
    for v in range(recent):
        total -= active_y[j, v] * active_y[j, v]
    total = max(total, 0.0)
    quiet = total * max(0.0, 1.0 - max(active_count[i] - recent, 0) / older)
    return quiet, total - quiet


@njit
def build_row(i, cause, edge, gram, residual, heard_arm, heard_y, heard_rest, heard_count, heard_at,
              active_at, active_y, active_count, energy, least):  # fmt: skip
    """The statistics of a row from the last outcomes of its candidates; of older evidence a share stays.

    Older evidence is a parabola around the edge as it is: it adds to the diagonal of G and nothing to the residual.
    """
    k, recent = cause.shape[0], active_at.shape[1]
    rounds = np.empty(k * recent, np.int64)
    count = 0
    for p in range(k):
        residual[p] = 0.0
        gram[p] = 0.0
        if cause[p] >= 0:
            for v in range(min(active_count[cause[p]], recent)):
                rounds[count] = active_at[cause[p], v]
                count += 1
    rounds = np.sort(rounds[:count])
    value = np.empty(k)
    for q in range(count):
        at = rounds[q] % heard_at.shape[0]
        if heard_at[at] != rounds[q] or (q > 0 and rounds[q] == rounds[q - 1]):
            continue
        size = heard_count[at]
        error = missed(heard_arm[at], heard_y[at], heard_rest[at], size, i, cause, edge)
        for p in range(k):
            found = place_of(heard_arm[at], size, cause[p]) if cause[p] >= 0 else -1
            value[p] = heard_y[at, found] if found >= 0 else 0.0
        for p in range(k):
            if value[p] != 0.0:
                residual[p] += error * value[p]
                for o in range(k):
                    gram[p, o] += value[p] * value[o]
    for p in range(k):
        if cause[p] < 0:
            continue
        quiet, unknown = older_energy(active_y, active_count, energy, i, cause[p])
        gram[p, p] += quiet + KEPT * unknown
        residual[p] -= quiet * edge[p]
        if gram[p, p] == 0.0:
            gram[p, p] = (FAINT * least) ** 2


@njit
def is_new(forbidden, cause, i, j, n):
    """Whether arm j may become a candidate of row i, and is none yet."""
    for p in range(cause.shape[0]):
        if cause[p] == j:
            return False
    return place_of(forbidden, forbidden.shape[0], int64(i) * n + j) < 0


@gufunc(
    (
        *(int32[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1], float64[:, ::1]),
        *(int32[:, ::1], int32[:, ::1]),
        *(int32[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int64[::1]),
        *(int64[:, ::1], float64[:, ::1], int64[::1], float64[::1], int64[::1], float64[::1], int8[::1]),
        *(
            int32[::1],
            float64[::1],
            int32[::1],
            int64[::1],
            float64,
            float64,
            boolean,
            boolean,
            int64,
            int64[:],
            int64[:],
        ),
    ),
    "(n,k),(n,k),(n,k,k),(n,k),(n,k),(n,w),(n,w),(m,c),(m,c),(m,c),(m),(m),(n,l),(n,l),(n),(n),(e),(e),(n),"
    "(n),(n),(n),(f),(),(),(),(),()->(),()",
    writes=("cause", "edge", "gram", "residual", "penalty", "following", "previous", "touched", "tried"),
)
def candidate_screening(
    cause, edge, gram, residual, penalty, following, previous, heard_arm, heard_y, heard_rest, heard_count, heard_at,
    active_at, active_y, active_count, energy, clock, border, touched, tried, pressure, required, forbidden, least,
    half, acyclic, signed, budget, entered, left,
):  # fmt: skip
    """Look for causes of what the touched rows cannot explain of the last outcome; only rows that found some stay so.

    The arm that violates the optimality conditions of the row's lasso most becomes a candidate, if there is one, so
    that repeated calls lead to the minimiser over all arms. It is looked for among the arms that were active with i, in
    the last outcomes in which i was, and has to pass in its own last outcomes. It takes the slot of a candidate without
    an edge, or drives the weakest one out. The search ends when it has gone through `budget` outcomes of single arms;
    that of the next outcome begins with other rows.
    """
    entered[0] = 0
    (n, k), recent = cause.shape, active_at.shape[1]
    now = clock[0] % heard_at.shape[0]
    searched = heard_at[now] == clock[0]
    size = min(heard_count[now], heard_arm.shape[1]) if searched else 0
    worth = max(least, border[0])
    fit, found, listed = np.zeros(n), np.empty(n, np.int64), np.zeros(n, np.bool_)
    start = clock[0] * NEXT_ROWS % n
    for turn in range(n):
        i = start + turn
        if i >= n:
            i -= n
        if touched[i] == 0:
            continue
        changed = touched[i] == CHANGED
        touched[i] = 0
        if budget <= 0 or size == 0:
            continue
        error = missed(heard_arm[now], heard_y[now], heard_rest[now], size, i, cause[i], edge[i])
        if not changed and abs(error) <= worth:
            tried[i] = 0
            continue
        if (clock[0] + i) % (tried[i] // PATIENCE + 1) != 0:
            continue
        tried[i] = min(tried[i] + 1, LONGEST_WAIT)
        oldest = clock[0] if active_count[i] > recent else 0
        for v in range(min(active_count[i], recent)):
            oldest = min(oldest, active_at[i, v])
        count = 0
        for v in range(min(active_count[i], recent)):
            at = active_at[i, v] % heard_at.shape[0]
            if heard_at[at] != active_at[i, v]:
                continue
            error = missed(heard_arm[at], heard_y[at], heard_rest[at], heard_count[at], i, cause[i], edge[i])
            if abs(error) <= NOTHING * least:
                continue
            for p in range(min(heard_count[at], heard_arm.shape[1])):
                j = heard_arm[at, p]
                if j >= n:
                    continue
                if not listed[j]:
                    found[count], listed[j] = j, True
                    count += 1
                fit[j] += error * heard_y[at, p]
            budget -= heard_count[at]
        best, best_score = -1, 0.0
        for q in range(count):
            j = found[q]
            slack = (abs(fit[j]) if signed else fit[j]) - half - pressure[i]
            fit[j], listed[j] = 0.0, False
            if slack <= 0.0 or j == i or (acyclic and j < i):
                continue
            own = 0.0
            for v in range(min(active_count[j], recent)):
                if active_at[j, v] >= oldest:
                    own += active_y[j, v] * active_y[j, v]
            if slack * slack <= best_score * own or not is_new(forbidden, cause[i], i, j, n):
                continue
            whole, own = 0.0, 0.0
            budget -= k * recent
            for v in range(min(active_count[j], recent)):
                at = active_at[j, v] % heard_at.shape[0]
                if heard_at[at] == active_at[j, v]:
                    error = missed(heard_arm[at], heard_y[at], heard_rest[at], heard_count[at], i, cause[i], edge[i])
                    whole += error * active_y[j, v]
                    own += active_y[j, v] * active_y[j, v]
            quiet, unknown = older_energy(active_y, active_count, energy, i, j)
            own += quiet + KEPT * unknown
            slack = (abs(whole) if signed else whole) - half - pressure[i]
            if slack > LEAST_EDGE * own and slack * slack > best_score * own:
                best, best_score = j, slack * slack / own
        if best < 0:
            continue
        place, weakest, least_score = -1, -1, best_score
        for p in range(required[i], k):
            if cause[i, p] < 0 or edge[i, p] == 0.0:
                place = p
            elif edge[i, p] * edge[i, p] * gram[i, p, p] < least_score:
                weakest, least_score = p, edge[i, p] * edge[i, p] * gram[i, p, p]
        if place >= 0:
            if cause[i, place] >= 0:
                unlink(following, previous, cause[i, place], i * (k + 1) + place)
            cause[i, place], edge[i, place], penalty[i, place] = best, 0.0, half
            link(following, previous, best, i * (k + 1) + place)
            gram[i, place], gram[i, :, place] = 0.0, 0.0
            build_row(i, cause[i], edge[i], gram[i], residual[i], heard_arm, heard_y, heard_rest, heard_count,
                      heard_at, active_at, active_y, active_count, energy, least)  # fmt: skip
        elif weakest >= 0:  # a penalty that no edge survives: the row is solved without it, and then it makes room
            part = abs(residual[i, weakest]) + abs(edge[i, weakest]) * gram[i, weakest, weakest]
            penalty[i, weakest] = OUT * (part + half)
        else:
            continue
        touched[i] = 1
        entered[0] += 1
    left[0] = budget

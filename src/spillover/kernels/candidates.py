"""The graph on candidate edges: what an outcome adds to the statistics, and which causes come into question.

Row i of the graph has at most k candidate causes, its slots (-1: empty). The slots of a cause are a linked list, so an
outcome reaches only the rows that it concerns. The last outcomes are kept sparsely, as their active arms: those with a
noticeable y.
"""

from typing import Final

import numpy as np
from numba import boolean, float64, int8, int32, int64, njit, uint64

from spillover.kernels.build import gufunc

FIT: Final = 0.5  # of what a row cannot explain, an arm must explain this share to become a candidate
WORTH_EDGE: Final = 1e-6  # edges below this are not looked for
ENTER_MOST: Final = 3  # arms become candidates of a row at a time
TOGETHER: Final = 2  # times that cause and effect were active together, where many arms come into question
TRIALS: Final = 3  # active outcomes of a candidate, after which it makes room if its edge is 0
KEPT: Final = 0.1  # share of the evidence beyond the history that stays when a row is built anew
# relative to what is worth a search:
FAINT: Final = 0.05  # y behind an edge of which the history holds nothing, so that it stays as it is
NOTHING: Final = 1e-7  # a miss that is rounding
CHANGED: Final = 2  # a touched row that was solved anew
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
        *(int32[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1], int32[:, ::1]),
        *(int32[:, ::1], int32[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int64[::1]),
        *(int64[:, ::1], float64[:, ::1], int64[::1], int64[::1], float64[::1], int8[::1]),
        *(float64[::1], float64[::1], float64, float64, boolean[:]),
    ),
    "(n,k),(n,k),(n,k,k),(n,k),(n,k),(n,w),(m,c),(m,c),(m,c),(m),(m),(n,l),(n,l),(n),(e),(e),(n),(n),(n),(),()->()",
    writes=(
        *("gram", "residual", "seen", "heard_arm", "heard_y", "heard_rest", "heard_count", "heard_at"),
        *("active_at", "active_y", "active_count", "clock", "border", "touched"),
    ),
)
def candidate_arrival(
    cause, edge, gram, residual, seen, following, heard_arm, heard_y, heard_rest, heard_count, heard_at,
    active_at, active_y, active_count, clock, border, touched, z, y, weight, faintest, absorbed,
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
                    seen[i, p] += 1
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
def build_row(i, cause, edge, gram, residual, seen, heard_arm, heard_y, heard_rest, heard_count, heard_at,
              active_at, active_count, least):  # fmt: skip
    """The statistics of a row from the last outcomes of its candidates; of older evidence a share stays.

    Older evidence is a parabola around the edge as it is: it adds to the diagonal of G and nothing to the residual.
    """
    k, recent = cause.shape[0], active_at.shape[1]
    before = np.empty(k)
    rounds = np.empty(k * recent, np.int64)
    count = 0
    for p in range(k):
        before[p] = gram[p, p]
        seen[p] = 0
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
                seen[p] += 1
                residual[p] += error * value[p]
                for o in range(k):
                    gram[p, o] += value[p] * value[o]
    for p in range(k):
        if edge[p] != 0.0:
            gram[p, p] += KEPT * max(before[p] - gram[p, p], 0.0)
            if gram[p, p] == 0.0:
                gram[p, p] = (FAINT * least) ** 2


@njit
def fit_share(fit, own, misses, signed):
    """Which share of the misses an arm explains: the squared correlation; 0 if the sign is wrong."""
    if own * misses <= 0.0 or (fit < 0.0 and not signed):
        return 0.0
    return fit * fit / (own * misses)


@njit
def insert(arms, scores, room, j, score):
    """Keep the `room` arms with the highest scores, highest first; of equal ones those that came first."""
    rank = room
    while rank > 0 and scores[rank - 1] < score:
        if rank < room:
            scores[rank], arms[rank] = scores[rank - 1], arms[rank - 1]
        rank -= 1
    if rank < room:
        scores[rank], arms[rank] = score, j


@njit
def is_forbidden(forbidden, pair):
    """Whether a pair, effect * n + cause, is in a sorted list."""
    return place_of(forbidden, forbidden.shape[0], pair) >= 0


@gufunc(
    (
        *(int32[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1], int32[:, ::1], float64[:, ::1]),
        *(int32[:, ::1], int32[:, ::1]),
        *(int32[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int64[::1]),
        *(int64[:, ::1], float64[:, ::1], int64[::1], int64[::1], float64[::1], int8[::1]),
        *(int32[::1], int64[::1], float64, float64, boolean, boolean, int64, int64[:]),
    ),
    "(n,k),(n,k),(n,k,k),(n,k),(n,k),(n,k),(n,w),(n,w),(m,c),(m,c),(m,c),(m),(m),(n,l),(n,l),(n),(e),(e),(n),"
    "(n),(f),(),(),(),(),()->()",
    writes=("cause", "edge", "gram", "residual", "seen", "penalty", "following", "previous", "touched"),
)
def candidate_screening(
    cause, edge, gram, residual, seen, penalty, following, previous, heard_arm, heard_y, heard_rest,
    heard_count, heard_at, active_at, active_y, active_count, clock, border, touched, required, forbidden, least, half,
    acyclic, signed, budget, entered,
):  # fmt: skip
    """Look for causes of what the touched rows cannot explain of the last outcome; only rows that found some stay so.

    Arm j is compared with row i over the last outcomes in which i was active: S = sum of e_i y_j, E = sum of e_i^2
    where j was active, and Q = sum of y_j^2 over j's own outcomes since then, so that those in which i was quiet count
    against it. At most `budget` rows are searched in a call; the next call goes on elsewhere.
    """
    entered[0] = 0
    n, k = cause.shape
    now = clock[0] % heard_at.shape[0]
    searched = heard_at[now] == clock[0]
    size = min(heard_count[now], heard_arm.shape[1]) if searched else 0
    worth = max(least, border[0])
    fit, found, listed = np.zeros(n), np.empty(n, np.int64), np.zeros(n, np.bool_)
    best_arm, best_score = np.empty(ENTER_MOST, np.int64), np.empty(ENTER_MOST)
    start = clock[0] * NEXT_ROWS % n
    for turn in range(n):
        i = start + turn
        if i >= n:
            i -= n
        if not touched[i]:
            continue
        changed = touched[i] == CHANGED
        touched[i] = 0
        if budget == 0 or size == 0:
            continue
        if not changed:
            if abs(missed(heard_arm[now], heard_y[now], heard_rest[now], size, i, cause[i], edge[i])) <= worth:
                continue
        room = 0
        for p in range(k):
            room += cause[i, p] < 0 or (p >= required[i] and edge[i, p] == 0.0)
        if room == 0:
            continue
        budget -= 1
        room = min(room, ENTER_MOST)
        oldest = clock[0]
        for v in range(min(active_count[i], active_at.shape[1])):
            oldest = min(oldest, active_at[i, v])
        if active_count[i] <= active_at.shape[1]:
            oldest = 0
        count = 0
        for v in range(min(active_count[i], active_at.shape[1])):
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
        best_arm[:], best_score[:] = -1, 0.0
        for q in range(count):
            j = found[q]
            slack = (abs(fit[j]) if signed else fit[j]) - half
            fit[j], listed[j] = 0.0, False
            if slack <= 0.0 or j == i or (acyclic and j < i):
                continue
            own = 0.0
            for v in range(min(active_count[j], active_at.shape[1])):
                if active_at[j, v] >= oldest:
                    own += active_y[j, v] * active_y[j, v]
            if slack * slack <= best_score[room - 1] * own:
                continue
            known = is_forbidden(forbidden, int64(i) * n + j)
            for p in range(k):
                known |= cause[i, p] == j
            if known:
                continue
            whole = 0.0
            own = 0.0
            for v in range(min(active_count[j], active_at.shape[1])):
                at = active_at[j, v] % heard_at.shape[0]
                if heard_at[at] == active_at[j, v]:
                    error = missed(heard_arm[at], heard_y[at], heard_rest[at], heard_count[at], i, cause[i], edge[i])
                    whole += error * active_y[j, v]
                    own += active_y[j, v] * active_y[j, v]
            slack = (abs(whole) if signed else whole) - half
            if slack > WORTH_EDGE * own:
                insert(best_arm, best_score, room, j, slack * slack / own)
        if best_arm[0] < 0:
            continue
        rank = 0
        for p in range(k):
            if rank == room or best_arm[rank] < 0:
                break
            if cause[i, p] >= 0 and p >= required[i] and edge[i, p] == 0.0:
                unlink(following, previous, cause[i, p], i * (k + 1) + p)
                cause[i, p] = -1
            if cause[i, p] < 0:
                gram[i, p], gram[i, :, p] = 0.0, 0.0
                cause[i, p], edge[i, p], penalty[i, p] = best_arm[rank], 0.0, half
                link(following, previous, best_arm[rank], i * (k + 1) + p)
                rank += 1
        build_row(i, cause[i], edge[i], gram[i], residual[i], seen[i], heard_arm, heard_y, heard_rest, heard_count,
                  heard_at, active_at, active_count, least)  # fmt: skip
        touched[i] = 1
        entered[0] += rank

"""The graph on candidate edges: what an outcome adds to the statistics.

Row i of the graph has at most k candidate causes, its slots (-1: empty). The slots of a cause are a linked list, so an
outcome reaches only the rows that it concerns. The last outcomes are kept sparsely, one after another in a ring, as
their active arms: those with a noticeable y.
"""

from typing import Final

import numpy as np
from numba import boolean, int32, int64, njit

from spillover.kernels.arithmetic import BLOCK
from spillover.kernels.compiling import gufunc
from spillover.kernels.decorators import allocating, bare
from spillover.kernels.drawing import ranked

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


LEAST_EDGE: Final = 1e-6  # an arm that would not get an edge above this explains nothing
OUT: Final = 1e9
KEPT: Final = 0.1  # share of the evidence beyond the history that stays when a row is built anew
# relative to what is worth a search:
FAINT: Final = 0.05  # y behind an edge of which the history holds nothing, so that it stays as it is
NOTHING: Final = 1e-7  # a miss that is rounding
SMALL: Final = 0.01  # a miss that does not count, relative to the largest one of the row
CLOSER: Final = 8  # arms that are looked at more closely in a search


@bare
def place_of(arms, i):
    """Where arm i is in a sorted list; -1 if it is not."""
    low, high = 0, arms.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if arms[middle] < i:
            low = middle + 1
        else:
            high = middle
    return low if low < arms.shape[0] and arms[low] == i else -1


@bare
def held(past, outcome):
    """The place of an outcome in the history; -1 if it is no longer there."""
    heard_arm, _, _, heard_start, _, heard_at, written = past
    at = outcome % heard_at.shape[0]
    there = heard_at[at] == outcome and heard_start[at] >= written[0] - heard_arm.shape[0]
    return at if there else -1


@njit(inline="always")  # it returns views, which must not be counted where its caller does not count
def active_in(past, at):
    """The active arms of an outcome in the history, their y, and their y - z."""
    heard_arm, heard_y, heard_rest, heard_start, heard_count, _, _ = past
    room = heard_arm.shape[0]
    begin = heard_start[at] % room
    end = min(begin + heard_count[at], room)
    return heard_arm[begin:end], heard_y[begin:end], heard_rest[begin:end]


@bare
def missed(past, at, i, cause, edge):
    """What row i cannot explain of an outcome: y_i - z_i - sum of its edges times the y of its causes."""
    arms, y, rest = active_in(past, at)
    place = place_of(arms, i)
    error = rest[place] if place >= 0 else 0.0
    for p in range(cause.shape[0]):
        if cause[p] >= 0 and edge[p] != 0.0:
            place = place_of(arms, cause[p])
            if place >= 0:
                error -= edge[p] * y[place]
    return error


@bare
def older_energy(activity, i, j):
    """The sum of y_j^2 over the outcomes of j before its last ones: where i was quiet for sure, and the rest."""
    _, active_y, _, active_count, energy = activity
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
def build_row(i, cause, edge, gram, residual, past, activity, least):
    """The statistics of a row from the last outcomes of its candidates; of older evidence a share stays.

    Older evidence is a parabola around the edge as it is: it adds to the diagonal of G and nothing to the residual.
    """
    active_at, _, _, active_count, _ = activity
    k, recent = cause.shape[0], active_at.shape[1]
    outcomes = np.empty(k * recent, np.int64)
    count = 0
    for p in range(k):
        residual[p] = 0.0
        gram[p] = 0.0
        if cause[p] >= 0:
            for v in range(min(active_count[cause[p]], recent)):
                outcomes[count] = active_at[cause[p], v]
                count += 1
    outcomes = np.sort(outcomes[:count])
    value = np.empty(k)
    for q in range(count):
        at = held(past, outcomes[q])
        if at < 0 or (q > 0 and outcomes[q] == outcomes[q - 1]):
            continue
        arms, y, _ = active_in(past, at)
        error = missed(past, at, i, cause, edge)
        for p in range(k):
            place = place_of(arms, cause[p]) if cause[p] >= 0 else -1
            value[p] = y[place] if place >= 0 else 0.0
        for p in range(k):
            if value[p] != 0.0:
                residual[p] += error * value[p]
                for o in range(k):
                    gram[p, o] += value[p] * value[o]
    for p in range(k):
        if cause[p] < 0:
            continue
        quiet, unknown = older_energy(activity, i, cause[p])
        gram[p, p] += quiet + KEPT * unknown
        residual[p] -= quiet * edge[p]
        if gram[p, p] == 0.0:
            gram[p, p] = (FAINT * least) ** 2


@bare
def is_new(forbidden, cause, i, j, n):
    """Whether arm j may become a candidate of row i, and is none yet."""
    for p in range(cause.shape[0]):
        if cause[p] == j:
            return False
    return place_of(forbidden, int64(i) * n + j) < 0


@njit(inline="always")
def first_kept(active_at, active_count, j):
    """The first outcome of arm j from which on all of its outcomes are kept."""
    first = 0
    if active_count[j] > active_at.shape[1]:
        first = active_at[j, 0]
        for v in range(active_at.shape[1]):
            first = min(first, active_at[j, v])
    return first


@bare
def note_misses(i, cause, edge, activity, latest, miss):
    """What the row misses of the outcomes from `since` on, which is returned, by their place in the history.

    miss: zeros, as long as the history; `clear_misses` restores them.
    """
    active_at, active_y, active_rest, active_count, _ = activity
    room, recent = miss.shape[0], active_at.shape[1]
    since = max(first_kept(active_at, active_count, i), latest - room + 1)
    for p in range(cause.shape[0]):
        if cause[p] >= 0 and edge[p] != 0.0:
            since = max(since, first_kept(active_at, active_count, cause[p]))
    for v in range(min(active_count[i], recent)):
        if active_at[i, v] >= since:
            miss[active_at[i, v] % room] += active_rest[i, v]
    for p in range(cause.shape[0]):
        j = cause[p]
        if j >= 0 and edge[p] != 0.0:
            for v in range(min(active_count[j], recent)):
                if active_at[j, v] >= since:
                    miss[active_at[j, v] % room] -= edge[p] * active_y[j, v]
    return since


@bare
def clear_misses(i, cause, edge, activity, miss):
    active_at, _, _, active_count, _ = activity
    for v in range(min(active_count[i], active_at.shape[1])):
        miss[active_at[i, v] % miss.shape[0]] = 0.0
    for p in range(cause.shape[0]):
        if cause[p] >= 0 and edge[p] != 0.0:
            for v in range(min(active_count[cause[p]], active_at.shape[1])):
                miss[active_at[cause[p], v] % miss.shape[0]] = 0.0


@bare
def gather_suspects(i, least, past, activity, miss, acyclic, suspects, evidence):
    """The arms that were active in outcomes that the row misses; how many, and how many outcomes of arms were read.

    evidence: (n, 2), zeros before; of each suspect the sum of miss times y, and of y^2, in these outcomes.
    """
    active_at, _, _, active_count, _ = activity
    recent, largest = min(active_count[i], active_at.shape[1]), 0.0
    for v in range(recent):
        largest = max(largest, abs(miss[active_at[i, v] % miss.shape[0]]))
    count, work = 0, active_at.shape[1]
    if largest <= NOTHING * least:
        return count, work
    for v in range(recent):
        at = active_at[i, v] % miss.shape[0]
        if abs(miss[at]) <= SMALL * largest:
            continue
        arms, y, _ = active_in(past, at)
        work += arms.shape[0]
        for q in range(arms.shape[0]):
            j, own = arms[q], y[q] * y[q]
            if j == i or (acyclic and j < i) or j >= evidence.shape[0] or own == 0.0:  # 0: it would be entered twice
                continue
            if evidence[j, 1] == 0.0:
                suspects[count] = j
                count += 1
            evidence[j, 0] += miss[at] * y[q]
            evidence[j, 1] += own
    return count, work


@bare
def likeliest(suspects, evidence, energy, hold, signed, listed, promise):
    """The suspects that can lower the row's objective most, best first, and by how much at most; how many.

    Outcomes before those that the row keeps count for an arm's y^2 with the least weight they can have.
    """
    found, room = 0, listed.shape[0]
    for j in suspects:
        fit, own = evidence[j, 0], evidence[j, 1]
        evidence[j, 0], evidence[j, 1] = 0.0, 0.0
        slack = (abs(fit) if signed else fit) - hold
        if slack <= 0.0:
            continue
        most = slack * slack / (own + KEPT * max(energy[j] - own, 0.0))
        if found == room and most <= promise[room - 1]:
            continue
        place = min(found, room - 1)
        while place > 0 and promise[place - 1] < most:
            listed[place], promise[place] = listed[place - 1], promise[place - 1]
            place -= 1
        listed[place], promise[place] = j, most
        found = min(found + 1, room)
    return found


@bare
def worth_of(i, j, cause, edge, past, activity, since, miss, hold, signed):
    """How much arm j lowers the row's objective, judged by all outcomes of the arm that are kept; 0 if not at all."""
    active_at, active_y, _, active_count, _ = activity
    fit, own = 0.0, 0.0
    for v in range(min(active_count[j], active_at.shape[1])):
        at = held(past, active_at[j, v])
        if at >= 0:
            error = miss[at] if active_at[j, v] >= since else missed(past, at, i, cause, edge)
            fit += error * active_y[j, v]
            own += active_y[j, v] * active_y[j, v]
    quiet, unknown = older_energy(activity, i, j)
    own += quiet + KEPT * unknown
    slack = (abs(fit) if signed else fit) - hold
    return slack * slack / own if slack > LEAST_EDGE * own else 0.0


@bare
def best_new_cause(
    i, causes, edges, forbidden, past, activity, latest, least, hold, acyclic, signed, miss, suspects, evidence, closer
):  # fmt: skip
    """The arm that violates the optimality conditions of row i most, how much it brings, and the work done.

    closer: room for the arms that are looked at more closely, and for what they promise.
    """
    n = evidence.shape[0]
    cause, edge = causes[i], edges[i]
    listed, promise = closer
    since = note_misses(i, cause, edge, activity, latest, miss)
    count, work = gather_suspects(i, least, past, activity, miss, acyclic, suspects, evidence)
    found = likeliest(suspects[:count], evidence, activity[4], hold, signed, listed, promise)
    best, most = -1, 0.0
    for q in range(found):
        if promise[q] > most and is_new(forbidden, cause, i, listed[q], n):
            brings = worth_of(i, listed[q], cause, edge, past, activity, since, miss, hold, signed)
            if brings > most:
                best, most = listed[q], brings
    clear_misses(i, cause, edge, activity, miss)
    return best, most, work


@njit
def enter_candidate(
    i, j, brings, cause, edge, gram, residual, penalty, following, previous, required, past, activity, least, half
):  # fmt: skip
    """Make arm j a candidate of row i, in the slot of one without an edge, or drive the weakest one out."""
    k = cause.shape[1]
    place, weakest, least_score = -1, -1, brings
    for p in range(required[i], k):
        strength = edge[i, p] * edge[i, p] * gram[i, p, p]
        if cause[i, p] < 0 or edge[i, p] == 0.0:
            place = p
            if cause[i, p] < 0:  # the first empty one, so that the slots in use are next to each other
                break
        elif strength < least_score:
            weakest, least_score = p, strength
    if place >= 0:
        if cause[i, place] >= 0:
            unlink(following, previous, cause[i, place], i * (k + 1) + place)
        cause[i, place], edge[i, place], penalty[i, place] = j, 0.0, half
        link(following, previous, j, i * (k + 1) + place)
        build_row(i, cause[i], edge[i], gram[i], residual[i], past, activity, least)
    elif weakest >= 0:  # a penalty that no edge survives: the row is solved without it, and then it makes room
        part = abs(residual[i, weakest]) + abs(edge[i, weakest]) * gram[i, weakest, weakest]
        penalty[i, weakest] = OUT * (part + half)
    return place >= 0 or weakest >= 0

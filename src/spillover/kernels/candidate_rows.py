"""The rows of the graph on candidate edges: each a small lasso of its own; and the weights, by pushing changes on."""

from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.candidates import CLOSER, SURPRISED, active_in, best_new_cause, enter_candidate, held
from spillover.kernels.decorators import allocating, bare, within
from spillover.kernels.graph import cholesky_solve, extend_cholesky, room_for_solving, solve_row, solve_signed_row

# A row is solved again once one of its optimality conditions is violated by this, relative to G_jj: about the error of
# an edge. It is larger than in `graph.py`, because every outcome moves the edges of many rows by less.
RESOLVE_TOLERANCE: Final = 1e-4
SOLVED: Final = 1e-9  # and then to this accuracy at least
PUSHED: Final = 1e-15  # changes of a weight below this are not pushed on
PATIENCE: Final = 16  # searches of a row that stays unexplained; after them it waits, longer and longer
LONGEST_WAIT: Final = 16_000
NEXT_ROWS: Final = 7919  # where the search goes on after a round; a prime, so that it comes everywhere


@bare
def push(weights, cause, edge, moved, change, queued, waiting):
    """Add the changes of weights in a queue, and what follows from them: w_j = 1 + sum of A[i, j] w_i.

    moved: (n), its first `waiting` arms are the queue, a ring; `queued` says who is in it. change: what to add to each.
    """
    n, k = cause.shape
    head = 0
    while waiting > 0:
        i = moved[head]
        head = head + 1 if head + 1 < n else 0
        waiting -= 1
        amount = change[i]
        change[i], queued[i] = 0.0, False
        weights[i] += amount
        for p in range(k):
            j = cause[i, p]
            if j < 0 or abs(amount * edge[i, p]) <= PUSHED:
                continue
            change[j] += amount * edge[i, p]
            if not queued[j]:
                tail = head + waiting
                moved[tail if tail < n else tail - n] = j
                queued[j] = True
                waiting += 1


@bare
def push_errors(weights, cause, edge, moved, change, queued):
    """Push what rounding has left: by how much each weight differs from 1 + sum of A[i, j] w_i."""
    n, k = cause.shape
    for j in range(n):
        change[j] = 1.0 - weights[j]
    for i in range(n):
        for p in range(k):
            if cause[i, p] >= 0:
                change[cause[i, p]] += edge[i, p] * weights[i]
    for j in range(n):
        moved[j], queued[j] = j, True
    push(weights, cause, edge, moved, change, queued, n)


@bare
def step_on_support(gram, residual, row, penalty, bound, support, factor, step):
    """The minimiser on the support of a row, by one step of Newton's method; False if it does not apply.

    Nothing changes unless the step ends inside a >= 0 and below the bound.
    """
    size, total = 0, 0.0
    for p in range(row.shape[0]):
        if row[p] > 0.0:
            support[size], step[size] = p, residual[p] - penalty[p]
            size += 1
    if size == 0 or extend_cholesky(gram, support, 0, size, factor, 0.0):
        return False
    cholesky_solve(factor, size, step)
    for q in range(size):
        after = row[support[q]] + step[q]
        if after <= 0.0:
            return False
        total += after
    if total > bound:
        return False
    for q in range(size):
        row[support[q]] += step[q]
        for p in range(row.shape[0]):
            residual[p] -= gram[support[q], p] * step[q]
    return True


@within
def is_settled(i, cause, edge, gram, residual, penalty, pressure, signed, tolerance):
    """Whether the optimality conditions of row i hold, each within `tolerance` of G_jj."""
    for p in range(cause.shape[1]):
        if cause[i, p] < 0:  # empty slots would have to be fetched from memory
            continue
        if not signed:
            off = residual[i, p] - penalty[i, p] - pressure
            off = abs(off) if edge[i, p] > 0.0 else off
        elif edge[i, p] != 0.0:
            hold = penalty[i, p] + pressure
            off = abs(residual[i, p] - hold) if edge[i, p] > 0.0 else abs(residual[i, p] + hold)
        else:
            off = abs(residual[i, p]) - (penalty[i, p] + pressure)
        if off > 0.0 and off > tolerance * gram[i, p, p]:
            return False
    return True


@bare
def resolve(i, cause, edge, gram, residual, pressure, penalty, bound, signed, room, signs, turned):
    """Solve a row."""
    if signed:
        pressure[i] = solve_signed_row(gram[i], residual[i], edge[i], penalty[i], bound, room, signs, turned)
        return
    stepped = step_on_support(gram[i], residual[i], edge[i], penalty[i], bound, room[0], room[2], room[3])
    if stepped and is_settled(i, cause, edge, gram, residual, penalty, 0.0, signed, SOLVED):
        pressure[i] = 0.0
    else:
        pressure[i] = solve_row(gram[i], residual[i], edge[i], penalty[i], bound, room)


@bare
def solve_and_push(rows, cause, edge, gram, residual, pressure, weights, penalty, bound, signed, scratch, small):
    """`solve_rows`, with memory for one row."""
    before, room, signs, turned = small
    moved, change, queued = scratch
    solved, waiting = 0, 0
    for q in range(rows.shape[0]):
        i = rows[q]
        if is_settled(i, cause, edge, gram, residual, penalty, pressure[i], signed, RESOLVE_TOLERANCE):
            continue
        for p in range(cause.shape[1]):
            before[p] = edge[i, p]
        resolve(i, cause, edge, gram, residual, pressure, penalty, bound, signed, room, signs, turned)
        solved += 1
        for p in range(cause.shape[1]):
            j = cause[i, p]
            if edge[i, p] != before[p] and j >= 0:
                change[j] += (edge[i, p] - before[p]) * weights[i]
                if not queued[j]:
                    moved[waiting], queued[j] = j, True
                    waiting += 1
    # once for all rows: where edges form cycles, every change goes through most of the graph
    push(weights, cause, edge, moved, change, queued, waiting)
    return solved


@njit
def solve_rows(rows, cause, edge, gram, residual, pressure, weights, penalty, bound, signed, scratch):
    """Solve the rows of a list that are not settled, and push the changes of their edges on; returns how many."""
    k = cause.shape[1]
    small = np.empty(k), room_for_solving(k), np.empty(k), np.empty((k, k))
    return solve_and_push(
        rows, cause, edge, gram, residual, pressure, weights, penalty, bound, signed, scratch, small
    )  # fmt: skip


@bare
def locate(arms, where):
    """Note the place of each arm in a list; arms that are not in it keep what they had."""
    for q in range(arms.shape[0]):
        if arms[q] < where.shape[0]:
            where[arms[q]] = q


@bare
def missed_now(i, cause, edge, arms, y, rest, where):
    """What row i cannot explain of the last outcome, whose active arms are at the places `where`."""
    size = arms.shape[0]
    place = where[i]
    error = rest[place] if 0 <= place < size and arms[place] == i else 0.0
    for p in range(cause.shape[1]):
        if cause[i, p] >= 0 and edge[i, p] != 0.0:
            place = where[cause[i, p]]
            if 0 <= place < size and arms[place] == cause[i, p]:
                error -= edge[i, p] * y[place]
    return error


@allocating
def solve_candidates(
    cause, edge, gram, residual, pressure, weights, penalty, following, previous,
    heard_arm, heard_y, heard_rest, heard_start, heard_count, heard_at, written,
    active_at, active_y, active_rest, active_count, energy, clock, border,
    rows, concerned, touched, tried, required, forbidden, moved, where, queued, change, evidence,
    least, half, bound, acyclic, signed, passes, budget,
):  # fmt: skip
    """Solve the rows that the last outcome concerns, and look for causes of what they cannot explain of it.

    The arm that violates the optimality conditions of a row's lasso most becomes a candidate, and the row is solved
    again; up to `passes` times. The search ends when it has gone through `budget` outcomes of single arms; that of the
    next outcome begins with other rows.
    moved, where, queued, change, evidence: scratch memory; the last three are zeros, and are left so.
    """
    n = cause.shape[0]
    count = min(concerned[0], n)
    if count == 0:
        return
    past = (heard_arm, heard_y, heard_rest, heard_start, heard_count, heard_at, written)
    activity = (active_at, active_y, active_rest, active_count, energy)
    scratch = (moved, change, queued)
    closer = (np.empty(CLOSER, np.int64), np.empty(CLOSER))
    to_solve = (cause, edge, gram, residual, pressure, weights, penalty, bound, signed, scratch)
    solved = solve_rows(rows[:count], *to_solve)
    now = held(past, clock[0])
    waiting = np.empty(count, np.int32)
    start, size = clock[0] * NEXT_ROWS % count, 0
    for q in range(count):  # in another order each time, as the search may end early
        waiting[q] = rows[start + q if start + q < count else start + q - count]
    if now >= 0:
        arms, y, rest = active_in(past, now)
        locate(arms, where)
        miss, size = np.zeros(heard_at.shape[0]), count
    worth = max(least, border[0])
    for turn in range(passes):
        kept = 0
        for q in range(size):
            i = waiting[q]
            if budget <= 0:
                break
            if turn == 0:
                error = abs(missed_now(i, cause, edge, arms, y, rest, where))
                if error <= worth:
                    tried[i] = 0
                    if touched[i] != SURPRISED:
                        continue
                elif (clock[0] + i) % (tried[i] // PATIENCE + 1) != 0:
                    continue
                tried[i] = min(tried[i] + 1, LONGEST_WAIT)
            j, brings, work = best_new_cause(
                i, cause, edge, forbidden, past, activity, clock[0], least, half + pressure[i], acyclic, signed, miss,
                moved, evidence, closer,
            )  # fmt: skip
            budget -= work
            if j >= 0 and enter_candidate(
                i, j, brings, cause, edge, gram, residual, penalty, following, previous, required, past, activity,
                least, half,
            ):  # fmt: skip
                waiting[kept] = i
                kept += 1
        size = kept
        if size == 0:
            break
        solved += solve_rows(waiting[:size], *to_solve)
    for q in range(count):
        touched[rows[q]] = 0
    concerned[0] = 0
    if clock[0] % n == 0 and solved > 0:  # now and then, so that rounding does not add up
        push_errors(weights, cause, edge, *scratch)

"""Whole rounds of the policies in `kernels/rounds.py`: one call plays many rounds of a learner.

What it does in a round are the functions that the kernels of other files are made of, or the same operations on four
arms at a time, so both give the same numbers, bit for bit.
"""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit, uint64

from spillover.kernels.averages import add_pulls, add_rewards
from spillover.kernels.build import gufunc
from spillover.kernels.drawing import SMALL_BUDGET, still_top, take_top
from spillover.kernels.gram import absorb_outcome
from spillover.kernels.graph import (
    set_tolerances,
    signed_row_margin,
    solve_signed_row,
    update_weights,
)
from spillover.kernels.inner import NONE_YET, bare, within
from spillover.kernels.lanes import LANES
from spillover.kernels.outcomes import COURSE_LAYOUT, COURSE_SIGNATURE, RINGS, bring_outcome, columns_of
from spillover.kernels.rounds import (
    ASSUMED_DELAY,
    BONUS_LAYOUT,
    CHOICE,
    GRAPH,
    IN_RANGE,
    NO_GRAPH,
    PENDING,
    SIGNED,
    bounds_of_means,
    date_of,
    take_snapshot,
    weigh,
)
from spillover.kernels.row_group import rank, room_for_group, solve_due
from spillover.kernels.row_solver import room_for_solving, row_margin
from spillover.kernels.scores import score_arms
from spillover.kernels.world import fault_of, is_fine

MOST_OF_MARGIN: Final = 0.99  # how far a row may move before it is looked at again
ROUNDING: Final = 1e-15  # of a residual in an update, relative to what it is made of, with some to spare


@njit(inline="always")
def note_moves(y, errors, left, charge):
    """Take from what is left to each row how far its residual may have moved; returns whether a row has none left."""
    largest, spent = 0.0, False
    for j in range(y.shape[0]):
        largest = max(largest, abs(y[j]))
    for i in range(y.shape[0]):
        left[i] -= abs(errors[i]) * largest + charge[i]
        spent |= left[i] <= 0.0
    return spent


@njit(inline="always")
def is_off(residual, penalty, pressure, allowed, causes, size):
    """Whether a row violates the condition of its first cause, if that is known: then its margin is negative.

    With noise in outcomes nearly every row does, in every round.
    """
    j = causes[0]
    return size > 0 and abs(residual[j] - penalty[j] - pressure) > allowed[j]


@within
def fit_spent(
    gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, signed, left, charge, allowed, entering,
    due, room, group, signs, turned,
):  # fmt: skip
    """`fit`, without the rows that have something left: they were optimal, and cannot have moved far enough since.

    What is left to a row is most of its distance from a violation when it was last looked at. Tolerances only grow
    with G, and the rest is far more than all rounding.
    """
    n, count, causes, sizes, ranked = weights.shape[0], NONE_YET, group[1], group[2], group[4]
    set_tolerances(gram, allowed, entering)
    for place in range(n):
        i = ranked[place]
        if left[i] > 0.0:
            continue
        if is_off(residual[i], penalty[i], pressure[i], allowed, causes[i], sizes[i]):
            due[count] = i
            count += 1
            continue
        if signed:
            margin = signed_row_margin(allowed, residual, adjacency, penalty, pressure[i], i)
        else:
            margin = row_margin(allowed, residual, adjacency, penalty, pressure[i], i)
        if margin >= 0.0:
            scale = pressure[i]
            for j in range(n):
                scale = max(scale, allowed[j])
                if penalty[i, j] < math.inf:
                    scale = max(scale, penalty[i, j] + pressure[i])
            left[i], charge[i] = MOST_OF_MARGIN * margin, ROUNDING * scale
            continue
        due[count] = i
        count += 1
    if signed:
        for d in range(count):
            i = due[d]
            pressure[i] = solve_signed_row(
                gram, residual[i], adjacency[i], penalty[i], bound, room, signs, turned
            )  # fmt: skip
    elif solve_due(gram, residual, adjacency, pressure, penalty, bound, entering, due, count, room, group) > 0:
        rank(sizes, ranked)
    if count > 0:
        update_weights(adjacency, weights, acyclic, turned)


@bare
def play_learner(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, discount, width, unit, rules,
    weights, plan, key, gram, residual, adjacency, pressure, penalty, bound, acyclic, powers, growths,
    course, concentration, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, recorded, snapshots,
    lines, columns, best, due, room, group, turned,
):  # fmt: skip
    """`play_rounds` of one learner, in memory that it is given; returns the clock and the fault."""
    n, mask = sums.shape[0], ring_x.shape[0] - 1
    scores, allowed, entering, errors, left, charge, signs = (
        lines[0], lines[1], lines[2], lines[3], lines[4], lines[5], lines[6],
    )  # fmt: skip
    low, high, log_discount = reward_range[0], reward_range[1], math.log(discount)
    scale = high - low if unit == 0.0 else unit
    for i in range(n):
        left[i], charge[i] = 0.0, 0.0
    for r in range(delays.shape[0]):
        t = now + r + 1
        slot = t & mask
        x = ring_x[slot]
        if t <= n:
            for i in range(n):
                x[i] = plan[t - 1, i]
        else:
            wide = width * (budget + 1) * math.log(max(clock, 1.0))
            if n >= LANES and wide > 0.0:
                score_arms(
                    sums, counts, stamps, pulls, latest, t - 1, wide, low, high, scale, log_discount, rules[PENDING],
                    rules[IN_RANGE], weights, growths, scores,
                )  # fmt: skip
            else:
                bounds_of_means(
                    sums, counts, stamps, pulls, latest, t - 1, clock, budget, reward_range, log_discount, width, unit,
                    rules, growths, scores,
                )  # fmt: skip
                weigh(weights, scores)
            if not still_top(scores, budget, ring_x[(t - 1) & mask], x):
                take_top(scores, budget, key, uint64(0), uint64(t), CHOICE, best, x)
        clock = discount * clock + 1.0
        if rules[PENDING]:
            add_pulls(pulls, latest, x, t, log_discount, powers)
        played = bring_outcome(
            r, t, key, course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
            x, ring_z[slot], ring_y[slot], first, last, following,
        )  # fmt: skip
        while played != 0:
            home = played & mask
            x, z, y = ring_x[home], ring_z[home], ring_y[home]
            if not is_fine(x, z, y, low, high):
                return clock, fault_of(x, z, y, reward_range, t - played, t)
            add_rewards(
                sums, counts, stamps, x, z, date_of(played, t, rules[ASSUMED_DELAY]), log_discount, powers
            )  # fmt: skip
            if rules[GRAPH] != NO_GRAPH:
                absorb_outcome(gram, residual, adjacency, z, y, 1.0, acyclic, errors)
                if note_moves(y, errors, left, charge):
                    fit_spent(
                        gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, rules[GRAPH] == SIGNED,
                        left, charge, allowed, entering, due, room, group, signs, turned,
                    )  # fmt: skip
            played = following[home]
        take_snapshot(adjacency, recorded[r], snapshots)
    return clock, 0


@gufunc(
    (
        *(float64[::1], float64[::1], int64[::1], float64[::1], int64[::1]),
        *(int64, float64, int64, float64[::1], float64, float64, float64, int64[::1]),
        *(float64[::1], boolean[:, ::1], uint64[::1]),
        *(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1], float64, boolean),
        *(float64[::1], float64[::1]),
        *COURSE_SIGNATURE,
        *(int64[::1], float64[:, :, ::1]),
        *(float64[:], int64[:]),
    ),
    f"{BONUS_LAYOUT},(n),(n,n),(k),(n,n),(n,n),(n,n),(n),(n,n),(),(),(l),(l),{COURSE_LAYOUT},(t),(s,n,n)->(),(t)",
    writes=(
        *("sums", "counts", "stamps", "pulls", "latest", "weights", "gram", "residual", "adjacency", "pressure"),
        *(*RINGS, "snapshots"),
    ),
)
def play_rounds(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, discount, width, unit, rules,
    weights, plan, key, gram, residual, adjacency, pressure, penalty, bound, acyclic, powers, growths,
    course, concentration, total, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, recorded, snapshots, clock_after, faults,
):  # fmt: skip
    """Play the rounds now + 1, ... of one learner; all `faults` are the first thing wrong with an outcome.

    Decisions and outcomes go into the rings. In rounds with `recorded` >= 0 the graph is copied to that snapshot.
    There is a fault for each round because NumPy lets other threads run only beside kernels that return 500 numbers.
    """
    n = sums.shape[0]
    clock_after[0], fault = play_learner(
        sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, discount, width, unit, rules,
        weights, plan, key, gram, residual, adjacency, pressure, penalty, bound, acyclic, powers, growths,
        course, concentration, rewards, shocks, baseline, delays, slowest, silent, horizon,
        ring_x, ring_z, ring_y, first, last, following, recorded, snapshots,
        np.empty((7, n)), columns_of(total), np.empty(min(budget, SMALL_BUDGET)), np.empty(n, np.int64),
        room_for_solving(n), room_for_group(n), np.empty((n, n)),
    )  # fmt: skip
    for r in range(faults.shape[0]):
        faults[r] = fault

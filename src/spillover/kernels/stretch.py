"""Whole rounds of the policies in `kernels/rounds.py`: one call plays many rounds of a learner.

What it does in a round are the functions that the kernels of other files are made of, so both give the same numbers,
bit for bit.
"""

import math

import numpy as np
from numba import boolean, float64, int64, uint64

from spillover.kernels.averages import add_pulls, add_rewards
from spillover.kernels.build import gufunc
from spillover.kernels.drawing import SMALL_BUDGET, still_top, take_top
from spillover.kernels.gram import absorb_outcome
from spillover.kernels.graph import note_moves, refit, room_for_refit
from spillover.kernels.inner import bare
from spillover.kernels.outcomes import COURSE_LAYOUT, COURSE_SIGNATURE, RINGS, bring_outcome, columns_of
from spillover.kernels.rounds import (
    ASSUMED_DELAY,
    BONUS_LAYOUT,
    CHOICE,
    GRAPH,
    NO_GRAPH,
    PENDING,
    SIGNED,
    bounds_of_means,
    date_of,
    take_snapshot,
    weigh,
)
from spillover.kernels.world import fault_of, is_fine


@bare
def play_learner(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, discount, width, unit, rules,
    weights, plan, key, gram, residual, adjacency, pressure, penalty, bound, acyclic, powers, growths,
    course, concentration, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, recorded, snapshots,
    lines, columns, best, room,
):  # fmt: skip
    """`play_rounds` of one learner, in memory that it is given; returns the clock and the fault."""
    n, mask = sums.shape[0], ring_x.shape[0] - 1
    scores, errors, log_discount = lines[0], lines[1], math.log(discount)
    for r in range(delays.shape[0]):
        t = now + r + 1
        slot = t & mask
        x = ring_x[slot]
        if t <= n:
            for i in range(n):
                x[i] = plan[t - 1, i]
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
            if not is_fine(x, z, y, reward_range[0], reward_range[1]):
                return clock, fault_of(x, z, y, reward_range, t - played, t)
            add_rewards(
                sums, counts, stamps, x, z, date_of(played, t, rules[ASSUMED_DELAY]), log_discount, powers
            )  # fmt: skip
            if rules[GRAPH] != NO_GRAPH:
                absorb_outcome(gram, residual, adjacency, z, y, 1.0, acyclic, errors)
                if note_moves(y, errors, room):
                    refit(
                        gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, rules[GRAPH] == SIGNED,
                        room, True,
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
        np.empty((2, n)), columns_of(total), np.empty(min(budget, SMALL_BUDGET)), room_for_refit(n),
    )  # fmt: skip
    for r in range(faults.shape[0]):
        faults[r] = fault

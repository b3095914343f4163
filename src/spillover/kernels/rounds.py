"""Whole rounds of the policies that rank arms by the weights of a graph times an upper bound of their means.

One call plays many rounds of a learner. What it does in a round are the functions that the kernels of other files are
made of, so both give the same numbers, bit for bit.
"""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit, uint64

from spillover.kernels.averages import add_pulls, add_rewards, pending_bounds, upper_bounds
from spillover.kernels.build import gufunc
from spillover.kernels.drawing import take_top
from spillover.kernels.gram import absorb_row
from spillover.kernels.graph import (
    row_is_optimal,
    set_tolerances,
    signed_row_is_optimal,
    solve_again,
    solve_signed_row,
    update_weights,
)
from spillover.kernels.world import fault_of, spread_rewards

# positions in `rules`
PENDING: Final = 0  # the bonus counts pulls in flight
IN_RANGE: Final = 1  # arms are forgotten by the width of the reward range; otherwise by that of a range of 1
FROM_ARRIVAL: Final = 2  # rewards are discounted from their arrival, not from the round of their action
GRAPH: Final = 3  # one of the following
NO_GRAPH: Final = 0
UNSIGNED: Final = 1
SIGNED: Final = 2

CHOICE: Final = np.uint64(3)  # the purpose of the streams that ties are broken with, see `rng.Purpose`


@njit(inline="always")
def bounds_of_means(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, log_discount, width, unit, rules, growths,
    index,
):  # fmt: skip
    """Each arm's mean plus its bonus, in the units of the rewards; a unit of 0 is the width of the reward range."""
    low, high = reward_range[0], reward_range[1]
    if unit == 0.0:
        unit = high - low
    width *= budget + 1
    if rules[PENDING]:
        pending_bounds(
            sums, counts, stamps, pulls, latest, now, clock, log_discount, width, unit, low / unit, high / unit,
            growths, index,
        )  # fmt: skip
    else:
        range_width = high / unit - low / unit if rules[IN_RANGE] else 1.0
        upper_bounds(
            sums, counts, stamps, now, clock, log_discount, width, unit, math.inf, range_width, growths, index
        )  # fmt: skip
    for i in range(index.shape[0]):
        index[i] *= unit


BONUS_SIGNATURE: Final = (
    *(float64[:], float64[:], int64[:], float64[:], int64[:]),
    *(int64, float64, int64, float64[:], float64, float64, float64, int64[:]),
)
BONUS_LAYOUT: Final = "(n),(n),(n),(n),(n),(),(),(),(r),(),(),(),(f)"


@gufunc((*BONUS_SIGNATURE, float64[:]), f"{BONUS_LAYOUT}->(n)")
def means_index(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, discount, width, unit, rules, index
):  # fmt: skip
    """The index of NDC-SEM and its relatives; `width` is that of the bonus for each arm of budget + 1."""
    bounds_of_means(
        sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, math.log(discount), width, unit, rules,
        sums[:0], index,
    )  # fmt: skip


@njit(inline="always")
def weigh(weights, index):
    """Weights times index, in place; an arm of weight 0 scores 0 even if its index is infinite."""
    for i in range(index.shape[0]):
        index[i] = weights[i] * index[i] if weights[i] != 0.0 else 0.0


@gufunc(
    (*BONUS_SIGNATURE, float64[:], boolean[:, :], float64[:], uint64[:], uint64, uint64, uint64, boolean[:]),
    f"{BONUS_LAYOUT},(n),(p,n),(l),(k),(),(),()->(n)",
)
def choose_by_means(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, discount, width, unit, rules,
    weights, plan, growths, key, call, at_round, purpose, x,
):  # fmt: skip
    """The decision: in the first rounds that of the plan, then the arms with the highest weights times index."""
    n = x.shape[0]
    if now < plan.shape[0]:
        for i in range(n):
            x[i] = plan[now, i]
        return
    scratch = np.empty(n + budget)
    scores, best = scratch[:n], scratch[n:]
    bounds_of_means(
        sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, math.log(discount), width, unit, rules,
        growths, scores,
    )  # fmt: skip
    weigh(weights, scores)
    take_top(scores, budget, key, call, at_round, purpose, best, x)


@gufunc(
    (
        *(float64[::1], float64[::1], int64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1]),
        *(boolean[:], float64[::1], float64[::1], int64, boolean, int64, float64[:], float64, int64[:], int64[:]),
    ),
    "(n),(n),(n),(n,n),(n,n),(n,n),(n),(n),(n),(),(),(),(r),(),(f)->()",
    writes=("sums", "counts", "stamps", "gram", "residual"),
)
def learn_by_means(
    sums, counts, stamps, gram, residual, adjacency, x, z, y, age, arrived, now, reward_range, discount, rules, fault
):  # fmt: skip
    """Learn an outcome, without solving for the graph; if something is wrong with it, `fault` says so, and no more."""
    fault[0] = 0
    if not arrived:
        return
    fault[0] = fault_of(x, z, y, reward_range, age, now)
    if fault[0] == 0:
        played_at = now if rules[FROM_ARRIVAL] else now - age
        add_rewards(sums, counts, stamps, x, z, played_at, math.log(discount), sums[:0])
        if rules[GRAPH] != NO_GRAPH:
            for i in range(y.shape[0]):
                absorb_row(gram, residual, adjacency, z, y, 1.0, i, 0)


@njit(inline="always")
def post(t, late, horizon, first, last, following):
    """Enter round t into the list of the round in which its outcome arrives, if that is within the horizon.

    first, last: of the list of each round of arrival; following: the next one in the list of each round of play. All
    are rings, whose length is a power of 2; 0 is no round.
    """
    if late <= horizon - t:
        mask = first.shape[0] - 1
        slot = (t + late) & mask
        following[t & mask] = 0
        if first[slot] == 0:
            first[slot] = t
        else:
            following[last[slot] & mask] = t
        last[slot] = t


@njit(inline="always")
def fit_moved(
    gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, signed, settled, allowed, entering
):  # fmt: skip
    """`fit`, without the rows that are settled: optimal when they were last looked at, with the residual they have now.

    Tolerances only grow with G, so such a row is optimal still.
    """
    changed = False
    set_tolerances(gram, allowed, entering)
    for i in range(weights.shape[0]):
        if settled[i]:
            continue
        if signed:
            settled[i] = signed_row_is_optimal(allowed, residual, adjacency, penalty, pressure[i], i)
        else:
            settled[i] = row_is_optimal(allowed, residual, adjacency, penalty, pressure[i], i)
        if settled[i]:
            continue
        changed = True
        if signed:
            pressure[i] = solve_signed_row(gram, residual[i], adjacency[i], penalty[i], bound)
        else:
            pressure[i] = solve_again(gram, residual, adjacency, penalty, bound, entering, i)
    if changed:
        update_weights(adjacency, weights, acyclic)


@gufunc(
    (
        *(float64[::1], float64[::1], int64[::1], float64[::1], int64[::1]),
        *(int64, float64, int64, float64[::1], float64, float64, float64, int64[::1]),
        *(float64[::1], boolean[:, ::1], uint64[::1]),
        *(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1], float64, boolean),
        *(float64[::1], float64[::1]),
        *(float64[:, :], float64[:, :], float64[:, :], float64[:, :], int64[:], int64),
        *(boolean[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int64[::1], int64[::1]),
        *(int64[::1], float64[:, :, ::1]),
        *(float64[:], int64[:]),
    ),
    f"{BONUS_LAYOUT},(n),(n,n),(k),(n,n),(n,n),(n,n),(n),(n,n),(),(),(l),(l),(n,n),(t,n),(t,n),(t,n),(t),(),"
    "(c,n),(c,n),(c,n),(c),(c),(c),(t),(s,n,n)->(),()",
    writes=(
        *("sums", "counts", "stamps", "pulls", "latest", "weights", "gram", "residual", "adjacency", "pressure"),
        *("ring_x", "ring_z", "ring_y", "first", "last", "following", "snapshots"),
    ),
)
def play_rounds(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, discount, width, unit, rules,
    weights, plan, key, gram, residual, adjacency, pressure, penalty, bound, acyclic, powers, growths,
    total, rewards, shocks, baseline, delays, horizon, ring_x, ring_z, ring_y, first, last, following,
    recorded, snapshots, clock_after, fault,
):  # fmt: skip
    """Play the rounds now + 1, ... of one learner; `fault` is the first thing wrong with an outcome.

    Decisions and outcomes go into the rings. In rounds with `recorded` >= 0 the graph is copied to that snapshot.
    """
    n, mask = sums.shape[0], ring_x.shape[0] - 1
    log_discount = math.log(discount)
    scratch = np.empty((3, n))
    scores, allowed, entering = scratch[0], scratch[1], scratch[2]
    best, settled = np.empty(budget), np.zeros(n, np.bool_)
    fault[0] = 0
    for r in range(rewards.shape[0]):
        t = now + r + 1
        slot = t & mask
        x, z, y = ring_x[slot], ring_z[slot], ring_y[slot]
        if t <= n:
            for i in range(n):
                x[i] = plan[t - 1, i]
        else:
            bounds_of_means(
                sums, counts, stamps, pulls, latest, t - 1, clock, budget, reward_range, log_discount, width, unit,
                rules, growths, scores,
            )  # fmt: skip
            weigh(weights, scores)
            take_top(scores, budget, key, uint64(0), uint64(t), CHOICE, best, x)
        clock = discount * clock + 1.0
        if rules[PENDING]:
            add_pulls(pulls, latest, x, t, log_discount, powers)
        spread_rewards(total, rewards[r], x, z, y)
        for i in range(n):
            y[i] = y[i] + shocks[r, i] + baseline[r, i]
        post(t, delays[r], horizon, first, last, following)
        played = first[slot]
        first[slot] = 0
        while played != 0:
            home = played & mask
            x, z, y = ring_x[home], ring_z[home], ring_y[home]
            fault[0] = fault_of(x, z, y, reward_range, t - played, t)
            if fault[0] != 0:
                return
            add_rewards(sums, counts, stamps, x, z, t if rules[FROM_ARRIVAL] else played, log_discount, powers)
            if rules[GRAPH] != NO_GRAPH:
                for i in range(n):
                    if absorb_row(gram, residual, adjacency, z, y, 1.0, i, (i + 1) // 4 * 4 if acyclic else 0):
                        settled[i] = False
                fit_moved(
                    gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, rules[GRAPH] == SIGNED,
                    settled, allowed, entering,
                )  # fmt: skip
            played = following[home]
        if recorded[r] >= 0:
            snapshots[recorded[r]] = adjacency
    clock_after[0] = clock

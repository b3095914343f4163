"""Decisions and lessons of policies that rank arms by the weights of a graph times an upper bound of their means."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit, uint64

from spillover.kernels.averages import add_rewards, pending_bounds, upper_bounds
from spillover.kernels.build import gufunc
from spillover.kernels.drawing import take_top
from spillover.kernels.gram import absorb_outcome
from spillover.kernels.world import fault_of

# positions in `rules`
PENDING: Final = 0  # the bonus counts pulls in flight
IN_RANGE: Final = 1  # arms are forgotten by the width of the reward range; otherwise by that of a range of 1
ASSUMED_DELAY: Final = 2  # that of all outcomes; -1: they are discounted from the round of their action
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


@njit(inline="always")
def date_of(played, now, assumed):
    """The round in which an outcome is taken to have been played."""
    return played if assumed < 0 else max(now - assumed, 1)


@njit(inline="always")
def take_snapshot(adjacency, found):
    """Copy the graph."""
    for i in range(adjacency.shape[0]):
        for j in range(adjacency.shape[1]):
            found[i, j] = adjacency[i, j]


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
        played_at = date_of(now - age, now, rules[ASSUMED_DELAY])
        add_rewards(sums, counts, stamps, x, z, played_at, math.log(discount), sums[:0])
        if rules[GRAPH] != NO_GRAPH:
            absorb_outcome(gram, residual, adjacency, z, y, 1.0, False, np.empty(y.shape[0]))

"""Parts of policies that rank arms by the weights of a graph times an upper bound of their means."""

import math
from typing import Final

from numba import njit

from spillover.kernels.averages import pending_bounds, upper_bounds

# positions in `rules`
PENDING: Final = 0  # the bonus counts pulls in flight
IN_RANGE: Final = 1  # arms are forgotten by the width of the reward range; otherwise by that of a range of 1


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


@njit(inline="always")
def weigh(weights, index):
    """Weights times index, in place; an arm of weight 0 scores 0 even if its index is infinite."""
    for i in range(index.shape[0]):
        index[i] = weights[i] * index[i] if weights[i] != 0.0 else 0.0


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

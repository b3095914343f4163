"""Discounted means, pulls in flight, and the indices made of them."""

import math
from typing import Final

from numba import boolean, float64, int64

from spillover.kernels.build import gufunc

# An arm whose bonus is so many times the width of the reward range is forgotten: it counts as never observed.
FORGOTTEN: Final = 1e6


@gufunc(
    (float64[:], float64[:], int64[:], boolean[:], float64[:], int64, float64, boolean, boolean[:]),
    "(n),(n),(n),(n),(n),(),(),()->()",
    writes=("sums", "counts", "stamps"),
)
def discounted_arrival(sums, counts, stamps, x, z, played_at, discount, arrived, taken):
    """Add the rewards of a round played at `played_at` to each played arm's discounted sum and count.

    Each arm's sum and count are as of its own stamp, the latest of its rounds that has arrived. The weight of an
    observation then depends only on when the action was taken, and a count never underflows.
    """
    taken[0] = arrived
    if not arrived:
        return
    log_discount = math.log(discount)
    for i in range(x.shape[0]):
        if x[i]:
            lag = played_at - stamps[i]
            if counts[i] == 0.0:
                sums[i], counts[i], stamps[i] = z[i], 1.0, played_at
            elif lag >= 0:
                decay = math.exp(lag * log_discount)
                sums[i] = sums[i] * decay + z[i]
                counts[i] = counts[i] * decay + 1.0
                stamps[i] = played_at
            else:
                decay = math.exp(-lag * log_discount)
                sums[i] += decay * z[i]
                counts[i] += decay


@gufunc(
    (float64[:], float64[:], int64[:], int64, float64, float64, float64, float64, float64, float64[:], float64[:]),
    "(n),(n),(n),(),(),(),(),(),(),(r)->(n)",
)
def upper_index(sums, counts, stamps, now, clock, discount, width, unit, cap, reward_range, index):
    """mean / unit + sqrt(width log(clock) / discounted count), at most `cap`; reward_range: that of mean / unit.

    The index is `cap` for an arm that was never observed, or is forgotten.
    """
    largest = FORGOTTEN * (reward_range[1] - reward_range[0])
    log_discount = math.log(discount)
    width *= math.log(max(clock, 1.0))
    for i in range(sums.shape[0]):
        if counts[i] == 0.0:
            index[i] = cap
        else:
            value = sums[i] / (counts[i] * unit)
            if width > 0.0:
                growth = math.exp(min(-0.5 * (now - stamps[i]) * log_discount, 700.0))
                bonus = math.sqrt(width / counts[i]) * growth
                value = cap if bonus > largest else value + bonus
            index[i] = min(value, cap)


@gufunc(
    (float64[:], int64[:], boolean[:], int64, float64, float64[:], int64[:]),
    "(n),(n),(n),(),()->(n),(n)",
)
def count_pulls(pulls, stamps, x, played_at, discount, counted, stamped):
    """Each arm's discounted number of pulls, as of its latest one (its stamp)."""
    log_discount = math.log(discount)
    for i in range(x.shape[0]):
        counted[i], stamped[i] = pulls[i], stamps[i]
        if x[i]:
            decay = math.exp((played_at - stamps[i]) * log_discount)
            counted[i] = pulls[i] * decay + 1.0
            stamped[i] = played_at


@gufunc(
    (
        *(float64[:], float64[:], int64[:], float64[:], int64[:]),
        *(int64, float64, float64, float64, float64[:], float64[:]),
    ),
    "(n),(n),(n),(n),(n),(),(),(),(),(r)->(n)",
)
def pending_index(sums, counts, stamps, pulls, latest, now, clock, discount, width, reward_range, index):
    """mean + sqrt(width log(clock) / discounted pulls); the mean of an arm without outcomes is the top of the range.

    The index is infinite for an arm that was never played, or is forgotten.
    A pull counts whether or not its outcome has arrived. An outcome whose round was not recorded as played counts as
    a pull too: the larger of the two numbers is used.
    """
    largest = FORGOTTEN * (reward_range[1] - reward_range[0])
    log_discount = math.log(discount)
    width *= math.log(max(clock, 1.0))
    for i in range(sums.shape[0]):
        if counts[i] == 0.0 and pulls[i] == 0.0:
            index[i] = math.inf
            continue
        value = sums[i] / counts[i] if counts[i] > 0.0 else reward_range[1]
        if width > 0.0:
            bonus = math.inf
            if counts[i] > 0.0:
                growth = math.exp(min(-0.5 * (now - stamps[i]) * log_discount, 700.0))
                bonus = min(bonus, math.sqrt(width / counts[i]) * growth)
            if pulls[i] > 0.0:
                growth = math.exp(min(-0.5 * (now - latest[i]) * log_discount, 700.0))
                bonus = min(bonus, math.sqrt(width / pulls[i]) * growth)
            value = math.inf if bonus > largest else value + bonus
        index[i] = value

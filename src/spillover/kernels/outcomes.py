"""What rounds bring in kernels that play many of them: rewards, spill-over, and when the outcomes arrive."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit, uint64

from spillover.kernels.arrivals import delay_of, post
from spillover.kernels.inner import inside, within
from spillover.kernels.rewards import draw_chosen
from spillover.kernels.vectors import add_columns, add_multiple

# positions in `course`
LAW: Final = 0  # how rewards are drawn, see `kernels/rewards.py`
ADDED: Final = 1  # whether anything is added to y

# what is observed of an outcome: z and y, y, or the sum of y
ALL: Final = 0
OVERALL: Final = 1
PAYOFF: Final = 2

FEW_ARMS: Final = 16  # up to this, adding what was not chosen is faster than leaving it out

# What such a kernel gets: course, concentration, total, rewards, shocks, baseline, delays, slowest, silent, horizon,
# and the rings x, z, y, first, last, following; see `types.Stretch`.
COURSE_SIGNATURE: Final = (
    *(int64[::1], float64, float64[:, :], float64[:, :], float64[:, :], float64[:, :]),
    *(int64[:], int64[:], boolean[:, :], int64),
    *(boolean[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int64[::1], int64[::1]),
)
COURSE_LAYOUT: Final = "(q),(),(n,n),(t,n),(t,n),(t,n),(t),(t),(t,m),(),(c,n),(c,n),(c,n),(c),(c),(c)"
RINGS: Final = ("ring_x", "ring_z", "ring_y", "first", "last", "following")


@inside
def columns_of(total):
    """The columns of a matrix, each in one piece."""
    n = total.shape[0]
    columns = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            columns[j, i] = total[i, j]
    return columns


@njit(inline="always")
def add_spillover(columns, x, z, y):
    """y = total z, from the columns of `total`; as `spread_rewards`, where adding zeros changes nothing."""
    if x.shape[0] <= FEW_ARMS:  # also those not chosen: no branch, and y is written once
        add_columns(columns, z, y)
        return
    for i in range(x.shape[0]):
        y[i] = 0.0
    for j in range(x.shape[0]):
        if x[j]:
            add_multiple(y, z[j], columns[j])


@njit(inline="always")
def fill_outcome(r, t, key, course, concentration, columns, rewards, shocks, baseline, x, z, y):
    """Fill in z and y of round t, the r-th of the stretch, for the decision x."""
    draw_chosen(course[LAW], rewards[min(r, rewards.shape[0] - 1)], concentration, key, uint64(t), x, z)
    add_spillover(columns, x, z, y)
    if course[ADDED]:
        for i in range(x.shape[0]):
            y[i] = y[i] + shocks[r, i] + baseline[r, i]


@njit(inline="always")
def hide(observed, z, y):
    """Replace what is not observed of an outcome, as `foresight.observed` does."""
    if observed != ALL:
        total = 0.0
        for i in range(z.shape[0]):
            z[i] = math.nan
            total += y[i]
            if observed == PAYOFF:
                y[i] = 0.0
        if observed == PAYOFF:
            y[0] = total


@within
def bring_outcome(
    r, t, key, course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon, x, z, y,
    first, last, following,
):  # fmt: skip
    """`fill_outcome`; then post it for the round of its arrival.

    Returns the first round of play whose outcome arrives now; 0: none.
    """
    fill_outcome(r, t, key, course, concentration, columns, rewards, shocks, baseline, x, z, y)
    post(t, delay_of(x, z, delays[r], slowest[r], silent[r]), horizon, first, last, following)
    slot = t & (first.shape[0] - 1)
    played = first[slot]
    first[slot] = 0
    return played

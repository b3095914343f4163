"""What rounds bring in kernels that play many of them: rewards, spill-over, and when the outcomes arrive."""

import math
from typing import Final

from numba import njit, uint64

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

"""Decisions by means with an exploration bonus among many arms."""

import math

import numpy as np
from numba import boolean, float64, int64, uint64

from spillover.kernels.build import gufunc
from spillover.kernels.drawing import SMALL_BUDGET, take_top
from spillover.kernels.rounds import BONUS_LAYOUT, bounds_of_means, weigh


@gufunc(
    (
        *(float64[::1], float64[::1], int64[::1], float64[::1], int64[::1]),
        *(int64, float64, int64, float64[:], float64, float64, float64, int64[:]),
        *(float64[::1], float64[::1], float64[::1], uint64[:], uint64, uint64, uint64, boolean[::1]),
    ),
    f"{BONUS_LAYOUT},(n),(l),(n),(k),(),(),()->(n)",
    writes=("scores",),
)
def choose_of_many(
    sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, discount, width, unit, rules,
    weights, growths, scores, key, call, at_round, purpose, x,
):  # fmt: skip
    """`choose_by_means` without a plan; scores: scratch memory."""
    bounds_of_means(
        sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, math.log(discount), width, unit, rules,
        growths, scores,
    )  # fmt: skip
    weigh(weights, scores)
    take_top(scores, budget, key, call, at_round, purpose, np.empty(min(budget, SMALL_BUDGET)), x)

"""Decisions by means with an exploration bonus among many arms, four arms at a time."""

import math

import numpy as np
from numba import boolean, float64, int64, uint64

from spillover.kernels.build import gufunc
from spillover.kernels.drawing import SMALL_BUDGET, take_top
from spillover.kernels.lanes import LANES
from spillover.kernels.rounds import BONUS_LAYOUT, IN_RANGE, PENDING, bounds_of_means, weigh
from spillover.kernels.scores import score_arms


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
    low, high, log_discount = reward_range[0], reward_range[1], math.log(discount)
    wide = width * (budget + 1) * math.log(max(clock, 1.0))
    if x.shape[0] >= LANES and wide > 0.0:
        score_arms(
            sums, counts, stamps, pulls, latest, now, wide, low, high, high - low if unit == 0.0 else unit,
            log_discount, rules[PENDING], rules[IN_RANGE], weights, growths, scores,
        )  # fmt: skip
    else:
        bounds_of_means(
            sums, counts, stamps, pulls, latest, now, clock, budget, reward_range, log_discount, width, unit, rules,
            growths, scores,
        )  # fmt: skip
        weigh(weights, scores)
    take_top(scores, budget, key, call, at_round, purpose, np.empty(min(budget, SMALL_BUDGET)), x)

"""Decisions of a world measured against its best ones, and what the context of a round adds to its arms."""

import math

import numpy as np
from numba import boolean, float64, int64

from spillover.kernels.build import gufunc
from spillover.kernels.drawing import SMALL_BUDGET, selected_border, sorted_border


@gufunc((float64[:], int64, boolean[:]), "(n),()->(n)")
def best_arms(scores, budget, best):
    """The at most `budget` arms with the highest positive scores; of arms with the same score the first ones."""
    if budget <= SMALL_BUDGET:
        border, held = sorted_border(scores, budget, np.empty(budget))
    else:
        border, held = selected_border(scores, budget)
    places = held
    for i in range(scores.shape[0]):
        best[i] = held > 0 and scores[i] > border
        places -= best[i]
    for i in range(scores.shape[0]):
        if places > 0 and scores[i] == border:
            best[i] = True
            places -= 1


@gufunc((float64[:], boolean[:], float64[:], float64[:]), "(n),(n)->(),()")
def set_worth(scores, chosen, total, lowest):
    """The sum of the scores of chosen arms, and the lowest of them."""
    total[0], lowest[0] = 0.0, math.inf
    for i in range(scores.shape[0]):
        if chosen[i]:
            total[0] += scores[i]
            lowest[0] = min(lowest[0], scores[i])


@gufunc((float64[:], boolean[:], float64, boolean[:], int64[:]), "(n),(n),(),(n)->()")
def matches_of(scores, best, lowest, chosen, matches):
    """How many of the chosen arms belong to an optimal set; if there are several, to the closest one.

    They differ in the arms that have the lowest score of an optimal set.
    """
    certain, level, possible = 0, 0, 0
    for i in range(scores.shape[0]):
        at_border = scores[i] == lowest
        certain += chosen[i] and scores[i] > lowest
        level += chosen[i] and at_border
        possible += best[i] and at_border
    matches[0] = certain + min(level, possible)


@gufunc((float64[:], boolean[:], float64, float64, boolean[:], float64[:], int64[:]), "(n),(n),(),(),(n)->(),()")
def score_decision(scores, best, lowest, value, chosen, regret, matches):
    """The value of the best set less `set_worth` of a decision, and its `matches_of`, in one pass."""
    worth, certain, level, possible = 0.0, 0, 0, 0
    for i in range(scores.shape[0]):
        at_border = scores[i] == lowest
        worth += scores[i] if chosen[i] else 0.0
        certain += chosen[i] & (scores[i] > lowest)
        level += chosen[i] & at_border
        possible += best[i] & at_border
    regret[0], matches[0] = value - worth, certain + min(level, possible)


@gufunc((float64[:, :], float64[:], float64[:]), "(n,c),(c)->(n)")
def added_by_context(effects, context, added):
    """The effects of each arm times the context."""
    for i in range(added.shape[0]):
        added[i] = 0.0
        for k in range(context.shape[0]):
            added[i] += effects[i, k] * context[k]

"""Rewards on one scale for all arms, as in `policies/scale.py`, for functions of one learner."""

from numba import njit


@njit(inline="always")
def amounts_above_low(observed, x, low, unit, declared, amounts):
    """The amounts in an outcome, 0 for arms not chosen, at most one unit; returns the unit after it."""
    largest = 0.0
    for i in range(x.shape[0]):
        amounts[i] = max(observed[i] - low, 0.0) if x[i] else 0.0
        largest = max(largest, amounts[i])
    if not declared:
        unit = max(unit, largest)
    for i in range(x.shape[0]):
        amounts[i] = min(amounts[i], unit)
    return unit


@njit(inline="always")
def unit_or_one(unit):
    """The unit, or 1 before the first observation."""
    return unit if unit > 0.0 else 1.0


@njit(inline="always")
def rank(weights, low, unit, knows_graph, index):
    """The scores of the arms, in place: the index, or the weight times the index as a reward z."""
    if knows_graph:
        for i in range(index.shape[0]):
            index[i] = weights[i] * (low + unit * index[i])

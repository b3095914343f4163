"""Score candidates by their predictions of the payoff: discounted sums, and the candidate to use."""

import math
from typing import Final

from numba import float64, njit

from spillover.kernels.compiling import gufunc

MEMORY: Final = 0.99  # share of the evidence that remains after an arrival
CLEAR: Final = 2.0  # standard errors by which a candidate must be better than the first to replace it
NEAR: Final = 0.01  # errors that differ by less than this share of the error without a graph count as equal
ROUNDING: Final = 1e-9  # and so do errors below this share of the squared prediction
LARGEST: Final = 1e75  # errors are clipped to this, because their fourth powers are summed
NEGLIGIBLE: Final = 1e-200  # smaller sums of squares are not divided by


@njit(inline="always")
def total(values):
    """The sum of a line of numbers, from the first to the last."""
    found = 0.0
    for i in range(values.shape[0]):
        found += values[i]
    return found


@njit(inline="always")
def product(weights, values):
    """The sum of products, from the first to the last."""
    found = 0.0
    for i in range(values.shape[0]):
        found += weights[i] * values[i]
    return found


@njit(inline="always")
def weigh_prediction(errors, lead, doubt, cross, power, c, predicted, payoff, first):
    """Compare a payoff with what candidate c predicted; first: the squared error of the first one. Returns its own."""
    factor = cross[c] / power[c] if power[c] > NEGLIGIBLE else 1.0
    miss = min(max(payoff - factor * predicted, -LARGEST), LARGEST) ** 2
    ahead = first - miss if c > 0 else 0.0
    errors[c] = MEMORY * errors[c] + miss
    lead[c] = MEMORY * lead[c] + ahead
    doubt[c] = MEMORY**2 * doubt[c] + ahead**2
    cross[c] = MEMORY * cross[c] + payoff * predicted
    power[c] = MEMORY * power[c] + predicted**2
    return miss


@njit(inline="always")
def judge_weights(errors, lead, doubt, cross, power, count, memo, z, y):
    """Compare a payoff with the predictions of earlier weights, the rows of `memo`, and of weights of 1.

    Each prediction is multiplied by a factor fitted to earlier arrivals. A memo of zeros is none: there was too little
    data by then. Returns the number of arrivals.
    """
    ripe = False
    for c in range(memo.shape[0]):
        for i in range(memo.shape[1]):
            ripe |= memo[c, i] != 0.0
    if not ripe:
        return count
    payoff, first = total(y), 0.0
    for c in range(errors.shape[0]):
        predicted = product(memo[c], z) if c < memo.shape[0] else total(z)
        miss = weigh_prediction(errors, lead, doubt, cross, power, c, predicted, payoff, first)
        first = miss if c == 0 else first
    return MEMORY * count + 1.0


@njit(inline="always")
def judge_pair(errors, lead, doubt, cross, power, count, weights, usual, expected, y):
    """Compare a payoff with what two sets of weights predict of it from what was expected of z."""
    payoff = total(y)
    first = weigh_prediction(errors, lead, doubt, cross, power, 0, product(weights, expected), payoff, 0.0)
    weigh_prediction(errors, lead, doubt, cross, power, 1, product(usual, expected), payoff, first)
    return MEMORY * count + 1.0


@gufunc((float64[:], float64[:]), "(n)->()")
def payoff_of(y, payoff):
    """The sum of the outcomes."""
    payoff[0] = total(y)


@njit(inline="always")
def favourite(errors, lead, doubt, power):
    """The first candidate, unless others are clearly better: then the first of these with nearly the lowest error."""
    last = errors.shape[0] - 1
    alike = NEAR * errors[last] + ROUNDING * power[last]
    least, best = math.inf, 0
    for c in range(1, errors.shape[0]):
        if lead[c] > CLEAR * math.sqrt(doubt[c]) and lead[c] > alike:
            least = min(least, errors[c])
    if least < math.inf:
        for c in range(last, 0, -1):
            if lead[c] > CLEAR * math.sqrt(doubt[c]) and lead[c] > alike and errors[c] <= least + alike:
                best = c
    return best


@njit(inline="always")
def use_weights(used, sparse, instrument, full_history, weights):
    """The weights of a candidate that trusts z; the last one has no graph."""
    for i in range(weights.shape[0]):
        weights[i] = sparse[i] if used == 0 else instrument[i] if used == 1 else full_history[i] if used == 2 else 1.0

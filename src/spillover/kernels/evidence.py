"""How well candidates predict the payoff: discounted sums, and the candidate to use."""

import math
from typing import Final

from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc

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

    Each prediction is multiplied by a factor fitted to earlier arrivals. A memo of zeros is none.
    """
    ripe = False
    for c in range(memo.shape[0]):
        for i in range(memo.shape[1]):
            ripe |= memo[c, i] != 0.0
    if not ripe:
        return
    payoff, first = total(y), 0.0
    for c in range(errors.shape[0]):
        predicted = product(memo[c], z) if c < memo.shape[0] else total(z)
        miss = weigh_prediction(errors, lead, doubt, cross, power, c, predicted, payoff, first)
        first = miss if c == 0 else first
    count[0] = MEMORY * count[0] + 1.0


EVIDENCE_SIGNATURE: Final = (float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])
EVIDENCE: Final = ("errors", "lead", "doubt", "cross", "power", "count")


@gufunc(
    (*EVIDENCE_SIGNATURE, float64[:, :], float64[:], float64[:], boolean, boolean[:]),
    "(c),(c),(c),(c),(c),(o),(m,n),(n),(n),()->()",
    writes=EVIDENCE,
)
def judge_candidates(errors, lead, doubt, cross, power, count, memo, z, y, arrived, judged):
    """Compare the payoff of a round with the predictions of the weights when it was played, and without a graph."""
    judged[0] = arrived
    if arrived:
        judge_weights(errors, lead, doubt, cross, power, count, memo, z, y)


@njit(inline="always")
def judge_pair(errors, lead, doubt, cross, power, count, weights, usual, expected, y):
    """Compare a payoff with what two sets of weights predict of it from what was expected of z."""
    payoff = total(y)
    first = weigh_prediction(errors, lead, doubt, cross, power, 0, product(weights, expected), payoff, 0.0)
    weigh_prediction(errors, lead, doubt, cross, power, 1, product(usual, expected), payoff, first)
    count[0] = MEMORY * count[0] + 1.0


@gufunc(
    (*EVIDENCE_SIGNATURE, float64[:], float64[:], float64[:], float64[:], boolean, boolean[:]),
    "(c),(c),(c),(c),(c),(o),(n),(n),(n),(n),()->()",
    writes=EVIDENCE,
)
def judge_given_x(errors, lead, doubt, cross, power, count, weights, usual, expected, y, arrived, judged):
    """Compare the payoff of a round with what two sets of weights predict of it from the decision alone."""
    judged[0] = arrived
    if arrived:
        judge_pair(errors, lead, doubt, cross, power, count, weights, usual, expected, y)


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


@gufunc((float64[:], float64[:], float64[:], float64[:], int64[:]), "(c),(c),(c),(c)->()")
def best_candidate(errors, lead, doubt, power, best):
    """The candidate to use, by the evidence."""
    best[0] = favourite(errors, lead, doubt, power)


@njit(inline="always")
def use_weights(used, sparse, instrument, full_history, weights):
    """The weights of a candidate that trusts z; the last one has no graph."""
    for i in range(weights.shape[0]):
        weights[i] = sparse[i] if used == 0 else instrument[i] if used == 1 else full_history[i] if used == 2 else 1.0


@gufunc((int64, float64[:], float64[:], float64[:], float64[:]), "(),(n),(n),(n)->(n)")
def trusting_weights(used, sparse, instrument, full_history, weights):
    """The weights of the candidate in use; the last one has no graph."""
    use_weights(used, sparse, instrument, full_history, weights)

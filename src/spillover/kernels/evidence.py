"""How well candidates predict the payoff: discounted sums, and the candidate to use."""

import math
from typing import Final

from numba import boolean, float64, int64

from spillover.kernels.build import gufunc

MEMORY: Final = 0.99  # share of the evidence that remains after an arrival
CLEAR: Final = 2.0  # standard errors by which a candidate must be better than the first to replace it
NEAR: Final = 0.01  # errors that differ by less than this share of the error without a graph count as equal
ROUNDING: Final = 1e-9  # and so do errors below this share of the squared prediction
LARGEST: Final = 1e75  # errors are clipped to this, because their fourth powers are summed
NEGLIGIBLE: Final = 1e-200  # smaller sums of squares are not divided by


@gufunc(
    (
        *(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1]),
        *(float64[:], float64, boolean, boolean[:]),
    ),
    "(c),(c),(c),(c),(c),(o),(c),(),()->()",
    writes=("errors", "lead", "doubt", "cross", "power", "count"),
)
def update_evidence(errors, lead, doubt, cross, power, count, predicted, payoff, observed, learned):
    """Compare a payoff with each candidate's prediction, times a factor fitted to earlier arrivals."""
    learned[0] = observed
    if not observed:
        return
    first = 0.0
    for c in range(errors.shape[0]):
        factor = cross[c] / power[c] if power[c] > NEGLIGIBLE else 1.0
        miss = min(max(payoff - factor * predicted[c], -LARGEST), LARGEST) ** 2
        if c == 0:
            first = miss
        ahead = first - miss
        errors[c] = MEMORY * errors[c] + miss
        lead[c] = MEMORY * lead[c] + ahead
        doubt[c] = MEMORY**2 * doubt[c] + ahead**2
        cross[c] = MEMORY * cross[c] + payoff * predicted[c]
        power[c] = MEMORY * power[c] + predicted[c] ** 2
    count[0] = MEMORY * count[0] + 1.0


@gufunc((float64[:], float64[:], float64[:], float64[:], int64[:]), "(c),(c),(c),(c)->()")
def best_candidate(errors, lead, doubt, power, best):
    """The first one, unless others are clearly better: then the first of these whose error is close to the lowest."""
    last = errors.shape[0] - 1
    alike = NEAR * errors[last] + ROUNDING * power[last]
    least = math.inf
    for c in range(1, errors.shape[0]):
        if lead[c] > CLEAR * math.sqrt(doubt[c]) and lead[c] > alike:
            least = min(least, errors[c])
    best[0] = 0
    if least < math.inf:
        for c in range(last, 0, -1):
            if lead[c] > CLEAR * math.sqrt(doubt[c]) and lead[c] > alike and errors[c] <= least + alike:
                best[0] = c


@gufunc((int64, float64[:], float64[:], float64[:], float64[:]), "(),(n),(n),(n)->(n)")
def trusting_weights(used, sparse, instrument, full_history, weights):
    """The weights of the candidate in use; the last one has no graph."""
    for i in range(weights.shape[0]):
        weights[i] = sparse[i] if used == 0 else instrument[i] if used == 1 else full_history[i] if used == 2 else 1.0

"""The outcome of a round, and a check of reported feedback."""

from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc
from spillover.kernels.elementary import bits_of


@njit(inline="always")
def spread_rewards(total, b, x, z, y):
    """z = diag(b) x and y = total z (eqs. 1 and 4), total = (I - A)^-1 F."""
    n = x.shape[0]
    for i in range(n):
        z[i] = b[i] if x[i] else 0.0
        y[i] = 0.0
    for j in range(n):
        if z[j] != 0.0:
            for i in range(n):
                y[i] += total[i, j] * z[j]


@gufunc((float64[:, :], float64[:], boolean[:], float64[:], float64[:]), "(n,n),(n),(n)->(n),(n)")
def play(total, b, x, z, y):
    """The outcome of a round, from the rewards b of all arms."""
    spread_rewards(total, b, x, z, y)


FINE: Final = 0
NOT_FINITE: Final = 1
NOT_PLAYED: Final = 2
OUT_OF_RANGE: Final = 3
IMPOSSIBLE_AGE: Final = 4
LARGEST_OUTCOME: Final = 1e40  # sums of products of six such numbers do not overflow
NARROWEST_RANGE: Final = 1e-40  # nor does division by them
LARGEST_BITS: Final = np.float64(LARGEST_OUTCOME).view(np.uint64)
MAGNITUDE: Final = np.uint64(0x7FFFFFFFFFFFFFFF)  # all bits but the sign
NOTHING: Final = np.uint64(0)


@njit(inline="always")
def is_fine(x, z, y, low, high):
    """Whether nothing is wrong with an outcome, without a branch for each arm; what is, `fault_of` says.

    For kernels whose floating-point warnings are ignored: a comparison with NaN may leave one.
    """
    fine = True
    for i in range(x.shape[0]):
        fine &= (abs(z[i]) <= LARGEST_OUTCOME) & (abs(y[i]) <= LARGEST_OUTCOME)
        fine &= ((z[i] >= low) & (z[i] <= high)) if x[i] else z[i] == 0.0
    return fine


@njit(inline="always")
def is_known(y):
    """`is_fine` of an outcome whose rewards z are not observed."""
    known = True
    for i in range(y.shape[0]):
        known &= abs(y[i]) <= LARGEST_OUTCOME
    return known


@njit(inline="always")
def is_plain(x, z, y, low, high):
    """`is_fine` for kernels whose floating-point warnings are heard: it compares no numbers unless all are finite.

    But their bits: those of positive doubles are ordered as they are, and those of NaN come last.
    """
    fine = True
    for i in range(x.shape[0]):
        reward, outcome = bits_of(z[i]) & MAGNITUDE, bits_of(y[i]) & MAGNITUDE
        fine &= (reward <= LARGEST_BITS) & (outcome <= LARGEST_BITS) & (x[i] | (reward == NOTHING))
    if fine:
        for i in range(x.shape[0]):
            fine &= (not x[i]) | ((z[i] >= low) & (z[i] <= high))
    return fine


@njit(inline="always")
def fault_of(x, z, y, reward_range, age, rounds):
    """The first thing wrong with the outcome of a round, as one of the codes above."""
    if age < 0 or age >= rounds:
        return IMPOSSIBLE_AGE
    if is_plain(x, z, y, reward_range[0], reward_range[1]):
        return FINE
    for i in range(x.shape[0]):
        # not math.isfinite, which subtracts infinities and so leaves a floating-point warning
        if not (abs(z[i]) <= LARGEST_OUTCOME and abs(y[i]) <= LARGEST_OUTCOME):
            return NOT_FINITE
        if z[i] != 0.0 and not x[i]:
            return NOT_PLAYED
        if x[i] and (z[i] < reward_range[0] or z[i] > reward_range[1]):
            return OUT_OF_RANGE
    return FINE


@gufunc(
    (boolean[::1], float64[::1], float64[::1], float64[:], boolean, int64, int64, int64[:]),
    "(n),(n),(n),(r),(),(),()->()",
)
def feedback_fault(x, z, y, reward_range, arrived, age, rounds, fault):
    """The first thing wrong with a piece of feedback; nothing is, where none has arrived."""
    fault[0] = fault_of(x, z, y, reward_range, age, rounds) if arrived else FINE


@gufunc((int64[:], int64[:], float64[:], float64[:], float64[:]), "(p),(e),(e),(n)->(n)")
def spread_edges(start, effect, weight, own, y):
    """y = own + A y for edges sorted by cause, where every cause comes after its effects."""
    for j in range(y.shape[0]):
        y[j] = own[j]
    for j in range(y.shape[0] - 1, -1, -1):
        if y[j] != 0.0:
            for edge in range(start[j], start[j + 1]):
                y[effect[edge]] += weight[edge] * y[j]


@gufunc((int64[:], int64[:], float64[:], float64[:]), "(p),(e),(e)->(p)")
def total_effects_and_one(start, effect, weight, total):
    """w = 1 + A'w for the same edges; the last number is no arm's."""
    for j in range(total.shape[0] - 1):
        total[j] = 1.0
        for edge in range(start[j], start[j + 1]):
            total[j] += weight[edge] * total[effect[edge]]
    total[total.shape[0] - 1] = 0.0

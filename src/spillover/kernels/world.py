"""The outcome of a round, and a check of reported feedback."""

from typing import Final

from numba import boolean, float64, int64

from spillover.kernels.build import gufunc


@gufunc((float64[:, :], float64[:], boolean[:], float64[:], float64[:]), "(n,n),(n),(n)->(n),(n)")
def play(total, b, x, z, y):
    """z = diag(b) x and y = total z (eqs. 1 and 4), total = (I - A)^-1 F."""
    n = b.shape[0]
    for i in range(n):
        z[i] = b[i] if x[i] else 0.0
        y[i] = 0.0
    for j in range(n):
        if z[j] != 0.0:
            for i in range(n):
                y[i] += total[i, j] * z[j]


FINE: Final = 0
NOT_FINITE: Final = 1
NOT_PLAYED: Final = 2
OUT_OF_RANGE: Final = 3
IMPOSSIBLE_AGE: Final = 4
LARGEST_OUTCOME: Final = 1e40  # sums of products of six such numbers do not overflow


@gufunc(
    (boolean[:], float64[:], float64[:], float64[:], boolean, int64, int64, int64[:]),
    "(n),(n),(n),(r),(),(),()->()",
)
def feedback_fault(x, z, y, reward_range, arrived, age, rounds, fault):
    """The first thing wrong with a piece of feedback, as one of the codes above."""
    fault[0] = FINE
    if arrived:
        if age < 0 or age >= rounds:
            fault[0] = IMPOSSIBLE_AGE
            return
        for i in range(x.shape[0]):
            # not math.isfinite, which subtracts infinities and so leaves a floating-point warning
            if not (abs(z[i]) <= LARGEST_OUTCOME and abs(y[i]) <= LARGEST_OUTCOME):
                fault[0] = NOT_FINITE
                return
            if z[i] != 0.0 and not x[i]:
                fault[0] = NOT_PLAYED
                return
            if x[i] and (z[i] < reward_range[0] or z[i] > reward_range[1]):
                fault[0] = OUT_OF_RANGE
                return

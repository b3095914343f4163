"""Sufficient statistics of the graph problem: Gram matrices and residuals."""

from typing import Final

from numba import boolean, float64, njit

from spillover.kernels.build import gufunc

SHORT_ROW: Final = 64


# Both are inlined by Numba: a call for each row would take longer than what it does.
@njit(inline="always")
def prediction(row, y, start):
    """row . y in four partial sums, which the processor can add in parallel.

    start: a multiple of 4; the row is 0 before it.
    """
    n = row.shape[0]
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = n - n % 4
    for j in range(start, whole, 4):
        first += row[j] * y[j]
        second += row[j + 1] * y[j + 1]
        third += row[j + 2] * y[j + 2]
        fourth += row[j + 3] * y[j + 3]
    for j in range(whole, n):
        first += row[j] * y[j]
    return (first + second) + (third + fourth)


@njit(inline="always")
def absorb_row(gram, residual, adjacency, z, y, weight, i, start):
    """The rank-one updates of row i; returns whether its residual moved. The row of A is 0 before `start`."""
    n = y.shape[0]
    error = weight * (y[i] - z[i] - prediction(adjacency[i], y, start))
    scaled = y[i] * weight
    # adding zeros to a short row is cheaper than an unpredictable branch
    if error != 0.0 or n < SHORT_ROW:
        for j in range(n):
            residual[i, j] += error * y[j]
    if scaled != 0.0 or n < SHORT_ROW:
        for j in range(n):
            gram[i, j] += scaled * y[j]
    return error != 0.0


@gufunc(
    (float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64, boolean[:]),
    "(n,n),(n,n),(n,n),(n),(n),()->()",
    writes=("gram", "residual"),
)
def absorb(gram, residual, adjacency, z, y, weight, absorbed):
    """Rank-one updates of G = sum y y' and Q = (Y - Z) Y' - A G, at the given weight; a weight of 0 changes nothing."""
    absorbed[0] = weight != 0.0
    if weight != 0.0:
        for i in range(y.shape[0]):
            absorb_row(gram, residual, adjacency, z, y, weight, i, 0)


@gufunc((float64[:, :], float64[:, :], float64[:], float64[:, :], float64[:]), "(n,n),(n,n),(n),(n,n)->()")
def squared_error(gram, cross, energy, adjacency, error):
    """sum ||y - A y - z||^2 over rounds, from G = sum y y', C = sum (y - z) y' and sum (y - z)^2."""
    n = energy.shape[0]
    error[0] = 0.0
    for i in range(n):
        error[0] += energy[i]
        for j in range(n):
            if adjacency[i, j] != 0.0:
                fitted = 0.0
                for k in range(n):
                    fitted += gram[j, k] * adjacency[i, k]
                error[0] += adjacency[i, j] * (fitted - 2.0 * cross[i, j])

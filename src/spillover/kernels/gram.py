"""Sufficient statistics of the graph problem: Gram matrices and residuals."""

import numpy as np
from numba import boolean, float64, njit

from spillover.kernels.build import gufunc
from spillover.kernels.vectors import add_multiple, multiply


@njit(inline="always")
def absorb_outcome(gram, residual, adjacency, z, y, weight, acyclic, errors):
    """The rank-one updates of all rows; errors: how many times y was added to the residual of each.

    If acyclic, A is 0 below its diagonal.
    """
    multiply(adjacency, y, acyclic, errors)
    for i in range(y.shape[0]):
        errors[i] = weight * (y[i] - z[i] - errors[i])
        if errors[i] != 0.0:
            add_multiple(residual[i], errors[i], y)
        if y[i] * weight != 0.0:
            add_multiple(gram[i], y[i] * weight, y)


@gufunc(
    (float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64, boolean[:]),
    "(n,n),(n,n),(n,n),(n),(n),()->()",
    writes=("gram", "residual"),
)
def absorb(gram, residual, adjacency, z, y, weight, absorbed):
    """Rank-one updates of G = sum y y' and Q = (Y - Z) Y' - A G, at the given weight; a weight of 0 changes nothing."""
    absorbed[0] = weight != 0.0
    if weight != 0.0:
        absorb_outcome(gram, residual, adjacency, z, y, weight, False, np.empty(y.shape[0]))


@njit(inline="always")
def squared_error(gram, cross, energy, adjacency):
    """sum ||y - A y - z||^2 over rounds, from G = sum y y', C = sum (y - z) y' and sum (y - z)^2."""
    n = energy.shape[0]
    error = 0.0
    for i in range(n):
        error += energy[i]
        for j in range(n):
            if adjacency[i, j] != 0.0:
                fitted = 0.0
                for k in range(n):
                    fitted += gram[j, k] * adjacency[i, k]
                error += adjacency[i, j] * (fitted - 2.0 * cross[i, j])
    return error

"""Total effects of a graph, and whether its spill-over dies out.

Not by LAPACK: on a machine that is busy, its threads wait for each other longer than a small matrix takes.
"""

import math
from typing import Final

import numpy as np
from numba import float64, njit

from spillover.kernels.compiling import gufunc
from spillover.kernels.inversion import invert

SQUARINGS: Final = 40


@njit
def square_rows(matrix, result):
    """The matrix times itself."""
    n = matrix.shape[0]
    for i in range(n):
        target = result[i]
        for j in range(n):
            target[j] = 0.0
        for k in range(n):
            factor, source = matrix[i, k], matrix[k]
            if factor != 0.0:
                for j in range(n):
                    target[j] += factor * source[j]


@njit
def scaled_by_norm(matrix):
    """Divide a matrix that is >= 0 by its largest row sum, in place, unless that is 0; returns it."""
    n = matrix.shape[0]
    largest = 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += matrix[i, j]
        largest = max(largest, total)
    if largest > 0.0:
        for i in range(n):
            for j in range(n):
                matrix[i, j] /= largest
    return largest


@gufunc((float64[:, :], float64, float64[:]), "(n,n),()->()")
def spectral_radius(adjacency, enough, radius):
    """The spectral radius of the absolute values of a matrix, or an upper bound of it that is at most `enough`.

    The norm of the m-th power, to the power 1 / m, is an upper bound for every m, and m doubles with every squaring.
    """
    n = adjacency.shape[0]
    power, other = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(n):
            power[i, j] = abs(adjacency[i, j])
    log_bound, exponent = 0.0, 1.0
    for _ in range(SQUARINGS):
        norm = scaled_by_norm(power)
        if not norm > 0.0:
            radius[0] = 0.0
            return
        log_bound += math.log(norm) * exponent
        radius[0] = math.exp(log_bound)
        if radius[0] <= enough:
            return
        exponent *= 0.5
        square_rows(power, other)
        power, other = other, power


@gufunc((float64[:, :], float64[:, :], float64[:], float64[:]), "(n,n),(n,n)->(n),(n)")
def total_effects(adjacency, variance, weights, weights_variance):
    """Weights 1'(I - A)^-1, and their variances to first order; infinite if there is no inverse."""
    n = adjacency.shape[0]
    work, reach, around = np.empty((n, n)), np.empty((n, n)), np.zeros(n)
    for i in range(n):
        for j in range(n):
            work[i, j] = (1.0 if i == j else 0.0) - adjacency[i, j]
    if not invert(work, reach):
        for j in range(n):
            weights[j], weights_variance[j] = math.inf, math.inf
        return
    for j in range(n):
        weights[j], weights_variance[j] = 0.0, 0.0
    for i in range(n):
        for j in range(n):
            weights[j] += reach[i, j]
    for i in range(n):
        for j in range(n):
            around[j] += weights[i] * weights[i] * variance[i, j]
    for i in range(n):
        for j in range(n):
            weights_variance[j] += around[i] * reach[i, j] * reach[i, j]

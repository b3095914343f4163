"""The weights of the arms by a graph: what a unit of each arm's own effect adds to the sum of all outcomes."""

from typing import Final

import numpy as np
from numba import boolean, float64, njit

from spillover.kernels.compiling import gufunc

LARGEST_RADIUS: Final = 0.9  # a graph whose effects would not die out faster is damped


@njit
def invert(matrix, inverse):
    """Gauss-Jordan elimination with row pivots; rewrites the matrix."""
    n = matrix.shape[0]
    for i in range(n):
        for j in range(n):
            inverse[i, j] = 1.0 if i == j else 0.0
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        for j in range(n):
            matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            inverse[k, j], inverse[pivot, j] = inverse[pivot, j], inverse[k, j]
        scale = 1.0 / matrix[k, k]
        for j in range(n):
            matrix[k, j] *= scale
            inverse[k, j] *= scale
        for i in range(n):
            ratio = matrix[i, k]
            if i != k and ratio != 0.0:
                for j in range(n):
                    matrix[i, j] -= ratio * matrix[k, j]
                    inverse[i, j] -= ratio * inverse[k, j]


@njit
def largest_radius(coefficients, n):
    """An upper bound on the spectral radius of |A|, close to it: the largest growth of an entry of v under I + |A|.

    With I the power iteration converges for every A; without, it would not where effects alternate between two groups
    of arms, as between two arms.
    """
    v, u = np.ones(n), np.empty(n)
    radius = 0.0
    for _ in range(3 * n):
        radius, most = 0.0, 0.0
        for i in range(n):
            gained = 0.0
            for j in range(n):
                gained += abs(coefficients[i, j]) * v[j]
            radius = max(radius, gained / v[i])
            u[i] = v[i] + gained
            most = max(most, u[i])
        for i in range(n):
            v[i] = max(u[i] / most, 1e-200)
    return radius


@njit
def find_weights(coefficients, covariance, total_effects, weights, weight_variance):
    """(I - A)^-1, its column sums, and their variances; a graph whose effects would not die out is damped."""
    n = weights.shape[0]
    damping = min(1.0, LARGEST_RADIUS / max(largest_radius(coefficients, n), 1e-12))
    matrix = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = (1.0 if i == j else 0.0) - damping * coefficients[i, j]
    invert(matrix, total_effects)
    for j in range(n):
        weights[j] = 0.0
        for i in range(n):
            weights[j] += total_effects[i, j]
    for j in range(n):
        weight_variance[j] = 0.0
        for i in range(n):
            t = 0.0
            for a in range(n):
                for b in range(n):
                    t += total_effects[a, j] * covariance[i, a, b] * total_effects[b, j]
            weight_variance[j] += weights[i] ** 2 * max(t, 0.0)


@gufunc(
    (float64[:, ::1], float64[::1], float64[::1], float64[:, :], float64[:, :, :], boolean, boolean[:]),
    "(n,n),(n),(n),(n,d),(n,n,n),()->()",
    writes=("total_effects", "weights", "weight_variance"),
)
def weigh_graph(total_effects, weights, weight_variance, coefficients, covariance, due, done):
    """Total effects and weights of the arms, by new estimates of the equations."""
    done[0] = due
    if due:
        find_weights(coefficients, covariance, total_effects, weights, weight_variance)

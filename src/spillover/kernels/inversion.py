"""From total effects to the graph, and back; not by LAPACK, whose threads wait for each other on a busy machine."""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.decorators import allocating, inside

# Below this, relative to the largest entry, a pivot is rounding.
NO_PIVOT: Final = 1e-12
SQUARINGS: Final = 40


@inside
def invert(matrix, inverse):
    """Gauss-Jordan elimination with row pivots; False if the matrix is numerically singular. Rewrites the matrix."""
    n = matrix.shape[0]
    largest = 0.0
    for i in range(n):
        for j in range(n):
            inverse[i, j] = 1.0 if i == j else 0.0
            largest = max(largest, abs(matrix[i, j]))
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if not abs(matrix[pivot, k]) > NO_PIVOT * largest:
            return False
        if pivot != k:
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
    return True


@njit(inline="always")
def spread_of_inverse(root, inverse):
    """M = H' P H for H = inverse, P = root root': the standard errors of the graph follow from it."""
    n = root.shape[0]
    half, spread = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for k in range(n):
            if root[i, k] != 0.0:
                for j in range(n):
                    half[k, j] += root[i, k] * inverse[i, j]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                spread[i, j] += half[k, i] * half[k, j]
    return spread


@njit(inline="always")
def structural_variance(row, i, scatter, freedom, floor, inner):
    """Noise variance of structural equation i with coefficients `row`, from the residual covariance of y given z.

    inner: room for n numbers.
    """
    n = row.shape[0]
    total = 0.0
    for j in range(n):
        inner[j] = scatter[i, j]
    for k in range(n):
        for j in range(n):
            inner[j] -= row[k] * scatter[k, j]
    for j in range(n):
        total += inner[j] * ((1.0 if i == j else 0.0) - row[j])
    return max(total / max(freedom, 1.0), floor)


@njit(inline="always")
def is_unknown(root, least):
    """Whether some arm's effects are: more than this of their variance is left."""
    for i in range(root.shape[0]):
        left = 0.0
        for j in range(root.shape[0]):
            left += root[i, j] * root[i, j]
        if left > least:
            return True
    return False


@njit(inline="always")
def implied_graph(effects, root, scatter, freedom, bars, gain_bars, floor, signed, adjacency, gain, weights):
    """The graph that total effects B = (I - A)^-1 F imply: A = I - F H, F = 1 / diag(H), H = B^-1.

    An edge is kept if it exceeds `bars` standard errors, a gain if it differs from 1 by `gain_bars` of them.
    """
    n = weights.shape[0]
    inverse, work, inner = np.empty((n, n)), effects.copy(), np.empty(n)
    regular = invert(work, inverse)
    for j in range(n):
        gain[j], weights[j] = 1.0, 0.0
        for i in range(n):
            weights[j] += effects[i, j]
            adjacency[i, j] = 0.0
    if not regular:
        return
    spread = spread_of_inverse(root, inverse)
    for i in range(n):
        if not inverse[i, i] > NO_PIVOT:
            continue
        direct = 1.0 / inverse[i, i]
        for j in range(n):
            adjacency[i, j] = 0.0 if i == j else -direct * inverse[i, j]
        variance = structural_variance(adjacency[i], i, scatter, freedom, floor, inner)
        off = gain_bars[i] * direct * math.sqrt(variance * spread[i, i])
        gain[i] = direct if abs(direct - 1.0) > off else 1.0
        for j in range(n):
            edge = adjacency[i, j]
            around = max(spread[j, j] + edge * (2.0 * spread[i, j] + edge * spread[i, i]), 0.0)
            size = abs(edge) if signed else edge
            if i == j or not size > bars[i, j] * math.sqrt(variance * around):
                adjacency[i, j] = 0.0
    for i in range(n):
        for j in range(n):
            work[i, j] = (1.0 if i == j else 0.0) - adjacency[i, j]
    if not invert(work, inverse):
        return
    dies_out = True
    for i in range(n):
        for j in range(n):
            dies_out &= signed or inverse[i, j] >= -NO_PIVOT
    if dies_out:
        for j in range(n):
            weights[j] = 0.0
            for i in range(n):
                weights[j] += inverse[i, j] * gain[j]


@allocating
def structure(
    effects, root, scatter, freedom, bars, gain_bars, floor, signed, unknown, least_weight, adjacency, gain, weights
):  # fmt: skip
    """The graph that total effects imply, and the weights, at least `least_weight` unless signed.

    An arm whose effects have more than `unknown` left of their variance, because no round separates it from others,
    makes the graph uncertain, but not the others' total effects.
    """
    implied_graph(effects, root, scatter, freedom, bars, gain_bars, floor, signed, adjacency, gain, weights)
    n = weights.shape[0]
    if is_unknown(root, unknown):
        for j in range(n):
            weights[j] = 0.0
        for i in range(n):
            for j in range(n):
                weights[j] += effects[i, j]
    if not signed:
        for j in range(n):
            weights[j] = max(weights[j], least_weight)


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


@allocating
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


@allocating
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

"""Symmetric matrices by their roots, L L': least squares on columns that may depend on each other.

Innermost loops go along rows, so that the processor computes several columns at once.
"""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.decorators import inside

PIVOT: Final = 1e-10  # a column with less than this share of its square left depends on those before it


@inside
def factorise(matrix, size, root, pivots):
    """The root L of a symmetric matrix; a column that depends on those before it is left out (a diagonal of 0).

    Rewrites the lower triangle of `root`. pivots: what is left of each column's square, given those before it.
    """
    column = np.empty(size)
    for i in range(size):
        for k in range(i + 1):
            root[i, k] = matrix[i, k]
    for j in range(size):
        pivots[j] = root[j, j]
        if not pivots[j] > PIVOT * matrix[j, j] or not matrix[j, j] > 0.0:
            for k in range(j + 1):
                root[j, k] = 0.0
            for i in range(j + 1, size):
                root[i, j] = 0.0
            continue
        root[j, j] = math.sqrt(max(pivots[j], 0.0))  # the compiler may take the root before it looks
        for i in range(j + 1, size):
            root[i, j] /= root[j, j]
            column[i] = root[i, j]
        for i in range(j + 1, size):
            own, row = column[i], root[i]
            for k in range(j + 1, i + 1):
                row[k] -= own * column[k]


@inside
def forward(root, size, right):
    """L^-1 times the columns of `right`, in place; 0 in the rows of columns that are left out."""
    columns = right.shape[1]
    for i in range(size):
        target = right[i]
        if root[i, i] == 0.0:
            for c in range(columns):
                target[c] = 0.0
            continue
        for k in range(i):
            factor = root[i, k]
            if factor != 0.0:
                source = right[k]
                for c in range(columns):
                    target[c] -= factor * source[c]
        inverse = 1.0 / root[i, i]
        for c in range(columns):
            target[c] *= inverse


@inside
def inverse_root(root, size, result):
    """L^-1, lower triangular; 0 in the rows and columns that are left out."""
    for i in range(size):
        target = result[i]
        for c in range(size):
            target[c] = 0.0
        if root[i, i] == 0.0:
            continue
        for k in range(i):
            factor = root[i, k]
            if factor != 0.0:
                source = result[k]
                for c in range(k + 1):
                    target[c] -= factor * source[c]
        inverse = 1.0 / root[i, i]
        for c in range(i):
            target[c] *= inverse
        target[i] = inverse


@inside
def add_squares(matrix, rows, size, result):
    """Add M'M to the lower triangle of `result`, for so many rows and columns of M."""
    for k in range(rows):
        source = matrix[k]
        for i in range(size):
            factor = source[i]
            if factor != 0.0:
                target = result[i]
                for c in range(i + 1):
                    target[c] += factor * source[c]


@njit(inline="always")
def mirror(matrix, size):
    """Copy the lower triangle to the upper one."""
    for i in range(size):
        for c in range(i):
            matrix[c, i] = matrix[i, c]


@inside
def invert_symmetric(matrix, inverse):
    """The inverse of a symmetric matrix; a column that depends on those before it is left out (zeros)."""
    size = matrix.shape[0]
    root, rows, pivots = np.zeros((size, size)), np.empty((size, size)), np.empty(size)
    factorise(matrix, size, root, pivots)
    inverse_root(root, size, rows)
    inverse[:] = 0.0
    add_squares(rows, size, size, inverse)
    mirror(inverse, size)


@inside
def product_of(a, b):
    """a b, without BLAS: the matrices are small, and Numba needs SciPy for it."""
    found = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            if a[i, k] != 0.0:
                for j in range(b.shape[1]):
                    found[i, j] += a[i, k] * b[k, j]
    return found


@inside
def applied(a, v):
    """a v for a vector v."""
    found = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            found[i] += a[i, k] * v[k]
    return found

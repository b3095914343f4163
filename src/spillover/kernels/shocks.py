"""Common shocks: what hidden common causes add to an outcome, as far as the errors of the other arms show it.

The error of an arm that was not chosen is known once its outcome is: y less what the equation explains. If errors go
together, those of the arms not chosen predict the errors of all arms. What they predict is taken off an outcome before
anything is learned from it. Errors do not depend on decisions, so this removes noise, and biases nothing.
"""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.compiling import gufunc

THRESHOLD: Final = 3.0  # correlations count as far as they are beyond so many standard errors
FADING: Final = 0.99  # of what was learned when the equations are solved again: errors of early estimates fade
LEAST_PIVOT: Final = 0.02  # share of an error's variance that other errors leave unexplained, at least
STEPS: Final = 20
DEPENDENT: Final = 1e-10  # a column whose remainder is a smaller part than this depends on those before it


@njit
def is_free(j, x, z):
    """Whether nothing unknown was added to an arm: it was not chosen, or its own reward is known."""
    return not x[j] or not math.isnan(z[j])


@njit
def error_of(j, y, z, x, context, coefficients, p):
    """The error of an equation to which nothing unknown was added."""
    n = y.shape[0]
    found = y[j] - (z[j] if x[j] else 0.0)
    for k in range(n):
        found -= coefficients[j, k] * y[k]
    for c in range(p):
        found -= coefficients[j, n + c] * context[c]
    return found


@njit
def error_doubt(j, y, context, edge_variance, slope, rest_covariance, p):
    """Variance of such an error due to the uncertain coefficients."""
    n = y.shape[0]
    doubt = 0.0
    for k in range(n):
        if edge_variance[j, k] > 0.0:
            gap = y[k]
            for c in range(p):
                gap -= slope[j, c, k] * context[c]
            doubt += edge_variance[j, k] * gap * gap
    for c in range(p):
        for b in range(p):
            doubt += context[c] * rest_covariance[j, c, b] * context[b]
    return max(doubt, 0.0)


@njit
def invert_symmetric(matrix, inverse):
    """The inverse of a symmetric positive matrix, as in instrumental_solve.py."""
    d = matrix.shape[0]
    work, rows = matrix.copy(), np.zeros((d, d))
    used = np.empty(d, np.bool_)
    for j in range(d):
        used[j] = work[j, j] > DEPENDENT * matrix[j, j] and matrix[j, j] > 0.0
        scale = 1.0 / math.sqrt(work[j, j]) if used[j] else 0.0
        for k in range(j, d):
            work[j, k] *= scale
        for i in range(j + 1, d):
            if work[j, i] != 0.0:
                factor = work[j, i]
                for k in range(i, d):
                    work[i, k] -= factor * work[j, k]
    for i in range(d):
        if used[i]:
            rows[i, i] = 1.0
            for k in range(i):
                if work[k, i] != 0.0:
                    factor = work[k, i]
                    for j in range(k + 1):
                        rows[i, j] -= factor * rows[k, j]
            scale = 1.0 / work[i, i]
            for j in range(i + 1):
                rows[i, j] *= scale
    inverse[:] = 0.0
    for k in range(d):
        for i in range(k + 1):
            if rows[k, i] != 0.0:
                factor = rows[k, i]
                for j in range(k + 1):
                    inverse[i, j] += factor * rows[k, j]


@gufunc(
    (
        float64[:, :], float64[:, :], float64[:, :, :], float64[:, :, :], float64[:, :], float64[:, :],
        boolean[:], float64[:], float64[:], float64[:], int64, boolean, float64[:],
    ),
    "(n,d),(n,n),(n,r,n),(n,r,r),(n,n),(n,n),(n),(n),(n),(c),(),()->(n)",
)  # fmt: skip
def expected_shocks(
    coefficients, edge_variance, slope, rest_covariance, shared, shared_chosen, x, z, y, context, p, arrived, shock
):  # fmt: skip
    """What the errors of the arms not chosen predict of the error of each arm; 0 while an outcome is missing."""
    shock[:] = 0.0
    n = y.shape[0]
    if not arrived:
        return
    related = False
    for i in range(n):
        if math.isnan(y[i]):
            return
        for j in range(i):
            related |= shared[i, j] != 0.0
    if not related:
        return
    free = np.empty(n, np.int64)
    count = 0
    for j in range(n):
        if is_free(j, x, z):
            free[count] = j
            count += 1
    errors, spread = np.empty(count), np.empty((count, count))
    for a in range(count):
        errors[a] = error_of(free[a], y, z, x, context, coefficients, p)
        for b in range(count):
            spread[a, b] = shared[free[a], free[b]]
        spread[a, a] += error_doubt(free[a], y, context, edge_variance, slope, rest_covariance, p) + 1e-300
    inverse = np.empty((count, count))
    invert_symmetric(spread, inverse)
    weighted = np.zeros(count)
    for a in range(count):
        for b in range(count):
            weighted[a] += inverse[a, b] * errors[b]
    for a in range(count):
        if inverse[a, a] > 0.0:
            shock[free[a]] = errors[a] - weighted[a] / inverse[a, a]
    for i in range(n):
        if not is_free(i, x, z):
            for a in range(count):
                shock[i] += shared_chosen[i, free[a]] * weighted[a]


@gufunc(
    (
        float64[:, :, ::1], float64[:, :, ::1], float64[:, :], boolean[:], float64[:], float64[:], float64[:],
        boolean[:], float64[:], float64[:, :], float64[:], int64, int64, boolean, boolean[:],
    ),
    "(n,n,u),(n,n,u),(n,d),(n),(n),(n),(n),(n),(c),(n,m),(n),(),(),()->()",
    writes=("free_products", "chosen_products"),
)  # fmt: skip
def absorb_shocks(
    free_products, chosen_products, coefficients, x, dose, z, y, fresh, context, centre, count, p, q, arrived, taken
):  # fmt: skip
    """Add the products of the errors of a round."""
    taken[0] = False
    n = y.shape[0]
    if not arrived:
        return
    news = False
    for i in range(n):
        if math.isnan(y[i]):
            return
        news |= fresh[i]
    if not news:
        return
    taken[0] = True
    d = n + p + q
    errors, weights = np.empty(n), np.ones(n)
    for i in range(n):
        if is_free(i, x, z):
            errors[i] = error_of(i, y, z, x, context, coefficients, p)
            continue
        errors[i] = y[i] - dose[i] * centre[i, d]  # compared with the average since the arm's last change
        for k in range(n):
            errors[i] -= coefficients[i, k] * (y[k] - dose[i] * centre[i, k])
        for c in range(p):
            errors[i] -= coefficients[i, n + c] * (context[c] - dose[i] * centre[i, n + c])
        for c in range(q):
            errors[i] -= coefficients[i, n + p + c] * dose[i] * (context[1 + c] - centre[i, n + p + c])
        weights[i] = count[i] / (count[i] + dose[i] ** 2)
    for i in range(n):
        for j in range(n):
            if is_free(j, x, z):
                products = free_products[i, j] if is_free(i, x, z) else chosen_products[i, j]
                products[0] += weights[i] * errors[i] * errors[j]
                products[1] += weights[i] * errors[i] * errors[i]
                products[2] += weights[i] * errors[j] * errors[j]
                products[3] += weights[i]


@njit
def beyond_chance(products):
    """A correlation, as far as it is beyond chance."""
    if not (products[1] > 0.0 and products[2] > 0.0):
        return 0.0
    found = products[0] / math.sqrt(products[1] * products[2])
    beyond = abs(found) - THRESHOLD / math.sqrt(products[3] + 1.0)
    return math.copysign(max(beyond, 0.0), found)


@njit
def is_positive(correlation, shrunk):
    """Whether a correlation matrix with its correlations shrunk leaves something of every error unexplained."""
    n = correlation.shape[0]
    work = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            work[i, j] = correlation[i, j] * (1.0 if i == j else shrunk)
    for j in range(n):
        if not work[j, j] > LEAST_PIVOT:
            return False
        for i in range(j + 1, n):
            factor = work[i, j] / work[j, j]
            if factor != 0.0:
                for k in range(j, n):
                    work[i, k] -= factor * work[j, k]
    return True


@gufunc(
    (float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1], float64[:, ::1], boolean, boolean[:]),
    "(n,n,u),(n,n,u),(n,n),(n,n),()->()",
    writes=("free_products", "chosen_products", "shared", "shared_chosen"),
)
def solve_shocks(free_products, chosen_products, shared, shared_chosen, due, done):
    """Covariances between the errors of arms not chosen, and between those of chosen arms and of arms not chosen."""
    done[0] = due
    if not due:
        return
    n = shared.shape[0]
    correlation, deviation = np.zeros((n, n)), np.zeros(n)
    for i in range(n):
        correlation[i, i] = 1.0
        if free_products[i, i, 3] > 0.0:
            deviation[i] = math.sqrt(free_products[i, i, 0] / free_products[i, i, 3])
        for j in range(i):
            correlation[i, j] = correlation[j, i] = beyond_chance(free_products[i, j])
    shrunk = 1.0
    for step in range(STEPS + 1):
        shrunk = 1.0 - step / STEPS
        if is_positive(correlation, shrunk):
            break
    for i in range(n):
        for j in range(n):
            shared[i, j] = correlation[i, j] * deviation[i] * deviation[j] * (1.0 if i == j else shrunk)
            found, rounds = beyond_chance(chosen_products[i, j]), max(chosen_products[i, j, 3], 1e-300)
            shared_chosen[i, j] = shrunk * found * math.sqrt(chosen_products[i, j, 1] / rounds) * deviation[j]
    free_products *= FADING
    chosen_products *= FADING

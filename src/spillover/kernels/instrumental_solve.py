"""Structural equations from their statistics: between least squares and two-stage least squares, with sparse edges."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, njit

from spillover.kernels.build import gufunc

EDGE_SCALE: Final = 0.5  # an edge that exists is half normal (normal if signed) with this scale
EDGE_DEVIATION: Final = 0.3  # prior deviation of an edge in the test for confounding
SHARED: Final = 0.5  # prior correlation between the error of an equation and its regressors ...
SHARED_WEIGHT: Final = 300.0  # ... and the rounds that this prior is worth
DOUBTFUL: Final = 0.5  # standard deviations of the evidence from all equations at which it is believed by half ...
STEEPNESS: Final = 2.0  # ... and how fast belief grows beyond
LEAST_ROW_NOISE: Final = 1e-7  # variance of an equation's error, in squared units of the range
FIRST_ROW_NOISE: Final = 0.02  # its prior value while the arm is not chosen ...
FIRST_ROW_WEIGHT: Final = 0.5  # ... and the rounds that this is worth
CHOSEN_WEIGHT: Final = 5.0  # rounds that the variance of all arms together is worth for one arm
POOLED_WEIGHT: Final = 20.0  # rounds that the prior of that variance is worth
LARGEST_RADIUS: Final = 0.9  # a graph whose effects would not die out faster is damped
ENOUGH: Final = 5.0  # outcomes of an arm from which their variance counts
LEAST_UNIT: Final = 1e-9
EARLY: Final = 200  # rounds up to which more sweeps are made, ...
LARGE: Final = 30  # ... unless there are more arms
MANY_SWEEPS: Final = 10
FEW_SWEEPS: Final = 3
LEAST_EDGE_VARIANCE: Final = 1e-12
MOST_EDGE: Final = 100.0  # a larger edge is an error of the first rounds, with outcomes far beyond what was assumed
LEAST_SITE: Final = 1e-6  # precision of a normal factor in place of the prior of an edge
DAMPING: Final = 0.7  # step of these factors towards their new values
RIDGE: Final = 1e-6  # instruments that depend on each other up to this share are kept apart
MORE_ROUNDS: Final = 5  # than coefficients, from which errors are tested for hidden common causes
DEPENDENT: Final = 1e-10  # a column whose remainder is a smaller part than this depends on those before it


@njit
def invert_symmetric(matrix, inverse):
    """The inverse of a symmetric matrix; a column that depends on those before it is left out (zeros).

    A Cholesky decomposition U'U, the rows of U'^-1, and their products: every inner loop runs along a row.
    """
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


@njit
def product_of(a, b):
    """a b, without BLAS: the matrices are small, and Numba needs SciPy for it."""
    found = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            if a[i, k] != 0.0:
                for j in range(b.shape[1]):
                    found[i, j] += a[i, k] * b[k, j]
    return found


@njit
def applied(a, v):
    """a v for a vector v."""
    found = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            found[i] += a[i, k] * v[k]
    return found


@njit
def weighted(statistics, picked, noise):
    """The statistics of both kinds of rounds, each over its noise, for the picked coefficients."""
    size = picked.shape[0]
    found = np.empty((size, size))
    for a in range(size):
        for b in range(size):
            found[a, b] = (
                statistics[0, picked[a], picked[b]] / noise[0] + statistics[1, picked[a], picked[b]] / noise[1]
            )
    return found


@njit
def two_stages(ff, qf, qq, fy, qy):
    """Precision and product that the instruments explain, and those of the rest of the variation."""
    size = fy.shape[0]
    for a in range(size):
        qq[a, a] += RIDGE * qq[a, a] + 1e-12
    inverse = np.empty((size, size))
    invert_symmetric(qq, inverse)
    stage = product_of(qf.T, inverse)
    precision = product_of(stage, qf)
    precision = 0.5 * (precision + precision.T)
    product = applied(stage, qy)
    return precision, product, ff - precision, fy - product


@njit
def confounding(precision, product, rest_precision, rest_product, prior, edges, rounds):
    """The share of the variation between errors and regressors that is common (a Hausman test, with a prior).

    Returns also by how much the statistic exceeds its expectation without common causes, and this expectation.
    """
    size = product.shape[0]
    certain = precision.copy()
    for a in range(size):
        certain[a, a] += prior[a]
    covariance = np.empty((size, size))
    invert_symmetric(certain, covariance)
    estimate = applied(covariance, product)
    gap = np.empty(edges)
    r, v = np.empty((edges, edges)), np.empty((edges, edges))
    ridge = 1e-12
    for a in range(edges):
        t = rest_product[a]
        for b in range(size):
            t -= rest_precision[a, b] * estimate[b]
        gap[a] = t
        ridge += 1e-6 * max(rest_precision[a, a], 0.0) / edges
        for b in range(edges):
            r[a, b], v[a, b] = rest_precision[a, b], covariance[a, b]
    spread = product_of(product_of(r, v), r) + r
    spread = 0.5 * (spread + spread.T)
    for a in range(edges):
        spread[a, a] += ridge
    inverse = np.empty((edges, edges))
    invert_symmetric(spread, inverse)
    statistic, information, rank = 0.0, 0.0, 1.0 * edges
    for a in range(edges):
        rank -= ridge * inverse[a, a]
        for b in range(edges):
            statistic += gap[a] * inverse[a, b] * gap[b]
            information += r[a, b] * inverse[b, a]
    found = max(statistic - rank, 0.0) + SHARED_WEIGHT * SHARED**2
    return min(found / (rounds * max(information, 0.0) + SHARED_WEIGHT), 1.0), statistic - rank, rank


@njit
def unconfounded(evidence):
    """How plausible it is that no equation has hidden common causes, by the evidence from all of them: 1 to 0."""
    excess, rank = 0.0, 0.0
    for i in range(evidence.shape[0]):
        excess += evidence[i, 0]
        rank += evidence[i, 1]
    return 1.0 / (1.0 + math.exp(min(STEEPNESS * (excess / math.sqrt(2.0 * max(rank, 1.0)) - DOUBTFUL), 50.0)))


@njit
def slab_moments(mu, s2, signed):
    """Log Bayes factor, mean and variance of an edge that exists, for a likelihood times its normal part."""
    deviation = math.sqrt(s2)
    z = mu / deviation
    shrunk = 0.5 * math.log(s2 / EDGE_SCALE**2)
    if signed:
        return shrunk + 0.5 * z * z, mu, s2
    if z > -5.0:
        below = 0.5 * math.erfc(-z * 0.7071067811865476)
        hazard = 0.3989422804014327 * math.exp(-0.5 * z * z) / below
        variance = max(s2 * (1.0 - z * hazard - hazard * hazard), 1e-3 * s2)
        return shrunk + 0.5 * z * z + math.log(2.0 * below), mu + deviation * hazard, variance
    return shrunk - math.log(-z * 1.2533141373155), deviation / -z, s2 / (z * z)


@njit
def sparse_edges(precision, product, site_precision, site_product, mean, covariance, probability, odds, signed, sweeps):
    """Spike and slab by expectation propagation: each edge is 0 or from the slab, the edges together are normal.

    The prior of each edge is replaced by a normal factor, its site, so that mean and variance of the edge are those
    under its true prior and the sites of the others.
    """
    edges = product.shape[0]
    certain = np.empty((edges, edges))
    for sweep in range(sweeps + 1):
        for a in range(edges):
            for b in range(edges):
                certain[a, b] = precision[a, b]
            certain[a, a] += site_precision[a]
        invert_symmetric(certain, covariance)
        for a in range(edges):
            mean[a] = 0.0
            for b in range(edges):
                mean[a] += covariance[a, b] * (product[b] + site_product[b])
        if sweep == sweeps:
            break
        for a in range(edges):
            if not covariance[a, a] > 0.0:
                continue
            without = 1.0 / covariance[a, a] - site_precision[a]
            if not without > 0.0:
                without = 1e-9 / covariance[a, a]
            shifted = mean[a] / covariance[a, a] - site_product[a]
            s2 = 1.0 / (without + 1.0 / EDGE_SCALE**2)
            factor, m, v = slab_moments(s2 * shifted, s2, signed)
            exists = 1.0 / (1.0 + math.exp(-min(max(odds + factor, -50.0), 50.0)))
            probability[a] = exists
            centre = exists * m
            spread = max(exists * (v + m * m) - centre * centre, LEAST_EDGE_VARIANCE)
            wanted = max(1.0 / spread - without, LEAST_SITE)
            site_product[a] += DAMPING * (centre * (wanted + without) - shifted - site_product[a])
            site_precision[a] += DAMPING * (wanted - site_precision[a])
    for a in range(edges):
        if not abs(mean[a]) <= MOST_EDGE:
            mean[a], site_product[a], site_precision[a] = 0.0, 0.0, 1.0 / EDGE_SCALE**2


@njit
def solve_row(
    i, unit, ff, qf, qq, fy, qy, rounds, coefficients, edge_variance, slope, rest_covariance, noise, probability, trust,
    covariance, site_precision, site_product, evidence, total_effects, allowed, rest_precision, edge_prior, trusted,
    doubt, signed,
):  # fmt: skip
    """The coefficients of one equation and their uncertainty; trusted: least squares, from 0 (not at all) to 1.

    doubt: the weight of this equation's own evidence against least squares; 0 if no equation shows a common cause.
    """
    n, d = allowed.shape[0], fy.shape[1]
    rest = d - n
    picked = np.empty(d, np.int64)
    edges = 0
    for j in range(n):
        if allowed[i, j]:
            picked[edges] = j
            edges += 1
    for c in range(rest):
        picked[edges + c] = n + c
    size = edges + rest
    picked = picked[:size]
    first, second = np.empty(size), np.empty(size)
    prior = np.empty(size)
    for a in range(size):
        first[a] = fy[0, picked[a]] / noise[i, 0] + fy[1, picked[a]] / noise[i, 1]
        second[a] = qy[0, picked[a]] / noise[i, 0] + qy[1, picked[a]] / noise[i, 1]
        prior[a] = 1.0 / EDGE_DEVIATION**2 if a < edges else rest_precision[a - edges] / unit**2
    count = rounds[i, 0] + rounds[i, 1]
    precision, product, rest_of_precision, rest_of_product = two_stages(
        weighted(ff, picked, noise[i]), weighted(qf, picked, noise[i]), weighted(qq, picked, noise[i]), first, second
    )
    rho = 1.0
    if edges > 0:
        for a in range(edges):  # an outcome contains the error of any arm that affects it
            rest_of_product[a] -= count * total_effects[picked[a], i]
        shared = SHARED**2
        if count >= size + MORE_ROUNDS:
            shared, evidence[i, 0], evidence[i, 1] = confounding(
                precision, product, rest_of_precision, rest_of_product, prior, edges, count
            )
        rho = trusted / (1.0 + count * shared * doubt)
    trust[i] = rho
    precision += rho * rest_of_precision
    product += rho * rest_of_product
    # baseline and context are eliminated exactly
    certain, inverse = np.empty((rest, rest)), np.empty((rest, rest))
    for c in range(rest):
        for b in range(rest):
            certain[c, b] = precision[edges + c, edges + b]
        certain[c, c] += prior[edges + c]
    invert_symmetric(certain, inverse)
    across = product_of(inverse, precision[edges:, :edges])
    offset = applied(inverse, product[edges:])
    side = precision[:edges, edges:]
    mean, exists, together = np.empty(edges), np.empty(edges), np.empty((edges, edges))
    sites, shifts = np.empty(edges), np.empty(edges)
    for a in range(edges):
        sites[a], shifts[a] = site_precision[i, picked[a]], site_product[i, picked[a]]
        exists[a] = probability[i, picked[a]]  # kept where the data say nothing of the edge
    sparse_edges(
        precision[:edges, :edges] - product_of(side, across), product[:edges] - applied(side, offset), sites, shifts,
        mean, together, exists, math.log(edge_prior / (1.0 - edge_prior)), signed,
        MANY_SWEEPS if count < EARLY and n <= LARGE else FEW_SWEEPS,
    )  # fmt: skip
    for a in range(edges):
        j = picked[a]
        coefficients[i, j], edge_variance[i, j], probability[i, j] = mean[a], together[a, a], exists[a]
        site_precision[i, j], site_product[i, j] = sites[a], shifts[a]
        for b in range(edges):
            covariance[i, j, picked[b]] = together[a, b]
        for c in range(rest):
            slope[i, c, j] = across[c, a]
    for c in range(rest):
        coefficients[i, n + c] = offset[c]
        for a in range(edges):
            coefficients[i, n + c] -= across[c, a] * mean[a]
        for b in range(rest):
            rest_covariance[i, c, b] = inverse[c, b]


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


@njit
def data_unit(moments):
    """The unit of all priors: that of the reward range, or less if the outcomes vary much less."""
    squares, count = 0.0, 0.0
    for i in range(moments.shape[0]):
        if moments[i, 0] >= ENOUGH:
            squares += moments[i, 2] / moments[i, 0]
            count += 1.0
    if squares == 0.0:
        return 1.0
    return min(max(math.sqrt(6.0 * squares / count), LEAST_UNIT), 1.0)


@njit
def effect_of(vector, coefficients):
    """own - a'o of a vector (o, own, ...)."""
    d = coefficients.shape[0]
    value = vector[d]
    for j in range(d):
        value -= coefficients[j] * vector[j]
    return value


@njit
def move_laws(
    base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, coefficients, grown, prior_mean
):
    """The laws of all arms under the new estimates; `grown`: by which the weight of the prior has changed."""
    for i in range(sums.shape[0]):
        total[i] = effect_of(sums[i], coefficients[i])
        for k in range(base.shape[0]):
            total_at[k, i] = effect_of(sums_at[k, i], coefficients[i])
            share = base_share[k, i]
            factor = 1.0 - share + share * grown
            if factor != 1.0:
                base_weight[k, i] *= factor
                base_share[k, i] = share * grown / factor
                for j in range(base.shape[2]):
                    base[k, i, j] /= factor
            base_mean[k, i] = effect_of(base[k, i], coefficients[i]) + base_share[k, i] * prior_mean


@gufunc(
    (
        float64[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1], float64[::1],
        float64[:, ::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[:, :, ::1],
        float64[:, ::1], float64[:, ::1], float64[:, ::1],
        float64[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1],
        float64[:, :], float64[:, :, :],
        float64[:, :, :, :], float64[:, :, :, :], float64[:, :, :, :], float64[:, :, :], float64[:, :, :],
        float64[:, :], float64[:, :], float64[:, :], float64[:, :], boolean[:, :], float64[:], float64[:], float64,
        boolean, boolean,
        boolean, boolean[:],
    ),
    "(n,d),(n,n),(n,r,n),(n,r,r),(n,t),(t),(n,n),(n),(n),(n,n),(n),(n,n,n),(n,n),(n,n),(n,t),"
    "(k,n,m),(k,n),(k,n),(k,n),(n),(k,n),(n,m),(k,n,m),"
    "(n,t,d,d),(n,t,d,d),(n,t,d,d),(n,t,d),(n,t,d),(n,t),(n,t),(n,t),(n,h),(n,n),(r),(t),(),(),(),()->()",
    writes=(
        "coefficients", "edge_variance", "slope", "rest_covariance", "noise", "pooled", "total_effects", "weights",
        "weight_variance", "probability", "trust", "covariance", "site_precision", "site_product", "evidence",
        "base", "base_share", "base_mean", "base_weight", "total", "total_at",
    ),
)  # fmt: skip
def solve_equations(
    coefficients, edge_variance, slope, rest_covariance, noise, pooled, total_effects, weights, weight_variance,
    probability, trust, covariance, site_precision, site_product, evidence, base, base_share, base_mean, base_weight,
    total, total_at, sums, sums_at,
    ff, qf, qq, fy, qy, rounds, squares, freedom, moments, allowed, rest_precision, prior, edge_prior, ordered,
    signed, due, done,
):  # fmt: skip
    """Estimate all equations, the noise and the weights, and move the laws of the arms along."""
    done[0] = due
    if not due:
        return
    n = weights.shape[0]
    before = pooled[0] / pooled[1] ** 2
    pooled[1] = data_unit(moments)
    plausible = unconfounded(evidence)
    trusted, doubt = (1.0, 1.0 - plausible) if ordered else (plausible, 1.0)
    for i in range(n):
        if rounds[i, 0] + rounds[i, 1] > 0.0:
            solve_row(
                i, pooled[1], ff[i], qf[i], qq[i], fy[i], qy[i], rounds, coefficients, edge_variance, slope,
                rest_covariance, noise, probability, trust, covariance, site_precision, site_product, evidence,
                total_effects, allowed, rest_precision, edge_prior, trusted, doubt, signed,
            )  # fmt: skip
            for kind in range(2):
                expected = pooled[0] if kind == 1 else FIRST_ROW_NOISE * pooled[1] ** 2
                weight = CHOSEN_WEIGHT if kind == 1 else FIRST_ROW_WEIGHT
                estimate = (squares[i, kind] + weight * expected) / (freedom[i, kind] + weight)
                noise[i, kind] = max(estimate, LEAST_ROW_NOISE * pooled[1] ** 2)
    find_weights(coefficients, covariance, total_effects, weights, weight_variance)
    squared, count = POOLED_WEIGHT * 2.0 * (prior[1] * pooled[1]) ** 2, POOLED_WEIGHT
    for i in range(n):
        squared += noise[i, 1] * rounds[i, 1]
        count += rounds[i, 1]
    pooled[0] = squared / count
    move_laws(
        base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, coefficients,
        pooled[0] / pooled[1] ** 2 / before, prior[0] * pooled[1],
    )  # fmt: skip

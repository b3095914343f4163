"""Structural equations from their statistics: between least squares and two-stage least squares, with sparse edges."""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, njit

from spillover.kernels.compiling import gufunc

EDGE_SCALE: Final = 0.5  # an edge that exists is half normal (normal if signed) with this scale
EDGE_DEVIATION: Final = 0.3  # prior deviation of an edge in the test for confounding
SHARED: Final = 0.5  # prior correlation between the error of an equation and its regressors ...
SHARED_WEIGHT: Final = 300.0  # ... and the rounds that this prior is worth
DOUBTFUL: Final = 1.5  # standard deviations of the evidence from all equations at which it is believed by half ...
STEEPNESS: Final = 4.0  # ... and how fast belief grows beyond
LEAST_ROW_NOISE: Final = 1e-7  # variance of an equation's error, in squared units of the range
FIRST_ROW_NOISE: Final = 0.02  # its prior value while the arm is not chosen ...
FIRST_ROW_WEIGHT: Final = 0.5  # ... and the rounds that this is worth
CHOSEN_WEIGHT: Final = 5.0  # rounds that the variance of all arms together is worth for one arm
POOLED_WEIGHT: Final = 20.0  # rounds that the prior of that variance is worth
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
def two_stages(ff, qf, qq, fy, qy, yy):
    """Precision and product that the instruments explain, those of the rest of the variation, and its squares of y."""
    size = fy.shape[0]
    for a in range(size):
        qq[a, a] += RIDGE * qq[a, a] + 1e-12
    inverse = np.empty((size, size))
    invert_symmetric(qq, inverse)
    stage = product_of(qf.T, inverse)
    precision = product_of(stage, qf)
    precision = 0.5 * (precision + precision.T)
    product = applied(stage, qy)
    by_instruments = applied(inverse, qy)
    rest = yy
    for a in range(size):
        rest -= qy[a] * by_instruments[a]
    return precision, product, ff - precision, fy - product, max(rest, 0.0)


@njit
def confounding(precision, product, rest_precision, rest_product, prior, edges, rounds, variance, shared):
    """The share of the variation of each regressor that it has in common with the error (a Hausman test, with a prior).

    Returns by how much the statistic of all regressors exceeds its expectation without common causes, and this
    expectation. variance: of the outcome given the decisions, in units of the noise. The noise itself may be too small,
    because biased coefficients explain common causes away.
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
    statistic, rank = 0.0, 1.0 * edges
    for a in range(edges):
        rank -= ridge * inverse[a, a]
        for b in range(edges):
            statistic += gap[a] * inverse[a, b] * gap[b]
        excess = max(gap[a] * gap[a] / spread[a, a] - 1.0, 0.0)
        information = max(r[a, a], 0.0) / spread[a, a]
        shared[a] = min((excess + SHARED_WEIGHT * SHARED**2) / (rounds * variance * information + SHARED_WEIGHT), 1.0)
    return statistic - rank, rank


@njit
def common_causes(evidence):
    """How likely some equation has hidden common causes, by the evidence from all of them."""
    excess, rank = 0.0, 0.0
    for i in range(evidence.shape[0]):
        excess += evidence[i, 0]
        rank += evidence[i, 1]
    beyond = excess / math.sqrt(2.0 * max(rank, 1.0)) - DOUBTFUL
    return 1.0 / (1.0 + math.exp(-max(min(STEEPNESS * beyond, 50.0), -50.0)))


@njit
def add_least_squares(precision, product, rest_precision, rest_product, biases, trusted):
    """Add what the variation that the instruments leave tells; biases: variances of the products due to common causes.

    Returns the share of the information of least squares that is used.
    """
    edges = biases.shape[0]
    rest = rest_precision[:edges, :edges]
    spread, inverse = np.empty((edges, edges)), np.empty((edges, edges))
    for a in range(edges):
        for b in range(edges):
            spread[a, b] = rest[a, b]
        spread[a, a] += biases[a] + 1e-12
    invert_symmetric(spread, inverse)
    kept = product_of(rest, inverse)
    gained, added = applied(kept, rest_product[:edges]), product_of(kept, rest)
    used, whole = 0.0, 1e-300
    for a in range(edges):
        used += trusted * added[a, a]
        whole += rest[a, a]
        product[a] += trusted * gained[a]
        for b in range(edges):
            precision[a, b] += trusted * 0.5 * (added[a, b] + added[b, a])
    return used / whole


@njit
def expected_squares(ff, fy, yy, picked, coefficients, together, across, inverse):
    """The expected sum of squared errors of an equation, over the posterior of its coefficients.

    The edges have the covariance `together`; the other coefficients are -`across` times the edges plus a part of
    covariance `inverse`.
    """
    edges, rest = together.shape[0], inverse.shape[0]
    size = edges + rest
    left = yy
    for a in range(size):
        left -= 2.0 * coefficients[picked[a]] * fy[picked[a]]
        for b in range(size):
            left += coefficients[picked[a]] * ff[picked[a], picked[b]] * coefficients[picked[b]]
    for a in range(edges):
        for b in range(edges):
            cross = ff[picked[a], picked[b]]
            for c in range(rest):
                cross -= 2.0 * across[c, a] * ff[picked[edges + c], picked[b]]
                for e in range(rest):
                    cross += across[c, a] * ff[picked[edges + c], picked[edges + e]] * across[e, b]
            left += together[a, b] * cross
    for c in range(rest):
        for e in range(rest):
            left += inverse[c, e] * ff[picked[edges + c], picked[edges + e]]
    return max(left, 0.0)


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
    i, unit, ff, qf, qq, fy, qy, yy, rounds, coefficients, edge_variance, slope, rest_covariance, noise, probability,
    trust, covariance, site_precision, site_product, evidence, total_effects, allowed, rest_precision, edge_prior,
    suspected, ordered, signed,
):  # fmt: skip
    """The coefficients of one equation and their uncertainty.

    Returns the expected squares of its errors in the rounds in which the arm was not chosen.
    suspected: how likely some equation has hidden common causes. Then least squares counts less, and the noise is taken
    as large as the variance of the outcome given the decisions.
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
    precision, product, rest_of_precision, rest_of_product, rest_of_squares = two_stages(
        weighted(ff, picked, noise[i]), weighted(qf, picked, noise[i]), weighted(qq, picked, noise[i]), first, second,
        yy[0] / noise[i, 0] + yy[1] / noise[i, 1],
    )  # fmt: skip
    if edges > 0:
        for a in range(edges):  # an outcome contains the error of any arm that affects it
            rest_of_product[a] -= count * total_effects[picked[a], i]
        variance = max(rest_of_squares / max(count, 1.0), 1.0)
        shared = np.full(edges, SHARED**2)
        if count >= size + MORE_ROUNDS:
            evidence[i, 0], evidence[i, 1] = confounding(
                precision, product, rest_of_precision, rest_of_product, prior, edges, count, variance, shared
            )
        noisier = 1.0 + suspected * (variance - 1.0)
        precision, product = precision / noisier, product / noisier
        biases = np.empty(edges)
        for a in range(edges):  # in the opposite direction effects bias least squares even without common causes
            doubt = suspected if ordered else 1.0
            biases[a] = doubt * count * variance * shared[a] * max(rest_of_precision[a, a], 0.0)
        trust[i] = add_least_squares(precision, product, rest_of_precision, rest_of_product, biases, 1.0 - suspected)
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
    return expected_squares(ff[0], fy[0], yy[0], picked, coefficients[i], together, across, inverse)


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
        float64[:, ::1], float64[::1], float64[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1],
        float64[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1],
        float64[:, :], float64[:, :, :], float64[:, :],
        float64[:, :, :, :], float64[:, :, :, :], float64[:, :, :, :], float64[:, :, :], float64[:, :, :],
        float64[:, :], float64[:, :], float64[:, :], float64[:, :], float64[:, :], boolean[:, :], float64[:],
        float64[:], float64, boolean, boolean,
        boolean, boolean[:],
    ),
    "(n,d),(n,n),(n,r,n),(n,r,r),(n,t),(t),(n,n),(n),(n,n,n),(n,n),(n,n),(n,t),"
    "(k,n,m),(k,n),(k,n),(k,n),(n),(k,n),(n,m),(k,n,m),(n,n),"
    "(n,t,d,d),(n,t,d,d),(n,t,d,d),(n,t,d),(n,t,d),(n,t),(n,t),(n,t),(n,t),(n,h),(n,n),(r),(t),(),(),(),()->()",
    writes=(
        "coefficients", "edge_variance", "slope", "rest_covariance", "noise", "pooled", "probability", "trust",
        "covariance", "site_precision", "site_product", "evidence", "base", "base_share", "base_mean", "base_weight",
        "total", "total_at",
    ),
)  # fmt: skip
def solve_equations(
    coefficients, edge_variance, slope, rest_covariance, noise, pooled, probability, trust, covariance, site_precision,
    site_product, evidence, base, base_share, base_mean, base_weight, total, total_at, sums, sums_at, total_effects,
    ff, qf, qq, fy, qy, yy, rounds, squares, freedom, moments, allowed, rest_precision, prior, edge_prior, ordered,
    signed, due, done,
):  # fmt: skip
    """Estimate all equations and the noise, and move the laws of the arms along."""
    done[0] = due
    if not due:
        return
    n = evidence.shape[0]
    before = pooled[0] / pooled[1] ** 2
    pooled[1] = data_unit(moments)
    suspected = common_causes(evidence)
    for i in range(n):
        if rounds[i, 0] + rounds[i, 1] > 0.0:
            left = solve_row(
                i, pooled[1], ff[i], qf[i], qq[i], fy[i], qy[i], yy[i], rounds, coefficients, edge_variance, slope,
                rest_covariance, noise, probability, trust, covariance, site_precision, site_product, evidence,
                total_effects, allowed, rest_precision, edge_prior, suspected, ordered, signed,
            )  # fmt: skip
            for kind in range(2):
                expected = pooled[0] if kind == 1 else FIRST_ROW_NOISE * pooled[1] ** 2
                weight = CHOSEN_WEIGHT if kind == 1 else FIRST_ROW_WEIGHT
                estimate = (squares[i, kind] + weight * expected) / (freedom[i, kind] + weight)
                if kind == 0:  # biased coefficients explain common causes away as if there were less noise
                    whole = (left + weight * expected) / (rounds[i, kind] + weight)
                    estimate += suspected * max(whole - estimate, 0.0)
                noise[i, kind] = max(estimate, LEAST_ROW_NOISE * pooled[1] ** 2)
    squared, count = POOLED_WEIGHT * 2.0 * (prior[1] * pooled[1]) ** 2, POOLED_WEIGHT
    for i in range(n):
        squared += noise[i, 1] * rounds[i, 1]
        count += rounds[i, 1]
    pooled[0] = squared / count
    move_laws(
        base, base_share, base_mean, base_weight, sums, sums_at, total, total_at, coefficients,
        pooled[0] / pooled[1] ** 2 / before, prior[0] * pooled[1],
    )  # fmt: skip

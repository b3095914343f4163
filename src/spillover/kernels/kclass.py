"""Rows of the graph by k-class regression: between least squares and two-stage least squares, then spike and slab.

All rows share one matrix of moments of v = (y, z, q, 1), where q is what the policy expected of z. In row i the outcome
is y_i - z_i, the regressors are the y of its possible causes and 1, the instruments are q and 1.
"""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, njit

from spillover.kernels.build import gufunc

PIVOT: Final = 1e-10  # a column with less than this share of its square left depends on those before it
EDGE_SCALE: Final = 0.5  # an edge that exists is half normal with this scale (normal if signed)
EDGE_ODDS: Final = 1.0 / 9.0  # prior odds that an edge exists
LEAST_CHANCE: Final = 0.1  # in the errors of other edges an edge is at least as likely as a priori
FLAT: Final = 1e-9  # precision of the prior of an edge that is known to exist
LOOSE: Final = 0.3  # prior deviation of an edge where instruments and least squares are compared
BASELINE_SCALE: Final = 10.0  # prior deviation of a baseline, in units of the largest reward
NOISE_PRIOR: Final = 0.02  # prior variance of a row's error, in squared units; it counts as half a round
NOISE_ROUNDS: Final = 0.5
LEAST_NOISE: Final = 1e-7
SHARE_PRIOR: Final = 0.09  # prior share of a row's error that its causes share with it
SHARE_ROUNDS: Final = 300.0  # rounds that this prior counts as
FEWEST_FREE: Final = 5.0  # with fewer degrees of freedom doubts are not tested
CONFOUNDING: Final = 0.25  # squared prior correlation of hidden common causes, where they are tested for
MOST_EXPLAINED: Final = 1.0 - 1e-12  # share of a sum of squares
SETTLED: Final = 1e-9  # a smaller share of a sum of squares is rounding
PASSES: Final = 3  # between the coefficients and the variance of the error
SWEEPS: Final = 5  # over the edges of a row, in each pass


@gufunc(
    (float64[:, ::1], float64[::1], float64[::1], float64[::1], float64, boolean[:]),
    "(m,m),(n),(n),(n),()->()",
    writes=("moments",),
)
def absorb_moments(moments, y, z, q, weight, absorbed):
    """Add a round to the sums of v v'. Rows of y hold the columns of y only: the rest is in the other rows."""
    absorbed[0] = weight != 0.0
    if weight == 0.0:
        return
    n, m = y.shape[0], moments.shape[0]
    v = np.empty(m)
    for i in range(n):
        v[i], v[n + i], v[2 * n + i] = y[i], z[i], q[i]
    v[3 * n] = 1.0
    for a in range(m):
        scaled = weight * v[a]
        if scaled != 0.0:
            for b in range(n if a < n else m):
                moments[a, b] += scaled * v[b]


@njit
def inverse(matrix, size, result):
    """The inverse of a symmetric matrix; a column that depends on those before it is left out (zeros)."""
    root = np.zeros((size, size))
    used = np.ones(size, np.bool_)
    for j in range(size):
        t = matrix[j, j]
        for k in range(j):
            t -= root[j, k] * root[j, k]
        if not t > PIVOT * matrix[j, j] or not matrix[j, j] > 0.0:
            used[j] = False
            root[j, j] = 1.0
            for k in range(j):
                root[j, k] = 0.0
            continue
        root[j, j] = math.sqrt(t)
        for i in range(j + 1, size):
            t = matrix[i, j]
            for k in range(j):
                t -= root[i, k] * root[j, k]
            root[i, j] = t / root[j, j]
    for c in range(size):
        for i in range(size):
            t = 1.0 if i == c and used[c] else 0.0
            for k in range(c, i):
                t -= root[i, k] * result[k, c]
            result[i, c] = t / root[i, i] if used[i] and i >= c else 0.0
        for i in range(size - 1, -1, -1):
            t = result[i, c]
            for k in range(i + 1, size):
                t -= root[k, i] * result[k, c]
            result[i, c] = t / root[i, i] if used[i] else 0.0


@njit
def moment(moments, a, b, n):
    """The sum of v_a v_b."""
    return moments[a, b] if a >= n or b < n else moments[b, a]


@njit
def projected_moments(moments, first, n, result):
    """Moments of the projections of (y, 1, z) on the instruments v[first : first + n] and 1; (2n + 1, 2n + 1)."""
    size, wide = n + 1, 2 * n + 1
    gram, solved = np.empty((size, size)), np.empty((size, size))
    cross, half = np.empty((wide, size)), np.empty((wide, size))
    for a in range(size):
        row = 3 * n if a == n else first + a
        for b in range(size):
            gram[a, b] = moments[row, 3 * n if b == n else first + b]
        for c in range(wide):
            cross[c, a] = moments[row, column_of(c, n)]
    inverse(gram, size, solved)
    for c in range(wide):
        for b in range(size):
            t = 0.0
            for a in range(size):
                t += cross[c, a] * solved[a, b]
            half[c, b] = t
    for c in range(wide):
        for d in range(c + 1):
            t = 0.0
            for b in range(size):
                t += half[c, b] * cross[d, b]
            result[c, d] = t
            result[d, c] = t


@njit
def column_of(place, n):
    """The position in v of a position in (y, 1, z)."""
    if place < n:
        return place
    return 3 * n if place == n else place - 1


@njit
def all_moments(moments, n, result):
    """Moments of (y, 1, z), (2n + 1, 2n + 1)."""
    wide = 2 * n + 1
    for c in range(wide):
        for d in range(wide):
            result[c, d] = moment(moments, column_of(c, n), column_of(d, n), n)


@njit
def edge_posterior(precision, pull, signed, required):
    """Probability, mean and variance of an edge with likelihood exp(pull a - precision a^2 / 2).

    The edge is 0, or half normal; one that is required has a flat prior instead.
    """
    s2 = 1.0 / (max(precision, 0.0) + (FLAT if required else 1.0 / EDGE_SCALE**2))
    mu, deviation = s2 * pull, math.sqrt(s2)
    z = mu / deviation
    evidence = 0.5 * math.log(s2 / EDGE_SCALE**2)
    if signed:
        evidence += 0.5 * z * z
        mean, variance = mu, s2
    elif z > -5.0:
        below = 0.5 * math.erfc(-z * 0.7071067811865476)
        hazard = 0.3989422804014327 * math.exp(-0.5 * z * z) / below
        evidence += 0.5 * z * z + math.log(2.0 * below)
        mean, variance = mu + deviation * hazard, max(s2 * (1.0 - z * hazard - hazard * hazard), 1e-3 * s2)
    else:
        evidence -= math.log(-z * 1.2533141373155)
        mean, variance = deviation / -z, s2 / (z * z)
    odds = min(max(math.log(EDGE_ODDS) + evidence, -50.0), 50.0)
    probability = 1.0 if required else 1.0 / (1.0 + math.exp(-odds))
    return probability, mean, variance


@njit
def shared_error(strong, pull_strong, rest, pull_rest, edges, rounds, noise, unit):
    """The share of a row's error that its causes share with it: do instruments predict what the rest of y says?

    A Hausman statistic, with a prior on the edges. Sums are those of the projections on the instruments (strong) and
    what is left (rest), edges first, then the baseline.
    """
    size = edges + 1
    loose, cover = np.empty((size, size)), np.empty((size, size))
    for a in range(size):
        for b in range(size):
            loose[a, b] = strong[a, b] / noise
        loose[a, a] += 1.0 / LOOSE**2 if a < edges else 1.0 / (BASELINE_SCALE**2 * unit)
    inverse(loose, size, cover)
    estimate, gap = np.zeros(size), np.zeros(edges)
    for a in range(size):
        for b in range(size):
            estimate[a] += cover[a, b] * pull_strong[b] / noise
    total = np.empty((edges, edges))
    half = np.zeros((edges, edges))
    small = 1e-12
    for a in range(edges):
        small += 1e-6 * max(rest[a, a], 0.0) / (noise * edges)
        gap[a] = pull_rest[a] / noise
        for b in range(size):
            gap[a] -= rest[a, b] / noise * estimate[b]
        for b in range(edges):
            for c in range(edges):
                half[a, b] += rest[a, c] / noise * cover[c, b]
    for a in range(edges):
        for b in range(edges):
            t = rest[a, b] / noise
            for c in range(edges):
                t += half[a, c] * rest[c, b] / noise
            total[a, b] = t
    for a in range(edges):
        total[a, a] += small
    solved = np.empty((edges, edges))
    inverse(total, edges, solved)
    distance, freedom, rank = 0.0, 0.0, 1.0 * edges
    for a in range(edges):
        rank -= small * solved[a, a]
        for b in range(edges):
            distance += gap[a] * solved[a, b] * gap[b]
            freedom += rest[a, b] / noise * solved[b, a]
    excess = max(distance - rank, 0.0)
    return min((excess + SHARE_ROUNDS * SHARE_PRIOR) / (rounds * max(freedom, 0.0) + SHARE_ROUNDS), 1.0)


@njit
def fit_edges(gram, pull, edges, noise, unit, signed, required, mean, variance, probability):
    """Spike and slab, edge by edge; the baseline, last, is eliminated exactly. Returns its mean and variance."""
    level = gram[edges, edges] / noise + 1.0 / (BASELINE_SCALE**2 * unit)
    for _ in range(SWEEPS):
        for a in range(edges):
            own = gram[a, edges] / (noise * level)
            t = (pull[a] - own * pull[edges]) / noise
            for b in range(edges):
                if b != a:
                    t -= (gram[a, b] - own * gram[edges, b]) / noise * mean[b]
            precision = (gram[a, a] - own * gram[edges, a]) / noise
            probability[a], m, v = edge_posterior(precision, t, signed, required[a])
            mean[a] = probability[a] * m
            variance[a] = probability[a] * (v + m * m) - mean[a] * mean[a]
    baseline, doubt = pull[edges] / (noise * level), 1.0 / level
    for a in range(edges):
        own = gram[edges, a] / (noise * level)
        baseline -= own * mean[a]
        doubt += own * own * variance[a]
    return baseline, doubt


@njit
def widen_variances(gram, edges, noise, unit, required, mean, variance, probability):
    """Variances that allow for the errors of the other edges, as far as they may exist, and of the baseline."""
    size = edges + 1
    precision, cover = np.empty((size, size)), np.empty((size, size))
    for a in range(size):
        for b in range(size):
            precision[a, b] = gram[a, b] / noise
        if a == edges:
            precision[a, a] += 1.0 / (BASELINE_SCALE**2 * unit)
        elif required[a]:
            precision[a, a] += FLAT
        else:
            precision[a, a] += 1.0 / (max(probability[a], LEAST_CHANCE) * EDGE_SCALE**2)
    inverse(precision, size, cover)
    for a in range(edges):
        variance[a] = max(variance[a], cover[a, a])


@njit
def squared_residuals(whole, pull, energy, edges, mean, baseline):
    """The sum of squares of y_i - z_i - a'y - baseline over the rounds."""
    t = energy
    for a in range(edges + 1):
        own = mean[a] if a < edges else baseline
        fitted = -2.0 * pull[a]
        for b in range(edges + 1):
            fitted += whole[a, b] * (mean[b] if b < edges else baseline)
        t += own * fitted
    return max(t, 0.0)


@gufunc(
    (
        float64[:, :],
        boolean[:, :],
        boolean[:, :],
        boolean,
        boolean,
        float64,
        float64,
        float64[:, ::1],
        float64[::1],
        float64[:, :],
        float64[:, :],
        float64[:],
        float64[:],
        float64[:],
    ),
    "(m,m),(n,n),(n,n),(),(),(),(),(n,n),(n)->(n,n),(n,n),(n),(n),(n)",
    writes=("adjacency", "noise"),
)
def k_class(
    moments,
    possible,
    required,
    ordered,
    signed,
    unit,
    fixed,
    adjacency,
    noise,
    variance,
    probability,
    baseline,
    baseline_variance,
    trust,
):
    """Edges and baseline of every row.

    ordered: causes come before effects, so that least squares is right without confounding; otherwise the projection
    on z is, and takes its place. fixed: the trust in it, from 0 (two-stage least squares) to 1; negative: by evidence.
    """
    n = possible.shape[0]
    wide, rounds = 2 * n + 1, moments[3 * n, 3 * n]
    strong, whole, plain = np.empty((wide, wide)), np.empty((wide, wide)), np.empty((wide, wide))
    projected_moments(moments, 2 * n, n, strong)
    all_moments(moments, n, plain)
    if ordered:
        whole[:, :] = plain
    else:
        projected_moments(moments, n, n, whole)
    for i in range(n):
        places, needed = np.empty(n + 1, np.int64), np.zeros(n, np.bool_)
        edges = 0
        for j in range(n):
            variance[i, j], probability[i, j] = 0.0, 0.0
            if possible[i, j]:
                places[edges], needed[edges] = j, required[i, j]
                edges += 1
        places[edges] = n
        size = edges + 1
        gram_s, gram_r = np.empty((size, size)), np.empty((size, size))
        gram_w, gram = np.empty((size, size)), np.empty((size, size))
        pull_s, pull_r, pull_w, pull = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
        mean, doubt, chance = np.empty(edges), np.zeros(edges), np.zeros(edges)
        for a in range(size):
            p = places[a]
            pull_s[a] = strong[p, i] - strong[p, n + 1 + i]
            pull_r[a] = whole[p, i] - whole[p, n + 1 + i] - pull_s[a]
            pull_w[a] = plain[p, i] - plain[p, n + 1 + i]
            if a < edges:
                mean[a] = adjacency[i, p]
            for b in range(size):
                gram_s[a, b] = strong[p, places[b]]
                gram_r[a, b] = whole[p, places[b]] - gram_s[a, b]
                gram_w[a, b] = plain[p, places[b]]
        energy = plain[i, i] - 2.0 * plain[i, n + 1 + i] + plain[n + 1 + i, n + 1 + i]
        for _ in range(PASSES):
            trust[i] = fixed
            if fixed < 0.0:
                share = 0.0
                if edges > 0:
                    share = shared_error(gram_s, pull_s, gram_r, pull_r, edges, rounds, noise[i], unit)
                trust[i] = 1.0 / (1.0 + rounds * share)
            for a in range(size):
                pull[a] = pull_s[a] + trust[i] * pull_r[a]
                for b in range(size):
                    gram[a, b] = gram_s[a, b] + trust[i] * gram_r[a, b]
            baseline[i], baseline_variance[i] = fit_edges(
                gram, pull, edges, noise[i], unit, signed, needed, mean, doubt, chance
            )
            free = rounds
            for a in range(edges):
                free -= chance[a]
            left = squared_residuals(gram_w, pull_w, energy, edges, mean, baseline[i])
            prior = NOISE_ROUNDS * NOISE_PRIOR * unit
            noise[i] = max((left + prior) / (max(free - 1.0, 0.0) + NOISE_ROUNDS), LEAST_NOISE * unit)
        # biased coefficients explain common causes away: what the instruments leave is not less than the error
        left = energy - (strong[i, i] - 2.0 * strong[i, n + 1 + i] + strong[n + 1 + i, n + 1 + i])
        most = noise[i] + (1.0 - trust[i]) * max(left / max(rounds, 1.0) - noise[i], 0.0)
        widen_variances(gram, edges, most, unit, needed, mean, doubt, chance)
        for j in range(n):
            adjacency[i, j] = 0.0
        for a in range(edges):
            adjacency[i, places[a]] = mean[a]
            variance[i, places[a]] = doubt[a]
            probability[i, places[a]] = chance[a]


@njit
def log_determinant(matrix):
    """Of a positive definite matrix."""
    n = matrix.shape[0]
    root, total = np.zeros((n, n)), 0.0
    for j in range(n):
        t = matrix[j, j]
        for k in range(j):
            t -= root[j, k] * root[j, k]
        t = max(t, 1e-300)
        total += math.log(t)
        for i in range(j + 1, n):
            off = matrix[i, j]
            for k in range(j):
                off -= root[i, k] * root[j, k]
            root[i, j] = off / math.sqrt(t)
        root[j, j] = math.sqrt(t)
    return total


@gufunc(
    (float64[:, :], boolean[:], float64, boolean, float64[::1], float64[::1], boolean[:]),
    "(m,m),(n),(),(),(o),(o)->()",
    writes=("confounded", "baseline"),
)
def doubts(moments, arms, unit, due, confounded, baseline, tested):
    """Log Bayes factors, averaged over the outcomes: that expectations tell more than z does, and of a constant.

    Common coefficients and the variance have their reference prior, so that the factors are exact for normal noise.
    Given z, an outcome does not depend on what was expected of z, unless z and the outcome have a hidden common cause.
    """
    tested[0] = due
    if not due:
        return
    n = arms.shape[0]
    rounds = moments[3 * n, 3 * n]
    confounded[0], baseline[0] = 0.0, 0.0
    if rounds < 2.0 * n + FEWEST_FREE:
        return
    of_z, solved = np.empty((n + 1, n + 1)), np.empty((n + 1, n + 1))
    for a in range(n + 1):
        row = 3 * n if a == n else n + a
        for b in range(n + 1):
            of_z[a, b] = moments[row, 3 * n if b == n else n + b]
    inverse(of_z, n + 1, solved)
    # coefficients of q and of y on (z, 1)
    on_q, on_y = np.zeros((n, n + 1)), np.zeros((n, n + 1))
    for i in range(n):
        for a in range(n + 1):
            for b in range(n + 1):
                row = 3 * n if b == n else n + b
                on_q[i, a] += moments[row, 2 * n + i] * solved[b, a]
                on_y[i, a] += moments[row, i] * solved[b, a]
    new, pull = np.zeros((n, n)), np.zeros((n, n))
    surprise = 0.0
    for i in range(n):
        surprise += moments[n + i, n + i] - 2.0 * moments[2 * n + i, n + i] + moments[2 * n + i, 2 * n + i]
        for j in range(n):
            new[i, j], pull[i, j] = moments[2 * n + i, 2 * n + j], moments[2 * n + i, j]
            for a in range(n + 1):
                row = 3 * n if a == n else n + a
                new[i, j] -= on_q[i, a] * moments[row, 2 * n + j]
                pull[i, j] -= on_q[i, a] * moments[row, j]
    for i in range(n):  # what z and 1 explain up to rounding adds nothing
        if not new[i, i] > SETTLED * moments[2 * n + i, 2 * n + i]:
            for j in range(n):
                new[i, j], new[j, i], pull[i, j] = 0.0, 0.0, 0.0
    ratio = CONFOUNDING * rounds / max(surprise, SETTLED * unit * rounds)
    prior, cover = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(n):
            prior[i, j] = ratio * new[i, j] + (1.0 if i == j else 0.0)
    logs = 0.5 * log_determinant(prior)
    inverse(prior, n, cover)
    best_c, best_b = -math.inf, -math.inf
    log_c, log_b = np.empty(n), np.empty(n)
    steady, gone = rounds, np.zeros(n + 1)
    alone = np.empty((n, n))
    inverse(of_z, n, alone)
    for a in range(n):
        for b in range(n):
            gone[a] += alone[a, b] * of_z[b, n]
    for a in range(n):
        steady -= gone[a] * of_z[a, n]
    for i in range(n):
        left = moments[i, i]
        for a in range(n + 1):
            left -= on_y[i, a] * moments[3 * n if a == n else n + a, i]
        left = max(left, 0.0) + LEAST_NOISE * unit * rounds
        explained = 0.0
        for a in range(n):
            for b in range(n):
                explained += pull[a, i] * cover[a, b] * pull[b, i]
        share = min(max(ratio * explained / left, 0.0), MOST_EXPLAINED)
        log_c[i] = -0.5 * (rounds - n - 1.0) * math.log(1.0 - share) - logs
        level = moments[3 * n, i]
        for a in range(n):
            level -= gone[a] * moments[n + a, i]
        log_b[i] = 0.0
        if steady > SETTLED * rounds:
            share = level * level / (1.0 + steady) / (left + level * level / steady)
            log_b[i] = -0.5 * (rounds - n) * math.log(1.0 - min(share, MOST_EXPLAINED)) - 0.5 * math.log(1.0 + steady)
        best_c, best_b = max(best_c, log_c[i]), max(best_b, log_b[i])
    total_c, total_b = 0.0, 0.0
    for i in range(n):
        total_c += math.exp(log_c[i] - best_c)
        total_b += math.exp(log_b[i] - best_b)
    confounded[0] = best_c + math.log(total_c / n)
    baseline[0] = best_b + math.log(total_b / n)

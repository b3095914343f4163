"""Rows of the graph by k-class regression: between least squares and two-stage least squares, then spike and slab.

All rows share one matrix of moments of v = (y, z, q, 1), where q is what the policy expected of z. In row i the outcome
is y_i - z_i, the regressors are the y of its possible causes and 1, the instruments are q and 1.
"""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.arithmetic import product
from spillover.kernels.decorators import NONE_YET, allocating, inside
from spillover.kernels.factor import add_squares, factorise, forward, inverse_root, mirror

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
PASSES: Final = 3  # between the coefficients and the variance of the error
SWEEPS: Final = 5  # over the edges of a row, in each pass


@njit(inline="always")
def add_line(line, amount, values):
    for i in range(values.shape[0]):
        line[i] += amount * values[i]


@njit(inline="always")
def absorb_moments(moments, y, z, q, weight):
    """Add a round to the sums of v v'. Rows of y hold the columns of y only: the rest is in the other rows."""
    n = y.shape[0]
    for a in range(3 * n + 1):
        own = y[a] if a < n else z[a - n] if a < 2 * n else q[a - 2 * n] if a < 3 * n else 1.0
        amount = weight * own
        if amount != 0.0:
            line = moments[a]
            add_line(line[:n], amount, y)
            if a >= n:
                add_line(line[n : 2 * n], amount, z)
                add_line(line[2 * n : 3 * n], amount, q)
                line[3 * n] += amount


@njit(inline="always")
def moment(moments, a, b, n):
    """The sum of v_a v_b."""
    return moments[a, b] if a >= n or b < n else moments[b, a]


@inside
def projected_moments(moments, first, n, result):
    """Moments of the projections of (y, 1, z) on the instruments v[first : first + n] and 1; (2n + 1, 2n + 1)."""
    size, wide = n + 1, 2 * n + 1
    gram, root, pivots = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    half = np.empty((size, wide))
    for a in range(size):
        row = 3 * n if a == n else first + a
        for b in range(size):
            gram[a, b] = moments[row, 3 * n if b == n else first + b]
        for c in range(wide):
            half[a, c] = moments[row, column_of(c, n)]
    factorise(gram, size, root, pivots)
    forward(root, size, half)
    for c in range(wide):
        for d in range(wide):
            result[c, d] = 0.0
    add_squares(half, size, wide, result)
    mirror(result, wide)


@njit(inline="always")
def column_of(place, n):
    """The position in v of a position in (y, 1, z)."""
    if place < n:
        return place
    return 3 * n if place == n else place - 1


@njit(inline="always")
def all_moments(moments, n, result):
    """Moments of (y, 1, z), (2n + 1, 2n + 1)."""
    wide = 2 * n + 1
    for c in range(wide):
        for d in range(wide):
            result[c, d] = moment(moments, column_of(c, n), column_of(d, n), n)


@njit(inline="always")
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


@njit(inline="always")
def shared_error(strong, pull_strong, rest, pull_rest, edges, rounds, noise, unit):
    """The share of a row's error that its causes share with it: do instruments predict what the rest of y says?

    A Hausman statistic, with a prior on the edges. Sums are those of the projections on the instruments (strong) and
    what is left (rest), edges first, then the baseline.
    """
    size, scale = edges + 1, 1.0 / noise
    loose, root, pivots = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    solved = np.zeros((size, edges + 1))  # first the rest, then the pull
    for a in range(size):
        for b in range(size):
            loose[a, b] = strong[a, b] * scale
        loose[a, a] += 1.0 / LOOSE**2 if a < edges else 1.0 / (BASELINE_SCALE**2 * unit)
        for b in range(edges if a < edges else 0):
            solved[a, b] = rest[a, b] * scale
        solved[a, edges] = pull_strong[a] * scale
    factorise(loose, size, root, pivots)
    forward(root, size, solved)
    total, gap, small = np.empty((edges, edges)), np.empty((edges, 1)), 1e-12
    for a in range(edges):
        small += 1e-6 * max(rest[a, a], 0.0) / (noise * edges)
    estimate = back_solved(root, size, solved[:, edges])
    for a in range(edges):
        left = pull_rest[a]
        for b in range(size):
            left -= rest[a, b] * estimate[b]
        gap[a, 0] = left * scale
        for b in range(edges):
            total[a, b] = rest[a, b] * scale
        total[a, a] += small
    add_squares(solved, size, edges, total)
    factorise(total, edges, root, pivots)
    forward(root, edges, gap)
    inverse_root(root, edges, loose)
    distance, freedom, rank = 0.0, 0.0, 1.0 * edges
    for a in range(edges):
        distance += gap[a, 0] * gap[a, 0]
        for b in range(a + 1):
            rank -= small * loose[a, b] * loose[a, b]
    freedom = explained_freedom(loose, rest, edges) * scale
    excess = max(distance - rank, 0.0)
    return min((excess + SHARE_ROUNDS * SHARE_PRIOR) / (rounds * max(freedom, 0.0) + SHARE_ROUNDS), 1.0)


@njit(inline="always")
def back_solved(root, size, right):
    """L'^-1 times a vector; 0 for columns that are left out."""
    found = right.copy()
    for i in range(size - 1, -1, -1):
        found[i] = found[i] / root[i, i] if root[i, i] != 0.0 else 0.0
        for k in range(i):
            found[k] -= root[i, k] * found[i]
    return found


@njit(inline="always")
def explained_freedom(inverse, rest, edges):
    """The trace of K rest K' for a lower triangular K."""
    line, total = np.empty(edges), 0.0
    for a in range(edges):
        for c in range(edges):
            line[c] = 0.0
        for b in range(a + 1):
            factor, source = inverse[a, b], rest[b]
            for c in range(a + 1):
                line[c] += factor * source[c]
        for c in range(a + 1):
            total += line[c] * inverse[a, c]
    return total


@njit(inline="always")
def fit_edges(gram, pull, edges, noise, unit, signed, required, mean, variance, probability):
    """Spike and slab, edge by edge; the baseline, last, is eliminated exactly. Returns its mean and variance."""
    level = gram[edges, edges] / noise + 1.0 / (BASELINE_SCALE**2 * unit)
    last = gram[edges]
    at_level = 0.0  # what the edges add to the outcomes, all rounds together
    for b in range(edges):
        at_level += last[b] * mean[b]
    for _ in range(SWEEPS):
        for a in range(edges):
            own, before = gram[a, edges] / (noise * level), mean[a]
            fitted = product(gram[a], mean, 0, edges) - gram[a, a] * before - own * (at_level - last[a] * before)
            t = (pull[a] - own * pull[edges] - fitted) / noise
            precision = (gram[a, a] - own * last[a]) / noise
            probability[a], m, v = edge_posterior(precision, t, signed, required[a])
            mean[a] = probability[a] * m
            variance[a] = probability[a] * (v + m * m) - mean[a] * mean[a]
            at_level += last[a] * (mean[a] - before)
    baseline, doubt = pull[edges] / (noise * level), 1.0 / level
    for a in range(edges):
        own = last[a] / (noise * level)
        baseline -= own * mean[a]
        doubt += own * own * variance[a]
    return baseline, doubt


@njit(inline="always")
def widen_variances(gram, edges, noise, unit, required, mean, variance, probability):
    """Variances that allow for the errors of the other edges, as far as they may exist, and of the baseline."""
    size = edges + 1
    precision, root, pivots = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    for a in range(size):
        for b in range(size):
            precision[a, b] = gram[a, b] / noise
        if a == edges:
            precision[a, a] += 1.0 / (BASELINE_SCALE**2 * unit)
        elif required[a]:
            precision[a, a] += FLAT
        else:
            precision[a, a] += 1.0 / (max(probability[a], LEAST_CHANCE) * EDGE_SCALE**2)
    factorise(precision, size, root, pivots)
    inverse_root(root, size, precision)
    cover = np.zeros(size)  # the diagonal of the inverse
    for k in range(size):
        for a in range(k + 1):
            cover[a] += precision[k, a] * precision[k, a]
    for a in range(edges):
        variance[a] = max(variance[a], cover[a])


@njit(inline="always")
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


@allocating
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
        for c in range(wide):  # an assignment of the whole array takes seconds to compile
            for d in range(wide):
                whole[c, d] = plain[c, d]
    else:
        projected_moments(moments, n, n, whole)
    for i in range(n):
        places, needed = np.empty(n + 1, np.int64), np.zeros(n, np.bool_)
        edges = NONE_YET
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

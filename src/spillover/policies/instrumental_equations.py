"""Structural equations from their statistics: between least squares and two-stage least squares, with sparse edges.

Row i of the graph is learned from two kinds of rounds, which have noise of their own: 0, those in which nothing unknown
was added to the arm (it was not chosen, or its own reward z is known and taken off), and 1, those in which it was
chosen. The latter are compared with the average of the rounds since the arm's last change, which takes its own effect
out. If z is known, rounds of kind 1 tell what the context does to z.
"""

import math
from typing import Any, Final

import numpy as np

from spillover.core import inner
from spillover.core.compiled import rare
from spillover.graph.k_class import LARGEST_RADIUS, spectral_radius
from spillover.kernels.factor import applied, invert_symmetric, product_of
from spillover.kernels.inversion import invert
from spillover.policies.instrumental_filter import (
    COUNT,
    EFFECT,
    EXPECTED,
    FRESH,
    KNOWN,
    SHOCK,
    Room,
    Y,
    Z,
    doubt_about,
    sizes,
)

EDGE_SCALE: Final = 0.5  # an edge that exists is half normal (normal if signed) with this scale
EDGE_DEVIATION: Final = 0.3  # prior deviation of an edge in the test for confounding
BASELINE_DEVIATION: Final = 10.0  # prior of baselines, in units of the range
SLOPE_DEVIATION: Final = 0.5  # prior of what a unit of context does to an effect, in units of the range
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
MANY_ARMS: Final = 30  # ... unless there are more arms
MANY_SWEEPS: Final = 10
FEW_SWEEPS: Final = 3
LEAST_EDGE_VARIANCE: Final = 1e-12
MOST_EDGE: Final = 100.0  # a larger edge is an error of the first rounds, with outcomes far beyond what was assumed
LEAST_SITE: Final = 1e-6  # precision of a normal factor in place of the prior of an edge
DAMPING: Final = 0.7  # step of these factors towards their new values
RIDGE: Final = 1e-6  # instruments that depend on each other up to this share are kept apart
MORE_ROUNDS: Final = 5  # than coefficients, from which errors are tested for hidden common causes
UNCERTAIN: Final = 1e-9  # a weight below this is none
GROWTH: Final = 0.005  # the graph is solved again when the rounds learned have grown by this share
LARGE: Final = 20  # with more arms, rarer: the cost grows with the fourth power
RAREST: Final = 1.0


@rare
def add_round(s: Any, i: Any, kind: Any, regressors: Any, instruments: Any, own: Any, weight: Any) -> None:
    """Add one round to one equation, and its residual to the estimate of the noise."""
    e, st, d, residual = s.equations, s.statistics, regressors.shape[0], own
    if not weight > UNCERTAIN:
        return
    for a in range(d):
        residual -= e.coefficients[i, a] * regressors[a]
    noise = e.noise[i, kind]
    certain = noise / (noise + weight * doubt_about(e, i, regressors))  # the part of the residual's variance
    st.squares[i, kind] += certain * certain * weight * residual * residual
    st.freedom[i, kind] += certain
    st.rounds[i, kind] += weight
    st.yy[i, kind] += weight * own * own
    ff, qf, qq = st.ff[i, kind], st.qf[i, kind], st.qq[i, kind]
    fy, qy = st.fy[i, kind], st.qy[i, kind]
    for a in range(d):
        if regressors[a] != 0.0 or instruments[a] != 0.0:
            f, q = weight * regressors[a], weight * instruments[a]
            fy[a] += f * own
            qy[a] += q * own
            for b in range(d):
                ff[a, b] += f * regressors[b]
                qf[a, b] += q * regressors[b]
                qq[a, b] += q * instruments[b]


@inner
def completes(i: Any, known: Any, fresh: Any, closed: Any, allowed: Any) -> Any:
    """Whether what has arrived of a round completes the equation of arm i; each round counts once."""
    whole, news = True, fresh[i]
    for j in range(known.shape[0]):
        if allowed[i, j]:
            whole &= known[j]
            news |= fresh[j] and known[j]
    return known[i] and (news if whole else closed)


@inner
def add_value(moments: Any, value: Any) -> None:
    """Add a value to a number, a mean and a sum of squared deviations."""
    moments[0] += 1.0
    gap = value - moments[1]
    moments[1] += gap / moments[0]
    moments[2] += gap * (value - moments[1])


@rare
def learn_equations(s: Any, x: Any, dose: Any, closed: Any, room: Room) -> None:
    """Add a round to the statistics of every equation that its news complete."""
    e, st, n, (p, q) = s.equations, s.statistics, x.shape[0], sizes(s)
    y, z, shock, expected = room.lines[Y], room.lines[Z], room.lines[SHOCK], room.lines[EXPECTED]
    effects, count, context = room.lines[EFFECT], room.lines[COUNT], room.context
    known, fresh, taken, d = room.flags[KNOWN], room.flags[FRESH], False, n + p + q
    f, g, moved, learned = np.zeros(d), np.zeros(d), np.zeros(n), s.statistics.learned
    for i in range(n):
        rewarded, centre = x[i] and not math.isnan(z[i]), room.centre[i]
        certain = count[i] / (count[i] + dose[i] ** 2)
        if known[i] and fresh[i]:
            add_value(st.moments[i], y[i])
        if completes(i, known, fresh, closed, s.allowed):
            taken = True
            kind, back = (1, dose[i]) if x[i] and not rewarded else (0, 0.0)  # back: of the average to compare with
            for j in range(n):
                f[j] = (y[j] if known[j] else expected[j]) - back * centre[j]
                moved[j] = dose[j] if x[j] else 0.0
                usual = st.decisions[j] / learned if learned > 0 else moved[j]
                moved[j] -= dose[i] * centre[d + 1 + j] if kind == 1 else usual
            for c in range(p):
                f[n + c] = context[c] - back * centre[n + c]
            for c in range(q):
                f[n + p + c] = back * (context[1 + c] - centre[n + p + c])
            for j in range(n):
                g[j] = 0.0
                for k in range(n):
                    g[j] += e.total_effects[j, k] * effects[k] * moved[k]
            for c in range(n, d):
                g[c] = f[c]
            f[i] = g[i] = 0.0
            own = y[i] - shock[i] - (z[i] if rewarded else back * centre[d])
            add_round(s, i, kind, f, g, own, certain if kind == 1 else 1.0)
        if rewarded and fresh[i]:
            f[:] = 0.0
            for c in range(q):
                f[n + p + c] = dose[i] * (context[1 + c] - centre[n + p + c])
            add_round(s, i, 1, f, f, z[i] - dose[i] * centre[d], certain)
    if taken:
        st.learned += 1
        for j in range(n):
            if x[j]:
                st.decisions[j] += dose[j]


@inner
def is_due(s: Any) -> Any:
    """Whether so much was learned that the equations should be solved again."""
    growth = min(GROWTH * max(s.n_arms / LARGE, 1.0) ** 3, RAREST)
    return s.statistics.learned > s.solved and s.statistics.learned >= (1.0 + growth) * s.solved


@rare
def weighted(statistics: Any, picked: Any, noise: Any) -> Any:
    """The statistics of both kinds of rounds, each over its noise, for the picked coefficients."""
    size = picked.shape[0]
    found = np.empty((size, size))
    for a in range(size):
        for b in range(size):
            found[a, b] = (
                statistics[0, picked[a], picked[b]] / noise[0] + statistics[1, picked[a], picked[b]] / noise[1]
            )
    return found


@rare
def two_stages(ff: Any, qf: Any, qq: Any, fy: Any, qy: Any, yy: Any) -> Any:
    """Precision and product that the instruments explain, those of the rest of the variation, and its squares of y."""
    size = fy.shape[0]
    for a in range(size):
        qq[a, a] += RIDGE * qq[a, a] + 1e-12
    inverse = np.empty((size, size))
    invert_symmetric(qq, inverse)
    stage = product_of(qf.T.copy(), inverse)
    precision = product_of(stage, qf)
    precision = 0.5 * (precision + precision.T)
    product = applied(stage, qy)
    by_instruments = applied(inverse, qy)
    rest = yy
    for a in range(size):
        rest -= qy[a] * by_instruments[a]
    return precision, product, ff - precision, fy - product, max(rest, 0.0)


@rare
def confounding(
    precision: Any, product: Any, rest_precision: Any, rest_product: Any, prior: Any, rounds: Any, variance: Any,
    shared: Any,
) -> Any:  # fmt: skip
    """The share of the variation of each regressor that it has in common with the error (a Hausman test, with a prior).

    Returns by how much the statistic of all regressors exceeds its expectation without common causes, and this
    expectation. variance: of the outcome given the decisions, in units of the noise. The noise itself may be too small,
    because biased coefficients explain common causes away.
    """
    size, edges = product.shape[0], shared.shape[0]
    certain = precision.copy()
    for a in range(size):
        certain[a, a] += prior[a]
    covariance, inverse = np.empty((size, size)), np.empty((edges, edges))
    invert_symmetric(certain, covariance)
    estimate = applied(covariance, product)
    gap, r, ridge = np.empty(edges), rest_precision[:edges, :edges].copy(), 1e-12
    for a in range(edges):
        t = rest_product[a]
        for b in range(size):
            t -= rest_precision[a, b] * estimate[b]
        gap[a] = t
        ridge += 1e-6 * max(r[a, a], 0.0) / edges
    spread = product_of(product_of(r, covariance[:edges, :edges].copy()), r) + r
    spread = 0.5 * (spread + spread.T)
    for a in range(edges):
        spread[a, a] += ridge
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


@inner
def common_causes(evidence: Any) -> Any:
    """How likely some equation has hidden common causes, by the evidence from all of them."""
    excess, rank = 0.0, 0.0
    for i in range(evidence.shape[0]):
        excess += evidence[i, 0]
        rank += evidence[i, 1]
    beyond = excess / math.sqrt(2.0 * max(rank, 1.0)) - DOUBTFUL
    return 1.0 / (1.0 + math.exp(-max(min(STEEPNESS * beyond, 50.0), -50.0)))


@rare
def add_least_squares(
    precision: Any, product: Any, rest_precision: Any, rest_product: Any, biases: Any, trusted: Any
) -> Any:
    """Add what the variation that the instruments leave tells; biases: variances of the products due to common causes.

    Returns the share of the information of least squares that is used.
    """
    edges = biases.shape[0]
    rest, inverse = rest_precision[:edges, :edges].copy(), np.empty((edges, edges))
    spread = rest.copy()
    for a in range(edges):
        spread[a, a] += biases[a] + 1e-12
    invert_symmetric(spread, inverse)
    kept = product_of(rest, inverse)
    gained, added = applied(kept, rest_product), product_of(kept, rest)
    used, whole = 0.0, 1e-300
    for a in range(edges):
        used += trusted * added[a, a]
        whole += rest[a, a]
        product[a] += trusted * gained[a]
        for b in range(edges):
            precision[a, b] += trusted * 0.5 * (added[a, b] + added[b, a])
    return used / whole


@rare
def expected_squares(
    ff: Any, fy: Any, yy: Any, picked: Any, coefficients: Any, together: Any, across: Any, inverse: Any
) -> Any:
    """The expected sum of squared errors of an equation, over the posterior of its coefficients.

    The edges have the covariance `together`; the other coefficients are -`across` times the edges plus a part of
    covariance `inverse`.
    """
    edges, rest = together.shape[0], inverse.shape[0]
    left = yy
    for a in range(edges + rest):
        left -= 2.0 * coefficients[picked[a]] * fy[picked[a]]
        for b in range(edges + rest):
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


@rare
def slab_moments(mu: Any, s2: Any, signed: Any) -> Any:
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


@rare
def sparse_edges(
    precision: Any, product: Any, site_precision: Any, site_product: Any, mean: Any, covariance: Any, probability: Any,
    odds: Any, signed: Any, sweeps: Any,
) -> None:  # fmt: skip
    """Spike and slab by expectation propagation: each edge is 0 or from the slab, the edges together are normal.

    The prior of each edge is replaced by a normal factor, its site, so that mean and variance of the edge are those
    under its true prior and the sites of the others.
    """
    edges = product.shape[0]
    for sweep in range(sweeps + 1):
        certain = precision.copy()
        for a in range(edges):
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


@inner
def edge_prior(n: Any) -> Any:
    """The prior probability of an edge: about one cause for each arm."""
    return min(1.0 / n, 0.5)


@rare
def solve_row(s: Any, i: Any, suspected: Any, signed: Any) -> Any:
    """The coefficients of one equation and their uncertainty.

    Returns the expected squares of its errors in the rounds in which the arm was not chosen.
    suspected: how likely some equation has hidden common causes. Then least squares counts less, and the noise is taken
    as large as the variance of the outcome given the decisions.
    """
    e, st, n, (p, q) = s.equations, s.statistics, s.n_arms, sizes(s)
    rest, edges, noise, unit = p + q, 0, e.noise[i], e.pooled[1]
    picked = np.empty(n + rest, np.int64)
    for j in range(n):
        if s.allowed[i, j]:
            picked[edges] = j
            edges += 1
    for c in range(rest):
        picked[edges + c] = n + c
    size = edges + rest
    picked = picked[:size]
    fy, qy, yy = st.fy[i], st.qy[i], st.yy[i]
    first, second, prior = np.empty(size), np.empty(size), np.empty(size)
    for a in range(size):
        first[a] = fy[0, picked[a]] / noise[0] + fy[1, picked[a]] / noise[1]
        second[a] = qy[0, picked[a]] / noise[0] + qy[1, picked[a]] / noise[1]
        deviation = EDGE_DEVIATION if a < edges else unit * (BASELINE_DEVIATION if a < edges + p else SLOPE_DEVIATION)
        prior[a] = 1.0 / deviation**2
    count = st.rounds[i, 0] + st.rounds[i, 1]
    precision, product, rest_of_precision, rest_of_product, rest_of_squares = two_stages(
        weighted(st.ff[i], picked, noise), weighted(st.qf[i], picked, noise), weighted(st.qq[i], picked, noise),
        first, second, yy[0] / noise[0] + yy[1] / noise[1],
    )  # fmt: skip
    if edges > 0:
        for a in range(edges):  # an outcome contains the error of any arm that affects it
            rest_of_product[a] -= count * e.total_effects[picked[a], i]
        variance = max(rest_of_squares / max(count, 1.0), 1.0)
        shared = np.full(edges, SHARED**2)
        if count >= size + MORE_ROUNDS:
            e.evidence[i, 0], e.evidence[i, 1] = confounding(
                precision, product, rest_of_precision, rest_of_product, prior, count, variance, shared
            )
        noisier = 1.0 + suspected * (variance - 1.0)
        precision, product = precision / noisier, product / noisier
        biases = np.empty(edges)
        for a in range(edges):  # in the opposite direction effects bias least squares even without common causes
            doubt = suspected if s.ordered else 1.0
            biases[a] = doubt * count * variance * shared[a] * max(rest_of_precision[a, a], 0.0)
        e.trust[i] = add_least_squares(
            precision, product, rest_of_precision, rest_of_product[:edges], biases, 1.0 - suspected
        )
    # baseline and context are eliminated exactly
    certain, inverse = precision[edges:, edges:].copy(), np.empty((rest, rest))
    for c in range(rest):
        certain[c, c] += prior[edges + c]
    invert_symmetric(certain, inverse)
    across, offset = product_of(inverse, precision[edges:, :edges].copy()), applied(inverse, product[edges:])
    side, mean, together = precision[:edges, edges:].copy(), np.empty(edges), np.empty((edges, edges))
    exists, sites, shifts = np.empty(edges), np.empty(edges), np.empty(edges)
    for a in range(edges):
        sites[a], shifts[a] = e.site_precision[i, picked[a]], e.site_product[i, picked[a]]
        exists[a] = e.probability[i, picked[a]]  # kept where the data say nothing of the edge
    known = edge_prior(n)
    sparse_edges(
        precision[:edges, :edges] - product_of(side, across), product[:edges] - applied(side, offset), sites, shifts,
        mean, together, exists, math.log(known / (1.0 - known)), signed,
        MANY_SWEEPS if count < EARLY and n <= MANY_ARMS else FEW_SWEEPS,
    )  # fmt: skip
    coefficients, covariance = e.coefficients[i], e.covariance[i]
    for a in range(edges):
        j = picked[a]
        coefficients[j], e.edge_variance[i, j], e.probability[i, j] = mean[a], together[a, a], exists[a]
        e.site_precision[i, j], e.site_product[i, j] = sites[a], shifts[a]
        for b in range(edges):
            covariance[j, picked[b]] = together[a, b]
        for c in range(rest):
            e.slope[i, c, j] = across[c, a]
    for c in range(rest):
        coefficients[n + c] = offset[c]
        for a in range(edges):
            coefficients[n + c] -= across[c, a] * mean[a]
        for b in range(rest):
            e.rest_covariance[i, c, b] = inverse[c, b]
    return expected_squares(st.ff[i, 0], fy[0], yy[0], picked, coefficients, together, across, inverse)


@inner
def data_unit(moments: Any) -> Any:
    """The unit of all priors: that of the reward range, or less if the outcomes vary much less."""
    squares, count = 0.0, 0.0
    for i in range(moments.shape[0]):
        if moments[i, 0] >= ENOUGH:
            squares += moments[i, 2] / moments[i, 0]
            count += 1.0
    if squares == 0.0:
        return 1.0
    return min(max(math.sqrt(6.0 * squares / count), LEAST_UNIT), 1.0)


@inner
def effect_of(vector: Any, coefficients: Any) -> Any:
    """own - a'o of a vector (o, own, ...)."""
    value = vector[coefficients.shape[0]]
    for j in range(coefficients.shape[0]):
        value -= coefficients[j] * vector[j]
    return value


@rare
def move_laws(s: Any, grown: Any) -> None:
    """The laws of all arms under the new estimates; `grown`: by which the weight of the prior has changed."""
    b, prior_mean = s.belief, s.prior[0] * s.equations.pooled[1]
    for i in range(s.n_arms):
        coefficients = s.equations.coefficients[i]
        b.total[i] = effect_of(b.sums[i], coefficients)
        for k in range(b.base.shape[0]):
            b.total_at[k, i] = effect_of(b.sums_at[k, i], coefficients)
            share = b.base_share[k, i]
            factor = 1.0 - share + share * grown
            if factor != 1.0:
                b.base_weight[k, i] *= factor
                b.base_share[k, i] = share * grown / factor
                for j in range(b.base.shape[2]):
                    b.base[k, i, j] /= factor
            b.base_mean[k, i] = effect_of(b.base[k, i], coefficients) + b.base_share[k, i] * prior_mean


@rare
def weigh_graph(e: Any) -> None:
    """(I - A)^-1, its column sums, and their variances; a graph whose effects would not die out is damped."""
    n = e.weights.shape[0]
    matrix, radius, total_effects = np.empty((n, n)), np.empty(1), e.total_effects
    for i in range(n):
        for j in range(n):
            matrix[i, j] = e.coefficients[i, j]
    spectral_radius(matrix, LARGEST_RADIUS, radius)
    damping = min(1.0, LARGEST_RADIUS / max(radius[0], 1e-12))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = (1.0 if i == j else 0.0) - damping * matrix[i, j]
    invert(matrix, total_effects)
    for j in range(n):
        e.weights[j] = 0.0
        for i in range(n):
            e.weights[j] += total_effects[i, j]
    for j in range(n):
        e.weight_variance[j] = 0.0
        for i in range(n):
            t, covariance = 0.0, e.covariance[i]
            for a in range(n):
                for b in range(n):
                    t += total_effects[a, j] * covariance[a, b] * total_effects[b, j]
            e.weight_variance[j] += e.weights[i] ** 2 * max(t, 0.0)


@rare
def solve_equations(s: Any, signed: Any) -> None:
    """Estimate all equations and the noise, and move the laws of the arms along."""
    e, st, unit = s.equations, s.statistics, data_unit(s.statistics.moments)
    before, e.pooled[1] = e.pooled[0] / e.pooled[1] ** 2, unit
    suspected, pooled = common_causes(e.evidence), e.pooled[0]
    squared, count = POOLED_WEIGHT * 2.0 * (s.prior[1] * unit) ** 2, POOLED_WEIGHT
    for i in range(s.n_arms):
        if st.rounds[i, 0] + st.rounds[i, 1] > 0.0:
            left = solve_row(s, i, suspected, signed)
            for kind in range(2):
                expected = pooled if kind == 1 else FIRST_ROW_NOISE * unit**2
                weight = CHOSEN_WEIGHT if kind == 1 else FIRST_ROW_WEIGHT
                estimate = (st.squares[i, kind] + weight * expected) / (st.freedom[i, kind] + weight)
                if kind == 0:  # biased coefficients explain common causes away as if there were less noise
                    whole = (left + weight * expected) / (st.rounds[i, kind] + weight)
                    estimate += suspected * max(whole - estimate, 0.0)
                e.noise[i, kind] = max(estimate, LEAST_ROW_NOISE * unit**2)
        squared += e.noise[i, 1] * st.rounds[i, 1]
        count += st.rounds[i, 1]
    e.pooled[0] = squared / count
    move_laws(s, e.pooled[0] / unit**2 / before)
    weigh_graph(e)
    s.solved = st.learned

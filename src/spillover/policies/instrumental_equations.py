"""The structural equations: their statistics, between least squares and two-stage least squares, with sparse edges.

Row i of the graph is learned from two kinds of rounds, which have noise of their own: 0, those in which nothing unknown
was added to the arm (it was not chosen, or its own reward z is known and taken off), and 1, those in which it was
chosen. The latter are compared with the average of the rounds since the arm's last change, which takes its own effect
out. If z is known, rounds of kind 1 tell what the context does to z.

Common shocks are what hidden common causes add to an outcome, as far as the errors of the other arms show it. The error
of an arm that was not chosen is known once its outcome is: y less what the equation explains. If errors go together,
those of the arms not chosen predict the errors of all arms. What they predict is taken off an outcome before anything
is learned from it. Errors do not depend on decisions, so this removes noise, and biases nothing.

Functions of one learner: s is its `InstrumentalState`, room its `Room`. Matrices in the room are used up to a size.
"""

import math
from typing import Any, Final

from spillover.core import inner
from spillover.core.compiled import called, entry
from spillover.kernels.inversion import invert
from spillover.policies.instrumental_filter import graph_doubt, prior_law, sizes

UNCERTAIN: Final = 1e-9  # a weight below this is none
EDGE_SCALE: Final = 0.5  # an edge that exists is half normal (normal if signed) with this scale
EDGE_DEVIATION: Final = 0.3  # prior deviation of an edge in the test for confounding
BASELINE_DEVIATION: Final = 10.0  # prior of baselines, in units of the range
SLOPE_DEVIATION: Final = 0.5  # prior of what a unit of context does to an effect, in units of the range
PRIOR_DEVIATION: Final = 1.0 / math.sqrt(12.0)  # of an own effect, in units of the range: as if uniform on the range
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
MOST_ARMS: Final = 30  # ... unless there are more arms
MANY_SWEEPS: Final = 10
FEW_SWEEPS: Final = 3
LEAST_EDGE_VARIANCE: Final = 1e-12
MOST_EDGE: Final = 100.0  # a larger edge is an error of the first rounds, with outcomes far beyond what was assumed
LEAST_SITE: Final = 1e-6  # precision of a normal factor in place of the prior of an edge
DAMPING: Final = 0.7  # step of these factors towards their new values
RIDGE: Final = 1e-6  # instruments that depend on each other up to this share are kept apart
MORE_ROUNDS: Final = 5  # than coefficients, from which errors are tested for hidden common causes
DEPENDENT: Final = 1e-10  # a column whose remainder is a smaller part than this depends on those before it
LARGEST_RADIUS: Final = 0.9  # a graph whose effects would not die out faster is damped
THRESHOLD: Final = 3.0  # correlations of errors count as far as they are beyond so many standard errors
FADING: Final = 0.99  # of the products of errors when equations are solved again: errors of early estimates fade
LEAST_PIVOT: Final = 0.02  # share of an error's variance that other errors leave unexplained, at least
STEPS: Final = 20


# --- small matrices --------------------------------------------------------------------------------------------------


@called
def invert_symmetric(matrix: Any, size: Any, work: Any, rows: Any, inverse: Any) -> None:
    """The inverse of a symmetric matrix; a column that depends on those before it is left out (zeros).

    A Cholesky decomposition U'U, the rows of U'^-1, and their products: every inner loop runs along a row.
    """
    for i in range(size):
        for j in range(size):
            work[i, j], rows[i, j], inverse[i, j] = matrix[i, j], 0.0, 0.0
    for j in range(size):
        used = work[j, j] > DEPENDENT * matrix[j, j] and matrix[j, j] > 0.0
        scale = 1.0 / math.sqrt(work[j, j]) if used else 0.0
        for k in range(j, size):
            work[j, k] *= scale
        for i in range(j + 1, size):
            factor = work[j, i]
            if factor != 0.0:
                for k in range(i, size):
                    work[i, k] -= factor * work[j, k]
    for i in range(size):
        if work[i, i] != 0.0:
            rows[i, i] = 1.0
            for k in range(i):
                factor = work[k, i]
                if factor != 0.0:
                    for j in range(k + 1):
                        rows[i, j] -= factor * rows[k, j]
            scale = 1.0 / work[i, i]
            for j in range(i + 1):
                rows[i, j] *= scale
    for k in range(size):
        for i in range(k + 1):
            factor = rows[k, i]
            if factor != 0.0:
                for j in range(k + 1):
                    inverse[i, j] += factor * rows[k, j]


@called
def multiply(a: Any, b: Any, size: Any, found: Any) -> None:
    """found = a b."""
    for i in range(size):
        for j in range(size):
            found[i, j] = 0.0
        for k in range(size):
            factor = a[i, k]
            if factor != 0.0:
                for j in range(size):
                    found[i, j] += factor * b[k, j]


@inner
def row_times(a: Any, i: Any, v: Any, size: Any) -> Any:
    """The i-th entry of a v."""
    found = 0.0
    for k in range(size):
        found += a[i, k] * v[k]
    return found


# --- statistics ------------------------------------------------------------------------------------------------------


@inner
def add_round(s: Any, room: Any, i: Any, kind: Any, f: Any, g: Any, own: Any, weight: Any) -> None:
    """Add one round to one equation, and its residual to the estimate of the noise."""
    known, equations = s.statistics, s.equations
    residual, d = own, f.shape[0]
    for a in range(d):
        residual -= equations.coefficients[i, a] * f[a]
    doubt = weight * graph_doubt(equations, i, f)
    certain = equations.noise[i, kind] / (equations.noise[i, kind] + doubt)  # the part of its variance that is noise
    known.squares[i, kind] += certain * certain * weight * residual * residual
    known.freedom[i, kind] += certain
    known.rounds[i, kind] += weight
    known.yy[i, kind] += weight * own * own
    for a in range(d):
        if f[a] == 0.0 and g[a] == 0.0:
            continue
        wf, wg = weight * f[a], weight * g[a]
        ff, qf, qq = known.ff[i, kind, a], known.qf[i, kind, a], known.qq[i, kind, a]
        known.fy[i, kind, a] += wf * own
        known.qy[i, kind, a] += wg * own
        for b in range(d):
            ff[b] += wf * f[b]
            qf[b] += wg * f[b]
            qq[b] += wg * g[b]


@inner
def is_learned(allowed: Any, i: Any, y: Any, fresh: Any, complete: Any) -> Any:
    """Whether this delivery of a round completes the equation of arm i; each round counts once."""
    if math.isnan(y[i]):
        return False
    whole, news = True, fresh[i]
    for j in range(y.shape[0]):
        if allowed[i, j]:
            whole &= not math.isnan(y[j])
            news |= fresh[j] and not math.isnan(y[j])
    return news if whole else complete


@inner
def learn_equations(s: Any, room: Any, given: Any) -> None:
    """Add the outcomes of a round to the statistics of every equation that it completes."""
    known, x, y, z, dose, context = s.statistics, given.x, given.y, given.z, given.dose, given.context
    n, d, (p, q), taken = s.n_arms, s.equations.coefficients.shape[1], sizes(s), False
    f, g, moved, spread = room.f, room.g, room.spare, s.equations.total_effects
    for i in range(n):
        rewarded, centre, count = x[i] and not math.isnan(z[i]), room.centre[i], room.count[i]
        if given.fresh[i] and not math.isnan(y[i]):
            add_value(known.moments[i], 0, y[i])
        if is_learned(s.allowed, i, y, given.fresh, given.complete):
            taken = True
            for j in range(n):
                f[j] = room.yhat[j] if math.isnan(y[j]) else y[j]
                moved[j] = dose[j] if x[j] else 0.0
                usual = known.decisions[j] / known.learned if known.learned > 0 else moved[j]
                moved[j] -= dose[i] * centre[d + 1 + j] if x[i] and not rewarded else usual
            for c in range(p):
                f[n + c] = context[c]
            for c in range(q):
                f[n + p + c] = 0.0
            own, kind, weight = y[i] - room.shock[i], 0, 1.0
            if rewarded:
                own -= z[i]
            elif x[i]:
                kind, weight = 1, count / (count + dose[i] ** 2)
                for j in range(n):
                    f[j] -= dose[i] * centre[j]
                for c in range(p):
                    f[n + c] -= dose[i] * centre[n + c]
                for c in range(q):
                    f[n + p + c] = dose[i] * (context[1 + c] - centre[n + p + c])
                own -= dose[i] * centre[d]
            if weight > UNCERTAIN:
                for j in range(n):
                    g[j] = 0.0
                    for k in range(n):
                        g[j] += spread[j, k] * room.effects[k] * moved[k]
                for c in range(n, d):
                    g[c] = f[c]
                f[i] = g[i] = 0.0
                add_round(s, room, i, kind, f, g, own, weight)
        if rewarded and given.fresh[i]:
            weight = count / (count + dose[i] ** 2)
            for j in range(d):
                f[j] = 0.0
            for c in range(q):
                f[n + p + c] = dose[i] * (context[1 + c] - centre[n + p + c])
            if weight > UNCERTAIN:
                add_round(s, room, i, 1, f, f, z[i] - dose[i] * centre[d], weight)
    if taken:
        known.learned += 1
        for j in range(n):
            if x[j]:
                known.decisions[j] += dose[j]


@inner
def add_value(moments: Any, first: Any, value: Any) -> None:
    """Add a value to a number, a mean and a sum of squared deviations, from position `first` on."""
    moments[first] += 1.0
    gap = value - moments[first + 1]
    moments[first + 1] += gap / moments[first]
    moments[first + 2] += gap * (value - moments[first + 1])


# --- solution --------------------------------------------------------------------------------------------------------


@called
def two_stages(room: Any, size: Any, yy: Any) -> Any:
    """What the instruments explain, and the rest of the variation.

    From room.ff, qf, qq, fy and qy: room.precision and product, by the instruments, and room.left and left_product, the
    rest of both. Returns the rest of the squares of y.
    """
    for a in range(size):
        room.qq[a, a] += RIDGE * room.qq[a, a] + 1e-12
    invert_symmetric(room.qq, size, room.work_matrix, room.rows, room.inverse)
    for a in range(size):
        for b in range(size):
            room.work_matrix[a, b] = room.qf[b, a]
    multiply(room.work_matrix, room.inverse, size, room.rows)
    multiply(room.rows, room.qf, size, room.work_matrix)
    for a in range(size):
        for b in range(size):
            room.precision[a, b] = 0.5 * (room.work_matrix[a, b] + room.work_matrix[b, a])
            room.left[a, b] = room.ff[a, b] - room.precision[a, b]
        room.product[a] = row_times(room.rows, a, room.qy, size)
        room.left_product[a] = room.fy[a] - room.product[a]
    rest = yy
    for a in range(size):
        rest -= room.qy[a] * row_times(room.inverse, a, room.qy, size)
    return max(rest, 0.0)


@called
def confounding(room: Any, size: Any, edges: Any, rounds: Any, variance: Any) -> Any:
    """The share of the variation of each regressor that it has in common with the error (a Hausman test, with a prior).

    From what `two_stages` has found and room.prior: room.shared. Returns by how much the statistic of all regressors
    exceeds its expectation without common causes, and this expectation. variance: of the outcome given the decisions,
    in units of the noise. The noise itself may be too small, because biased coefficients explain common causes away.
    """
    certain, covariance, left, gap = room.ff, room.inverse, room.left, room.fy
    for a in range(size):
        for b in range(size):
            certain[a, b] = room.precision[a, b]
        certain[a, a] += room.prior[a]
    invert_symmetric(certain, size, room.work_matrix, room.rows, covariance)
    for a in range(size):
        room.estimate[a] = row_times(covariance, a, room.product, size)
    ridge = 1e-12
    for a in range(edges):
        gap[a] = room.left_product[a]
        for b in range(size):
            gap[a] -= left[a, b] * room.estimate[b]
        ridge += 1e-6 * max(left[a, a], 0.0) / edges
    multiply(left, covariance, edges, room.rows)
    multiply(room.rows, left, edges, room.work_matrix)
    for a in range(edges):
        for b in range(edges):
            room.rows[a, b] = room.work_matrix[a, b] + left[a, b]
    for a in range(edges):
        for b in range(edges):
            room.qq[a, b] = 0.5 * (room.rows[a, b] + room.rows[b, a])
        room.qq[a, a] += ridge
    invert_symmetric(room.qq, edges, room.work_matrix, room.rows, covariance)
    statistic, rank = 0.0, 1.0 * edges
    for a in range(edges):
        rank -= ridge * covariance[a, a]
        for b in range(edges):
            statistic += gap[a] * covariance[a, b] * gap[b]
        excess = max(gap[a] * gap[a] / room.qq[a, a] - 1.0, 0.0)
        information = max(left[a, a], 0.0) / room.qq[a, a]
        beyond = (excess + SHARED_WEIGHT * SHARED**2) / (rounds * variance * information + SHARED_WEIGHT)
        room.shared[a] = min(beyond, 1.0)
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


@called
def add_least_squares(room: Any, edges: Any, trusted: Any) -> Any:
    """Add to room.precision and product what the variation that the instruments leave tells.

    room.shared: variances of the products due to common causes. Returns the share of the information of least squares
    that is used.
    """
    left, spread = room.left, room.ff
    for a in range(edges):
        for b in range(edges):
            spread[a, b] = left[a, b]
        spread[a, a] += room.shared[a] + 1e-12
    invert_symmetric(spread, edges, room.work_matrix, room.rows, room.inverse)
    multiply(left, room.inverse, edges, room.rows)
    multiply(room.rows, left, edges, room.work_matrix)
    used, whole = 0.0, 1e-300
    for a in range(edges):
        used += trusted * room.work_matrix[a, a]
        whole += left[a, a]
        room.product[a] += trusted * row_times(room.rows, a, room.left_product, edges)
        for b in range(edges):
            room.precision[a, b] += trusted * 0.5 * (room.work_matrix[a, b] + room.work_matrix[b, a])
    return used / whole


@called
def expected_squares(ff: Any, fy: Any, yy: Any, coefficients: Any, edges: Any, rest: Any, room: Any) -> Any:
    """The expected sum of squared errors of an equation, over the posterior of its coefficients.

    The edges have the covariance room.together; the other coefficients are -room.across times the edges plus a part of
    covariance room.inverse.
    """
    picked, across, left = room.picked, room.across, yy
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
            left += room.together[a, b] * cross
    for c in range(rest):
        for e in range(rest):
            left += room.inverse[c, e] * ff[picked[edges + c], picked[edges + e]]
    return max(left, 0.0)


@inner
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


@called
def sparse_edges(room: Any, edges: Any, odds: Any, signed: Any, sweeps: Any) -> None:
    """Spike and slab by expectation propagation: each edge is 0 or from the slab, the edges together are normal.

    The prior of each edge is replaced by a normal factor, its site, so that mean and variance of the edge are those
    under its true prior and the sites of the others. From room.precision, product, sites and shifts: room.mean,
    together (their covariance) and exists.
    """
    certain, covariance, mean, sites, shifts = room.ff, room.together, room.mean, room.sites, room.shifts
    for sweep in range(sweeps + 1):
        for a in range(edges):
            for b in range(edges):
                certain[a, b] = room.precision[a, b]
            certain[a, a] += sites[a]
        invert_symmetric(certain, edges, room.work_matrix, room.rows, covariance)
        for a in range(edges):
            mean[a] = 0.0
            for b in range(edges):
                mean[a] += covariance[a, b] * (room.product[b] + shifts[b])
        if sweep == sweeps:
            break
        for a in range(edges):
            if not covariance[a, a] > 0.0:
                continue
            without = 1.0 / covariance[a, a] - sites[a]
            if not without > 0.0:
                without = 1e-9 / covariance[a, a]
            shifted = mean[a] / covariance[a, a] - shifts[a]
            s2 = 1.0 / (without + 1.0 / EDGE_SCALE**2)
            factor, m, v = slab_moments(s2 * shifted, s2, signed)
            exists = 1.0 / (1.0 + math.exp(-min(max(odds + factor, -50.0), 50.0)))
            room.exists[a] = exists
            centre = exists * m
            spread = max(exists * (v + m * m) - centre * centre, LEAST_EDGE_VARIANCE)
            wanted = max(1.0 / spread - without, LEAST_SITE)
            shifts[a] += DAMPING * (centre * (wanted + without) - shifted - shifts[a])
            sites[a] += DAMPING * (wanted - sites[a])
    for a in range(edges):
        if not abs(mean[a]) <= MOST_EDGE:
            mean[a], shifts[a], sites[a] = 0.0, 0.0, 1.0 / EDGE_SCALE**2


@inner
def pick_statistics(known: Any, i: Any, noise: Any, size: Any, room: Any) -> Any:
    """Fill in the statistics of both kinds of rounds, each over its noise, for the picked coefficients; those of y."""
    picked = room.picked
    for a in range(size):
        for b in range(size):
            j, k = picked[a], picked[b]
            room.ff[a, b] = known.ff[i, 0, j, k] / noise[0] + known.ff[i, 1, j, k] / noise[1]
            room.qf[a, b] = known.qf[i, 0, j, k] / noise[0] + known.qf[i, 1, j, k] / noise[1]
            room.qq[a, b] = known.qq[i, 0, j, k] / noise[0] + known.qq[i, 1, j, k] / noise[1]
        room.fy[a] = known.fy[i, 0, picked[a]] / noise[0] + known.fy[i, 1, picked[a]] / noise[1]
        room.qy[a] = known.qy[i, 0, picked[a]] / noise[0] + known.qy[i, 1, picked[a]] / noise[1]
    return known.yy[i, 0] / noise[0] + known.yy[i, 1] / noise[1]


@inner
def edge_probability(n: Any) -> Any:
    """The prior probability of an edge: about one cause for each arm."""
    return min(1.0 / n, 0.5)


@inner
def rest_precision(c: Any, p: Any) -> Any:
    """The prior precision of a baseline, or of what context does."""
    return 1.0 / BASELINE_DEVIATION**2 if c < p else 1.0 / SLOPE_DEVIATION**2


@called
def solve_row(s: Any, room: Any, i: Any, suspected: Any, signed: Any) -> Any:
    """The coefficients of one equation and their uncertainty.

    Returns the expected squares of its errors in the rounds in which the arm was not chosen.
    suspected: how likely some equation has hidden common causes. Then least squares counts less, and the noise is taken
    as large as the variance of the outcome given the decisions.
    """
    known, equations, n, (p, q) = s.statistics, s.equations, s.n_arms, sizes(s)
    unit, rest, edges = equations.pooled[1], p + q, 0
    picked, precision, product = room.picked, room.precision, room.product
    for j in range(n):
        if s.allowed[i, j]:
            picked[edges] = j
            edges += 1
    size, count = edges + rest, known.rounds[i, 0] + known.rounds[i, 1]
    for c in range(rest):
        picked[edges + c] = n + c
    for a in range(size):
        room.prior[a] = 1.0 / EDGE_DEVIATION**2 if a < edges else rest_precision(a - edges, p) / unit**2
    squares = two_stages(room, size, pick_statistics(known, i, equations.noise[i], size, room))
    if edges > 0:
        for a in range(edges):  # an outcome contains the error of any arm that affects it
            room.left_product[a] -= count * equations.total_effects[picked[a], i]
            room.shared[a] = SHARED**2
        variance = max(squares / max(count, 1.0), 1.0)
        if count >= size + MORE_ROUNDS:
            equations.evidence[i, 0], equations.evidence[i, 1] = confounding(room, size, edges, count, variance)
        noisier = 1.0 + suspected * (variance - 1.0)
        for a in range(size):
            product[a] /= noisier
            for b in range(size):
                precision[a, b] /= noisier
        for a in range(edges):  # in the opposite direction effects bias least squares even without common causes
            doubt = suspected if s.ordered else 1.0
            room.shared[a] = doubt * count * variance * room.shared[a] * max(room.left[a, a], 0.0)
        equations.trust[i] = add_least_squares(room, edges, 1.0 - suspected)
    eliminate_rest(room, edges, rest)
    for a in range(edges):
        j = picked[a]
        room.sites[a], room.shifts[a] = equations.site_precision[i, j], equations.site_product[i, j]
        room.exists[a] = equations.probability[i, j]  # kept where the data say nothing of the edge
    sweeps = MANY_SWEEPS if count < EARLY and n <= MOST_ARMS else FEW_SWEEPS
    prior = edge_probability(n)
    sparse_edges(room, edges, math.log(prior / (1.0 - prior)), signed, sweeps)
    keep_row(equations, room, i, edges, rest)
    return expected_squares(known.ff[i, 0], known.fy[i, 0], known.yy[i, 0], equations.coefficients[i], edges, rest, room)


@inner
def eliminate_rest(room: Any, edges: Any, rest: Any) -> None:
    """Eliminate baseline and context exactly: room.precision and product of the edges alone remain.

    Leaves room.inverse, the covariance of the others, across, by how much the edges lower them, and offset.
    """
    precision, product, certain = room.precision, room.product, room.qq
    for c in range(rest):
        for b in range(rest):
            certain[c, b] = precision[edges + c, edges + b]
        certain[c, c] += room.prior[edges + c]
    invert_symmetric(certain, rest, room.work_matrix, room.rows, room.inverse)
    for c in range(rest):
        room.offset[c] = 0.0
        for b in range(rest):
            room.offset[c] += room.inverse[c, b] * product[edges + b]
        for a in range(edges):
            room.across[c, a] = 0.0
            for b in range(rest):
                room.across[c, a] += room.inverse[c, b] * precision[edges + b, a]
    for a in range(edges):
        lowered = 0.0
        for c in range(rest):
            lowered += precision[a, edges + c] * room.offset[c]
        product[a] -= lowered
        for b in range(edges):
            lowered = 0.0
            for c in range(rest):
                lowered += precision[a, edges + c] * room.across[c, b]
            precision[a, b] -= lowered


@inner
def keep_row(equations: Any, room: Any, i: Any, edges: Any, rest: Any) -> None:
    """Write the solution of an equation."""
    picked, n = room.picked, equations.edge_variance.shape[1]
    for a in range(edges):
        j = picked[a]
        equations.coefficients[i, j], equations.probability[i, j] = room.mean[a], room.exists[a]
        equations.edge_variance[i, j] = room.together[a, a]
        equations.site_precision[i, j], equations.site_product[i, j] = room.sites[a], room.shifts[a]
        for b in range(edges):
            equations.covariance[i, j, picked[b]] = room.together[a, b]
        for c in range(rest):
            equations.slope[i, c, j] = room.across[c, a]
    for c in range(rest):
        equations.coefficients[i, n + c] = room.offset[c]
        for a in range(edges):
            equations.coefficients[i, n + c] -= room.across[c, a] * room.mean[a]
        for b in range(rest):
            equations.rest_covariance[i, c, b] = room.inverse[c, b]


@inner
def largest_radius(coefficients: Any, v: Any, u: Any) -> Any:
    """An upper bound on the spectral radius of |A|, close to it: the largest growth of an entry of v under I + |A|.

    With I the power iteration converges for every A; without, it would not where effects alternate between two groups
    of arms, as between two arms.
    """
    n, radius = v.shape[0], 0.0
    for i in range(n):
        v[i] = 1.0
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


@called
def weigh_graph(equations: Any, matrix: Any, v: Any, u: Any) -> None:
    """(I - A)^-1, its column sums, and their variances; a graph whose effects would not die out is damped.

    matrix, v, u: room to work in.
    """
    coefficients, covariance, total_effects = equations.coefficients, equations.covariance, equations.total_effects
    weights, n = equations.weights, equations.weights.shape[0]
    damping = min(1.0, LARGEST_RADIUS / max(largest_radius(coefficients, v, u), 1e-12))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = (1.0 if i == j else 0.0) - damping * coefficients[i, j]
    invert(matrix, total_effects)
    for j in range(n):
        weights[j] = 0.0
        for i in range(n):
            weights[j] += total_effects[i, j]
    for j in range(n):
        equations.weight_variance[j] = 0.0
        for i in range(n):
            t = 0.0
            for a in range(n):
                for b in range(n):
                    t += total_effects[a, j] * covariance[i, a, b] * total_effects[b, j]
            equations.weight_variance[j] += weights[i] ** 2 * max(t, 0.0)


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


@inner
def move_laws(s: Any, grown: Any) -> None:
    """The laws of all arms under the new estimates; `grown`: by which the weight of the prior has changed."""
    belief, prior_mean = s.belief, prior_law(s)[0]
    for i in range(s.n_arms):
        coefficients = s.equations.coefficients[i]
        belief.total[i] = effect_of(belief.sums[i], coefficients)
        for k in range(belief.base.shape[0]):
            belief.total_at[k, i] = effect_of(belief.sums_at[k, i], coefficients)
            share, base = belief.base_share[k, i], belief.base[k, i]
            factor = 1.0 - share + share * grown
            if factor != 1.0:
                belief.base_weight[k, i] *= factor
                belief.base_share[k, i] = share * grown / factor
                for j in range(base.shape[0]):
                    base[j] /= factor
            belief.base_mean[k, i] = effect_of(base, coefficients) + belief.base_share[k, i] * prior_mean


@inner
def solve_equations(s: Any, room: Any, signed: Any) -> None:
    """Estimate all equations, the noise, the weights and common shocks, and move the laws of the arms along."""
    equations, known = s.equations, s.statistics
    pooled, rounds = equations.pooled, known.rounds
    before = pooled[0] / pooled[1] ** 2
    pooled[1] = data_unit(known.moments)
    suspected = common_causes(equations.evidence)
    for i in range(s.n_arms):
        if rounds[i, 0] + rounds[i, 1] > 0.0:
            left = solve_row(s, room, i, suspected, signed)
            for kind in range(2):
                expected = pooled[0] if kind == 1 else FIRST_ROW_NOISE * pooled[1] ** 2
                weight = CHOSEN_WEIGHT if kind == 1 else FIRST_ROW_WEIGHT
                estimate = (known.squares[i, kind] + weight * expected) / (known.freedom[i, kind] + weight)
                if kind == 0:  # biased coefficients explain common causes away as if there were less noise
                    whole = (left + weight * expected) / (rounds[i, kind] + weight)
                    estimate += suspected * max(whole - estimate, 0.0)
                equations.noise[i, kind] = max(estimate, LEAST_ROW_NOISE * pooled[1] ** 2)
    squared, count = POOLED_WEIGHT * 2.0 * (s.prior[1] * pooled[1]) ** 2, POOLED_WEIGHT
    for i in range(s.n_arms):
        squared += equations.noise[i, 1] * rounds[i, 1]
        count += rounds[i, 1]
    pooled[0] = squared / count
    move_laws(s, pooled[0] / pooled[1] ** 2 / before)
    weigh_graph(equations, room.square, room.spare, room.levels)
    solve_shocks(s.shocks, room)


weigh_alone = entry(weigh_graph)


@inner
def expect_equations(equations: Any, allowed: Any, p: Any, signed: Any, unit: Any) -> None:
    """Before any outcome: each edge that may exist has its prior mean, unless it may be negative.

    All other fields of the equations are 0; unit: that of all priors.
    """
    n, rest = allowed.shape[0], equations.slope.shape[1]
    prior, observed = edge_probability(n), 2.0 * PRIOR_DEVIATION**2
    mean = prior * (0.0 if signed else EDGE_SCALE * math.sqrt(2.0 / math.pi))
    variance = prior * EDGE_SCALE**2 - mean**2
    equations.pooled[0], equations.pooled[1] = observed * unit**2, unit
    for i in range(n):
        equations.noise[i, 0], equations.noise[i, 1] = FIRST_ROW_NOISE * unit**2, observed * unit**2
        equations.trust[i] = 1.0
        for c in range(rest):
            equations.rest_covariance[i, c, c] = 1.0 / rest_precision(c, p) * unit**2
        for j in range(n):
            if allowed[i, j]:
                equations.coefficients[i, j], equations.probability[i, j] = mean, prior
                equations.edge_variance[i, j] = equations.covariance[i, j, j] = variance
                equations.site_precision[i, j], equations.site_product[i, j] = 1.0 / variance, mean / variance


# --- common shocks ---------------------------------------------------------------------------------------------------


@inner
def is_free(given: Any, j: Any) -> Any:
    """Whether nothing unknown was added to an arm: it was not chosen, or its own reward is known."""
    return not given.x[j] or not math.isnan(given.z[j])


@inner
def error_of(s: Any, given: Any, j: Any) -> Any:
    """The error of an equation to which nothing unknown was added."""
    found, n, coefficients = given.y[j] - (given.z[j] if given.x[j] else 0.0), s.n_arms, s.equations.coefficients
    for k in range(n):
        found -= coefficients[j, k] * given.y[k]
    for c in range(sizes(s)[0]):
        found -= coefficients[j, n + c] * given.context[c]
    return found


@inner
def is_whole(y: Any) -> Any:
    for i in range(y.shape[0]):
        if math.isnan(y[i]):
            return False
    return True


@inner
def any_of(values: Any) -> Any:
    for value in values:
        if value:
            return True
    return False


@inner
def expect_shocks(s: Any, room: Any, given: Any) -> None:
    """What the errors of the arms not chosen predict of the error of each arm; 0 while an outcome is missing."""
    n, (p, q), shared, shock, related, free = s.n_arms, sizes(s), s.shocks.shared, room.shock, False, 0
    for i in range(n):
        shock[i] = 0.0
        for j in range(i):
            related |= shared[i, j] != 0.0
    if not (related and is_whole(given.y)):
        return
    for j in range(n):  # the regressors of an error: outcomes and context
        room.f[j] = given.y[j]
        if is_free(given, j):
            room.picked[free] = j
            free += 1
    for c in range(p + q):
        room.f[n + c] = given.context[c] if c < p else 0.0
    for a in range(free):
        j = room.picked[a]
        room.fy[a] = error_of(s, given, j)
        for b in range(free):
            room.ff[a, b] = shared[j, room.picked[b]]
        room.ff[a, a] += graph_doubt(s.equations, j, room.f) + 1e-300
    invert_symmetric(room.ff, free, room.work_matrix, room.rows, room.inverse)
    for a in range(free):
        weighted = row_times(room.inverse, a, room.fy, free)
        room.qy[a] = weighted
        if room.inverse[a, a] > 0.0:
            shock[room.picked[a]] = room.fy[a] - weighted / room.inverse[a, a]
    for i in range(n):
        if not is_free(given, i):
            for a in range(free):
                shock[i] += s.shocks.shared_chosen[i, room.picked[a]] * room.qy[a]


@inner
def learn_shocks(s: Any, room: Any, given: Any) -> None:
    """Add the products of the errors of a round."""
    n, d, (p, q), y, context = s.n_arms, s.equations.coefficients.shape[1], sizes(s), given.y, given.context
    if not (any_of(given.fresh) and is_whole(y)):
        return
    errors, weights = room.spare, room.levels
    for i in range(n):
        weights[i], dose = 1.0, given.dose[i]
        if is_free(given, i):
            errors[i] = error_of(s, given, i)
            continue
        a, centre = s.equations.coefficients[i], room.centre[i]
        errors[i] = y[i] - dose * centre[d]  # compared with the average since the arm's last change
        for k in range(n):
            errors[i] -= a[k] * (y[k] - dose * centre[k])
        for c in range(p):
            errors[i] -= a[n + c] * (context[c] - dose * centre[n + c])
        for c in range(q):
            errors[i] -= a[n + p + c] * dose * (context[1 + c] - centre[n + p + c])
        weights[i] = room.count[i] / (room.count[i] + dose**2)
    for i in range(n):
        products = s.shocks.free_products[i] if is_free(given, i) else s.shocks.chosen_products[i]
        for j in range(n):
            if is_free(given, j):
                products[j, 0] += weights[i] * errors[i] * errors[j]
                products[j, 1] += weights[i] * errors[i] * errors[i]
                products[j, 2] += weights[i] * errors[j] * errors[j]
                products[j, 3] += weights[i]


@inner
def beyond_chance(products: Any) -> Any:
    """A correlation, as far as it is beyond chance."""
    if not (products[1] > 0.0 and products[2] > 0.0):
        return 0.0
    found = products[0] / math.sqrt(products[1] * products[2])
    beyond = abs(found) - THRESHOLD / math.sqrt(products[3] + 1.0)
    return math.copysign(max(beyond, 0.0), found)


@inner
def is_positive(correlation: Any, shrunk: Any, work: Any) -> Any:
    """Whether a correlation matrix with its correlations shrunk leaves something of every error unexplained."""
    n = correlation.shape[0]
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


@called
def solve_shocks(shocks: Any, room: Any) -> None:
    """Covariances between the errors of arms not chosen, and between those of chosen arms and of arms not chosen."""
    free, chosen, correlation, deviation = shocks.free_products, shocks.chosen_products, room.square, room.spare
    n = correlation.shape[0]
    for i in range(n):
        correlation[i, i], deviation[i] = 1.0, 0.0
        if free[i, i, 3] > 0.0:
            deviation[i] = math.sqrt(free[i, i, 0] / free[i, i, 3])
        for j in range(i):
            correlation[i, j] = correlation[j, i] = beyond_chance(free[i, j])
    shrunk = 1.0
    for step in range(STEPS + 1):
        shrunk = 1.0 - step / STEPS
        if is_positive(correlation, shrunk, room.rows):
            break
    for i in range(n):
        for j in range(n):
            shocks.shared[i, j] = correlation[i, j] * deviation[i] * deviation[j] * (1.0 if i == j else shrunk)
            found, rounds = beyond_chance(chosen[i, j]), max(chosen[i, j, 3], 1e-300)
            shocks.shared_chosen[i, j] = shrunk * found * math.sqrt(chosen[i, j, 1] / rounds) * deviation[j]
            for part in range(4):
                free[i, j, part] *= FADING
                chosen[i, j, part] *= FADING

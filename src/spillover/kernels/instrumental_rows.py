"""Statistics of the structural equations: products of the regressors, of their instruments and of the outcomes.

Row i of the graph is learned from two kinds of rounds, which have noise of their own: 0, those in which nothing unknown
was added to the arm (it was not chosen, or its own reward z is known and taken off), and 1, those in which it was
chosen. The latter are compared with the average of the rounds since the arm's last change, which takes its own effect
out. If z is known, rounds of kind 1 tell what the context does to z.
"""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.compiling import gufunc

UNCERTAIN: Final = 1e-9  # a weight below this is none


@njit
def residual_doubt(f, edge_variance, slope, rest_covariance):
    """Variance of a'f for the uncertain coefficients a of one equation."""
    n, rest = edge_variance.shape[0], rest_covariance.shape[0]
    doubt = 0.0
    for j in range(n):
        if edge_variance[j] > 0.0:
            gap = f[j]
            for c in range(rest):
                gap -= slope[c, j] * f[n + c]
            doubt += edge_variance[j] * gap * gap
    for c in range(rest):
        for b in range(rest):
            doubt += f[n + c] * rest_covariance[c, b] * f[n + b]
    return max(doubt, 0.0)


@njit
def add_products(f, g, own, weight, ff, qf, qq, fy, qy):
    d = f.shape[0]
    for a in range(d):
        if f[a] == 0.0 and g[a] == 0.0:
            continue
        wf, wg = weight * f[a], weight * g[a]
        fy[a] += wf * own
        qy[a] += wg * own
        for b in range(d):
            ff[a, b] += wf * f[b]
            qf[a, b] += wg * f[b]
            qq[a, b] += wg * g[b]


@njit
def add_round(
    i, kind, f, g, own, weight, coefficients, edge_variance, slope, rest_covariance, noise,
    ff, qf, qq, fy, qy, yy, rounds, squares, freedom,
):  # fmt: skip
    """Add one round to one equation, and its residual to the estimate of the noise."""
    residual = own
    for a in range(f.shape[0]):
        residual -= coefficients[i, a] * f[a]
    doubt = weight * residual_doubt(f, edge_variance[i], slope[i], rest_covariance[i])
    certain = noise[i, kind] / (noise[i, kind] + doubt)  # the part of the residual's variance that is noise
    squares[i, kind] += certain * certain * weight * residual * residual
    freedom[i, kind] += certain
    rounds[i, kind] += weight
    yy[i, kind] += weight * own * own
    add_products(f, g, own, weight, ff[i, kind], qf[i, kind], qq[i, kind], fy[i, kind], qy[i, kind])


@njit(inline="always")
def is_learned(i, known, fresh, complete, allowed):
    """Whether this delivery of a round completes the equation of arm i; each round counts once."""
    if not known[i]:
        return False
    whole, news = True, fresh[i]
    for j in range(known.shape[0]):
        if allowed[i, j]:
            whole &= known[j]
            news |= fresh[j] and known[j]
    return news if whole else complete


@njit(inline="always")
def add_level(level, chosen, value):
    """Add a value to the mean and the squared deviations of the rounds with, or without, an arm."""
    first = 0 if chosen else 3
    level[first] += 1.0
    gap = value - level[first + 1]
    level[first + 1] += gap / level[first]
    level[first + 2] += gap * (value - level[first + 1])


@gufunc(
    (
        float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[:, :, ::1], int64[::1],
        int64[:],
        boolean[:], float64[:], float64[:], float64[:], boolean[:], int64, int64, boolean, boolean[:],
    ),
    "(s,s),(n,s),(n,n),(o),(n),(l,n,h),(o),(t),(n),(n),(n),(c),(n),(),(),()->()",
    writes=("gram", "products", "squares", "rounds", "chosen", "levels", "changes"),
)  # fmt: skip
def absorb_reduced(
    gram, products, squares, rounds, chosen, levels, changes, detected, x, dose, y, context, fresh, p, q, arrived, taken
):  # fmt: skip
    """Add a round to the regression of all outcomes on decisions and context; it starts again after a change.

    Regressors: 1 and context, the dose of each arm, and for each arm its dose times the context.
    """
    taken[0] = False
    if not arrived:
        return
    n, size = products.shape
    if detected[0] > changes[0]:
        changes[0] = detected[0]
        gram[:] = 0.0
        products[:] = 0.0
        squares[:] = 0.0
        rounds[0] = 0.0
        chosen[:] = 0.0
        levels[:] = 0.0
    news = False
    for i in range(n):
        if math.isnan(y[i]):
            return
        news |= fresh[i]
    if not news:
        return
    taken[0] = True
    values, places = np.empty(size), np.empty(size, np.int64)
    count = 0
    for c in range(p):
        values[count], places[count] = context[c], c
        count += 1
    for j in range(n):
        if x[j]:
            chosen[j] += 1.0
            values[count], places[count] = dose[j], p + j
            count += 1
            for c in range(q):
                values[count], places[count] = dose[j] * context[1 + c], p + n + j * q + c
                count += 1
    for a in range(count):
        for b in range(count):
            gram[places[a], places[b]] += values[a] * values[b]
        for i in range(n):
            products[i, places[a]] += y[i] * values[a]
    payoff = 0.0
    for i in range(n):
        payoff += y[i]
        for j in range(n):
            squares[i, j] += y[i] * y[j]
            add_level(levels[i, j], x[j], y[i])
    for j in range(n):
        add_level(levels[n, j], x[j], payoff)
        add_level(levels[n + 1, j], x[j], payoff - y[j])
    rounds[0] += 1.0


@gufunc(
    (
        float64[:, :, :, ::1], float64[:, :, :, ::1], float64[:, :, :, ::1], float64[:, :, ::1], float64[:, :, ::1],
        float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], int64[::1],
        float64[:, :], float64[:, :], float64[:, :, :], float64[:, :, :], float64[:, :], boolean[:, :],
        boolean[:], float64[:], float64[:], float64[:], float64[:], boolean[:], boolean, float64[:],
        float64[:, :], float64[:], float64[:], float64[:, :], float64[:], int64, int64, boolean, boolean[:],
    ),
    "(n,t,d,d),(n,t,d,d),(n,t,d,d),(n,t,d),(n,t,d),(n,t),(n,t),(n,t),(n,t),(n,h),(n),(o),"
    "(n,d),(n,n),(n,r,n),(n,r,r),(n,t),(n,n),(n),(n),(n),(n),(n),(n),(),(c),(n,n),(n),(n),(n,m),(n),(),(),()->()",
    writes=("ff", "qf", "qq", "fy", "qy", "yy", "rounds", "squares", "freedom", "moments", "decisions", "learned"),
)  # fmt: skip
def absorb_equations(
    ff, qf, qq, fy, qy, yy, rounds, squares, freedom, moments, decisions, learned,
    coefficients, edge_variance, slope, rest_covariance, noise, allowed,
    x, dose, z, y, shock, fresh, complete, context, total_effects, effects, yhat, centre, count, p, q, arrived, taken,
):  # fmt: skip
    """Add the outcomes of a round to the statistics of every equation that it completes."""
    taken[0] = False
    if not arrived:
        return
    n = x.shape[0]
    d = n + p + q
    known = np.empty(n, np.bool_)
    for i in range(n):
        known[i] = not math.isnan(y[i])
    f, g, moved = np.zeros(d), np.zeros(d), np.zeros(n)
    for i in range(n):
        rewarded = x[i] and not math.isnan(z[i])
        if known[i] and fresh[i]:
            moments[i, 0] += 1.0
            gap = y[i] - moments[i, 1]
            moments[i, 1] += gap / moments[i, 0]
            moments[i, 2] += gap * (y[i] - moments[i, 1])
        if is_learned(i, known, fresh, complete, allowed):
            taken[0] = True
            for j in range(n):
                f[j] = y[j] if known[j] else yhat[j]
                moved[j] = dose[j] if x[j] else 0.0
                usual = decisions[j] / learned[0] if learned[0] > 0 else moved[j]
                moved[j] -= dose[i] * centre[i, d + 1 + j] if x[i] and not rewarded else usual
            for c in range(p):
                f[n + c] = context[c]
            for c in range(q):
                f[n + p + c] = 0.0
            own, kind, weight = y[i] - shock[i], 0, 1.0
            if rewarded:
                own -= z[i]
            elif x[i]:
                kind, weight = 1, count[i] / (count[i] + dose[i] ** 2)
                for j in range(n):
                    f[j] -= dose[i] * centre[i, j]
                for c in range(p):
                    f[n + c] -= dose[i] * centre[i, n + c]
                for c in range(q):
                    f[n + p + c] = dose[i] * (context[1 + c] - centre[i, n + p + c])
                own -= dose[i] * centre[i, d]
            for j in range(n):
                g[j] = 0.0
                for k in range(n):
                    g[j] += total_effects[j, k] * effects[k] * moved[k]
            for c in range(n, d):
                g[c] = f[c]
            f[i] = g[i] = 0.0
            if weight > UNCERTAIN:
                add_round(
                    i, kind, f, g, own, weight, coefficients, edge_variance, slope, rest_covariance, noise,
                    ff, qf, qq, fy, qy, yy, rounds, squares, freedom,
                )  # fmt: skip
        if rewarded and fresh[i]:
            weight = count[i] / (count[i] + dose[i] ** 2)
            f[:] = 0.0
            for c in range(q):
                f[n + p + c] = dose[i] * (context[1 + c] - centre[i, n + p + c])
            own = z[i] - dose[i] * centre[i, d]
            if weight > UNCERTAIN:
                add_round(
                    i, 1, f, f, own, weight, coefficients, edge_variance, slope, rest_covariance, noise,
                    ff, qf, qq, fy, qy, yy, rounds, squares, freedom,
                )  # fmt: skip
    if taken[0]:
        learned[0] += 1
        for j in range(n):
            if x[j]:
                decisions[j] += dose[j]

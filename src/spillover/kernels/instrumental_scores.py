"""Effects that switch and are seen through y alone: expected effects, and the value of information."""

import math
from typing import Final

import numpy as np
from numba import float64, int64, njit

from spillover.kernels.compiling import gufunc

NEGLIGIBLE: Final = 1e-6  # hypotheses less probable than this do not affect a decision
LEAST_NOISE: Final = 1e-4  # variance of an observed effect, as in the filter
LASTING: Final = 4.0  # the variance of the weights counts so many times: what is learned of the graph lasts longer
NO_WEIGHT: Final = 1e-9  # an arm with a smaller total effect per unit is not worth exploring


@njit(inline="always")
def excess(mean, deviation, level):
    """E[(v - level)+] for a normal v."""
    if deviation <= 0.0:
        return max(mean - level, 0.0)
    z = (mean - level) / deviation
    if z < -6.0:
        return 0.0
    return deviation * (math.exp(-0.5 * z * z) * 0.3989422804014327 + 0.5 * z * math.erfc(-z * 0.7071067811865476))


@gufunc(
    (
        float64[:, :], float64[:, :], float64[:, :], float64[:], float64[:, :], float64[:], float64[:, :],
        float64[:, :], float64[:, :], float64[:, :], float64[:, :, :], float64[:, :, :], float64[:, :], float64[:],
        float64[:], float64[:], int64[:], float64[:], int64, int64, float64[:], float64[:], float64, float64, int64,
        int64, float64[:], float64[:], float64[:],
    ),
    "(k,g),(k,n),(k,n),(n),(k,n),(n),(k,n),(k,n),(n,d),(n,n),(n,r,n),(n,r,r),(n,t),(t),(n),(n),(n),(n),(),(),(c),(t),"
    "(),(),(),()->(n),(n),(n)",
)  # fmt: skip
def instrumental_index(
    mass, base_mean, base_weight, total, total_at, weight, weight_at, changed, coefficients, edge_variance, slope,
    rest_covariance, noise, pooled, weights, weight_variance, last_pull, in_flight, now, budget, context, prior,
    idle_hazard, horizon, p, q, mean, index, shift,
):  # fmt: skip
    """Expected own effects at the coming context, the same plus the value of information over `horizon` rounds, and
    the part of the expected effects that the context adds.

    The bonus of an arm outside the s best is horizon E[(w m - threshold)+] / w, where the threshold is the effect of
    the s-th best. For an arm among the s best it is the expected loss from keeping it, horizon E[(threshold - w m)+] /
    w, with the effect of the next best arm as the threshold. Both weights w and own effects m are uncertain. The bonus
    is divided by (1 + pulls in flight)^2, because the outcomes of those pulls will arrive without another try.
    """
    hypotheses, n = mass.shape[0], weights.shape[0]
    prior_mean, prior_deviation = prior[0] * pooled[1], prior[1] * pooled[1]
    prior_weight = max(pooled[0] / prior_deviation**2, 1e-6)
    sharpened = np.empty(hypotheses)
    squares = 0.0
    for k in range(hypotheses):
        sharpened[k] = mass[k].sum()
        squares += sharpened[k] ** 2
    stayed, fresh = np.empty((hypotheses, n)), np.empty((hypotheses, n))
    idle, effects, shift_variance = np.empty(n), np.empty(n), np.zeros(n)
    for i in range(n):
        shift[i], mean[i] = 0.0, 0.0
        for c in range(q):
            shift[i] += coefficients[i, n + p + c] * context[1 + c]
            for b in range(q):
                shift_variance[i] += context[1 + c] * rest_covariance[i, p + c, p + b] * context[1 + b]
        for j in range(n):
            if q > 0 and edge_variance[i, j] > 0.0:
                t = 0.0
                for c in range(q):
                    t += slope[i, p + c, j] * context[1 + c]
                shift_variance[i] += edge_variance[i, j] * t * t
        for k in range(hypotheses):
            gained = weight[i] - weight_at[k, i]
            added = total[i] - total_at[k, i]
            stayed[k, i] = (base_weight[k, i] * base_mean[k, i] + added) / (base_weight[k, i] + gained)
            fresh[k, i] = (prior_weight * prior_mean + added) / (prior_weight + gained)
            mean[i] += sharpened[k] * (stayed[k, i] + changed[k, i] * (fresh[k, i] - stayed[k, i]))
        idle[i] = 1.0 - (1.0 - idle_hazard) ** (now - last_pull[i])
        mean[i] = (1.0 - idle[i]) * mean[i] + idle[i] * prior_mean + shift[i]
        index[i] = mean[i]
        effects[i] = weights[i] * mean[i]
    ordered = np.sort(effects)
    threshold = max(ordered[n - budget], 0.0)
    runner_up = max(ordered[n - budget - 1], 0.0) if budget < n else 0.0
    for k in range(hypotheses):
        sharpened[k] *= sharpened[k] / squares  # squared: pulls in flight will settle an improbable change anyway
    for i in range(n):
        if abs(weights[i]) < NO_WEIGHT:
            continue
        inside = effects[i] >= threshold and effects[i] > 0.0
        rival = runner_up if inside else threshold
        sign = -1.0 if inside else 1.0
        afresh = prior_mean + shift[i]
        deviation = math.sqrt(weights[i] ** 2 * prior_deviation**2 + LASTING * afresh**2 * weight_variance[i])
        missed = idle[i] * excess(sign * weights[i] * afresh, deviation, sign * rival)
        variance = max(max(pooled[0], noise[i, 1]), LEAST_NOISE * pooled[1] ** 2)
        for k in range(hypotheses):
            gained = weight[i] - weight_at[k, i]
            for side in range(2):
                part = sharpened[k] * (changed[k, i] if side == 1 else 1.0 - changed[k, i]) * (1.0 - idle[i])
                if part < NEGLIGIBLE:
                    continue
                m = (fresh[k, i] if side == 1 else stayed[k, i]) + shift[i]
                strength = gained + (prior_weight if side == 1 else base_weight[k, i])
                spread = (
                    weights[i] ** 2 * (variance / strength + shift_variance[i]) + LASTING * m * m * weight_variance[i]
                )
                missed += part * excess(sign * weights[i] * m, math.sqrt(spread), sign * rival)
        index[i] += horizon * missed / (1.0 + in_flight[i]) ** 2 / weights[i]

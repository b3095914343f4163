"""Regression of outcomes on z: total effects without order, sparsity or acyclicity, and a test for changes."""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.arithmetic import product
from spillover.kernels.decorators import inside

# Alternatives of the test for a change: factors by which the variance of a residual may have grown.
GROWTHS: Final = (2.0, 10.0, 1e4)
HALF_LOGS: Final = tuple(0.5 * math.log(growth) for growth in GROWTHS)
UNMOVED: Final = sum(math.exp(-half) for half in HALF_LOGS) / 3.0  # the evidence of a residual of 0
FEWEST_FREE: Final = 5.0  # with fewer degrees of freedom the noise variance is not estimated well enough to test
MANY_FREE: Final = 50.0  # with more of them its own error is small
SHIFT: Final = 0.5
LARGEST_LOG: Final = 100.0


@inside
def projected(root, z, phi):
    """phi = root' z, and 1 / (1 + z' P z) for P = root root'."""
    n = z.shape[0]
    for k in range(n):
        phi[k] = 0.0
    for j in range(n):
        if z[j] != 0.0:
            for k in range(n):
                phi[k] += root[j, k] * z[j]
    return 1.0 / (1.0 + product(phi, phi, 0, phi.shape[0]))


@inside
def find_residuals(effects, z, y, held, residuals):
    """y - effects z. If few of many arms were chosen, only their columns are read; held: room for their numbers."""
    n = z.shape[0]
    count = 0
    for j in range(n):
        if z[j] != 0.0:
            held[count] = j
            count += 1
    for i in range(y.shape[0]):
        if 4 * count < n:
            predicted = 0.0
            for place in range(count):
                predicted += effects[i, held[place]] * z[held[place]]
        else:
            predicted = product(effects[i], z, 0, n)
        residuals[i] = y[i] - predicted


@inside
def learn_effects(root, effects, scatter, phi, residuals, weight, step, recursive):
    """Recursive least squares; phi = root' z. Returns how much of the outcome the past could have predicted.

    P = root root' is the inverse of Z Z' + ridge. The state holds its root (Potter's update), so that P stays positive
    and accurate over any number of rounds. scatter sums the outer products of recursive residuals, which are
    uncorrelated and have the variance of the noise for any z (Brown, Durbin and Evans 1975).
    """
    n, m = phi.shape[0], residuals.shape[0]
    amount = math.sqrt(weight)
    for k in range(n):
        phi[k] *= amount
    share = 1.0 / (1.0 + product(phi, phi, 0, phi.shape[0]))
    narrowing = 1.0 / (1.0 + math.sqrt(share))
    for j in range(n):
        step[j] = share * product(root[j], phi, 0, phi.shape[0])
    for j in range(n):
        change = narrowing * step[j]
        for k in range(n):
            root[j, k] -= change * phi[k]
    for i in range(m):
        error = amount * residuals[i]
        recursive[i] = error * math.sqrt(share)
        for k in range(n):
            effects[i, k] += error * step[k]
    for i in range(m):
        for k in range(m):
            scatter[i, k] += recursive[i] * recursive[k]
    return share


@inside
def learn_outcome(root, effects, scatter, z, y, weight, room, held):
    """Learn from a round; returns how much of it the past could have predicted. room, held: scratch memory."""
    n, m = z.shape[0], y.shape[0]
    phi, residuals = room[0, :n], room[1, :m]
    projected(root, z, phi)
    find_residuals(effects, z, y, held, residuals)
    return learn_effects(root, effects, scatter, phi, residuals, weight, room[2, :n], room[3, :m])


@njit(inline="always")
def evidence_of_growth(ratio, freedom):
    """Likelihood ratio of a residual if the variance grew, averaged over GROWTHS; ratio: squared residual / variance.

    Student's t, since the variance is itself an estimate with `freedom` degrees of freedom.
    """
    total = 0.0
    for k in range(3):
        growth = GROWTHS[k]
        tails = math.log((1.0 + ratio / freedom) / (1.0 + ratio / (growth * freedom)))
        total += math.exp(min(0.5 * (freedom + 1.0) * tails - HALF_LOGS[k], LARGEST_LOG))
    return total / 3.0


@njit(inline="always")
def shift_effects(risen, fallen, z, unit, standing, limit):
    """Whether a statistic for a shift in one effect, up or down, reaches the limit after these standardised residuals.

    Page's cumulative sums for a shift by SHIFT standard deviations in the effect of a full unit of z.
    """
    reached = 0  # a count vectorises better than a maximum
    for j in range(z.shape[0]):
        shift = SHIFT * unit * z[j]
        if shift != 0.0:
            for i in range(standing.shape[0]):
                risen[j, i] = max(0.0, risen[j, i] + shift * (standing[i] - 0.5 * shift))
                fallen[j, i] = max(0.0, fallen[j, i] - shift * (standing[i] + 0.5 * shift))
                reached += (risen[j, i] >= limit) + (fallen[j, i] >= limit)
    return reached > 0


@inside
def is_surprising(scatter, suspicion, risen, fallen, freedom, z, residuals, share, floor, size, limit, standing):
    """Test residuals against the noise learned so far.

    Two tests, each with at least 2 `limit` arrivals between false alarms on average. A Shiryaev-Roberts statistic for
    each outcome tests whether its variance has grown (the mean of the statistic grows by 1 an arrival without a
    change). Cumulative sums for each single effect detect small shifts sooner. Residuals in directions of z that no
    earlier round explored do not count.
    """
    n, m = z.shape[0], residuals.shape[0]
    alarm = False
    caution = 1.0 + 3.0 * math.sqrt(2.0 / freedom)  # the variance may be underestimated
    for i in range(m):
        error = math.sqrt(share) * residuals[i]
        variance = max(scatter[i, i] / freedom, floor)
        ratio = error * error / variance
        standing[i] = error / math.sqrt(caution * variance)
        evidence = UNMOVED if ratio < 1e-12 else evidence_of_growth(ratio, freedom)
        suspicion[i] = min((suspicion[i] + 1.0) * evidence, 1e100)
        alarm |= suspicion[i] >= 2.0 * m * limit
    if freedom >= MANY_FREE:
        unit = math.sqrt(share) / size
        alarm |= shift_effects(risen, fallen, z, unit, standing, math.log(4.0 * n * m * limit))
    return alarm


@inside
def test_and_learn(
    root, effects, scatter, freedom, suspicion, risen, fallen, z, y, floor, size, limit, weight, room, held
):  # fmt: skip
    """Test a round for a change of the effects, and learn from it unless there is an alarm.

    Returns whether there is one, and how much of the round the past could have predicted (0 if it was not learned
    from). room, held: scratch memory.
    """
    n, m = z.shape[0], y.shape[0]
    phi, residuals = room[0, :n], room[1, :m]
    share = projected(root, z, phi)
    find_residuals(effects, z, y, held, residuals)
    if freedom >= FEWEST_FREE and is_surprising(
        scatter, suspicion, risen, fallen, freedom, z, residuals, share, floor, size, limit, room[4, :m]
    ):
        return True, 0.0
    certainty = learn_effects(root, effects, scatter, phi, residuals, weight, room[2, :n], room[3, :m])
    return False, certainty


@njit(inline="always")
def shrink_weights(root, effects, scatter, freedom, prior, least, weights):
    """Shrink each weight towards 1 by variance / (variance + prior variance); it is at least `least`."""
    variance = scatter / max(freedom, 1.0)
    for j in range(effects.shape[0]):
        own = variance * product(root[j], root[j], 0, root.shape[1])
        weights[j] = max(1.0 + (effects[j] - 1.0) * prior / (prior + own), least)


@njit(inline="always")
def clear_regression(root, effects, scatter, ridge, identity):
    """Start again from the prior: that an arm affects itself, or with one outcome, that all arms do."""
    for i in range(root.shape[0]):
        for j in range(root.shape[0]):
            root[i, j] = 1.0 / math.sqrt(ridge) if i == j else 0.0
    for i in range(effects.shape[0]):
        for j in range(effects.shape[1]):
            effects[i, j] = 1.0 if i == j or not identity else 0.0
        for j in range(scatter.shape[1]):
            scatter[i, j] = 0.0


@inside
def room_for_regression(n):
    """Memory to learn an outcome."""
    return np.empty((5, n)), np.empty(n, np.int64), np.empty(1)

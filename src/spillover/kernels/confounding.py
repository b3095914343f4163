"""Tests of whether z can be trusted: hidden common causes of z and y, and outcomes where nothing is chosen."""

import math
from typing import Final

import numpy as np
from numba import njit

from spillover.kernels.decorators import inside
from spillover.kernels.factor import factorise, forward

FEWEST_FREE: Final = 5.0  # with fewer degrees of freedom doubts are not tested
CONFOUNDING: Final = 0.25  # squared prior correlation of hidden common causes, where they are tested for
MOST_EXPLAINED: Final = 1.0 - 1e-12  # share of a sum of squares
SETTLED: Final = 1e-9  # a smaller share of a sum of squares is rounding
LEAST_NOISE: Final = 1e-7  # least variance of an error, in squared units


@njit(inline="always")
def given_z(moments, n, root, pivots, half, rest):
    """What expectations q and outcomes y have beyond (z, 1).

    root: of the moments of (z, 1). half: its inverse times their moments with (q, y). rest: moments of q with (q, y),
    given (z, 1).
    """
    of_z = np.empty((n + 1, n + 1))
    for a in range(n + 1):
        row = moments[3 * n if a == n else n + a]
        for b in range(n):
            of_z[a, b] = row[n + b]
            half[a, b], half[a, n + b] = row[2 * n + b], row[b]
        of_z[a, n] = row[3 * n]
    factorise(of_z, n + 1, root, pivots)
    forward(root, n + 1, half)
    for i in range(n):
        row, target = moments[2 * n + i], rest[i]
        for j in range(n):
            target[j], target[n + j] = row[2 * n + j], row[j]
        for a in range(n + 1):
            source = half[a]
            factor = source[i]
            for j in range(2 * n):
                target[j] -= factor * source[j]
    for i in range(n):  # what z and 1 explain up to rounding adds nothing
        if not rest[i, i] > SETTLED * moments[2 * n + i, 2 * n + i]:
            for j in range(2 * n):
                rest[i, j] = 0.0
            for j in range(n):
                rest[j, i] = 0.0


@inside
def average_of_logs(logs):
    """The logarithm of the average of numbers, from their logarithms."""
    most, total = -math.inf, 0.0
    for i in range(logs.shape[0]):
        most = max(most, logs[i])
    for i in range(logs.shape[0]):
        total += math.exp(logs[i] - most)
    return most + math.log(total / logs.shape[0])


@inside
def test_doubts(moments, n, unit):
    """Log Bayes factors, averaged over the outcomes: that expectations tell more than z does, and of a constant."""
    rounds = moments[3 * n, 3 * n]
    if rounds < 2.0 * n + FEWEST_FREE:
        return 0.0, 0.0
    root, pivots = np.empty((n + 1, n + 1)), np.empty(n + 1)
    half, rest = np.empty((n + 1, 2 * n)), np.empty((n, 2 * n))
    given_z(moments, n, root, pivots, half, rest)
    unexplained, surprise = pivots[n], 0.0  # of the constant, given z
    steady = max(unexplained, SETTLED * rounds)  # the compiler may divide by it before it looks
    for i in range(n):
        surprise += moments[n + i, n + i] - 2.0 * moments[2 * n + i, n + i] + moments[2 * n + i, 2 * n + i]
    ratio = CONFOUNDING * rounds / max(surprise, SETTLED * unit * rounds)
    prior, pull = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(n):
            prior[i, j], pull[i, j] = ratio * rest[i, j], rest[i, n + j]
        prior[i, i] += 1.0
    left, levels, explained = np.empty(n), np.empty(n), np.zeros(n)
    for i in range(n):
        left[i], levels[i] = moments[i, i], root[n, n] * half[n, n + i]
    for a in range(n + 1):
        for i in range(n):
            left[i] -= half[a, n + i] * half[a, n + i]
    factorise(prior, n, root, pivots)
    forward(root, n, pull)
    penalty = 0.0
    for a in range(n):
        penalty += 0.5 * math.log(max(pivots[a], 1e-300))
        for i in range(n):
            explained[i] += pull[a, i] * pull[a, i]
    hidden, constant = np.empty(n), np.zeros(n)
    for i in range(n):
        noise = max(left[i], 0.0) + LEAST_NOISE * unit * rounds
        share = min(max(ratio * explained[i] / noise, 0.0), MOST_EXPLAINED)
        hidden[i] = -0.5 * (rounds - n - 1.0) * math.log(1.0 - share) - penalty
        if unexplained > SETTLED * rounds:
            square = levels[i] * levels[i]
            share = square / (1.0 + steady) / (noise + square / steady)
            constant[i] = -0.5 * (rounds - n) * math.log(1.0 - min(share, MOST_EXPLAINED))
            constant[i] -= 0.5 * math.log(1.0 + steady)
    return average_of_logs(hidden), average_of_logs(constant)

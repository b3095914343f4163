"""Outliers: outcomes with fat tails are pulled towards what is expected of them."""

from math import lgamma, log, pi

import numpy as np

from spillover.types import Array

TAILS = 4.0  # degrees of freedom of Student's t
BETTER = 3.0  # log likelihood by which t must fit better than a normal distribution
STEPS = 30  # towards the scale of the residuals
FEW_VALUES = 20  # of few different outcomes, rare events among them, none is a mistake
LEAST_SLOPE = 0.2  # of the influence function, on average
TINY = np.finfo(float).tiny


def without_outliers(outcomes: Array, fitted: Array) -> Array:
    """Outcomes (rounds, m) as pseudo-observations: a regression of these is, once it has settled, one with t errors.

    An outcome whose residuals fit a normal distribution about as well stays as it is.

    >>> y = np.arange(40.0)[:, None]
    >>> bool((without_outliers(y, np.full((40, 1), 19.5)) == y).all())
    True
    """
    known = np.isfinite(outcomes)
    rounds = np.maximum(known.sum(axis=0), 1)

    def average(values: Array) -> Array:
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / rounds)

    rest = np.where(known, outcomes - fitted, 0.0)
    normal = average(rest**2)
    middle = [np.median(np.abs(part[here])) if here.any() else 0.0 for part, here in zip(rest.T, known.T, strict=True)]
    variance = (1.4826 * np.array(middle)) ** 2 + 1e-6 * normal + TINY
    for _ in range(STEPS):
        variance = average((TAILS + 1) / (TAILS + rest**2 / variance) * rest**2) + 1e-12 * normal + TINY
    square = rest**2 / variance
    constant = lgamma((TAILS + 1) / 2) - lgamma(TAILS / 2) - 0.5 * log(TAILS * pi)
    fat = constant - 0.5 * np.log(variance) - (TAILS + 1) / 2 * average(np.log1p(square / TAILS))
    better = rounds * (fat + 0.5 * (np.log(2 * pi * normal + TINY) + 1.0)) > BETTER
    influence = (TAILS + 1) * rest / (TAILS + square)
    slope = average((TAILS + 1) * (TAILS - square) / (TAILS + square) ** 2)
    values = 1 + (np.diff(np.sort(outcomes, axis=0), axis=0) > 0).sum(axis=0)
    varied = normal > 1e-18 * average(outcomes**2)
    pulled = known & better & varied & (values > np.minimum(FEW_VALUES, rounds / 2))
    return np.asarray(np.where(pulled, fitted + influence / np.maximum(slope, LEAST_SLOPE), outcomes))

"""Outliers: outcomes with fat tails are pulled towards what is expected of them."""

from math import lgamma, log, pi

import numpy as np

from spillover.types import Array

TAILS = 4.0  # degrees of freedom of Student's t
BETTER = 3.0  # log likelihood by which t must fit better than a normal distribution
STEPS = 30  # towards the scale of the residuals
FEW_VALUES = 20
LEAST_SLOPE = 0.2  # of the influence function, on average


def without_outliers(outcomes: Array, fitted: Array) -> Array:
    """Outcomes (rounds, m) as pseudo-observations: a regression of these is, once it has settled, one with t errors.

    An outcome whose residuals fit a normal distribution about as well stays as it is.

    >>> y = np.arange(40.0)[:, None]
    >>> bool((without_outliers(y, np.full((40, 1), 19.5)) == y).all())
    True
    """
    found = outcomes.copy()
    for i, known in enumerate(np.isfinite(outcomes).T):
        here, expected = outcomes[known, i], fitted[known, i]
        rest = here - expected
        values = len(np.unique(here))  # of few different ones, rare events among them, none is a mistake
        varied = float((rest**2).sum()) > 1e-18 * float((here**2).sum())
        if varied and values > min(FEW_VALUES, len(rest) / 2):
            found[known, i] = expected + without_tails(rest)
    return found


def without_tails(rest: Array) -> Array:
    """Residuals of one outcome with outliers pulled in; the same if a normal distribution fits them about as well."""
    rounds, normal = len(rest), float((rest**2).mean())
    variance = float(1.4826 * np.median(np.abs(rest))) ** 2 + 1e-6 * normal
    for _ in range(STEPS):
        variance = float(((TAILS + 1) / (TAILS + rest**2 / variance) * rest**2).mean()) + 1e-12 * normal
    square = rest**2 / variance
    constant = lgamma((TAILS + 1) / 2) - lgamma(TAILS / 2) - 0.5 * log(TAILS * pi)
    fat = rounds * (constant - 0.5 * log(variance)) - (TAILS + 1) / 2 * float(np.log1p(square / TAILS).sum())
    if fat <= -0.5 * rounds * (log(2 * pi * normal) + 1.0) + BETTER:
        return rest
    influence = (TAILS + 1) * rest / (TAILS + square)
    slope = float(((TAILS + 1) * (TAILS - square) / (TAILS + square) ** 2).mean())
    return np.asarray(influence / max(slope, LEAST_SLOPE))

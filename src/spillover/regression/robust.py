"""Outliers: outcomes with fat tails are pulled towards what the other rounds predict."""

from math import lgamma, log, pi

import numpy as np

from spillover.types import Array

TAILS = 4.0  # degrees of freedom of Student's t
BETTER = 3.0  # log likelihood by which t must fit better than a normal distribution
ROUNDS = 30  # of reweighting
LEAST_SLOPE = 0.2  # of the influence function, on average


def without_outliers(outcomes: Array, columns: Array) -> Array:
    """Outcomes (rounds, m) as pseudo-observations: least squares on these is a regression with t errors.

    An outcome whose residuals fit a normal distribution about as well stays as it is.

    >>> y = np.array([[1.0], [2.0], [3.0], [4.0]] * 10)
    >>> bool((without_outliers(y, np.ones((40, 1))) == y).all())
    True
    """
    ridge = 1e-6 * np.trace(columns.T @ columns) / columns.shape[1] * np.eye(columns.shape[1])
    plain = outcomes - columns @ np.linalg.solve(columns.T @ columns + ridge, columns.T @ outcomes)
    found = outcomes.copy()
    for i, (outcome, residual) in enumerate(zip(outcomes.T, plain.T, strict=True)):
        normal = float((residual**2).mean())
        if normal > 1e-18 * float((outcome**2).mean()):
            found[:, i] = pseudo_observations(outcome, residual, normal, columns, ridge)
    return found


def pseudo_observations(outcome: Array, residual: Array, normal: float, columns: Array, ridge: Array) -> Array:
    """One outcome; normal: the variance of its residuals."""
    rounds, rest = len(outcome), residual
    variance = float(1.4826 * np.median(np.abs(rest))) ** 2 + 1e-6 * normal
    fitted = outcome - rest
    for _ in range(ROUNDS):
        weight = (TAILS + 1) / (TAILS + rest**2 / variance)
        weighted = columns * weight[:, None]
        fitted = columns @ np.linalg.solve(weighted.T @ columns + ridge, weighted.T @ outcome)
        rest = outcome - fitted
        variance = float((weight * rest**2).mean()) + 1e-12 * normal
    square = rest**2 / variance
    constant = lgamma((TAILS + 1) / 2) - lgamma(TAILS / 2) - 0.5 * log(TAILS * pi)
    fat = rounds * (constant - 0.5 * log(variance)) - (TAILS + 1) / 2 * float(np.log1p(square / TAILS).sum())
    if fat <= -0.5 * rounds * (log(2 * pi * normal) + 1.0) + BETTER:
        return outcome
    influence = (TAILS + 1) * rest / (TAILS + square)
    slope = float(((TAILS + 1) * (TAILS - square) / (TAILS + square) ** 2).mean())
    return np.asarray(fitted + influence / max(slope, LEAST_SLOPE))

"""The tests of whether z can be trusted, from whole histories and by projections: slow, and from the formulas."""

import numpy as np

CONFOUNDING, LEAST_NOISE = 0.25, 1e-7


def left_over(values, regressors):
    """What regressors do not explain, column by column."""
    return values - regressors @ np.linalg.lstsq(regressors, values, rcond=None)[0]


def log_mean(logs):
    return np.logaddexp.reduce(logs) - np.log(len(logs))


def log_bayes_factors(y, z, q, unit=1.0):
    """Of a hidden common cause of z and y, and of a constant, averaged over the outcomes."""
    rounds, n = z.shape
    with_one = np.hstack([z, np.ones((rounds, 1))])
    q_left, y_left = left_over(q, with_one), left_over(y, with_one)
    noise = (y_left**2).sum(axis=0) + LEAST_NOISE * unit * rounds
    ratio = CONFOUNDING * rounds / ((z - q) ** 2).sum()
    prior = np.eye(n) + ratio * q_left.T @ q_left
    pull = q_left.T @ y_left
    explained = ratio * np.einsum("ai,ab,bi->i", pull, np.linalg.inv(prior), pull) / noise
    hidden = -0.5 * (rounds - n - 1) * np.log(1 - explained) - 0.5 * np.linalg.slogdet(prior)[1]
    one_left = left_over(np.ones((rounds, 1)), z)[:, 0]
    steady, level = one_left @ one_left, one_left @ y
    share = level**2 / (1 + steady) / (noise + level**2 / steady)
    constant = -0.5 * (rounds - n) * np.log(1 - share) - 0.5 * np.log(1 + steady)
    return log_mean(hidden), log_mean(constant)

"""Measures of a run: confidence intervals over replications, error of the graph."""

from typing import NamedTuple

import numpy as np

from spillover import validate
from spillover.types import Array


class Interval(NamedTuple):
    """A mean over replications with its confidence interval (Student's t), 95% by default."""

    mean: Array
    low: Array
    high: Array


def mean_interval(values: Array, axis: int = 0, level: float = 0.95) -> Interval:
    """Mean and confidence interval along an axis; with one replication the interval is NaN.

    >>> mean_interval(np.array([1.0, 2.0, 3.0])).mean.item()
    2.0
    """
    from scipy.special import stdtrit  # imported here, because live decisions do not need SciPy

    validate.number("level", level, "a probability strictly between 0 and 1", low=0, high=1, open_ends=True)
    values = validate.numbers("values", values, "numbers")
    n = values.shape[axis]
    mean = values.mean(axis=axis)
    if n < 2:
        return Interval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    half = stdtrit(n - 1, (1 + level) / 2) * values.std(axis=axis, ddof=1) / np.sqrt(n)
    return Interval(mean, mean - half, mean + half)


def graph_mse(estimate: Array, truth: Array) -> Array:
    """Mean squared error of the adjacency: ||A - A_hat||_F^2 / n^2."""
    return np.asarray(((estimate - truth) ** 2).mean(axis=(-2, -1)))

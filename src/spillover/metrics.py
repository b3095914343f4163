"""Measures of a run: confidence intervals over replications, error of the graph; regret as figures draw it."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from spillover import validate
from spillover.types import Array, IntArray


class Interval(NamedTuple):
    """A mean over replications with its confidence interval (Student's t), 95% by default.

    >>> interval = mean_interval(np.array([1.0, 2.0, 3.0]))
    >>> interval.low < interval.mean < interval.high
    np.True_
    """

    mean: Array
    low: Array
    high: Array


class RegretCurve(NamedTuple):
    """The regret of one policy over time."""

    policy: str  # a name; policies with the same name look alike in all figures
    label: str  # what a figure prints
    rounds: IntArray  # (K,): the last one is the horizon
    regret: Array  # (R, K): cumulative regret at the end of these rounds
    changes: tuple[int, ...]  # first rounds of the periods after the first one


class HasRegret(Protocol):
    """Anything with regret to draw: a run, a comparison, a stored record."""

    def regret_curves(self) -> Sequence[RegretCurve]: ...


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
    """Mean squared error of the adjacency: ||A - A_hat||_F^2 / n^2.

    >>> graph_mse(np.array([[0.0, 0.5], [0.0, 0.0]]), np.zeros((2, 2))).item()
    0.0625
    """
    return np.asarray(((estimate - truth) ** 2).mean(axis=(-2, -1)))


def sparse_graph_mse(estimate: Any, truth: Any) -> Array:
    """Mean squared error of graphs as `scipy.sparse.coo_array`, (*batch, n, n); the estimate may have axes before.

    >>> from scipy.sparse import coo_array
    >>> sparse_graph_mse(coo_array(np.array([[0.0, 0.5], [0, 0]])), coo_array(np.zeros((2, 2)))).item()
    0.0625
    """
    *batch, n, _ = estimate.shape
    real = truth.reshape(-1, n).tocsr()
    found = estimate.reshape(-1, n).tocsr()
    squares = np.zeros(int(np.prod(batch, dtype=int)))
    rows = real.shape[0]
    for first in range(0, found.shape[0], rows):  # each cell of a grid meets the same worlds
        gap = (found[first : first + rows] - real).tocoo()
        squares += np.bincount((first + gap.coords[0]) // n, gap.data**2, minlength=len(squares))
    return np.asarray(squares.reshape(batch) / n**2)


__all__ = [
    "Interval",
    "graph_mse",
    "mean_interval",
    "sparse_graph_mse",
]

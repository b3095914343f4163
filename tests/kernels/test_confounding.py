"""Tests of whether z can be trusted, total effects and spectral radii: against slow versions."""

import numpy as np
import pytest
from numba import njit

from spillover.kernels.confounding import test_doubts as doubts
from spillover.kernels.factor import PIVOT, factorise, forward, inverse_root
from spillover.kernels.inversion import spectral_radius, total_effects
from tests.reference.confounding_reference import log_bayes_factors


def from_python(function):
    """A function of compiled code that can be called from here."""
    return njit(function.py_func)


def history(seed, n, rounds, hidden):
    rng = np.random.default_rng(seed)
    x, means = rng.uniform(size=(rounds, n)) < 0.6, rng.uniform(0.2, 0.8, n)
    cause = hidden * rng.normal(size=(rounds, 1))
    z = np.where(x, means + 0.2 * rng.normal(size=x.shape) + cause, 0.0)
    y = z @ rng.uniform(0.0, 0.5, (n, n)) + z + 0.3 * rng.normal(size=z.shape) + cause + 0.1
    return y, z, np.where(x, means, 0.0)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("hidden", [0.0, 0.4])
def test_log_bayes_factors(n, hidden):
    y, z, q = history(n, n, 60, hidden)
    v = np.hstack([y, z, q, np.ones((len(z), 1))])
    np.testing.assert_allclose(from_python(doubts)(v.T @ v, n, 1.0), log_bayes_factors(y, z, q), rtol=1e-8)


def test_nothing_is_said_of_few_rounds():
    y, z, q = history(0, 4, 12, 0.4)
    v = np.hstack([y, z, q, np.ones((len(z), 1))])
    assert from_python(doubts)(v.T @ v, 4, 1.0) == (0.0, 0.0)


def test_roots_leave_out_columns_that_depend_on_others():
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(30, 5))
    columns[:, 2] = columns[:, 0] - columns[:, 1]
    gram, used = columns.T @ columns, [0, 1, 3, 4]
    root, pivots, inverse = np.empty((5, 5)), np.empty(5), np.empty((5, 5))
    from_python(factorise)(gram, 5, root, pivots)
    assert root[2, 2] == 0.0
    assert pivots[2] <= PIVOT * gram[2, 2]
    expected = np.zeros((5, 5))
    expected[np.ix_(used, used)] = np.linalg.inv(gram[np.ix_(used, used)])
    from_python(inverse_root)(root, 5, inverse)
    np.testing.assert_allclose(inverse.T @ inverse, expected, atol=1e-12)
    right = rng.normal(size=(5, 3))
    solved = right.copy()
    from_python(forward)(root, 5, solved)
    np.testing.assert_allclose(solved, inverse @ right, atol=1e-12)


def radius_of(graph, enough):
    found = np.empty(1)
    from_python(spectral_radius)(graph, enough, found)
    return found[0]


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_spectral_radius(n):
    rng = np.random.default_rng(n)
    graph = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    radius = np.abs(np.linalg.eigvals(np.abs(graph))).max()
    np.testing.assert_allclose(radius_of(graph, 0.0), radius, rtol=1e-9)
    assert radius <= radius_of(graph, 1.5 * radius) <= 1.5 * radius or radius == 0.0
    assert radius_of(np.triu(np.ones((n, n)), 1), 0.9) == 0.0


def test_total_effects():
    rng, (weights, weights_variance) = np.random.default_rng(0), np.empty((2, 6))
    graph, variance = 0.2 * rng.uniform(size=(6, 6)), rng.uniform(size=(6, 6))
    reach = np.linalg.inv(np.eye(6) - graph)
    from_python(total_effects)(graph, variance, weights, weights_variance)
    np.testing.assert_allclose(weights, reach.sum(axis=0))
    np.testing.assert_allclose(weights_variance, (weights**2) @ variance @ reach**2)
    from_python(total_effects)(np.eye(6), variance, weights, weights_variance)
    assert np.isinf(weights).all()

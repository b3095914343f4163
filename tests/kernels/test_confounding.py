"""Tests of whether z can be trusted, total effects and spectral radii: against slow versions."""

import numpy as np
import pytest
from numba import njit

from spillover import kernels
from spillover.kernels.factor import PIVOT, factorise, forward, inverse_root
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
    confounded, constant = np.full(1, np.nan), np.full(1, np.nan)
    kernels.doubts(v.T @ v, np.ones(n, bool), 1.0, True, confounded, constant)
    np.testing.assert_allclose((confounded[0], constant[0]), log_bayes_factors(y, z, q), rtol=1e-8)


def test_nothing_is_said_of_few_rounds_or_before_a_test_is_due():
    y, z, q = history(0, 4, 12, 0.4)
    v = np.hstack([y, z, q, np.ones((len(z), 1))])
    for due, expected in ((True, 0.0), (False, 7.0)):
        confounded, constant = np.full(1, 7.0), np.full(1, 7.0)
        kernels.doubts(v.T @ v, np.ones(4, bool), 1.0, due, confounded, constant)
        assert confounded[0] == constant[0] == expected


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


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_spectral_radius(n):
    rng = np.random.default_rng(n)
    graph = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    radius = np.abs(np.linalg.eigvals(np.abs(graph))).max()
    np.testing.assert_allclose(kernels.spectral_radius(graph, 0.0), radius, rtol=1e-9)
    assert radius <= kernels.spectral_radius(graph, 1.5 * radius) <= 1.5 * radius or radius == 0.0
    assert kernels.spectral_radius(np.triu(np.ones((n, n)), 1), 0.9) == 0.0


def test_total_effects():
    rng = np.random.default_rng(0)
    graph, variance = 0.2 * rng.uniform(size=(6, 6)), rng.uniform(size=(6, 6))
    reach = np.linalg.inv(np.eye(6) - graph)
    weights, weights_variance = kernels.total_effects(graph, variance)
    np.testing.assert_allclose(weights, reach.sum(axis=0))
    np.testing.assert_allclose(weights_variance, (weights**2) @ variance @ reach**2)
    assert np.isinf(kernels.total_effects(np.eye(6), variance)[0]).all()

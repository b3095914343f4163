"""Common shocks against plain NumPy: the prediction of one error from others, and where there is none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spillover import kernels

N = 4


def parts(seed, loading):
    """Equations that are known exactly, errors with a common cause, and their covariances."""
    generator = np.random.default_rng(seed)
    coefficients = np.zeros((N, N + 1))
    coefficients[:, :N] = np.triu(generator.uniform(0.0, 0.5, (N, N)), 1)
    coefficients[:, N] = generator.uniform(0.0, 1.0, N)
    covariance = np.outer(loading, loading) + 0.04 * np.eye(N)
    return coefficients, covariance, generator


def outcomes(coefficients, errors, own):
    return np.linalg.solve(np.eye(N) - coefficients[:, :N], coefficients[:, N] + own + errors)


def predicted(coefficients, shared, shared_chosen, x, z, y):
    known = (np.zeros((N, N)), np.zeros((N, 1, N)), np.zeros((N, 1, 1)))
    return kernels.expected_shocks(coefficients, *known, shared, shared_chosen, x, z, y, np.ones(1), 1, True)


def test_shocks_are_the_conditional_means_of_the_errors():
    coefficients, covariance, generator = parts(0, np.array([0.3, 0.0, 0.4, 0.2]))
    x, errors = np.array([False, True, False, False]), generator.standard_normal(N)
    chosen = 1.5 * covariance
    y = outcomes(coefficients, errors, np.where(x, 0.7, 0.0))
    found = predicted(coefficients, covariance, chosen, x, np.full(N, np.nan), y)
    free = [0, 2, 3]
    for i in range(N):
        others = [j for j in free if j != i]
        across = (chosen if x[i] else covariance)[i, others]
        wanted = across @ np.linalg.solve(covariance[np.ix_(others, others)], errors[others])
        assert_allclose(found[i], wanted, atol=1e-9)


def test_a_known_reward_frees_its_arm():
    coefficients, covariance, generator = parts(1, np.array([0.3, 0.5, 0.4, 0.2]))
    x, errors, z = np.array([False, True, False, False]), generator.standard_normal(N), np.array([0.0, 0.7, 0.0, 0.0])
    y = outcomes(coefficients, errors, z)
    found = predicted(coefficients, covariance, np.zeros((N, N)), x, z, y)
    precision = np.linalg.inv(covariance)
    assert_allclose(errors - found, precision @ errors / np.diag(precision), atol=1e-9)


@pytest.mark.parametrize("missing", [True, False])
def test_without_relations_or_with_missing_outcomes_there_is_no_shock(missing):
    coefficients, covariance, generator = parts(2, np.full(N, 0.3))
    y = outcomes(coefficients, generator.standard_normal(N), np.zeros(N))
    shared = covariance if missing else np.diag(np.diag(covariance))
    y[2] = np.nan if missing else y[2]
    found = predicted(coefficients, shared, shared, np.zeros(N, bool), np.full(N, np.nan), y)
    assert_allclose(found, np.zeros(N), atol=1e-12)


def test_covariances_are_learned_beyond_chance():
    loading = np.array([0.6, 0.0, 0.6, 0.0])
    coefficients, covariance, generator = parts(3, loading)
    free, chosen, shared, shared_chosen = np.zeros((N, N, 4)), np.zeros((N, N, 4)), np.zeros((N, N)), np.zeros((N, N))
    rounds, x, nothing = 4000, np.zeros(N, bool), np.full(N, np.nan)
    for _ in range(rounds):
        errors = loading * generator.standard_normal() + 0.2 * generator.standard_normal(N)
        y = outcomes(coefficients, errors, np.zeros(N))
        kernels.absorb_shocks(
            free, chosen, coefficients, x, np.ones(N), nothing, y, np.ones(N, bool), np.ones(1),
            np.zeros((N, 2 * N + 2)), np.zeros(N), 1, 0, True,
        )  # fmt: skip
    kernels.solve_shocks(free, chosen, shared, shared_chosen, True)
    assert_allclose(shared[0, 2], covariance[0, 2], rtol=0.15)  # shrunk by three standard errors of the correlation
    assert_allclose(np.diag(shared), np.diag(covariance), rtol=0.1)
    apart = np.abs(shared[[0, 0, 1, 1, 2], [1, 3, 2, 3, 3]])
    assert apart.max() < 0.01 * covariance[0, 2]
    assert not shared_chosen.any()

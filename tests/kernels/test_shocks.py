"""Common shocks against plain NumPy: the prediction of one error from others, and where there is none."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from spillover.policies import instrumental_shocks
from spillover.policies.instrumental_filter import SHOCK, Room, Y, Z
from spillover.policies.instrumental_state import Shocks, empty_shocks

N = 4
expect_shocks = njit(instrumental_shocks.expect_shocks)
learn_shocks = njit(instrumental_shocks.learn_shocks)
solve_shocks = njit(instrumental_shocks.solve_shocks)


class Equations(NamedTuple):
    """The fields of the equations that shocks look at."""

    coefficients: NDArray[np.float64]
    edge_variance: NDArray[np.float64]
    slope: NDArray[np.float64]
    rest_covariance: NDArray[np.float64]


class State(NamedTuple):
    """The fields of a learner that shocks look at."""

    equations: Equations
    shocks: Shocks
    context: NDArray[np.float64]


def learner(coefficients, shocks):
    """A learner without context whose equations are known exactly."""
    known = (np.zeros((N, N)), np.zeros((N, 1, N)), np.zeros((N, 1, 1)))
    return State(Equations(coefficients, *known), shocks, np.zeros(0))


def room_of(z, y):
    """A round whose outcomes have just come."""
    room = Room(np.zeros((6, N)), np.ones((2, N), np.bool_), np.ones(1), np.zeros((N, 2 * N + 2)), np.zeros((4, N)))
    room.lines[Y], room.lines[Z], room.flags[0] = y, z, ~np.isnan(y)
    return room


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
    room, shocks = room_of(z, y), empty_shocks(N, ())._replace(shared=shared, shared_chosen=shared_chosen)
    expect_shocks(learner(coefficients, shocks), x, room)
    return room.lines[SHOCK]


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
    shocks = empty_shocks(N, ())
    state, x, nothing = learner(coefficients, shocks), np.zeros(N, bool), np.full(N, np.nan)
    for _ in range(4000):
        errors = loading * generator.standard_normal() + 0.2 * generator.standard_normal(N)
        learn_shocks(state, x, np.ones(N), room_of(nothing, outcomes(coefficients, errors, np.zeros(N))))
    solve_shocks(shocks)
    shared = shocks.shared
    assert_allclose(shared[0, 2], covariance[0, 2], rtol=0.15)  # shrunk by three standard errors of the correlation
    assert_allclose(np.diag(shared), np.diag(covariance), rtol=0.1)
    apart = np.abs(shared[[0, 0, 1, 1, 2], [1, 3, 2, 3, 3]])
    assert apart.max() < 0.01 * covariance[0, 2]
    assert not shocks.shared_chosen.any()

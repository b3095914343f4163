"""Mixed models from a Gram matrix are those of the textbook."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_t

from spillover.regression.mixed import FLOOR, MixedModel

ROUNDS, COLUMNS = 12, 4


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    fixed = np.column_stack([np.ones(ROUNDS), rng.normal(size=ROUNDS)])
    return fixed, rng.normal(size=(ROUNDS, COLUMNS)), rng.normal(size=(ROUNDS, 2))


def test_the_evidence_is_that_of_outcomes_with_the_noise_integrated_out(data) -> None:
    fixed, columns, outcomes = data
    model = MixedModel(fixed, columns, outcomes)
    basis = np.linalg.svd(fixed)[0][:, 2:]  # rounds that the fixed columns do not explain
    places = np.array([[0, 2, 3], [1, 2, 3]])
    for size in (0.1, 2.0):
        variance = np.full((2, 3), size)
        found = model.evidence(places, variance)
        for k in range(2):
            inside = basis.T @ columns[:, places[k]]
            shape = np.eye(len(basis.T)) + size * inside @ inside.T
            y = basis.T @ outcomes[:, k]
            # a noise variance with density 1 / variance: t with few degrees of freedom, up to a constant
            rest = y @ np.linalg.solve(shape, y) + FLOOR * y @ y
            expected = -0.5 * np.linalg.slogdet(shape)[1] - 0.5 * len(y) * np.log(rest)
            assert found[k] == pytest.approx(expected, rel=1e-10)
            few: Any = 1e-9  # degrees of freedom
            wide = multivariate_t(shape=shape, df=few).logpdf(y) - multivariate_t(shape=np.eye(len(y)), df=few).logpdf(
                y
            )
            plain = -0.5 * len(y) * np.log(y @ y)
            assert found[k] - plain == pytest.approx(wide, rel=1e-5)


def test_the_posterior_solves_the_normal_equations(data) -> None:
    fixed, columns, outcomes = data
    model = MixedModel(fixed, columns, outcomes)
    places, variance = np.tile(np.arange(COLUMNS), (2, 1)), np.tile([0.5, 1.0, 2.0, 4.0], (2, 1))
    mean, cover, noise = model.posterior(places, variance)
    everything = np.column_stack([fixed, columns])
    prior = np.diag([0.0, 0.0, *(1.0 / variance[0])])
    for k in range(2):
        precision = everything.T @ everything + prior
        whole = np.linalg.solve(precision, everything.T @ outcomes[:, k])
        assert mean[k] == pytest.approx(whole[2:])
        assert cover[k] == pytest.approx(np.linalg.inv(precision)[2:, 2:])
        squares = outcomes[:, k] @ (outcomes[:, k] - everything @ whole)
        assert noise[k] == pytest.approx(squares / (ROUNDS - 2))


def test_a_variance_of_zero_leaves_a_column_out(data) -> None:
    fixed, columns, outcomes = data
    model = MixedModel(fixed, columns, outcomes)
    without = model.evidence(np.array([[0, 1], [0, 1]]), np.ones((2, 2)))
    some = model.evidence(np.array([[0, 1, 2], [0, 1, 3]]), np.array([[1.0, 1.0, 0.0]] * 2))
    assert some == pytest.approx(without)
    mean = model.posterior(np.array([[0, 1, 2], [0, 1, 3]]), np.array([[1.0, 1.0, 0.0]] * 2))[0]
    assert mean[:, 2] == pytest.approx([0.0, 0.0])

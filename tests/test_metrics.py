"""Intervals and the error of the graph, against SciPy and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import spillover as sp
from spillover.metrics import graph_mse


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40), st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_is_students(values, level):
    data = np.array(values)
    if np.ptp(data) < 1e-6:
        return
    found = sp.metrics.mean_interval(data, level=level)
    low, high = stats.t.interval(level, len(data) - 1, loc=data.mean(), scale=stats.sem(data))
    np.testing.assert_allclose([found.mean, found.low, found.high], [data.mean(), low, high], rtol=1e-9, atol=1e-9)


def test_interval_along_an_axis():
    data = np.random.default_rng(0).normal(size=(3, 20, 7))
    found = sp.metrics.mean_interval(data, axis=-2)
    assert found.mean.shape == found.low.shape == found.high.shape == (3, 7)
    low, high = stats.t.interval(0.95, 19, loc=data.mean(axis=1), scale=stats.sem(data, axis=1))
    np.testing.assert_allclose(found.low, low)
    np.testing.assert_allclose(found.high, high)


def test_interval_of_equal_values_is_a_point():
    found = sp.metrics.mean_interval(np.full(5, 2.5))
    assert found.low == found.mean == found.high == 2.5


def test_interval_of_one_replication_is_unknown():
    found = sp.metrics.mean_interval(np.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(found.mean, [1.0, 2.0])
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()


def test_interval_covers_the_mean_as_often_as_it_says():
    draws = np.random.default_rng(1).normal(3.0, 2.0, size=(8, 5000))
    found = sp.metrics.mean_interval(draws, axis=0)
    covered = int(((found.low <= 3.0) & (found.high >= 3.0)).sum())
    assert stats.binomtest(covered, 5000, 0.95).pvalue > 1e-3


def test_graph_error_is_the_mean_squared_difference():
    truth = np.zeros((2, 3, 3))
    estimate = truth.copy()
    estimate[1, 0, 2], estimate[1, 1, 2] = 0.6, -0.3
    np.testing.assert_allclose(graph_mse(estimate, truth), [0.0, (0.36 + 0.09) / 9])
    assert graph_mse(estimate[1], truth[1]) == pytest.approx(0.05)

"""The posterior of paths equals that of the joint normal distribution of all stretches."""

import numpy as np
import pytest
from scipy import stats

from spillover.evaluation.posterior import Evidence, Process, drawn_paths, filtered


def example(n=2, stretches=4):
    g = np.random.default_rng(3)
    roots = g.standard_normal((stretches, n, n))
    matrix = roots @ np.swapaxes(roots, -1, -2)
    matrix[1] = 0.0  # nothing was observed there
    vector = g.standard_normal((stretches, n)) * (np.arange(stretches) != 1)[:, None]
    return Evidence(matrix, vector), Process(np.array(0.7), np.array(0.6))


def joint(evidence, process):
    """Mean and covariance of all stretches, and the log marginal likelihood, by one large normal distribution."""
    stretches, n = evidence.vector.shape
    lag = np.abs(np.subtract.outer(np.arange(stretches), np.arange(stretches)))
    prior = np.kron(process.variance * process.decay**lag, np.eye(n))
    matrix = np.zeros((stretches * n, stretches * n))
    for b in range(stretches):
        matrix[b * n : (b + 1) * n, b * n : (b + 1) * n] = evidence.matrix[b]
    vector = evidence.vector.ravel()
    covariance = np.linalg.inv(np.linalg.inv(prior) + matrix)
    size = np.linalg.slogdet(np.eye(len(prior)) + prior @ matrix)[1]
    return covariance @ vector, covariance, 0.5 * (vector @ covariance @ vector - size)


def test_the_last_stretch_and_the_likelihood_are_exact():
    evidence, process = example()
    mean, covariance, likelihood = joint(evidence, process)
    found = filtered(evidence, process)
    assert found.mean[-1] == pytest.approx(mean[-2:])
    assert found.covariance[-1] == pytest.approx(covariance[-2:, -2:])
    assert float(found.likelihood) == pytest.approx(likelihood)


def test_drawn_paths_have_the_joint_distribution():
    evidence, process = example()
    mean, covariance, _ = joint(evidence, process)
    count = 4000
    many = Evidence(*(np.broadcast_to(values, (count, *values.shape)) for values in evidence))
    each = Process(np.full(count, process.variance), np.full(count, process.decay))
    paths = drawn_paths(filtered(many, each), each, np.random.default_rng(1)).reshape(count, -1)
    distance = np.vecdot(paths - mean, np.linalg.solve(covariance, (paths - mean).T).T)
    assert stats.kstest(distance, stats.chi2(len(mean)).cdf).pvalue > 0.001
    assert paths.mean(axis=0) == pytest.approx(mean, abs=0.06)

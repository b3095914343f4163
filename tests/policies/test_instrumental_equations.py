"""The parts of the structural equations against plain NumPy: two-stage least squares, Hausman, spike and slab."""

import itertools
import math

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose
from scipy import stats

from spillover.policies import instrumental_equations as equations
from spillover.policies.instrumental_equations import EDGE_SCALE, SHARED, SHARED_WEIGHT

NAMES = ("add_least_squares", "confounding", "expected_squares", "sparse_edges", "two_stages")
add_least_squares, confounding, expected_squares, sparse_edges, two_stages = (
    njit(getattr(equations, name)) for name in NAMES
)
PRIOR = 0.3


def confounded(seed, rounds=200):
    """Two regressors that share a cause with the outcome, their instruments, and a constant."""
    generator = np.random.default_rng(seed)
    q, cause = generator.standard_normal((rounds, 2)), generator.standard_normal(rounds)
    f = q + 0.5 * cause[:, None] + 0.3 * generator.standard_normal((rounds, 2))
    y = f @ [0.5, 0.2] + 1.0 + cause + 0.2 * generator.standard_normal(rounds)
    one = np.ones((rounds, 1))
    return np.hstack([f, one]), np.hstack([q, one]), y


def test_two_stages_are_two_stage_least_squares():
    f, q, y = confounded(0)
    precision, product, rest_precision, rest_product, rest = two_stages(
        f.T @ f, q.T @ f, q.T @ q, f.T @ y, q.T @ y, y @ y
    )
    assert_allclose(rest, ((y - q @ np.linalg.lstsq(q, y, rcond=None)[0]) ** 2).sum(), rtol=1e-4)
    fitted = q @ np.linalg.lstsq(q, f, rcond=None)[0]
    assert_allclose(np.linalg.solve(precision, product), np.linalg.lstsq(fitted, y, rcond=None)[0], rtol=1e-4)
    whole = np.linalg.solve(precision + rest_precision, product + rest_product)
    assert_allclose(whole, np.linalg.lstsq(f, y, rcond=None)[0], rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_evidence_for_confounding_is_a_hausman_statistic(seed):
    f, q, y = confounded(seed)
    precision, product, rest, rest_product, _ = two_stages(f.T @ f, q.T @ f, q.T @ q, f.T @ y, q.T @ y, y @ y)
    prior, edges, rounds = np.array([1 / 0.09, 1 / 0.09, 0.01]), 2, len(y)
    shared, variance = np.empty(edges), 1.7
    excess, rank = confounding(precision, product, rest, rest_product, prior, rounds, variance, shared)
    covariance = np.linalg.inv(precision + np.diag(prior))
    gap = (rest_product - rest @ covariance @ product)[:edges]
    r, v = rest[:edges, :edges], covariance[:edges, :edges]
    spread = r + r @ v @ r
    statistic = gap @ np.linalg.inv(spread) @ gap
    assert_allclose(excess, statistic - 2.0, rtol=1e-3)
    assert_allclose(rank, 2.0, atol=1e-3)
    beyond = np.maximum(gap**2 / np.diag(spread) - 1.0, 0.0)
    information = variance * np.diag(r) / np.diag(spread)
    wanted = (beyond + SHARED_WEIGHT * SHARED**2) / (rounds * information + SHARED_WEIGHT)
    assert_allclose(shared, np.minimum(wanted, 1.0), rtol=1e-3)


def test_least_squares_adds_what_products_with_a_random_bias_tell():
    """The rest of the products is normal around the true ones, with the variance of least squares plus the biases."""
    f, _, y = confounded(3)
    rest, rest_product, biases = f.T @ f, f.T @ y, np.array([50.0, 3.0, 20.0])
    precision, product = np.zeros((3, 3)), np.zeros(3)
    share = add_least_squares(precision, product, rest, rest_product, biases, 0.5)
    information = np.linalg.inv(rest + np.diag(biases))
    assert_allclose(precision, 0.5 * rest @ information @ rest, rtol=1e-9)
    assert_allclose(product, 0.5 * rest @ information @ rest_product, rtol=1e-9)
    assert_allclose(share, np.trace(precision) / np.trace(rest), rtol=1e-9)


def test_expected_squares_are_those_of_a_sample_of_the_posterior():
    f, _, y = confounded(4)
    together, across, inverse = np.diag([0.04, 0.09]), np.array([[0.3, -0.2]]), np.array([[0.01]])
    mean = np.array([0.4, 0.1, 0.9])
    spread = np.zeros((3, 3))
    spread[:2, :2], spread[2:, :2], spread[:2, 2:] = together, -across @ together, -together @ across.T
    spread[2:, 2:] = inverse + across @ together @ across.T
    wanted = ((y - f @ mean) ** 2).sum() + np.trace(f.T @ f @ spread)
    found = expected_squares(f.T @ f, f.T @ y, y @ y, np.arange(3), mean, together, across, inverse)
    assert_allclose(found, wanted, rtol=1e-9)


def run_sparse_edges(precision, product, signed):
    size = len(product)
    mean, probability, covariance = np.zeros(size), np.zeros(size), np.zeros((size, size))
    sites, shifts = np.full(size, 1.0 / (PRIOR * EDGE_SCALE**2)), np.zeros(size)
    odds = math.log(PRIOR / (1.0 - PRIOR))
    sparse_edges(precision, product, sites, shifts, mean, covariance, probability, odds, signed, 50)
    return mean, probability


def enumerated(precision, product):
    """Mean and probability of each edge, summed over all sets of edges that exist."""
    whole, mean, probability = 0.0, np.zeros(len(product)), np.zeros(len(product))
    for exist in itertools.product((False, True), repeat=len(product)):
        on = np.flatnonzero(exist)
        posterior = precision[np.ix_(on, on)] + np.eye(len(on)) / EDGE_SCALE**2
        centre = np.linalg.solve(posterior, product[on])
        fit = 0.5 * centre @ product[on] - 0.5 * np.linalg.slogdet(posterior)[1] - len(on) * math.log(EDGE_SCALE)
        weight = math.exp(fit) * PRIOR ** len(on) * (1.0 - PRIOR) ** (len(product) - len(on))
        whole += weight
        mean[on] += weight * centre
        probability[on] += weight
    return mean / whole, probability / whole


@pytest.mark.parametrize("seed", range(6))
def test_spike_and_slab_of_three_edges_is_that_of_enumeration(seed):
    generator = np.random.default_rng(seed)
    f = generator.standard_normal((30, 3)) @ (np.eye(3) + 0.3 * generator.standard_normal((3, 3)))
    y = f @ [0.5, 0.0, 0.2] + 0.7 * generator.standard_normal(30)
    precision, product = f.T @ f / 0.49, f.T @ y / 0.49
    for found, wanted in zip(run_sparse_edges(precision, product, True), enumerated(precision, product), strict=True):
        assert_allclose(found, wanted, atol=0.02)


@pytest.mark.parametrize("pull", [-20.0, 0.0, 3.0, 12.0])
def test_an_edge_that_cannot_be_negative_has_the_posterior_of_a_half_normal(pull):
    """One edge with likelihood exp(pull a - 10 a^2), integrated on a grid."""
    a = np.linspace(0.0, 5.0, 200_001)
    density = stats.halfnorm(scale=EDGE_SCALE).pdf(a) * np.exp(pull * a - 10.0 * a**2)
    slab = PRIOR * np.trapezoid(density, a)
    exists = slab / (slab + 1.0 - PRIOR)
    mean, probability = run_sparse_edges(np.array([[20.0]]), np.array([pull]), False)
    assert_allclose(probability, exists, rtol=1e-4)
    assert_allclose(mean, exists * np.trapezoid(a * density, a) / np.trapezoid(density, a), rtol=1e-3)

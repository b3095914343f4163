"""The statistics and weights of a few arms, bit for bit those of plain loops, for each number of arms."""

import numpy as np
import pytest

from spillover import kernels

LANES = 4


def product_of(row, y):
    """In four partial sums; what is left after whole fours is added to the first one."""
    whole = len(y) - len(y) % LANES
    sums = [0.0] * LANES
    for j in range(whole):
        sums[j % LANES] += row[j] * y[j]
    for j in range(whole, len(y)):
        sums[0] += row[j] * y[j]
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def rounds_of(n, rng):
    return rng.normal(size=(5, 2, n)), rng.uniform(0.5, 2.0, size=5)


@pytest.mark.parametrize("n", range(1, 22))
def test_an_outcome_is_absorbed_as_by_loops(n):
    rng = np.random.default_rng(n)
    adjacency = np.triu(rng.uniform(size=(n, n)), 1)
    gram, residual = np.zeros((n, n)), np.zeros((n, n))
    wanted_gram, wanted = gram.copy(), residual.copy()
    for (z, y), weight in zip(*rounds_of(n, rng), strict=True):
        kernels.absorb(gram, residual, adjacency, z, y, weight)
        for i in range(n):
            error = weight * (y[i] - z[i] - product_of(adjacency[i], y))
            for j in range(n):
                wanted[i, j] += error * y[j]
                wanted_gram[i, j] += y[i] * weight * y[j]
    np.testing.assert_array_equal(residual, wanted)
    np.testing.assert_array_equal(gram, wanted_gram)


@pytest.mark.parametrize("n", range(1, 22))
def test_weights_are_those_of_loops(n):
    """Every entry above the diagonal is an edge."""
    rng = np.random.default_rng(n)
    gram, penalty = np.eye(n), np.where(np.triu(np.ones((n, n)), 1) > 0, 0.0, np.inf)
    residual = np.triu(rng.uniform(0.1, 0.5, size=(n, n)), 1)
    adjacency, pressure, weights = np.zeros((n, n)), np.zeros(n), np.ones(n)
    kernels.fit(gram, residual, adjacency, pressure, weights, penalty, np.inf, True)
    assert (adjacency > 0).sum() == n * (n - 1) // 2
    wanted = np.ones(n)
    for j in range(n):
        for i in range(j):
            wanted[j] += adjacency[i, j] * wanted[i]
    np.testing.assert_array_equal(weights, wanted)


@pytest.mark.parametrize("causes", range(1, 10))
def test_rows_with_so_many_causes_are_solved_beside_others(causes):
    """From a solution nearby, as between two outcomes; all rows have the same causes, or fewer."""
    rng, n = np.random.default_rng(causes), 14
    outcomes = rng.uniform(size=(40, n))
    gram, penalty = outcomes.T @ outcomes, np.full((n, n), np.inf)
    exact = np.zeros((n, n))
    for i in range(n):
        own = rng.choice(n, size=max(causes - i % 3, 1), replace=False)
        penalty[i, own], exact[i, own] = 0.0, rng.uniform(0.2, 0.9, size=len(own))
    adjacency = exact * rng.uniform(0.9, 1.1, size=(n, n))
    residual = (exact - adjacency) @ gram
    pressure, weights = np.zeros(n), np.ones(n)
    kernels.fit(gram, residual, adjacency, pressure, weights, penalty, np.inf, True)
    np.testing.assert_allclose(adjacency, exact, rtol=1e-9)
    np.testing.assert_allclose(residual, (exact - adjacency) @ gram, atol=1e-9)

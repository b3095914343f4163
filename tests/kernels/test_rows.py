"""The statistics, rows and weights of the graph problem by direct computation, for each number of arms."""

import numpy as np
import pytest

from spillover import SparseGraph
from spillover.graph import Graph


def graph_of(gram, residual, adjacency, pressure, weights, penalty):
    """An acyclic graph, whose rows have no bound."""
    bound, acyclic = np.array(np.inf), np.array(True)
    return Graph(gram, residual, adjacency, pressure, weights, penalty, bound, acyclic)


def rounds_of(n, rng):
    return rng.normal(size=(5, 2, n)), rng.uniform(0.5, 2.0, size=5)


@pytest.mark.parametrize("n", range(1, 22))
def test_an_outcome_is_absorbed(n):
    rng = np.random.default_rng(n)
    adjacency = np.triu(rng.uniform(size=(n, n)), 1)
    gram, residual = np.zeros((n, n)), np.zeros((n, n))
    wanted_gram, wanted = gram.copy(), residual.copy()
    learner, graph = SparseGraph(), graph_of(gram, residual, adjacency, np.zeros(n), np.ones(n), np.zeros((n, n)))
    for (z, y), weight in zip(*rounds_of(n, rng), strict=True):
        learner.absorb(graph, z, y, np.array(weight), np.array(1))
        wanted += weight * np.outer(y - z - adjacency @ y, y)
        wanted_gram += weight * np.outer(y, y)
    np.testing.assert_allclose(residual, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gram, wanted_gram, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", range(1, 22))
def test_weights_are_total_effects(n):
    """Every entry above the diagonal is an edge."""
    rng = np.random.default_rng(n)
    gram, penalty = np.eye(n), np.where(np.triu(np.ones((n, n)), 1) > 0, 0.0, np.inf)
    residual = np.triu(rng.uniform(0.1, 0.5, size=(n, n)), 1)
    adjacency, pressure, weights = np.zeros((n, n)), np.zeros(n), np.ones(n)
    SparseGraph().solve(graph_of(gram, residual, adjacency, pressure, weights, penalty))
    assert (adjacency > 0).sum() == n * (n - 1) // 2
    np.testing.assert_allclose(weights, np.linalg.solve(np.eye(n) - adjacency.T, np.ones(n)), rtol=1e-12)


@pytest.mark.parametrize("causes", range(1, 10))
def test_rows_with_so_many_causes(causes):
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
    SparseGraph().solve(graph_of(gram, residual, adjacency, pressure, weights, penalty))
    np.testing.assert_allclose(adjacency, exact, rtol=1e-9)
    np.testing.assert_allclose(residual, (exact - adjacency) @ gram, atol=1e-9)

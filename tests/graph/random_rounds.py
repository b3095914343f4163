"""Rounds played at random in a random model, for tests of graph learners."""

import numpy as np

from tests.reference import graph_reference as reference

BOUND = 0.95  # of the sum of a row


def random_rounds(seed, n, rounds, budget, law="bernoulli", acyclic=True, noise=0.0, edges=None):
    """Z and Y of rounds played at random in a random model; (rounds, n) each."""
    rng = np.random.default_rng(seed)
    A = np.zeros((n, n))
    places = np.argwhere(reference.allowed_edges(n, acyclic))
    drawn = rng.permutation(len(places))[: len(places) // 3 + 1 if edges is None else edges]
    for i, j in places[drawn]:
        A[i, j] = rng.uniform(0.2, 0.7)
    A *= 0.9 / max(0.9, A.sum(axis=1).max(initial=0.0))
    X = np.zeros((rounds, n))
    for t in range(rounds):
        X[t, rng.permutation(n)[:budget]] = 1
    b = (rng.uniform(size=(rounds, n)) < 0.5) if law == "bernoulli" else rng.beta(1.5, 1.0, (rounds, n))
    Z = X * b
    Y = np.linalg.solve(np.eye(n) - A, (Z + noise * rng.normal(size=Z.shape)).T).T
    return Z, Y

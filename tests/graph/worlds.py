"""Random models with cycles, gains, noise and harmful edges, played at random."""

import numpy as np


def random_model(seed, n, *, acyclic=False, gain=False, signed=False):
    """(A, F): spectral radius below 1, every order of the arms; F the gains."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(0.3, 0.9, (n, n)) * (rng.uniform(size=(n, n)) < 0.25)
    np.fill_diagonal(A, 0.0)
    if acyclic:
        order = rng.permutation(n)
        A = np.triu(A, 1)[np.ix_(order, order)]
    else:
        A *= 0.8 / max(0.8, np.abs(np.linalg.eigvals(A)).max())
    if signed:
        A *= rng.choice([-1.0, 1.0], (n, n))
        if not acyclic:
            A *= 0.8 / max(0.8, np.abs(np.linalg.eigvals(A)).max())
    return A, rng.uniform(0.5, 2.0, n) if gain else np.ones(n)


def played(seed, A, F, rounds, *, law="bernoulli", noise=0.0):
    """Z and Y, (rounds, n) each."""
    rng = np.random.default_rng([seed, 1])
    n = len(A)
    x = rng.uniform(size=(rounds, n)) < 0.5
    b = (rng.uniform(size=(rounds, n)) < 0.6) if law == "bernoulli" else rng.uniform(size=(rounds, n))
    Z = np.where(x, b, 0.0)
    Y = np.linalg.solve(np.eye(n) - A, (F * Z + noise * rng.normal(size=Z.shape)).T).T
    return Z, np.ascontiguousarray(Y)


def weights_of(A, F):
    """w = 1'(I - A)^-1 F."""
    return np.linalg.inv(np.eye(len(A)) - A).sum(axis=0) * F


def learn(learner, problem, Z, Y, played_rounds=None):
    graph = learner.init(problem)
    for t, (z, y) in enumerate(zip(Z, Y, strict=True), 1):
        played_at = np.array(t if played_rounds is None else played_rounds[t - 1])
        graph = learner.solve(learner.absorb(graph, z, y, np.array(True), played_at))
    return graph

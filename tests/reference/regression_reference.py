"""Total effects, the graph behind them and the payoff's weights from the whole history; nothing of the package in it.

Y and Z are (rounds, n).
"""

import numpy as np


def total_effects(Z, Y, ridge):
    """B that minimises sum ||y - B z||^2 + ridge ||B - I||^2."""
    n = Z.shape[1]
    return (Y.T @ Z + ridge * np.eye(n)) @ np.linalg.inv(Z.T @ Z + ridge * np.eye(n))


def payoff_weights(Z, Y, ridge, prior=1.0):
    """The same for the payoff, each weight drawn to 1 by its variance."""
    n = Z.shape[1]
    inverse = np.linalg.inv(Z.T @ Z + ridge * np.eye(n))
    w = (Y.sum(axis=1) @ Z + ridge) @ inverse
    loss = ((Y.sum(axis=1) - Z @ w) ** 2).sum() + ridge * ((w - 1) ** 2).sum()
    freedom = sum(certainties(Z, ridge))
    own = loss / max(freedom, 1.0) * np.diag(inverse)
    return 1 + (w - 1) * prior / (prior + own)


def certainties(Z, ridge):
    """1 / (1 + z'P z) of each round, with P from the rounds before."""
    gram = ridge * np.eye(Z.shape[1])
    found = []
    for z in Z:
        found.append(1 / (1 + z @ np.linalg.solve(gram, z)))
        gram += np.outer(z, z)
    return found


def structure(Z, Y, ridge, bar, floor, signed=False):
    """(A, gains) edge by edge from the delta method: the variance of A_ij is sigma_i^2 g'P g, g its gradient."""
    n = Z.shape[1]
    B, P = total_effects(Z, Y, ridge), np.linalg.inv(Z.T @ Z + ridge * np.eye(n))
    rest = Y - Z @ B.T
    scatter = rest.T @ rest + ridge * (B - np.eye(n)) @ (B - np.eye(n)).T
    noise = scatter / max(sum(certainties(Z, ridge)), 1.0)
    H = np.linalg.inv(B)
    gain = 1 / np.diag(H)
    raw = np.eye(n) - gain[:, None] * H
    A, F = np.zeros((n, n)), np.ones(n)
    for i in range(n):
        direction = np.eye(n)[i] - raw[i]
        variance = max(direction @ noise @ direction, floor)
        if abs(gain[i] - 1) > bar * gain[i] * np.sqrt(variance * (H[:, i] @ P @ H[:, i])):
            F[i] = gain[i]
        for j in range(n):
            gradient = H[:, j] + raw[i, j] * H[:, i]
            size = abs(raw[i, j]) if signed else raw[i, j]
            if i != j and size > bar * np.sqrt(variance * (gradient @ P @ gradient)):
                A[i, j] = raw[i, j]
    return A, F

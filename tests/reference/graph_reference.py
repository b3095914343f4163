"""The graph problem (eq. Optimization-A) from the whole history, with nothing of the package in it.

Row i on its allowed columns J:  min_{a >= 0} ||y_i - z_i - Y_J' a||^2 + sum_j penalty_j a_j,  sum(a) <= bound,
over all rounds seen so far, each at its weight. Y and Z are (rounds, n) here; penalty is the full lambda.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np


class Conditions(NamedTuple):
    """How far a row is from its optimality conditions, relative to G_jj; all zero at the optimum."""

    stationarity: float  # of the edges that are used, and of the multiplier's sign
    entry: float  # of the edges that are not used
    feasibility: float  # negative entries, entries on impossible edges, sum above the bound
    multiplier: float  # of the bound, recomputed from the conditions


def allowed_edges(n, acyclic, forbidden=None):
    """(n, n) mask: above the diagonal, or anywhere off it; minus what is known to be impossible."""
    allowed = np.ones((n, n), bool)
    for i in range(n):
        for j in range(n):
            allowed[i, j] = i < j if acyclic else i != j
            if forbidden is not None and forbidden[i, j]:
                allowed[i, j] = False
    return allowed


def penalties(n, sparsity, required=None):
    """(n, n): lambda, and 0 for edges known to exist."""
    penalty = np.full((n, n), float(sparsity))
    if required is not None:
        penalty[np.asarray(required, bool)] = 0.0
    return penalty


def moments(Z, Y, weight=None):
    """G = sum y y' and C = sum (y - z) y'."""
    Z, Y = np.asarray(Z, float), np.asarray(Y, float)
    weight = np.ones(len(Y)) if weight is None else np.asarray(weight, float)
    return (weight[:, None] * Y).T @ Y, (weight[:, None] * (Y - Z)).T @ Y


def row_objective(Z, Y, i, a, penalty, weight=None):
    """Squared prediction error of row i over the history plus the penalty."""
    weight = np.ones(len(Y)) if weight is None else np.asarray(weight, float)
    rest = Y[:, i] - Z[:, i] - Y @ a
    return float((weight * rest**2).sum() + penalty @ a)


def objective(Z, Y, A, penalty, weight=None):
    """||Y - A Y - Z||^2 + lambda ||A||_1."""
    return sum(row_objective(Z, Y, i, A[i], penalty[i], weight) for i in range(len(A)))


def row_conditions(G, c, a, penalty, allowed, bound=np.inf):
    """The optimality conditions of one row: the gradient c - G a - penalty / 2 is the multiplier of the bound where
    a_j > 0, and at most that where a_j = 0; the multiplier is 0 unless the bound is met."""
    scale = np.diag(G)
    gradient = c - G @ a - penalty / 2
    used = allowed & (a > 0)
    unused = allowed & (a == 0)
    meets_bound = np.isfinite(bound) and a.sum() >= bound - 1e-7
    multiplier = 0.0
    if meets_bound and used.any():
        multiplier = max(0.0, float(np.average(gradient[used], weights=1 / scale[used])))
    stationarity = max((abs(gradient[j] - multiplier) / scale[j] for j in np.flatnonzero(used)), default=0.0)
    entry = 0.0
    for j in np.flatnonzero(unused):
        excess = gradient[j] - multiplier
        if excess > 0:
            entry = max(entry, excess / scale[j] if scale[j] > 0 else np.inf)
    feasibility = max(0.0, -a.min(), a.sum() - bound, np.abs(a[~allowed]).max(initial=0.0))
    return Conditions(float(stationarity), float(entry), float(feasibility), multiplier)


def worst_conditions(Z, Y, A, penalty, allowed, bound=np.inf, weight=None):
    """The worst of all rows: (violation relative to G_jj, infeasibility)."""
    G, C = moments(Z, Y, weight)
    rows = [row_conditions(G, C[i], A[i], penalty[i], allowed[i], bound) for i in range(len(A))]
    return max(max(r.stationarity, r.entry) for r in rows), max(r.feasibility for r in rows)


def solve_row_by_enumeration(G, c, penalty, allowed, bound=np.inf):
    """The minimiser of one row by trying every support, with the bound slack and with the bound met.

    Some minimiser has linearly independent columns (else one could move along a null direction, never uphill,
    until an entry is 0), so supports with a singular Gram matrix can be left out.
    """
    n = len(c)
    columns = np.flatnonzero(allowed & (np.diag(G) > 0))
    target = c - penalty / 2
    best, best_value = np.zeros(n), 0.0
    for size in range(1, len(columns) + 1):
        for support in combinations(columns, size):
            S = list(support)
            block = G[np.ix_(S, S)]
            if np.linalg.matrix_rank(block) < size:
                continue
            candidates = [np.linalg.solve(block, target[S])]
            if np.isfinite(bound):
                bordered = np.block([[block, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
                candidates.append(np.linalg.solve(bordered, np.append(target[S], bound))[:size])
            for values in candidates:
                if values.min() < 0 or values.sum() > bound + 1e-12:
                    continue
                value = float(values @ block @ values - 2 * target[S] @ values)
                if value < best_value:
                    best, best_value = np.zeros(n), value
                    best[S] = values
    return best


def solve_by_enumeration(Z, Y, penalty, allowed, bound=np.inf, weight=None):
    """A minimiser of every row; exponential in n."""
    G, C = moments(Z, Y, weight)
    return np.array([solve_row_by_enumeration(G, C[i], penalty[i], allowed[i], bound) for i in range(len(C))])


def total_effects(A):
    """w = 1' (I - A)^-1."""
    n = len(A)
    return np.ones(n) @ np.linalg.inv(np.eye(n) - A)


def unique_minimiser(Y, allowed):
    """Whether every row has but one minimiser: the Gram matrix of its allowed columns is nonsingular."""
    Y = np.asarray(Y, float)
    for row in allowed:
        columns = Y[:, row]
        if columns.shape[1] and (len(Y) == 0 or np.linalg.matrix_rank(columns) < columns.shape[1]):
            return False
    return True


def held_out_error(Z, Y, A):
    """sum ||y - A y - z||^2, round by round."""
    return float(sum(np.sum((y - A @ y - z) ** 2) for z, y in zip(Z, Y, strict=True)))


def choose_sparsity(errors):
    """The largest within 1% of the best; the smallest while that is true of all of them."""
    best = min(errors)
    near = [k for k, error in enumerate(errors) if error <= 1.01 * best]
    return 0 if len(near) == len(errors) else near[-1]

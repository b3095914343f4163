"""NDC-SEM (Algorithm 1) from the whole history, with nothing of the package in it."""

import math
from typing import Any, NamedTuple

import numpy as np

from tests.reference import graph_reference


class Holds(NamedTuple):
    """What NDC-SEM holds as it decides a round."""

    mean: Any
    count: Any
    clock: float
    index: Any
    adjacency: Any
    objective: float
    weights: Any
    score: Any


class SlowNDCSEM:
    """Keeps every outcome, and recomputes everything from eqs. AvgRew, UCB and Optimization-A each round."""

    def __init__(self, n, budget, discount, exploration, sparsity, acyclic=True, row_bound=0.95):
        self.n, self.budget = n, budget
        self.discount, self.exploration = discount, exploration
        self.penalty = graph_reference.penalties(n, sparsity)
        self.allowed = graph_reference.allowed_edges(n, acyclic)
        self.bound = np.inf if acyclic else row_bound
        self.outcomes = []  # (round of play, x, z, y)

    def observe(self, played_at, x, z, y):
        self.outcomes.append((played_at, np.array(x, bool), np.array(z, float), np.array(y, float)))

    def history(self):
        """Z and Y of all outcomes so far, (rounds, n)."""
        Z = np.array([z for _, _, z, _ in self.outcomes]).reshape(-1, self.n)
        Y = np.array([y for _, _, _, y in self.outcomes]).reshape(-1, self.n)
        return Z, Y

    def holds(self, t):
        """As it decides round t: E_{t-1} and A_{t-1}, from the feedback so far."""
        now = t - 1
        mean, count, index = np.full(self.n, np.nan), np.zeros(self.n), np.full(self.n, np.inf)
        clock = sum(self.discount ** (now - tau) for tau in range(1, now + 1))
        log_clock = math.log(max(clock, 1.0))
        for i in range(self.n):
            pulls = [(self.discount ** (now - tau), z[i]) for tau, x, z, _ in self.outcomes if x[i]]
            if pulls:
                count[i] = sum(weight for weight, _ in pulls)
                mean[i] = sum(weight * reward for weight, reward in pulls) / count[i]
                index[i] = mean[i] + 2 * math.sqrt(self.exploration * (self.budget + 1) * log_clock / count[i])
        Z, Y = self.history()
        A = graph_reference.solve_by_enumeration(Z, Y, self.penalty, self.allowed, self.bound)
        weights = graph_reference.total_effects(A)
        value = graph_reference.objective(Z, Y, A, self.penalty)
        return Holds(mean, count, clock, index, A, value, weights, weights * index)


def choose(score, budget):
    """The arms with the highest positive scores, and how far the last of them is from the next; a tie has margin 0."""
    order = sorted(range(len(score)), key=lambda i: -score[i])
    chosen = [i for i in order[:budget] if score[i] > 0]
    edge = score[chosen[-1]] if chosen else 0.0
    following = score[order[budget]] if len(order) > budget else -np.inf
    margin = 0.0 if edge == following else edge - following
    return set(chosen), margin


def initialisation_faults(plan, budget):
    """What is wrong with an initialisation matrix, given as its columns in order; nothing if it is as described."""
    n = len(plan)
    faults = []
    for i, column in enumerate(plan):
        if not column[i]:
            faults.append(f"diagonal {i}")
        if any(column[k] for k in range(i + 1, n)):
            faults.append(f"below the diagonal in column {i}")
        above = sum(bool(column[k]) for k in range(i))
        if above != (i if i < budget else budget - 1):
            faults.append(f"{above} above the diagonal in column {i}")
    return faults

"""Worlds with many arms for the benchmarks: edges are drawn one by one, and outcomes follow the edges."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

import spillover as sp
from spillover.rng import Purpose


@njit  # type: ignore[untyped-decorator]
def spread(start: Any, effect: Any, weight: Any, y: Any) -> None:
    """y_i = z_i + sum of A[i, j] y_j in place, from z: causes come after their effects."""
    for j in range(len(y) - 1, -1, -1):
        if y[j] != 0.0:
            for edge in range(start[j], start[j + 1]):
                y[effect[edge]] += weight[edge] * y[j]


@njit  # type: ignore[untyped-decorator]
def total_effects(start: Any, effect: Any, weight: Any, total: Any) -> None:
    """w_j = 1 + sum of A[i, j] w_i."""
    for j in range(len(total)):
        for edge in range(start[j], start[j + 1]):
            total[j] += weight[edge] * total[effect[edge]]


class SparseWorld:
    """0.8 random edges an arm with weights from 0.4 to 0.7; Bernoulli rewards whose means change half-way."""

    def __init__(self, n: int, budget: int, rounds: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        one, other = draw.integers(0, n, (2, int(0.8 * n)))
        pairs = np.unique(np.maximum(one, other) * n + np.minimum(one, other))  # by cause, then by effect
        cause, self.effect = np.divmod(pairs[pairs // n != pairs % n], n)
        self.start = np.searchsorted(cause, np.arange(n + 1))
        self.weight = draw.uniform(0.4, 0.7, len(cause))
        self.total = np.ones(n)
        total_effects(self.start, self.effect, self.weight, self.total)
        self.means = draw.uniform(size=(2, n))
        self.n, self.budget, self.rounds, self.draw = n, budget, rounds, draw

    def play(self, t: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Rewards z, outcomes y, and the regret of a decision."""
        means = self.means[int(t > self.rounds // 2)]
        z = np.where(x, self.draw.uniform(size=self.n) < means, 0).astype(float)
        y = z.copy()
        spread(self.start, self.effect, self.weight, y)
        worth = self.total * means
        best = np.partition(worth, self.n - self.budget)[self.n - self.budget :].sum()
        return z, y, float(best - worth[x].sum())


def session(policy: sp.Policy, world: SparseWorld, seed: int) -> Iterator[tuple[float, Any]]:
    """Play a policy round by round; yields after each round the regret so far and the state."""
    rng, total = sp.Rng(seed), 0.0
    state = policy.init(sp.Problem(world.n, world.budget, True), rng.at(Purpose.START))
    for t in range(1, world.rounds + 1):
        choice = policy.select(state, rng.at(Purpose.CHOICE, t))
        state = policy.played(state, choice.x)
        z, y, regret = world.play(t, choice.x)
        total += regret
        feedback = sp.Feedback(choice.x, z, y, np.array(0), np.array(True), choice.memo)
        state = policy.update(state, feedback, rng.at(Purpose.LEARNING, t))
        yield total, state

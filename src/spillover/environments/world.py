"""A drawn world of the structural equation model (eqs. 1-5), for any batch of replications."""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels
from spillover.rng import Rng
from spillover.types import Array, BoolArray, IntArray, Outcome, Problem

LAWS = ("bernoulli", "beta")


class Optimum(NamedTuple):
    """The optimal decision of a round, and the scores that it follows from."""

    scores: Array  # (*batch, n): expected payoff of each arm
    best: BoolArray  # (*batch, n): an optimal set
    lowest: Array  # (*batch, 1): the lowest score in it
    tied: bool  # whether an arm outside of it has the same score
    value: Array  # (*batch,): expected payoff of the optimal set


@dataclass(frozen=True, kw_only=True)
class SEMWorld:
    """Graph, means and change points are fixed; every round draws the rewards of all arms, played or not.

    x may have further batch axes before those of the world: all cells of a grid meet the same world.
    """

    graphs: Array  # (*batch, graph periods, n, n): adjacency matrices
    gain: Array  # (*batch, n): diagonal of F
    levels: Array  # (*batch, periods, n): the means of each period; if smooth, the points between which they move
    budget: int
    horizon: int
    changes: tuple[int, ...]
    graph_changes: tuple[int, ...]
    smooth: bool
    law: str
    concentration: float
    noise: float
    acyclic: bool
    arms: tuple[str, ...]
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def spread(self) -> Array:
        """(I - A)^-1 of every graph period."""
        return np.asarray(np.linalg.inv(np.eye(self.graphs.shape[-1]) - self.graphs), float)

    @cached_property
    def total(self) -> Array:
        """(I - A)^-1 F of every graph period."""
        return self.spread * self.gain[..., None, None, :]

    @cached_property
    def problem(self) -> Problem:
        """What a policy knows: neither graph nor means; the range of y covers all feasible decisions."""
        columns = np.sort(self.total, axis=-1)
        largest = columns[..., -self.budget :].sum(axis=-1).max(axis=(-1, -2))
        least = np.minimum(columns[..., : self.budget], 0.0).sum(axis=-1).min(axis=(-1, -2))  # where spill-over hurts
        overall = np.stack([least, largest], axis=-1)
        return Problem(self.graphs.shape[-1], self.budget, self.acyclic, (0.0, 1.0), overall)

    def period(self, t: int) -> int:
        """Which stationary period round t (from 1) is in."""
        return bisect_right(self.changes, t)

    def graph_period(self, t: int) -> int:
        return bisect_right(self.graph_changes, t)

    def adjacency(self, t: int) -> Array:
        return self.graphs[..., self.graph_period(t), :, :]

    def weights(self, t: int) -> Array:
        """w = 1'(I - A)^-1 F."""
        return np.asarray(self.total[..., self.graph_period(t), :, :].sum(axis=-2))

    def means(self, t: int) -> Array:
        """beta_t: constant in a period, or along half a cosine from one level to the next."""
        k = self.period(t)
        if not self.smooth:
            return self.levels[..., k, :]
        ends = (1, *self.changes, self.horizon + 1)
        part = (t - ends[k]) / (ends[k + 1] - ends[k])
        share = (1.0 - np.cos(np.pi * part)) / 2.0
        return np.asarray((1.0 - share) * self.levels[..., k, :] + share * self.levels[..., k + 1, :])

    def optimum(self, t: int) -> "Optimum":
        key = t if self.smooth else (self.period(t), self.graph_period(t))
        if key not in self.cache:
            if self.smooth:
                self.cache.clear()  # every round differs, so only the last is worth keeping
            scores = self.weights(t) * self.means(t)
            order = np.argsort(-scores, axis=-1, kind="stable")
            best = np.zeros(scores.shape, np.bool_)
            np.put_along_axis(best, order[..., : self.budget], True, axis=-1)
            best &= scores > 0
            lowest = np.min(scores, axis=-1, where=best, initial=np.inf)[..., None]
            tied = bool((~best & (scores == lowest)).any())
            self.cache[key] = Optimum(scores, best, lowest, tied, np.vecdot(scores, best))
        found: Optimum = self.cache[key]
        return found

    def expected(self, t: int, x: BoolArray) -> Array:
        optimum = self.optimum(t)
        return optimum.value if x is optimum.best else np.asarray(np.vecdot(optimum.scores, x))

    def best(self, t: int) -> BoolArray:
        return self.optimum(t).best

    def matches(self, t: int, x: BoolArray) -> IntArray:
        scores, best, lowest, tied, _ = self.optimum(t)
        if not tied:
            return np.asarray(np.vecdot(best.view(np.int8), x))
        level = scores == lowest
        above = (x & (scores > lowest)).sum(axis=-1)
        return np.asarray(above + np.minimum((x & level).sum(axis=-1), (best & level).sum(axis=-1)))

    def rewards(self, t: int, rng: Rng) -> Array:
        """b_t: the instantaneous rewards of all arms."""
        means = self.means(t)
        if self.law == "bernoulli":
            return (rng.uniform(means.shape[-1]) < means).astype(float)
        tiny = 1e-9  # a mean of 0 or 1 is a constant, not a Beta distribution
        draws = rng.beta(
            np.maximum(self.concentration * means, tiny), np.maximum(self.concentration * (1 - means), tiny)
        )
        return np.where(means <= 0, 0.0, np.where(means >= 1, 1.0, draws))

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        k = self.graph_period(t)
        z, y = kernels.play(self.total[..., k, :, :], self.rewards(t, rng), x)
        if self.noise > 0:
            shocks = self.noise * rng.normal(x.shape[-1])
            y = y + np.matmul(self.spread[..., k, :, :], shocks[..., None])[..., 0]
        return Outcome(z, y)

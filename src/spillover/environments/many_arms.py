"""Worlds with many arms: the same model as `SEMWorld`, with lists of edges instead of matrices."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from spillover import kernels
from spillover.environments.surroundings import LARGEST_CAUSE
from spillover.environments.world import SEMWorld, reward_range
from spillover.foresight import observed
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, IntArray, Outcome, Problem

MANY_ARMS = 2_000  # worlds with more arms keep lists of edges: a dense one has several matrices of n * n numbers


class EdgeLists(NamedTuple):
    """Edges sorted by cause, of graphs in which every cause comes after its effects."""

    start: IntArray  # (*batch, n + 1): where the edges of each cause begin
    effect: IntArray  # (*batch, edges)
    weight: Array  # (*batch, edges)

    @property
    def n_arms(self) -> int:
        return int(self.start.shape[-1]) - 1

    def spread(self, own: Array) -> Array:
        """(I - A)^-1 times what each equation has of its own, (*batch, n)."""
        return np.asarray(kernels.spread_edges(*self, own))

    def total_effects(self) -> Array:
        """1'(I - A)^-1, (*batch, n)."""
        return np.ascontiguousarray(kernels.total_effects_and_one(*self)[..., :-1])

    def absolute(self) -> "EdgeLists":
        return self._replace(weight=np.abs(self.weight))

    def broadcast(self, batch: Batch) -> "EdgeLists":
        """The same edges for every replication of a batch."""
        start, effect, weight = self
        return EdgeLists(
            np.broadcast_to(start, (*batch, *start.shape)),
            np.broadcast_to(effect, (*batch, *effect.shape)),
            np.broadcast_to(weight, (*batch, *weight.shape)),
        )

    def matrix(self) -> Any:
        """All edges as a `scipy.sparse.coo_array` (*batch, n, n); entry (i, j) is the effect of j on i."""
        from scipy.sparse import coo_array

        *batch, edges = self.effect.shape
        n = self.n_arms
        counts = np.diff(self.start.reshape(-1, n + 1), axis=-1)
        replication = np.repeat(np.arange(len(counts)), edges)
        cause = np.concatenate([np.repeat(np.arange(n), row) for row in counts])
        outer = np.unravel_index(replication, tuple(batch)) if batch else ()
        places = (*outer, self.effect.ravel(), cause)
        return coo_array((self.weight.ravel(), places), shape=(*batch, n, n))


def sorted_edges(effect: IntArray, cause: IntArray, weight: Array, n: int) -> EdgeLists:
    """Lists of edges from arrays (*batch, edges) in any order."""
    order = np.lexsort((effect, cause), axis=-1)
    effects, weights = np.take_along_axis(effect, order, axis=-1), np.take_along_axis(weight, order, axis=-1)
    *batch, edges = effect.shape
    causes = np.take_along_axis(cause, order, axis=-1).reshape(int(np.prod(batch, dtype=int)), edges)
    rows = [np.searchsorted(row, np.arange(n + 1)) for row in causes]
    return EdgeLists(np.array(rows, np.int64).reshape(*batch, n + 1), effects, weights)


def draw_pairs(rng: Rng, batch: Batch, n: int, edges: int) -> IntArray:
    """Different pairs of arms, each equally likely: (*batch, edges), effect * n + cause with effect < cause.

    Pairs are drawn until there are enough different ones; replications do not depend on each other.
    """
    rows: list[IntArray] = [np.zeros(0, np.int64)] * int(np.prod(batch, dtype=int))
    while edges and min(len(row) for row in rows) < edges:
        drawn = np.broadcast_to(np.floor(n * rng.uniform(2 * edges)), (*batch, 2 * edges)).astype(np.int64)
        one, other = drawn[..., :edges], drawn[..., edges:]
        pairs = (np.minimum(one, other) * n + np.maximum(one, other)).reshape(-1, edges)
        fits = (one != other).reshape(-1, edges)
        rows = [in_order(np.append(row, new[fit])) for row, new, fit in zip(rows, pairs, fits, strict=True)]
    return np.array([row[:edges] for row in rows], np.int64).reshape(*batch, edges)


def in_order(values: IntArray) -> IntArray:
    """Different values, in the order of their first appearance.

    >>> in_order(np.array([3, 1, 3, 2]))
    array([3, 1, 2])
    """
    return values[np.sort(np.unique(values, return_index=True)[1])]


@dataclass(frozen=True, kw_only=True)
class ManyArmsWorld(SEMWorld):
    """A round costs O(n + edges), and O(edges that it reaches) of arithmetic; `graphs` is empty.

    Its outcomes are those of a dense world with the same edges up to rounding, as sums have another order. The range of
    y that its problem states is wider: that of all arms together, as the s largest effects on each arm are not known.
    """

    edges_of_graphs: tuple[EdgeLists, ...]  # one of each graph period

    # what it overrides is the same for an array of rounds
    score_rounds, best_of_rounds = SEMWorld.score_rounds, SEMWorld.best_of_rounds

    def repeated(self, batch: Batch) -> "ManyArmsWorld":
        lists = tuple(each.broadcast(batch) for each in self.edges_of_graphs)
        return replace(cast("ManyArmsWorld", super().repeated(batch)), edges_of_graphs=lists)

    @cached_property
    def weights_of_graphs(self) -> Array:
        return np.stack([lists.total_effects() * self.gain for lists in self.edges_of_graphs], axis=-2)

    def edges(self, t: int) -> Any:
        """The graph of round t as a `scipy.sparse.coo_array`, (*batch, n, n)."""
        return self.edges_of_graphs[self.graph_period(t)].matrix()

    def adjacency(self, t: int) -> Array:
        """All n * n entries; `edges` takes no such memory."""
        return np.asarray(self.edges(t).todense(), float)

    def to_networkx(self, t: int = 1, *, threshold: float = 0.0) -> Any:
        from spillover.tabular import to_networkx

        return to_networkx(self.edges(t), self.arms, threshold=threshold)

    @cached_property
    def problem(self) -> Problem:
        n, around = self.gain.shape[-1], self.surroundings
        rewards = (0.0, self.largest_reward)
        if around is not None and self.observes == "both":
            rewards = reward_range(around, self.largest_reward)
        problem = Problem(n, self.budget, self.acyclic, rewards, self.overall_range(), observes=self.observes)
        if around is None:
            return problem
        return problem._replace(context=around.columns, baseline=around.has_baseline)

    def overall_range(self) -> Array:
        """(*batch, 2): bounds of y, whatever is chosen; with surroundings for four deviations of noise."""
        harmful = any((lists.weight < 0).any() for lists in self.edges_of_graphs)
        own, around = self.gain * self.largest_reward, self.surroundings
        if around is not None:
            moved = (np.abs(around.on_baseline) * np.abs(around.table).max(axis=-2)[..., None, :]).sum(axis=-1)
            own = own + np.abs(around.baseline) + moved + LARGEST_CAUSE * ((1.0 + self.gain) * np.abs(around.loading))
            own = own + LARGEST_CAUSE * self.noise
        largest = np.stack([lists.absolute().spread(own).max(axis=-1) for lists in self.edges_of_graphs]).max(axis=0)
        least = -largest if harmful or around is not None else np.zeros_like(largest)
        return np.stack([least, largest], axis=-1)

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        around, n = self.surroundings, self.gain.shape[-1]
        if self.law == "bernoulli":  # draws of arms that were not chosen are never made
            chosen = np.broadcast_to(x, (*x.shape[: x.ndim - self.gain.ndim], *self.gain.shape))
            z = np.asarray(kernels.chosen_bernoulli(*rng.address(), self.means(t), chosen))
        else:
            z = np.where(x, self.rewards(t, rng), 0.0)
        hidden = around.hidden_cause(t, rng) if around is not None and around.confounds else 0.0
        if around is not None and around.confounds:
            z = np.where(x, z + hidden, 0.0)
        own = self.gain * z
        if self.noise > 0:
            own = own + self.noise * rng.normal(n)
        if around is not None:
            own = own + around.without_decision(t) + hidden
        y = self.edges_of_graphs[self.graph_period(t)].spread(own)
        return observed(Outcome(z, y, self.context(t)), self.observes)

"""Graphs of many arms as lists of edges: how they are drawn, and what follows from them in O(edges)."""

from typing import Any, NamedTuple

import numpy as np

from spillover import kernels
from spillover.rng import Rng
from spillover.types import Array, Batch, IntArray

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

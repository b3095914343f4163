"""Follow effects through the graph of an explanation: the strongest paths listed, the rest summed.

The graph is a matrix, or a `scipy.sparse.csr_array` where there are very many arms.
"""

from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from spillover.types import Array, Explanation, IntArray

LONGEST_WALK = 8  # edges of a listed path in a graph with cycles, where paths have no longest one
MOST_STEPS = 2_000  # of the search for one arm: only ties and cancelling edges come near it


class Path(NamedTuple):
    """A path from one arm to another, and what reaches its end.

    >>> Path(arms=(2, 1, 0), effect=0.3, amount=0.15).arms  # from arm 2 by way of arm 1 to arm 0
    (2, 1, 0)
    """

    arms: tuple[int, ...]  # positions, the arm itself first
    effect: float  # of one unit of the arm's instantaneous reward: its gain times the weights of the edges
    amount: float  # the effect times the arm's mean


class Ways(NamedTuple):
    """The spill-over of an arm: the amounts of the paths and the three remainders add up to it.

    >>> ways = Ways(paths=(Path((1, 0), 0.5, 0.2),), other=0.01, longer=0.0, unknown=0.0)
    >>> ways.paths[0].arms, ways.other  # along the path from arm 1 to arm 0, and along all others
    ((1, 0), 0.01)
    """

    paths: tuple[Path, ...]  # the strongest, strongest first
    other: float  # all other paths; in a graph with cycles, those of at most LONGEST_WALK edges
    longer: float  # the longer paths of a graph with cycles
    unknown: float  # what the graph does not account for: everything where the graph is not known


def layers(adjacency: Array) -> IntArray | None:
    """The number of edges on the longest path that ends at each arm; None for a graph with a cycle.

    >>> layers(np.array([[0, 0.5, 0.1], [0, 0, 0.2], [0, 0, 0]]))
    array([2, 1, 0])
    """
    edges = np.asarray(adjacency) != 0  # edges[i, j]: j -> i
    waiting = edges.sum(axis=1)
    depth, ready = np.zeros(len(edges), np.int64), list(np.flatnonzero(waiting == 0))
    for j in ready:  # the list grows in this loop
        for i in np.flatnonzero(edges[:, j]):
            depth[i] = max(depth[i], depth[j] + 1)
            waiting[i] -= 1
            if waiting[i] == 0:
                ready.append(i)
    return depth if len(ready) == len(edges) else None


class Network:
    """A known graph prepared for the search: the edges that leave each arm, the most promising first."""

    def __init__(self, adjacency: Array) -> None:
        self.adjacency = adjacency
        depth = layers(adjacency)
        self.acyclic = depth is not None
        self.longest = LONGEST_WALK if depth is None else max(int(depth.max(initial=0)), 1)

    @cached_property
    def promise(self) -> Array:
        """For each arm, the largest factor that any path from it (of no edge or more) multiplies an effect by."""
        size, promise = np.abs(self.adjacency), np.ones(len(self.adjacency))
        for _ in range(self.longest):
            promise = np.maximum(1.0, (size * promise[:, None]).max(axis=0, initial=0.0))
        return promise

    @cached_property
    def leaving(self) -> list[list[int]]:
        """For each arm, those that it affects, sorted by the largest effect of a path through them."""
        through = np.abs(self.adjacency) * self.promise[:, None]
        order = np.argsort(-through, axis=0, kind="stable")
        there = np.take_along_axis(self.adjacency, order, axis=0) != 0
        return [order[there[:, j], j].tolist() for j in range(len(order))]

    @cached_property
    def totals(self) -> tuple[Array, Array]:
        """For each arm, the effect of all paths of 1 to `longest` edges, and that of the longer ones."""
        step = np.ones(len(self.adjacency))
        short = np.zeros(len(self.adjacency))
        for _ in range(self.longest):
            step = step @ self.adjacency
            short += step
        if self.acyclic:
            return short, np.zeros_like(short)
        return short, column_sums(self.adjacency) - 1.0 - short

    def strongest(self, arm: int, most: int) -> list[tuple[tuple[int, ...], float]]:
        """The paths with the largest absolute effect, largest first.

        Best-first search: an entry of the heap is a path and the edge to try next from its end, ranked by an upper
        bound of the effect, so that a path is listed only when no other one can be stronger.
        """
        found: list[tuple[tuple[int, ...], float]] = []
        if most == 0:
            return found
        heap: list[tuple[float, int, tuple[int, ...], float, int]] = []
        order = count()  # ties are broken by the order of discovery

        def offer(path: tuple[int, ...], effect: float, edge: int) -> None:
            ahead = self.leaving[path[-1]]
            if len(path) <= self.longest and edge < len(ahead):
                end = ahead[edge]
                promise = abs(effect * self.adjacency[end, path[-1]]) * self.promise[end]
                heappush(heap, (-promise, next(order), path, effect, edge))

        offer((arm,), 1.0, 0)
        for _ in range(MOST_STEPS):
            if not heap or len(found) == most:
                break
            _, _, path, effect, edge = heappop(heap)
            if edge < 0:
                found.append((path, effect))
                continue
            end = self.leaving[path[-1]][edge]
            longer = (*path, end), effect * float(self.adjacency[end, path[-1]])
            heappush(heap, (-abs(longer[1]), next(order), *longer, -1))  # the path that ends here
            offer(*longer, 0)
            offer(path, effect, edge + 1)
        return found


def solvable(adjacency: Array) -> bool:
    """Whether a graph is known and its spectral radius is below 1, so that its effects are finite."""
    if not np.isfinite(adjacency).all():
        return False
    size = np.abs(adjacency)
    if min(size.sum(axis=0).max(initial=0.0), size.sum(axis=1).max(initial=0.0)) < 1.0 or not np.tril(size).any():
        return True  # cheap bounds of the spectral radius
    return bool(np.abs(np.linalg.eigvals(adjacency)).max() < 1.0)


def column_sums(adjacency: Array) -> Array:
    """1'(I - A)^-1, by one solve."""
    n = len(adjacency)
    return np.asarray(np.linalg.solve((np.eye(n) - adjacency).T, np.ones(n)))


def ways_of(network: Network | None, arm: int | None, gain: float, mean: float, spilled: float, most: int) -> Ways:
    """Follow how `arm` spills over; `network` is None without a known graph, `arm` if it is not in the network."""
    if network is None or arm is None or (spilled == 0.0 and mean == 0.0):
        return Ways((), 0.0, 0.0, spilled)
    paths = tuple(Path(path, gain * e, gain * e * mean) for path, e in network.strongest(arm, most))
    short, longer = (float(total[arm]) * gain * mean for total in network.totals)
    unknown = drop_rounding(spilled - short - longer, abs(spilled) + abs(short))
    other = drop_rounding(short - sum(p.amount for p in paths), short)
    return Ways(paths, other, drop_rounding(longer, short), unknown)


def all_arms(ways: Ways, positions: IntArray) -> Ways:
    """Ways in a network of some arms, with the positions of these among all arms."""
    paths = tuple(path._replace(arms=tuple(int(positions[k]) for k in path.arms)) for path in ways.paths)
    return ways._replace(paths=paths)


def drop_rounding(rest: float, whole: float) -> float:
    """0 where a remainder is nothing but rounding."""
    return 0.0 if abs(rest) <= 1e-12 * abs(whole) else rest


RUNNERS_UP = 100  # arms of a very large explanation whose paths are followed, besides the chosen ones
MOST_FOLLOWED = 600  # and those that they affect


def is_dense(graph: Any) -> bool:
    return isinstance(graph, np.ndarray)


def is_known(graph: Any) -> bool:
    """Whether no entry is NaN, which stands for a graph that is not known."""
    return not (is_dense(graph) and bool(np.isnan(graph).any()))


def edge_places(graph: Any) -> list[tuple[int, int]]:
    """(effect, cause) of every entry that is not 0, by rows."""
    if is_dense(graph):
        return [(int(i), int(j)) for i, j in np.argwhere(graph != 0)]
    rows, columns = graph.nonzero()
    order = np.lexsort((columns, rows))
    return list(zip(rows[order].tolist(), columns[order].tolist(), strict=True))


def values_at(graph: Any, places: list[tuple[int, int]]) -> Array:
    """The entries at some places."""
    rows, columns = np.array(places, np.int64).reshape(-1, 2).T
    return np.asarray(graph[rows, columns], float).reshape(-1)


def sizes(graph: Any) -> Any:
    """The absolute values of the entries, 0 where they are not known."""
    return np.abs(np.nan_to_num(graph)) if is_dense(graph) else abs(graph)


def followed_arms(explanation: Explanation) -> IntArray:
    """The arms whose paths are listed: all, or of very many the chosen ones, the next best, and those they affect."""
    graph: Any = explanation.adjacency
    if is_dense(graph):
        return np.arange(len(explanation.score))
    chosen = np.flatnonzero(explanation.chosen)
    rest = np.argsort(np.where(explanation.chosen, np.inf, -explanation.score), kind="stable")
    found = dict.fromkeys([*chosen.tolist(), *rest[:RUNNERS_UP].tolist()])
    columns = graph.tocsc()
    for j in (waiting := list(found)):  # the list grows in this loop
        for i in columns.indices[columns.indptr[j] : columns.indptr[j + 1]].tolist():
            if i not in found and len(found) < MOST_FOLLOWED:
                found[i] = None
                waiting.append(i)
    return np.sort(np.array(list(found), np.int64))


def between(graph: Any, arms: IntArray) -> Array:
    """The edges between some arms, as a matrix."""
    return np.asarray(graph) if is_dense(graph) else np.asarray(graph[arms][:, arms].toarray())


def has_effects(graph: Any) -> bool:
    """Whether the graph is known and its effects are finite; a learner of very many arms sees to that."""
    return solvable(graph) if is_dense(graph) else True


def reached(graph: Any, pushed: Array) -> Array:
    """(I - A)^-1 times what each arm gets directly."""
    if is_dense(graph):
        return np.asarray(np.linalg.solve(np.eye(len(pushed)) - graph, pushed))
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    return np.asarray(spsolve((sparse.eye_array(len(pushed)) - graph).tocsc(), pushed))


def expected_flows(explanation: Explanation, mean: Array) -> Any:
    """A[i, j] times the overall reward expected of arm j when the chosen arms are played."""
    graph: Any = explanation.adjacency
    if not has_effects(graph):
        return np.full(graph.shape, np.nan)
    level = reached(graph, np.where(explanation.chosen, explanation.gain * mean, 0.0))
    return np.asarray(graph * level) if is_dense(graph) else graph.multiply(level[None, :]).tocsr()

"""Graphs of an explanation: a matrix, or a `scipy.sparse.csr_array` where there are very many arms."""

from typing import Any

import numpy as np

from spillover.reasons.paths import solvable
from spillover.types import Array, Explanation, IntArray

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

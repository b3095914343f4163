"""Which edges a graph can have, and what the learners that solve the paper's graph problem share."""

from typing import Any

import numpy as np

from spillover import validate
from spillover.tabular import in_rows, table_of
from spillover.types import BoolArray, IntArray, Problem

ROW_BOUND = 0.95
SPARSITY = 1e-3  # of the graph problem, unless it is given


def check_lasso(sparsity: Any, row_bound: Any, signed: Any, *, unbounded: bool = False) -> None:
    """Check the parameters of the graph problem; unbounded: whether the learner can do without a row_bound."""
    accepted = 'a finite number >= 0 (graph="self-tuned" chooses it by prediction)'
    validate.number("sparsity", sparsity, accepted, low=0, high=np.inf)
    validate.require(isinstance(signed, bool), "signed", signed, "True or False")
    if row_bound is None and unbounded and not signed:
        return
    accepted = "a number strictly between 0 and 1" + (" (or None, for edges >= 0)" if unbounded else "")
    validate.number("row_bound", row_bound, accepted, low=0, high=1, open_ends=True)
    validate.require(np.ndim(row_bound) == 0, "row_bound", row_bound, "a single number")


def refuse_infinite_weights(graph: Any, deciding: Any) -> None:
    """Raise a ValueError if a learner of the batch, of those that are `deciding`, has weights that do not exist."""
    bad = deciding & ~graph.weights.any(axis=-1)
    if bad.any():
        radius = round(float(np.abs(np.linalg.eigvals(graph.adjacency[bad][0])).max()), 6)
        accepted = "below 1, or spill-over is infinite; give the graph learner a row_bound, such as 0.95"
        validate.require(False, "spectral radius of the learned graph", radius, accepted)


def edge_mask(name: str, edges: Any, n: int) -> BoolArray:
    """An (n, n) mask of edges, all False when none are given.

    >>> edge_mask("forbidden", [[0, 1], [0, 0]], 2)
    array([[False,  True],
           [False, False]])
    """
    if edges is None:
        return np.zeros((n, n), np.bool_)
    table = table_of(name, edges)
    return validate.decision(name, edges if table is None else in_rows(name, edges, table.names), (n, n))


def impossible_edges(problem: Problem, required: Any, forbidden: Any) -> BoolArray:
    """Self-loops, edges against the order of an acyclic graph, and forbidden edges.

    >>> import spillover as sp
    >>> impossible_edges(sp.Problem(n_arms=2, budget=1), required=None, forbidden=None)  # no arm moves itself
    array([[ True, False],
           [False,  True]])
    """
    n = problem.n_arms
    outside = np.tri(n, dtype=np.bool_) if problem.acyclic else np.eye(n, dtype=np.bool_)
    outside |= edge_mask("forbidden", forbidden, n)
    clash = np.argwhere(outside & edge_mask("required", required, n))
    if len(clash):
        refuse_required(*clash[0])
    return outside


def refuse_required(i: int, j: int) -> None:
    raise ValueError(
        f"required[{i}, {j}] = True: must be False for an edge that is forbidden, a self-loop, "
        "or against the order of an acyclic graph (an edge j -> i needs i < j)"
    )


def edge_pairs(name: str, edges: Any, n: int) -> IntArray:
    """The same as pairs (effect, cause), sorted; a mask of `scipy.sparse` takes no n * n memory."""
    if edges is None:
        return np.zeros((0, 2), np.int64)
    from scipy import sparse

    given: Any = edges
    if not sparse.issparse(edges):
        return np.argwhere(edge_mask(name, edges, n)).astype(np.int64)
    given = given.tocoo()
    validate.require(given.shape == (n, n), f"shape of {name}", given.shape, str((n, n)))
    kept = validate.decision(name, given.data, given.data.shape)
    return np.unique(np.stack([given.row, given.col], axis=-1)[kept].astype(np.int64), axis=0)


def required_pairs(problem: Problem, required: Any, forbidden: IntArray) -> IntArray:
    """The pairs (effect, cause) of edges known to exist, checked."""
    n = problem.n_arms
    pairs = edge_pairs("required", required, n)
    effect, cause = pairs.T
    outside = cause <= effect if problem.acyclic else cause == effect
    clash = pairs[outside | np.isin(effect * n + cause, forbidden)]
    if len(clash):
        refuse_required(*clash[0])
    return pairs

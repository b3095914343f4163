"""Graphs of arms as networks of NetworkX, and back: an edge from a cause to its effect, with its weight."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spillover import validate
from spillover.extras import needed_for
from spillover.tabular import in_rows, table_of


def to_networkx(adjacency: Any, arms: Sequence[Any] | None = None, *, threshold: float = 0.0) -> Any:
    """A `networkx.DiGraph` with a node for each arm, and an edge from arm j to arm i where adjacency[i, j] is not 0.

    adjacency: an array, a sparse array, or a table whose columns are the arms. arms: their names; by default those of
    the table, or else 0, 1 and so on. threshold: edges up to this size are left out. The edge attribute `weight` is the
    effect of one unit.

    >>> network = to_networkx([[0, 0.5], [0, 0]], ["tv", "radio"])
    >>> list(network.edges(data=True))
    [('radio', 'tv', {'weight': 0.5})]
    """
    with needed_for("a network", "networkx"):
        import networkx
    from scipy import sparse

    validate.number("threshold", threshold, "a number >= 0", low=0, high=np.inf)
    table = table_of("adjacency", adjacency)
    names = arms if arms is not None or table is None else table.names
    given: Any = adjacency if table is None else in_rows("adjacency", adjacency, table.names)
    if not sparse.issparse(given):
        given = sparse.coo_array(validate.numbers("adjacency", given, "numbers"))
    matrix: Any = given.tocoo()
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    validate.require(square, "shape of adjacency", matrix.shape, "(n, n)")
    known = bool(np.isfinite(matrix.data).all())
    validate.require(known, "adjacency", matrix.data, "finite numbers: where it is NaN, the graph is not known")
    n = matrix.shape[0]
    nodes = list(range(n)) if names is None else list(names)
    validate.require(len(nodes) == len(set(nodes)) == n, "arms", nodes, f"{n} different names, one for each arm")
    network = networkx.DiGraph()
    network.add_nodes_from(nodes)
    effect, cause = matrix.coords
    found = zip(cause.tolist(), effect.tolist(), matrix.data.tolist(), strict=True)
    network.add_weighted_edges_from((nodes[j], nodes[i], value) for j, i, value in found if abs(value) > threshold)
    return network


def from_networkx(network: Any, weight: str = "weight") -> tuple[list[str], np.ndarray[Any, np.dtype[np.float64]]]:
    """The names of the nodes, and the adjacency: [i, j] is the weight of the edge from j to i, 1 if it has none.

    >>> import networkx
    >>> from_networkx(networkx.DiGraph([("radio", "tv", {"weight": 0.5})]))
    (['radio', 'tv'], array([[0. , 0. ],
           [0.5, 0. ]]))
    """
    with needed_for("a network", "networkx"):
        import networkx
    good = isinstance(network, networkx.DiGraph) and not network.is_multigraph()
    accepted = "a networkx.DiGraph, in which an edge has a direction and there is at most one from an arm to another"
    validate.require(good, "network", network, accepted)
    nodes = list(network)
    names = [str(node) for node in nodes]
    validate.require(0 < len(names) == len(set(names)), "nodes", names, "arms with different names, at least one")
    place = {node: k for k, node in enumerate(nodes)}
    adjacency = np.zeros((len(nodes), len(nodes)))
    for cause, effect, value in network.edges(data=weight, default=1.0):
        validate.number(f"{weight} of edge {cause} -> {effect}", value, "a finite number", low=-np.inf, high=np.inf)
        adjacency[place[effect], place[cause]] = value
    return names, adjacency

"""Read matrices that have names, from data frames of pandas and Polars, Arrow tables and networks of NetworkX."""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from spillover import validate
from spillover.registry import needed_for
from spillover.validate import numbers, require


@runtime_checkable
class ArrowStream(Protocol):
    """A table or a column that can be read as Arrow data: of pandas, Polars, Arrow and others."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class Table(NamedTuple):
    """A table in memory.

    An index of pandas that is not just a count labels the rows. Other libraries have no such labels: there the first
    column has them, if it has texts.
    """

    names: list[str]  # of the columns
    named: bool  # False if they only count
    labels: list[str] | None  # of the rows
    columns: list[np.ndarray[Any, Any]]

    def matrix(self, name: str) -> np.ndarray[Any, Any]:
        """All columns, (rows, columns): True or False if all of them are, or else numbers."""
        if all(column.dtype == np.bool_ for column in self.columns):
            return np.stack(self.columns, 1)
        named = zip(self.names, self.columns, strict=True)
        return np.stack([numbers(f"{name}[{key!r}]", column, "numbers") for key, column in named], 1)


def table_of(name: str, value: Any) -> Table | None:
    """A table with its names; None for anything else, such as an array or a single column."""
    if type(value) in (np.ndarray, list, tuple) or not isinstance(value, ArrowStream):
        return None
    pandas = sys.modules.get("pandas")  # whoever has a data frame of it has loaded it
    if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series):
        found = pandas_table(pandas, value) if isinstance(value, pandas.DataFrame) else None
    else:
        found = arrow_table(value)
    if found is not None:
        names = found.names
        require(0 < len(names) == len(set(names)), f"labels of {name}", names, "at least one column, each once")
    return found


def pandas_table(pandas: Any, frame: Any) -> Table:
    names = [str(column) for column in frame.columns]
    counted = isinstance(frame.index, pandas.RangeIndex)
    labels = None if counted else [str(label) for label in frame.index]
    columns = [frame.iloc[:, k].to_numpy() for k in range(len(names))]
    return Table(names, not isinstance(frame.columns, pandas.RangeIndex), labels, columns)


def arrow_table(value: ArrowStream) -> Table | None:
    """Anything but pandas; None for a single column."""
    import pyarrow as pa

    try:
        table = pa.table(value)
    except (TypeError, ValueError, pa.ArrowException):
        return None
    names, columns = list(table.column_names), [column.to_numpy() for column in table.columns]
    if columns and columns[0].dtype == object and all(isinstance(label, str) for label in columns[0]):
        return Table(names[1:], True, columns[0].tolist(), columns[1:])
    return Table(names, True, None, columns)


def names_of(value: Any) -> list[str] | None:
    """The names of the columns of a table; None for anything without names.

    >>> import pandas as pd
    >>> names_of(pd.DataFrame({"north": [1], "south": [0]})), names_of([[1, 0]])
    (['north', 'south'], None)
    """
    table = table_of("table", value)
    return table.names if table is not None and table.named else None


def in_columns(name: str, value: Any, wanted: Sequence[str] | None) -> Any:
    """A table as an array with its columns in the wanted order; whatever has no names as it is.

    >>> import pandas as pd
    >>> in_columns("y", pd.DataFrame({"south": [2.0], "north": [1.0]}), ["north", "south"])
    array([[1., 2.]])
    """
    table = table_of(name, value)
    if table is None:
        return value
    given = table.matrix(name)
    if wanted is None or not table.named:
        return given
    return given[:, places(f"columns of {name}", table.names, wanted)]


def in_rows(name: str, value: Any, wanted: Sequence[str], columns: Sequence[str] | None = None) -> Any:
    """A table as an array with its rows in the wanted order, by their labels if it has any; see `in_columns`."""
    table, found = table_of(name, value), in_columns(name, value, columns)
    if table is None or table.labels is None:
        return found
    return found[places(f"rows of {name}", table.labels, wanted)]


def places(what: str, found: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The position of each wanted name; the names must be the same."""
    good = sorted(found) == sorted(wanted) and len(set(found)) == len(found)
    require(good, what, list(found), f"{list(wanted)}, each once, in any order")
    return [list(found).index(key) for key in wanted]


def shared_names(*tables: Any) -> list[str] | None:
    """The names that the columns of several tables share: those of the first that has any."""
    found = (names_of(value) for value in tables)
    return next((names for names in found if names is not None), None)


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

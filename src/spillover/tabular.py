"""Matrices that have names: data frames of pandas and Polars, and Arrow tables."""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

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
    """Where each of the wanted names is; they must be the same."""
    good = sorted(found) == sorted(wanted) and len(set(found)) == len(found)
    require(good, what, list(found), f"{list(wanted)}, each once, in any order")
    return [list(found).index(key) for key in wanted]


def shared_names(*tables: Any) -> list[str] | None:
    """The names that the columns of several tables share: those of the first that has any."""
    found = (names_of(value) for value in tables)
    return next((names for names in found if names is not None), None)

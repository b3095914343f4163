"""Tables to read in tests: one history in many layouts and formats."""

import gzip
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from spillover.history import HistoryError, read_history

Columns = dict[str, list[Any]]


def long_table(arms, rounds, x, y, names=("week", "store", "promo", "sales")) -> Columns:
    """One row for each round and arm; NaN outcomes are empty."""
    cells = [(t, a) for t in range(len(rounds)) for a in range(len(arms))]
    return {
        names[0]: [rounds[t] for t, _ in cells],
        names[1]: [arms[a] for _, a in cells],
        names[2]: [int(x[t][a]) for t, a in cells],
        names[3]: [None if np.isnan(y[t][a]) else float(y[t][a]) for t, a in cells],
    }


def wide_table(arms, rounds, x, y, names=("week", "promo.", "sales.")) -> Columns:
    """One row for each round, with columns for each arm."""
    table: Columns = {names[0]: list(rounds)}
    table |= {f"{names[1]}{arm}": [int(row[a]) for row in x] for a, arm in enumerate(arms)}
    known = [[None if np.isnan(value) else float(value) for value in row] for row in y]
    return table | {f"{names[2]}{arm}": [row[a] for row in known] for a, arm in enumerate(arms)}


def csv_text(table: Columns, separator: str = ",", point: str = ".") -> str:
    """A table as CSV; every cell in quotes where it needs them."""

    def cell(value: Any) -> str:
        text = "" if value is None else repr(value).replace(".", point) if isinstance(value, float) else str(value)
        return (
            '"' + text.replace('"', '""') + '"' if any(sign in text for sign in (separator, '"', "\n", "\r")) else text
        )

    rows = [list(table), *zip(*table.values(), strict=True)]
    return "".join(separator.join(cell(value) for value in row) + "\n" for row in rows)


FORMATS = ("csv", "semicolons", "tabs", "gz", "parquet", "xlsx", "pandas", "polars", "arrow", "columns")


def in_format(table: Columns, form: str, folder: Any) -> Any:
    """The table as a source for `read_history`."""
    if form == "columns":
        return table
    if form == "pandas":
        import pandas as pd

        return pd.DataFrame(table)
    if form == "polars":
        import polars

        return polars.DataFrame(table, strict=False)
    if form == "arrow":
        return pa.table(table)
    if form == "parquet":
        path = folder / "t.parquet"
        parquet.write_table(pa.table(table), path)
        return path
    if form == "xlsx":
        return workbook(table, folder / "t.xlsx")
    separator, point = {"semicolons": (";", ","), "tabs": ("\t", ".")}.get(form, (",", "."))
    content = csv_text(table, separator, point).encode()
    path = folder / ("t.csv.gz" if form == "gz" else "t.csv")
    path.write_bytes(gzip.compress(content) if form == "gz" else content)
    return path


def workbook(table: Columns, path: Any) -> Any:
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(list(table))
    for row in zip(*table.values(), strict=True):
        book.active.append(list(row))
    content = io.BytesIO()
    book.save(content)
    path.write_bytes(content.getvalue())
    return path


WEEKS = [f"2026-W{k:02d}" for k in range(1, 9)]
WIDE: dict[str, list[Any]] = {
    "week": WEEKS,
    "promo_north": [1, 0, 1, 0, 1, 0, 0, 1],
    "promo_south": [0, 0, 1, 1, 0, 1, 0, 1],
    "sales_north": [5.0, 1.0, 6.0, 2.0, 5.5, 1.5, 1.0, 6.5],
    "sales_south": [2.0, 2.0, 4.0, 5.0, 2.5, 4.5, 2.0, 4.5],
    "temp": [1, 2, 3, 4, 5, 6, 7, 8],
}
PAYOFF: dict[str, list[Any]] = {
    "date": [f"2026-01-{k:02d}" for k in range(1, 9)],
    "tv": WIDE["promo_north"],
    "radio": WIDE["promo_south"],
    "revenue": [5.0, 1.0, 6.0, 2.0, 5.5, 1.5, 1.0, 6.5],
}
LONG: dict[str, list[Any]] = {
    "date": [day for day in PAYOFF["date"] for _ in "ns"],
    "region": ["north", "south"] * 8,
    "treated": [cell for pair in zip(WIDE["promo_north"], WIDE["promo_south"], strict=True) for cell in pair],
    "orders": [cell for pair in zip(WIDE["sales_north"], WIDE["sales_south"], strict=True) for cell in pair],
}


def changed(table, **columns):
    return {**table, **{name.replace("__", " "): values for name, values in columns.items()}}


def without(table, *names):
    return {name: values for name, values in table.items() if name not in names}


def refused(table, *words, **options):
    """The error's lines, with these words in one of them."""
    with pytest.raises(ValueError, match=r".+") as caught:
        read_history(table, **options)
    lines = caught.value.lines if isinstance(caught.value, HistoryError) else [str(caught.value)]
    for some in words:
        assert any(some in line for line in lines), lines
    return lines

"""Excel workbooks, with the extra `xlsx`."""

import io
from collections.abc import Sequence
from typing import Any, NamedTuple

SHEET = "is a spreadsheet, which cannot be read: save it as CSV (in UTF-8) and use that file"


class Sheet(NamedTuple):
    """A sheet of a workbook as an arrow table, its title, and the titles of the others that have cells."""

    table: Any
    title: str
    others: tuple[str, ...]


def read_sheet(name: str, content: bytes) -> Sheet:
    """The first sheet of an Excel workbook that has cells; its first row has the column names."""
    import pyarrow as pa

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ValueError(
            f'{name}: is a spreadsheet: to read it, pip install "spillover[xlsx]", or save it as CSV'
        ) from None
    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheets = {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book.worksheets}
    except Exception:  # a workbook can be broken in more ways than the library names
        raise ValueError(f"{name}: {SHEET}") from None
    filled = {title: [row for row in rows if any(c not in (None, "") for c in row)] for title, rows in sheets.items()}
    title, *others = [title for title, rows in filled.items() if rows] or [""]
    cells = filled.get(title, [])
    if len(cells) < 2 and not others:
        raise ValueError(f"{name}: is empty: must have a row of column names and rows below")
    header = ["" if cell is None else str(cell) for cell in cells[0]]
    used = [k for k in range(len(header)) if header[k].strip() or any(row[k] not in (None, "") for row in cells[1:])]
    columns = [typed_cells([row[k] for row in cells[1:]]) for k in used]
    return Sheet(pa.table(columns, [header[k] for k in used]), title, tuple(others))


def typed_cells(values: Sequence[Any]) -> Any:
    """Values as an arrow array: of their common type, or else as texts."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None or value != value else str(value) for value in values], pa.string())

"""Excel workbooks, with the extra `xlsx`."""

import io
from collections.abc import Sequence
from typing import Any

SHEET = "is a spreadsheet, which cannot be read: save it as CSV (in UTF-8) and use that file"


def sheet_table(name: str, content: bytes) -> Any:
    """The first sheet of an Excel workbook that has cells, as an arrow table; its first row has the column names."""
    import pyarrow as pa

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ValueError(
            f'{name}: is a spreadsheet: to read it, pip install "spillover[xlsx]", or save it as CSV'
        ) from None
    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheets = [[list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book.worksheets]
    except Exception:  # a workbook can be broken in more ways than the library names
        raise ValueError(f"{name}: {SHEET}") from None
    filled = [[row for row in sheet if any(cell not in (None, "") for cell in row)] for sheet in sheets]
    cells = next((sheet for sheet in filled if sheet), [])
    if len(cells) < 2:
        raise ValueError(f"{name}: is empty: must have a row of column names and rows below")
    header = ["" if cell is None else str(cell) for cell in cells[0]]
    used = [k for k in range(len(header)) if header[k].strip() or any(row[k] not in (None, "") for row in cells[1:])]
    columns = [typed_cells([row[k] for row in cells[1:]]) for k in used]
    return pa.table(columns, [header[k] for k in used])


def typed_cells(values: Sequence[Any]) -> Any:
    """Values as an arrow array: of their common type, or else as texts."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None or value != value else str(value) for value in values], pa.string())

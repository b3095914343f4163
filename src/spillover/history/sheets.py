"""Read a sheet of an Excel workbook as a table; refuse compressed files that expand too far."""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

MOST_FREELY = 64 << 20  # decompressed bytes that are read from any compressed file
MOST_EXPANDED = 100  # times the size of a larger one: tables of text shrink to a fifth, and rarely to a fiftieth
NO_SHEET = "is a spreadsheet, which cannot be read: save it as CSV (in UTF-8) and use that file"
LAST_ROW, LAST_COLUMN = 1_048_576, 16_384  # that a sheet can have
CELL = 8  # bytes of a cell in memory, besides its text
FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")


def most_expanded(size: int) -> int:
    """The most bytes that are read from a compressed file of this size."""
    return max(MOST_FREELY, MOST_EXPANDED * size)


def expands_too_far(name: object) -> ValueError:
    what = f"expands to more than {MOST_EXPANDED} times its size"
    return ValueError(f"{name}: {what}, which no table does: must be one, or not compressed")


class Sheet(NamedTuple):
    """A sheet of a workbook as an arrow table, its title, and the titles of the others that have cells."""

    table: Any
    title: str
    others: tuple[str, ...]
    unknown: int  # cells with a formula whose result is not in the file


def read_sheet(name: str, content: bytes) -> Sheet:
    """The first sheet of an Excel workbook that has cells; its first row has the column names."""
    import pyarrow as pa

    most, formulas = most_expanded(len(content)), inspect(name, content)
    sheets = {sheet.title: sheet for sheet in open_book(name, content, data_only=True)}
    title, *others = [title for title, sheet in sheets.items() if any(map(any_value, rows_of(name, sheet)))] or [""]
    cells = filled_rows(name, sheets[title], most) if title else []
    if len(cells) < 2 and not others:
        raise ValueError(f"{name}: is empty: must have a row of column names and rows below")
    width = max(map(len, cells))
    whole = [row + [None] * (width - len(row)) for row in cells]
    header = ["" if cell is None else str(cell) for cell in whole[0]]
    used = [k for k in range(width) if header[k].strip() or any(row[k] is not None for row in whole[1:])]
    columns = [typed_cells([row[k] for row in whole[1:]]) for k in used]
    unknown = unknown_results(name, content, sheets[title]) if formulas else 0
    return Sheet(pa.table(columns, [header[k] for k in used]), title, tuple(others), unknown)


def inspect(name: str, content: bytes) -> bool:
    """Refuse a workbook that is damaged or expands too far; whether it has formulas."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            if sum(part.file_size for part in parts) <= most_expanded(len(content)):  # no more than this is read
                sheets = [part for part in parts if "worksheets/" in part.filename]
                return any(FORMULA.search(archive.read(part)) for part in sheets)
    except Exception:  # an archive can be broken in many ways
        raise ValueError(f"{name}: {NO_SHEET}") from None
    raise expands_too_far(name)


def open_book(name: str, content: bytes, *, data_only: bool) -> list[Any]:
    """The sheets of a workbook; data_only: with the results of formulas instead of the formulas."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ValueError(
            f'{name}: is a spreadsheet: to read it, pip install "spillover[xlsx]", or save it as CSV'
        ) from None
    try:
        sheets: list[Any] = load_workbook(io.BytesIO(content), read_only=True, data_only=data_only).worksheets
    except Exception:  # a workbook can be broken in more ways than the library names
        raise ValueError(f"{name}: {NO_SHEET}") from None
    for sheet in sheets:
        sheet.reset_dimensions()  # those that are written may be too small
    return sheets


def rows_of(name: str, sheet: Any) -> Iterator[Sequence[Any]]:
    """The rows of a sheet, as long as each of them is."""
    rows = sheet.iter_rows(values_only=True)
    for _ in range(LAST_ROW):
        try:
            row = next(rows, None)
        except Exception:
            raise ValueError(f"{name}: {NO_SHEET}") from None
        if row is None:
            return
        if len(row) > LAST_COLUMN:
            raise ValueError(f"{name}: has a cell beyond column XFD: must have none, as that is the last of a sheet")
        yield row
    if next(rows, None) is not None:
        raise ValueError(f"{name}: has a row below {LAST_ROW:,}: must have none, as that is the last of a sheet")


def any_value(row: Sequence[Any]) -> bool:
    return not all(is_blank(cell) for cell in row)


def is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def filled_rows(name: str, sheet: Any, most: int) -> list[list[Any]]:
    """The rows that have a value. A text may be in many cells, and a cell far to the right: at most so many bytes."""
    rows, size = [], 0
    for row in rows_of(name, sheet):
        size += sum(CELL + len(cell) if isinstance(cell, str) else CELL for cell in row)
        if size > most:
            raise expands_too_far(name)
        if any_value(row):
            rows.append([None if is_blank(cell) else cell for cell in row])
    return rows


def unknown_results(name: str, content: bytes, sheet: Any) -> int:
    """How many cells of a sheet have a formula without a result."""
    written = next(other for other in open_book(name, content, data_only=False) if other.title == sheet.title)
    rows = zip(rows_of(name, sheet), rows_of(name, written), strict=True)
    return sum(result is None and cell is not None for known, own in rows for result, cell in zip_longest(known, own))


def typed_cells(values: Sequence[Any]) -> Any:
    """Values as an arrow array: of their common type, or else as texts."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # the last: whole numbers of 64 bits and more
        return pa.array([None if value is None or value != value else str(value) for value in values], pa.string())

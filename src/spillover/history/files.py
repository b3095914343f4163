"""Open a table in a file: CSV, also compressed, Parquet or Excel; its rows batch by batch, its line numbers."""

import csv
import gzip
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from spillover.history.cells import HistoryError, Problems
from spillover.history.columns import NONE, did_you_mean, quote_names

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
    """The rows that have a value. A text may be in many cells, and a cell far to the right: a limit on the bytes."""
    rows, size = [], 0
    for row in rows_of(name, sheet):
        size += sum(CELL + len(cell) if isinstance(cell, str) else CELL for cell in row)
        if size > most:
            raise expands_too_far(name)
        if any_value(row):
            rows.append([None if is_blank(cell) else cell for cell in row])
    return rows


def unknown_results(name: str, content: bytes, sheet: Any) -> int:
    """Count the cells of a sheet with a formula but no stored result."""
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


MEANINGS = {
    "round": "a whole number or a date",
    "arm": "the name of the arm",
    "chosen": "whether the arm was chosen: 1 or 0, yes or no, true or false",
    "z": "the arm's own reward, if it was chosen",
    "y": "the arm's total reward, including spill-over from other arms",
}
NEEDED = ("round", "arm", "chosen", "z")  # without y no spill-over is learned
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
BLOCK = 4 << 20  # bytes of CSV at a time
ROWS = 1 << 18  # rows of any other table at a time
LONGEST_HEADER = 1 << 20  # bytes
DECOMPRESSED = 1 << 20  # bytes at a time
SAMPLED = 20  # lines that tell the separator
SHEETS = (".xlsx", ".xlsm")
OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")
MAGIC = {  # first bytes of files that are easily taken for tables
    b"\xd0\xcf\x11\xe0": "a spreadsheet",
    b"%PDF": "a PDF",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
UNCLOSED = 0  # the number of values in a row of which a quoted one does not end


class Layout(NamedTuple):
    """The layout of a CSV file: separator, columns and first row."""

    path: Path
    skip: int  # lines before the first row
    width: int  # values in a row
    separator: str


def open_bytes(path: Path) -> IO[bytes]:
    """The file, decompressed."""
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def row_lines(layout: Layout) -> Iterator[tuple[int, int]]:
    """For each row that is not empty: the number of its first line, from 1, and the number of its values."""
    with open_bytes(layout.path) as file:
        # any byte is valid Latin-1, and separators and quotes are the same; lines end in CR, LF or both
        lines = io.TextIOWrapper(file, "latin-1", newline="")
        number = 0
        for line in lines:
            number += 1
            if number <= layout.skip or not line.strip("\r\n"):
                continue
            if '"' in line:
                values, taken = quoted_row(chain([line], lines), layout.separator)
                yield number, values
                number += taken - 1
            else:
                yield number, line.count(layout.separator) + 1


def quoted_row(lines: Iterable[str], separator: str) -> tuple[int, int]:
    """The number of values of the next row, and of its lines: a quoted value may contain line breaks."""
    reader = csv.reader(lines, delimiter=separator)
    try:
        return len(next(reader)), reader.line_num
    except csv.Error:  # more text than a cell has
        return UNCLOSED, reader.line_num


def lines_of(layout: Layout, rows: list[int]) -> list[int | None]:
    """The line of each row; rows are counted from 0 without those of another width, and must be increasing."""
    complete = (number for number, values in row_lines(layout) if values == layout.width)
    found: list[int | None] = []
    line, at = None, -1
    for row in rows:
        while at < row:
            line, at = next(complete, None), at + 1
        found.append(line)
    return found


def report_broken(layout: Layout, problems: Problems) -> None:
    """Report lines with more or fewer values than there are columns."""
    for number, values in row_lines(layout):
        if values == UNCLOSED:
            problems.add_text("width", "has a quote that is not closed: must be closed, or doubled", number)
            return  # what follows is inside of it
        if values != layout.width:
            text = f"has {values} value{'s' if values > 1 else ''}: must have {layout.width}, one for each column"
            problems.add_text("width", text, number)


def separator_of(line: str, wanted: Sequence[str], rows: Sequence[str] = ()) -> str:
    """The separator that gives most of the wanted names, then rows that fit the header, then most names.

    rows: the lines below. A comma if there is a tie.

    >>> separator_of("Datum;Kanal;Wert", ["round", "arm", "chosen"])
    ';'
    >>> separator_of("a;b,c;d", [], ["1,2"])
    ','
    """
    names = {name.casefold() for name in wanted}

    def fit(separator: str) -> tuple[int, int, int, int]:
        cells = cells_of(line, separator)
        known = len(names & {cell.casefold() for cell in cells})
        fitting = sum(len(cells_of(row, separator)) == len(cells) > 1 for row in rows)
        return known if known > 1 else 0, fitting, known, len(cells)

    return max(SEPARATORS, key=fit)  # the first of the best


def cells_of(line: str, separator: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a cell of more than 128 KiB: a separator that the line does not have, or a quote without an end
        cells = line.split(separator)
    return [cell.strip() for cell in cells]


def match_columns(header: Sequence[str], renamed: Mapping[str, str], problems: Problems) -> dict[str, int] | None:
    """The position of each column, by its name without regard to case; None, with problems, if that is not clear."""
    before = problems.count
    folded = [name.casefold() for name in header]
    places: dict[str, int] = {}
    for meaning, about in MEANINGS.items():
        name = renamed.get(meaning, meaning)
        found = [k for k, cell in enumerate(folded) if cell == name.casefold()] if name != NONE else []
        if len(found) > 1:
            problems.add_text(f"columns {name}", f"column {name!r} appears {len(found)} times: must appear once")
        elif found and found[0] in places.values():
            first = next(other for other, place in places.items() if place == found[0])
            problems.add_text(f"columns {name}", f"column {name!r} is {first} and {meaning}: must be one of them")
        elif found:
            places[meaning] = found[0]
        elif meaning in NEEDED or (meaning in renamed and name != NONE):
            there = f"there are: {quote_names(header)}{did_you_mean(name, header)}"
            problems.add_text(f"columns {name}", f"no column {name!r} ({about}); {there}")
    ignored = [name for k, name in enumerate(header) if k not in places.values()]
    if "y" not in places and "y" not in renamed and ignored and problems.count == before:
        problems.add_text(
            "columns",
            f"no column 'y' ({MEANINGS['y']}), but columns that are not used: {quote_names(ignored)}: must be clear "
            f"which one is y (--columns y={ignored[0]}) or that there is none (--columns y=)",
        )
    return places if problems.count == before else None


class OpenTable(NamedTuple):
    """A table of which the names of the columns are known."""

    path: Path  # or what it is called in messages
    names: list[str]
    layout: Layout | None = None  # of a CSV file
    data: Any = None  # an arrow table in memory: a data frame or a sheet; None for a file
    first_row: int = 1  # the number of the first row, where rows have numbers and no lines
    notes: tuple[str, ...] = ()  # what else is to be said of it

    def lines(self, rows: list[int]) -> Sequence[int | None]:
        """The lines of some rows in increasing order, or their numbers where there are no lines."""
        return lines_of(self.layout, rows) if self.layout else [row + self.first_row for row in rows]

    def error(self, problems: Problems, lines: Callable[[list[int]], Sequence[int | None]]) -> HistoryError:
        """The error with all problems of the table."""
        return problems.error(str(self.path), lines, "" if self.layout else "row ")


def open_table(path: Path, wanted: Sequence[str]) -> OpenTable:
    """Read the header of a file. wanted: names that may be there, to tell the separator."""
    start = first_bytes(path)
    if start[:4] == b"PAR1":
        return OpenTable(path, parquet_names(path))
    if start[:4] == b"PK\x03\x04" or path.suffix.lower() in SHEETS:
        return open_sheet(path)
    check_is_table(path, start)
    lines = header_lines(path, start)
    if not lines:
        raise ValueError(f"{path}: is empty: must have a line of column names ({', '.join(MEANINGS)}) and rows below")
    declared = lines[0][4:5] if lines[0].lower().startswith("sep=") else ""  # as spreadsheets write it
    separator = declared or separator_of(lines[-1], wanted, rows_below(start, len(lines)))
    header = cells_of(lines[-1], separator)
    if all_end_in(separator, len(header), rows_below(start, len(lines))):
        header.append("")  # a column without a name and without values
    return OpenTable(path, header, Layout(path, len(lines), len(header), separator))


def rows_below(start: bytes, skip: int) -> list[str]:
    """The first lines below the header, to tell the separator."""
    lines = re.split(rb"\r\n|\n|\r", start)[skip : skip + SAMPLED]
    return [line.decode(errors="replace") for line in lines if line.strip()]


def all_end_in(separator: str, width: int, rows: Sequence[str]) -> bool:
    """Whether every row has one more separator at its end than the header, as some programs write them."""
    cells = [cells_of(row, separator) for row in rows]
    return bool(cells) and all(len(row) == width + 1 and not row[-1] for row in cells)


def open_sheet(path: Path) -> OpenTable:
    """The first sheet of an Excel workbook that has cells."""
    table, title, others, unknown = read_sheet(str(path), path.read_bytes())
    told, notes = [], []
    if others:
        rest = ", ".join(map(repr, others))
        told.append(f"only the first sheet is read; there are also: {rest}")
        notes.append(f"sheet {title!r} is read, the first one that has cells; not used: {rest}")
    if unknown:
        told.append(
            f"cells with a formula whose result is not stored: {unknown:,}; they are read as empty: save the file in a "
            "spreadsheet program"
        )
        notes.append(told[-1])
    label = Path(f"{path}, sheet {title!r} ({'; '.join(told)})") if told else path
    return OpenTable(label, table.column_names, data=table, first_row=2, notes=tuple(notes))


def first_bytes(path: Path) -> bytes:
    """The first bytes, decompressed if necessary; errors of the system name the file."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder: must be a CSV, Parquet or Excel file")
    if not path.is_file() and path.exists():
        raise ValueError(f"{path}: must be a regular file, as it is read more than once")
    if not path.stat().st_size:  # what the system makes up while it is read has no size either, and perhaps no end
        return b""
    check_file_name(path)
    with path.open("rb") as file:
        start = file.read(LONGEST_HEADER)
    if start[:2] != b"\x1f\x8b":
        return start
    if path.suffix != ".gz":
        raise ValueError(f"{path}: is compressed with gzip: its name must end in .csv.gz")
    return first_decompressed(path)


def check_file_name(path: Path) -> None:
    """Refuse a name in bytes that are not UTF-8, which arrow cannot open."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{path}: must have a name in UTF-8: rename the file") from None


def first_decompressed(path: Path) -> bytes:
    """The first bytes of a compressed file, once all of it was seen to have a sensible size."""
    most = most_expanded(path.stat().st_size)
    with open_bytes(path) as file:
        try:
            start = file.read(LONGEST_HEADER)
            size = len(start)
            while part := file.read(DECOMPRESSED):
                size += len(part)
                if size > most:
                    break
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: must be a complete gzip file: {error}") from None
    if size > most:
        raise expands_too_far(path)
    return start


def check_is_table(path: Path, start: bytes) -> None:
    """Reject files that are neither CSV nor Parquet."""
    for magic, kind in MAGIC.items():
        if start.startswith(magic) or (kind == "a spreadsheet" and path.suffix.lower() in OTHER_SHEETS):
            advice = "save it as CSV (in UTF-8) and use that file"
            raise ValueError(f"{path}: is {kind}, which cannot be read: {advice}")
    if b"\0" in start:
        raise ValueError(f"{path}: is not text: must be CSV (in UTF-8, or .csv.gz) or Parquet")


def header_lines(path: Path, start: bytes) -> list[str]:
    """The lines up to the column names: blank lines and `sep=;` may come first."""
    lines, found = re.split(rb"\r\n|\n|\r", start.removeprefix(b"\xef\xbb\xbf")), list[str]()
    for number, raw in enumerate(lines, 1):
        if number == len(lines) and len(start) >= LONGEST_HEADER:  # more of it may follow
            raise ValueError(f"{path}:{number}: column names of more than {LONGEST_HEADER:,} bytes: must be fewer")
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            raise ValueError(not_utf8(path, number)) from None
        found.append(line)
        if line.strip() and not line.lower().startswith("sep="):
            return found
    return []


def not_utf8(path: Path, line: int) -> str:
    return f"{path}:{line}: must be UTF-8 text: save it as CSV UTF-8"


def parquet_names(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        return list(parquet.read_schema(path).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise damaged_parquet(path, error) from None


def damaged_parquet(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path}: must be a complete Parquet file: {error}")


def batches(table: OpenTable, places: Sequence[int], **options: Any) -> Iterator[tuple[Any, int]]:
    """The rows in order: arrow batches of the columns at some places, and the number of bytes read so far.

    options: those of `csv_batches`, for a CSV file.
    """
    if table.layout is not None:
        return csv_batches(table.layout, places, **options)
    if table.data is not None:
        return ((batch, 0) for batch in table.data.select(list(places)).to_batches(ROWS))
    return parquet_batches(table, places)


def parquet_batches(table: OpenTable, places: Sequence[int]) -> Iterator[tuple[Any, int]]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    columns = None if list(places) == list(range(len(table.names))) else [table.names[place] for place in places]
    try:
        with parquet.ParquetFile(table.path) as file:
            rows, size, seen = max(file.metadata.num_rows, 1), os.path.getsize(table.path), 0
            for batch in file.iter_batches(ROWS, columns=columns):
                seen += batch.num_rows
                yield batch if columns is None else batch.select(columns), size * seen // rows
    except (pa.ArrowInvalid, OSError) as error:
        raise damaged_parquet(table.path, error) from None


def csv_batches(
    layout: Layout,
    places: Sequence[int],
    *,
    types: Mapping[int, Any] | None = None,
    skip: Callable[[Any], str] | None = None,
) -> Iterator[tuple[Any, int]]:
    """The rows of a CSV file, as texts unless `types` says otherwise; a row of another width is an error of arrow's.

    skip: called with each such row instead. After an interrupt arrow's threads must not call into an interpreter that
    is ending, so that it is for a second reading only.
    """
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    raw = pa.OSFile(str(layout.path))
    try:
        reader = arrow_csv.open_csv(
            pa.CompressedInputStream(raw, "gzip") if layout.path.suffix == ".gz" else raw,
            arrow_csv.ReadOptions(
                column_names=[str(place) for place in range(layout.width)], skip_rows=layout.skip, block_size=BLOCK
            ),
            arrow_csv.ParseOptions(delimiter=layout.separator, invalid_row_handler=skip, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types={str(place): (types or {}).get(place, pa.string()) for place in places},
                include_columns=[str(place) for place in places],
                strings_can_be_null=True,
                null_values=[""],
            ),
        )
        for batch in reader:
            yield batch, raw.tell()
    except pa.ArrowInvalid as error:
        no_rows = "Empty CSV file", "Could not skip initial"  # only a header: reported where rows are counted
        if not any(words in str(error) for words in no_rows):
            raise
    finally:
        raw.close()


def csv_error(layout: Layout, error: Exception) -> ValueError:
    """Why a CSV file cannot be read: lines with too many or too few values, or almost always its encoding."""
    problems = Problems()
    if re.search(r"Expected \d+ columns|straddling object", str(error)):
        report_broken(layout, problems)
    if problems.count:
        return problems.error(str(layout.path), lambda rows: [])
    try:
        check_utf8(layout.path)
    except ValueError as reason:
        return reason
    return ValueError(f"{layout.path}: must be valid CSV: {error}")


def check_utf8(path: Path) -> None:
    """Refuse text that is not UTF-8, with the line."""
    number = 0
    with open_bytes(path) as file:
        try:
            for line in file:
                number += 1
                line.decode()
        except UnicodeDecodeError:
            raise ValueError(not_utf8(path, number)) from None
        except (OSError, EOFError, zlib.error) as damage:
            raise ValueError(f"{path}: must be a complete gzip file: {damage}") from None

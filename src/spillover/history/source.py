"""The rows of a file, batch by batch, whatever its format."""

import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spillover.history.header import MEANINGS, Columns, cells_of, match_columns, separator_of
from spillover.history.lines import Layout, expands_too_far, most_expanded, open_bytes, report_broken
from spillover.history.parquet_types import as_text, check_types
from spillover.history.problems import Problems
from spillover.history.sheet import read_sheet

BLOCK = 4 << 20  # bytes of CSV at a time
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


class Opened(NamedTuple):
    """A table of which the names of the columns are known."""

    path: Path  # or what it is called in messages
    names: list[str]
    layout: Layout | None = None  # of a CSV file
    table: Any = None  # an arrow table in memory: a data frame or a sheet; None for a file
    first_row: int = 1  # the number of the first row, where rows have numbers and no lines
    notes: tuple[str, ...] = ()  # what else is to be said of it


class Source(NamedTuple):
    """A table that can be read, and its columns."""

    path: Path
    columns: Columns
    layout: Layout | None = None  # of a CSV file; None for Parquet
    table: Any = None  # an arrow table in memory; None for a file
    names: tuple[str, ...] = ()  # of all columns
    given: tuple[str, ...] = ()  # meanings whose columns were given
    first_row: int = 1


class Batch(NamedTuple):
    """Some rows: the columns by their meaning, and the number of bytes read so far."""

    values: dict[str, Any]  # arrow arrays
    read: int


def open_table(path: Path, wanted: Sequence[str]) -> Opened:
    """Read the header of a file. wanted: names that may be there, to tell the separator."""
    start = first_bytes(path)
    if start[:4] == b"PAR1":
        return Opened(path, parquet_names(path))
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
    return Opened(path, header, Layout(path, len(lines), len(header), separator))


def rows_below(start: bytes, skip: int) -> list[str]:
    """The first lines below the header, to tell the separator."""
    lines = re.split(rb"\r\n|\n|\r", start)[skip : skip + SAMPLED]
    return [line.decode(errors="replace") for line in lines if line.strip()]


def all_end_in(separator: str, width: int, rows: Sequence[str]) -> bool:
    """Whether every row has one more separator at its end than the header, as some programs write them."""
    cells = [cells_of(row, separator) for row in rows]
    return bool(cells) and all(len(row) == width + 1 and not row[-1] for row in cells)


def open_sheet(path: Path) -> Opened:
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
    return Opened(label, table.column_names, table=table, first_row=2, notes=tuple(notes))


def plain_source(opened: Opened, renamed: Mapping[str, str], problems: Problems) -> Source | None:
    """The columns round, arm, chosen, z and y; None, with problems, if they are not there."""
    columns = match_columns(opened.names, renamed, problems)
    if columns is None:
        return None
    if opened.layout is None:
        check_types(opened.path, schema_of(opened), columns)
        own = [name for name in columns.ignored if not name.startswith("__index_level_")]  # pandas' row labels
        columns = columns._replace(ignored=own)
    names, given = tuple(opened.names), tuple(renamed)
    return Source(opened.path, columns, opened.layout, opened.table, names, given, opened.first_row)


def schema_of(opened: Opened) -> Any:
    import pyarrow.parquet as parquet

    return parquet.read_schema(opened.path) if opened.table is None else opened.table.schema


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


class NotPlain(Exception):
    """A CSV file in which some numbers cannot be parsed with the given decimal point."""


def batches(source: Source, problems: Problems, point: str | None) -> Iterator[Batch]:
    """The rows in order; point: the decimal point of numbers in a CSV file, None to read them as text."""
    if source.table is not None:
        return memory_batches(source)
    return parquet_batches(source) if source.layout is None else csv_batches(source, source.layout, problems, point)


def memory_batches(source: Source) -> Iterator[Batch]:
    for batch in source.table.to_batches(1 << 18):
        places = source.columns.places.items()
        yield Batch({meaning: as_text(source.path, meaning, batch.column(place)) for meaning, place in places}, 0)


def parquet_batches(source: Source) -> Iterator[Batch]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        yield from parquet_rows(source, parquet)
    except (pa.ArrowInvalid, OSError) as error:
        raise damaged_parquet(source.path, error) from None


def damaged_parquet(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path}: must be a complete Parquet file: {error}")


def parquet_rows(source: Source, parquet: Any) -> Iterator[Batch]:
    with parquet.ParquetFile(source.path) as file:
        names = {meaning: file.schema_arrow.names[place] for meaning, place in source.columns.places.items()}
        rows = max(file.metadata.num_rows, 1)
        size, seen = os.path.getsize(source.path), 0
        for batch in file.iter_batches(1 << 18, columns=list(names.values())):
            seen += batch.num_rows
            values = {meaning: as_text(source.path, name, batch.column(name)) for meaning, name in names.items()}
            yield Batch(values, size * seen // rows)


def csv_batches(source: Source, layout: Layout, problems: Problems, point: str | None) -> Iterator[Batch]:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    names = [str(k) for k in range(layout.width)]
    wanted = {meaning: names[place] for meaning, place in source.columns.places.items()}
    kinds = dict.fromkeys(wanted, pa.dictionary(pa.int32(), pa.string())) | dict.fromkeys(("z", "y"), pa.float64())
    types = {wanted[meaning]: kinds[meaning] if point else pa.string() for meaning in wanted}
    broken: list[int] = []
    if point is None:
        check_utf8(source.path)  # before arrow shows rows of a wrong width to Python, as text

    def skip(row: Any) -> str:
        broken.append(row.actual_columns)
        return "skip"

    raw = pa.OSFile(str(source.path))
    file = pa.CompressedInputStream(raw, "gzip") if source.path.suffix == ".gz" else raw
    try:
        reader = arrow_csv.open_csv(
            file,
            arrow_csv.ReadOptions(column_names=names, skip_rows=layout.skip, block_size=BLOCK),
            arrow_csv.ParseOptions(
                delimiter=layout.separator,
                # after an interrupt arrow's threads must not call into an interpreter that is ending
                invalid_row_handler=None if point else skip,
                newlines_in_values=True,
            ),
            arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(wanted.values()),
                strings_can_be_null=True,
                null_values=[""],
                decimal_point=point or ".",
            ),
        )
        for batch in reader:
            yield Batch({meaning: batch.column(name) for meaning, name in wanted.items()}, raw.tell())
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        if point:
            raise NotPlain from None
        no_rows = "Empty CSV file", "Could not skip initial"  # only a header: reported where rows are counted
        if not any(words in str(error) for words in no_rows):
            raise unreadable_text(source.path, error) from None
    finally:
        raw.close()
    if broken:
        report_broken(layout, problems)


def unreadable_text(path: Path, error: Exception) -> ValueError:
    """The reason why the text could not be read: almost always its encoding."""
    try:
        check_utf8(path)
    except ValueError as reason:
        return reason
    return ValueError(f"{path}: must be valid CSV: {error}")


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

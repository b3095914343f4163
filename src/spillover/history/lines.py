"""The line numbers of the rows of a CSV file; needed only for error messages."""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple, cast

from spillover.history.problems import Problems

UNCLOSED = 0  # the number of values in a row of which a quoted one does not end
MOST_FREELY = 64 << 20  # decompressed bytes that are read from any compressed file
MOST_EXPANDED = 100  # times the size of a larger one: tables of text shrink to a fifth, and rarely to a fiftieth


class Layout(NamedTuple):
    """How the lines of a CSV file are read as rows."""

    path: Path
    skip: int  # lines before the first row
    width: int  # values in a row
    separator: str


def open_bytes(path: Path) -> IO[bytes]:
    """The file, decompressed."""
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def most_expanded(size: int) -> int:
    """The most bytes that are read from a compressed file of this size."""
    return max(MOST_FREELY, MOST_EXPANDED * size)


def expands_too_far(name: object) -> ValueError:
    what = f"expands to more than {MOST_EXPANDED} times its size"
    return ValueError(f"{name}: {what}, which no table does: must be one, or not compressed")


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

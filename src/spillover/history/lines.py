"""On which lines of a CSV file its rows stand; asked only when there is something to complain about."""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple, cast

from spillover.history.problems import Problems


class Layout(NamedTuple):
    """How the lines of a CSV file become rows."""

    path: Path
    skip: int  # lines before the first row
    width: int  # values that a row has
    separator: str


def open_bytes(path: Path) -> IO[bytes]:
    """The file unpacked."""
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def walk(layout: Layout) -> Iterator[tuple[int, int]]:
    """The number of the line on which each row that is not empty begins, from 1, and how many values the row has."""
    with open_bytes(layout.path) as file:
        # every byte can be read in Latin-1, and separators and quotes are the same; lines end in CR, LF or both
        lines = io.TextIOWrapper(file, "latin-1", newline="")
        number = 0
        for line in lines:
            number += 1
            if number <= layout.skip or not line.strip("\r\n"):
                continue
            if '"' in line:
                values, taken = quoted(chain([line], lines), layout.separator)
                yield number, values
                number += taken - 1
            else:
                yield number, line.count(layout.separator) + 1


def quoted(lines: Iterable[str], separator: str) -> tuple[int, int]:
    """How many values the next row has, and how many lines it takes: a quoted value may have line breaks."""
    reader = csv.reader(lines, delimiter=separator)
    try:
        return len(next(reader)), reader.line_num
    except csv.Error:  # a quote that is never closed
        return 0, reader.line_num


def lines_of(layout: Layout, rows: list[int]) -> list[int | None]:
    """The line of each row (counted from 0, lines with another number of values left out); rows must rise."""
    whole = (number for number, values in walk(layout) if values == layout.width)
    found: list[int | None] = []
    line, at = None, -1
    for row in rows:
        while at < row:
            line, at = next(whole, None), at + 1
        found.append(line)
    return found


def tell_broken(layout: Layout, problems: Problems) -> None:
    """Lines with more or fewer values than there are columns."""
    for number, values in walk(layout):
        if values != layout.width:
            text = f"has {values} value{'s' if values > 1 else ''}: must have {layout.width}, as there are columns"
            problems.say("width", text, number)

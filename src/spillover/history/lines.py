"""On which lines of a CSV file its rows stand; asked only when there is something to complain about."""

import csv
import gzip
from collections.abc import Iterator
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
    """The number of each line that is not empty, from 1, and how many values it has."""
    separator = layout.separator.encode()
    with open_bytes(layout.path) as file:
        for number, raw in enumerate(file, 1):
            line = raw.rstrip(b"\r\n")
            if number <= layout.skip or not line:
                continue
            if b'"' in line:
                yield number, len(next(csv.reader([line.decode(errors="replace")], delimiter=layout.separator)))
            else:
                yield number, line.count(separator) + 1


def lines_of(layout: Layout, rows: list[int]) -> list[int]:
    """The line of each row (counted from 0, lines with another number of values left out); rows must rise."""
    whole = (number for number, values in walk(layout) if values == layout.width)
    found, at = [], -1
    for row in rows:
        while at < row:
            line, at = next(whole), at + 1
        found.append(line)
    return found


def tell_broken(layout: Layout, problems: Problems) -> None:
    """Lines with more or fewer values than there are columns."""
    for number, values in walk(layout):
        if values != layout.width:
            text = f"has {values} value{'s' if values > 1 else ''}: must have {layout.width}, as there are columns"
            problems.say("width", f"{text} (a line break within a value is not read)", number)

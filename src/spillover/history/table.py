"""All rows of a file as compact columns of numbers: 25 bytes for a row."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover.history.cells import Names, decisions, not_null, numbers
from spillover.history.problems import Problems
from spillover.history.source import NotPlain, Source, batches
from spillover.types import Array

# A decision from a hundred million rows takes minutes and 6 GB of memory.
MOST_ROWS = 100_000_000
MOST_ROUNDS = 2_000_000
MOST_BLANK = 2_000_000  # rows without any value: a spreadsheet writes a million
MOST_ARMS = 100_000

KINDS = {
    "round": np.int32,
    "arm": np.int32,
    "chosen": np.int8,
    "z": np.float64,
    "y": np.float64,
    "blank": np.int64,
}

Progress = Callable[[int], None]  # called with the number of bytes read so far


class Table(NamedTuple):
    """The rows in the order of the file."""

    round: NDArray[np.int32]  # position in rounds; -1 where it is empty
    arm: NDArray[np.int32]  # position in arms; -1 where it is empty
    chosen: NDArray[np.int8]  # -1 where it cannot be read
    z: Array  # NaN where it is empty
    y: Array | None  # None if there is no such column
    rounds: list[str]  # as written in the file
    arms: list[str]
    blank: NDArray[np.int64]  # rows of the file that are empty, and left out here

    def file_row(self, row: int) -> int:
        """The position among all rows of the file, with the empty ones."""
        before = self.blank - np.arange(len(self.blank))
        return row + int(np.searchsorted(before, row, side="right"))


def read_table(source: Source, problems: Problems, progress: Progress) -> Table:
    """Read every cell; cells that cannot be read are problems, and missing in the table.

    Numbers are parsed by arrow where possible; a file with problems is read again as text, to quote its cells.
    """
    if source.layout is None:  # Parquet has types
        return read_rows(source, problems, progress, None)
    comma = source.layout.separator != ","
    for point in ".,"[: 1 + comma]:
        quick = Problems()
        with suppress(NotPlain):
            table = read_rows(source, quick, progress, point)
            if not quick.count:
                return table
            del table  # memory may not suffice for two
    return read_rows(source, problems, progress, None, comma=comma)


def read_rows(
    source: Source, problems: Problems, progress: Progress, point: str | None, *, comma: bool = False
) -> Table:
    """Read numbers with this decimal point, or as text if it is None; comma: texts may have decimal commas."""
    rounds = Names(most=MOST_ROUNDS, what=f"rounds in {source.path}")
    arms = Names(most=MOST_ARMS, what=f"arms in {source.path}")
    grown = {name: Growing(kind) for name, kind in KINDS.items()}
    row, seen = 0, 0
    for values, read in batches(source, problems, point):
        here = {"round": rounds.codes(values["round"]), "arm": arms.codes(values["arm"])}
        count = len(here["round"])
        empty = np.flatnonzero((here["round"] < 0) & (here["arm"] < 0))
        blank = empty[all_empty(values, empty)]
        if len(blank):  # spreadsheets write lines with nothing but separators
            kept = np.setdiff1d(np.arange(count), blank)
            values = {name: column.take(kept) for name, column in values.items()}
            here = {name: codes[kept] for name, codes in here.items()}
            grown["blank"].add(blank + seen)
        grown["round"].add(here["round"])
        grown["arm"].add(here["arm"])
        grown["chosen"].add(decisions(values["chosen"], problems, row))
        for name in ("z", "y"):
            if name in values:
                grown[name].add(numbers(values[name], name, problems, row, comma=comma))
        row, seen = row + len(here["round"]), seen + count
        if seen - row > MOST_BLANK:
            what = f"more than {MOST_BLANK:,} rows without any value"
            raise ValueError(f"{source.path}: {what}: must be at most that many")
        if row > MOST_ROWS:
            advice = "keep the latest rounds: old ones hardly matter"
            raise ValueError(f"{source.path}: more than {MOST_ROWS:,} rows: must be at most that many ({advice})")
        progress(read)
    columns = {name: column.array() for name, column in grown.items()}
    return Table(
        **columns | {"y": columns["y"] if "y" in source.columns.places else None},
        rounds=rounds.values,
        arms=arms.values,
    )


def all_empty(values: dict[str, Any], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the given rows are empty in every column."""
    empty = np.ones(len(rows), np.bool_)
    if len(rows):
        for column in values.values():
            there = np.flatnonzero(not_null(column)[rows])
            texts = column.take(rows[there]).to_pylist()
            empty[there] &= np.array([isinstance(text, str) and not text.strip() for text in texts], np.bool_)
    return empty


class Growing:
    """A column that grows in place: no part of it is ever copied, as it may be large."""

    def __init__(self, kind: Any) -> None:
        self.values, self.length = np.empty(0, kind), 0

    def add(self, part: Any) -> None:
        """Add some values at the end."""
        needed = self.length + len(part)
        if needed > len(self.values):
            self.values.resize(max(needed, len(self.values) * 5 // 4), refcheck=False)
        self.values[self.length : needed] = part
        self.length = needed

    def array(self) -> Any:
        self.values.resize(self.length, refcheck=False)
        return self.values

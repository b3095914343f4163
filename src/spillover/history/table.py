"""All rows of a file as columns of numbers, compact: 26 bytes a row."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover.history.cells import Names, decisions, numbers
from spillover.history.problems import Problems
from spillover.history.source import Source, batches
from spillover.types import Array

# A hundred million rows take 6 GB of memory on the way to a decision, and a minute: more is not a spreadsheet.
MOST_ROWS = 100_000_000
MOST_ROUNDS = 2_000_000
MOST_ARMS = 2_000  # the graph alone takes arms * arms numbers, several times

Progress = Callable[[int], None]  # told how many bytes of the file have been read


class Table(NamedTuple):
    """The rows in the order of the file."""

    round: NDArray[np.int32]  # position in rounds; -1 where it is empty
    arm: NDArray[np.int32]  # position in arms; -1 where it is empty
    chosen: NDArray[np.int8]  # -1 where it cannot be read
    z: Array  # NaN where it is empty
    y: Array | None  # None if there is no such column
    rounds: list[str]  # as they are written
    arms: list[str]
    blank: NDArray[np.int64]  # rows of the file that are all empty, and left out here

    def file_row(self, row: int) -> int:
        """The place among the rows of the file, empty ones included."""
        before = self.blank - np.arange(len(self.blank))
        return row + int(np.searchsorted(before, row, side="right"))


def read_table(source: Source, problems: Problems, progress: Progress) -> Table:
    """Read every cell; those that cannot be read are problems, and not known here."""
    comma = source.layout is not None and source.layout.separator != ","
    rounds = Names(most=MOST_ROUNDS, what=f"rounds in {source.path}")
    arms = Names(most=MOST_ARMS, what=f"arms in {source.path}")
    parts: dict[str, list[Any]] = {name: [] for name in ("round", "arm", "chosen", "z", "y", "blank")}
    row, seen = 0, 0
    for values, read in batches(source, problems):
        here = {"round": rounds.codes(values["round"]), "arm": arms.codes(values["arm"])}
        count = len(here["round"])
        empty = np.flatnonzero((here["round"] < 0) & (here["arm"] < 0))
        blank = empty[all_empty(values, empty)]
        if len(blank):  # spreadsheets write lines of mere separators
            kept = np.setdiff1d(np.arange(count), blank)
            values = {name: column.take(kept) for name, column in values.items()}
            here = {name: codes[kept] for name, codes in here.items()}
            parts["blank"].append(blank + seen)
        parts["round"].append(here["round"].astype(np.int32))
        parts["arm"].append(here["arm"].astype(np.int32))
        parts["chosen"].append(decisions(values["chosen"], problems, row))
        for name in ("z", "y"):
            if name in values:
                parts[name].append(numbers(values[name], name, problems, row, comma=comma))
        row, seen = row + len(here["round"]), seen + count
        if row > MOST_ROWS:
            advice = "old rounds hardly count: keep the latest"
            raise ValueError(f"{source.path}: more than {MOST_ROWS:,} rows: must be at most that many ({advice})")
        progress(read)
    return Table(
        round=joined(parts["round"], np.int32),
        arm=joined(parts["arm"], np.int32),
        chosen=joined(parts["chosen"], np.int8),
        z=joined(parts["z"], np.float64),
        y=joined(parts["y"], np.float64) if "y" in source.columns.places else None,
        rounds=rounds.values,
        arms=arms.values,
        blank=joined(parts["blank"], np.int64),
    )


def all_empty(values: dict[str, Any], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some rows have nothing in any column."""
    empty = np.ones(len(rows), np.bool_)
    if len(rows):
        for column in values.values():
            texts = column.take(rows).to_pylist()
            empty &= [text is None or (isinstance(text, str) and not text.strip()) for text in texts]
    return empty


def joined(parts: list[Any], kind: Any) -> Any:
    """The parts of a column as one array; the parts are let go one by one, as they may be large."""
    whole = np.empty(sum(len(part) for part in parts), kind)
    at = len(whole)
    while parts:
        part = parts.pop()
        at -= len(part)
        whole[at : at + len(part)] = part
    return whole

"""What is wrong with a file, all of it at once: where, what was found, what is accepted."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

SHOWN = 20  # of each kind; the rest is counted


class Found(NamedTuple):
    """One problem; `row` counts the rows of data from 0, None where the file as a whole is meant."""

    row: int | None
    text: str
    line: int | None = None  # where it is known without counting rows


class HistoryError(ValueError):
    """A file that no decision can be made from; `lines` has one line for every problem that is listed."""

    def __init__(self, name: str, lines: list[str], count: int) -> None:
        super().__init__(f"{name}: {count:,} problem{'s' if count > 1 else ''}; nothing was decided")
        self.lines = lines


class Problems:
    """Collects problems by kind while a file is read.

    >>> problems = Problems()
    >>> problems.add("number", [4, 9], lambda k: f"z of row {k}: must be a number")
    >>> problems.count, [found.row for found in problems.listed("number")]
    (2, [4, 9])
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.found: dict[str, list[Found]] = {}

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def listed(self, kind: str) -> list[Found]:
        return self.found.get(kind, [])

    def add(self, kind: str, items: Any, describe: Callable[[int], str], *, rows: bool = True) -> None:
        """Problems of one kind; `items` are rows of data unless said otherwise, described only if they are shown."""
        room = max(SHOWN - len(self.listed(kind)), 0)
        if len(items):
            self.counts[kind] = self.counts.get(kind, 0) + len(items)
            shown = [Found(int(k) if rows else None, describe(int(k))) for k in items[:room]]
            self.found.setdefault(kind, []).extend(shown)

    def say(self, kind: str, text: str, line: int | None = None) -> None:
        """A problem of the file as a whole, or of a line that is no row."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(self.listed(kind)) < SHOWN:
            self.found.setdefault(kind, []).append(Found(None, text, line))

    def add_hint(self, kind: str, pattern: re.Pattern[str], hint: str) -> None:
        """Say more in the problems of a kind whose text has the pattern in it."""
        for k, found in enumerate(self.listed(kind)):
            if pattern.search(found.text):
                self.found[kind][k] = found._replace(text=f"{found.text}; {hint}")

    def error(self, name: str, places: Callable[[list[int]], Sequence[int | None]], word: str = "") -> HistoryError:
        """The error that tells all of it; `places` says on which lines some rows of data stand."""
        rows = sorted({found.row for kind in self.found.values() for found in kind if found.row is not None})
        where = dict(zip(rows, places(rows), strict=True)) if rows else {}
        lines = []
        for kind, listed in self.found.items():
            for row, text, line in listed:
                place = line if row is None else where[row]
                lines.append(f"{name}: {text}" if place is None else f"{name}:{word}{place}: {text}")
            if (more := self.counts[kind] - len(listed)) > 0:
                lines.append(f"{name}: and {more:,} more like the last one")
        return HistoryError(name, lines, self.count)

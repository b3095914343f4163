"""All problems of a file at once: where they are, what was found, what is accepted."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

SHOWN = 5  # places of each kind of problem; all are counted


class Problem(NamedTuple):
    """One problem; `row` counts the rows of data from 0, None for a problem of the whole file."""

    row: int | None
    text: str
    line: int | None = None  # where it is known already


class HistoryError(ValueError):
    """A table with problems; `lines` has one line for each cause, with the number of cells and where the first are."""

    def __init__(self, name: str, lines: list[str], count: int, kinds: Sequence[str] = ()) -> None:
        self.summary = f"{name}: {count:,} problem{'s' if count > 1 else ''}; no decision was made"
        super().__init__("\n".join([self.summary, *lines]))
        self.name, self.lines, self.count, self.kinds = name, lines, count, tuple(kinds)

    def renamed(self, old: str, new: str) -> "HistoryError":
        """The same error under another name of the file."""
        lines = [line.replace(old, new) for line in self.lines]
        return HistoryError(self.name.replace(old, new), lines, self.count, self.kinds)


class Problems:
    """Collects problems by kind while a file is read; a kind is one cause, and becomes one line.

    >>> problems = Problems()
    >>> problems.add("number", [4, 9], lambda k: f"z of row {k}: must be a number")
    >>> problems.count, [problem.row for problem in problems.of_kind("number")]
    (2, [4, 9])
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.found: dict[str, list[Problem]] = {}

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def of_kind(self, kind: str) -> list[Problem]:
        return self.found.get(kind, [])

    def add(self, kind: str, items: Any, describe: Callable[[int], str], *, rows: bool = True) -> None:
        """Add problems of one kind; `items` are rows of data (unless rows=False), described only if they are shown."""
        room = max(SHOWN - len(self.of_kind(kind)), 0)
        if len(items):
            self.counts[kind] = self.counts.get(kind, 0) + len(items)
            described = [Problem(int(k) if rows else None, describe(int(k))) for k in items[:room]]
            self.found.setdefault(kind, []).extend(described)

    def add_text(self, kind: str, text: str, line: int | None = None) -> None:
        """Add a problem of the whole file, or of a line that is not a row."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(self.of_kind(kind)) < SHOWN:
            self.found.setdefault(kind, []).append(Problem(None, text, line))

    def add_hint(self, start: str, pattern: re.Pattern[str], hint: str) -> None:
        """Add a hint to the problems of the kinds with this start whose text contains the pattern."""
        for kind in [kind for kind in self.found if kind.startswith(start)]:
            for k, problem in enumerate(self.of_kind(kind)):
                if pattern.search(problem.text):
                    self.found[kind][k] = problem._replace(text=f"{problem.text}; {hint}")

    def error(self, name: str, places: Callable[[list[int]], Sequence[int | None]], word: str = "") -> HistoryError:
        """The error with all problems; `places` gives the lines of some rows of data."""
        rows = sorted({problem.row for kind in self.found.values() for problem in kind if problem.row is not None})
        where = dict(zip(rows, places(rows), strict=True)) if rows else {}
        lines = []
        for kind, found in self.found.items():
            places_of_kind = [line if row is None else where[row] for row, _, line in found]
            place, count = places_of_kind[0], self.counts[kind]
            text = found[0].text + also(places_of_kind, count, word)
            lines.append(f"{name}: {text}" if place is None else f"{name}:{word}{place}: {text}")
        return HistoryError(name, lines, self.count, [kind.partition(" ")[0] for kind in self.found])


def also(places: Sequence[int | None], count: int, word: str) -> str:
    """How many problems of a kind there are, and where the first of them are.

    >>> also([2, 3, 4, 5, 6], 50, "")
    ' (50 like this: lines 2, 3, 4, 5, 6, ...)'
    """
    if count == 1:
        return ""
    some = [str(place) for place in places if place is not None]
    more = ", ..." if count > len(some) else ""
    where = f": {word.strip() or 'line'}s {', '.join(some)}{more}" if some else ""
    return f" ({count:,} like this{where})"

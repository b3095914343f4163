"""Context: what is known of a round before the decision, as columns of numbers.

Numbers are taken as they are, but those of months, quarters, weekdays and hours as categories. A column of categories,
or of a few texts, becomes one column of 0 and 1 for each value but the commonest; an empty text is a value too (no
event, no holiday).
`month`, `weekday`, `season` and `trend` are computed from the rounds if the table has no such column:

    month    0 or 1 for each month but the first one that occurs
    weekday  0 or 1 for each weekday but the first one that occurs
    season   sine and cosine of the position in the year
    trend    0, 1, 2, ...: the number of rounds before
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import cos, pi, sin
from typing import NamedTuple

import numpy as np

from spillover.history.cells import is_empty
from spillover.history.columns import Item, Reading, did_you_mean, quote_names, resolve_item
from spillover.history.frame import Column, Frame
from spillover.history.panel import Panel
from spillover.history.rounds import moment
from spillover.types import Array, IntArray
from spillover.validate import listed, suggestion

MOST_VALUES = 24  # of a column of texts that is used as context
NO_TEXT = "none"  # the value of an empty cell in a column of texts
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAYS = 365.2425
LENGTHS = {
    "month|monat": range(1, 13),
    "quarter|qtr|quartal": range(1, 5),
    "weekday|day ?of ?week|dow|wday|wochentag": range(8),  # from 0 or from 1 on
    "hour|stunde": range(25),
}
ENDING = r"(?: ?of ?(?:the )?(?:year|day))?(?: ?(?:no|nr|num|number|index))?"  # month of the year, hour no
BUILT_IN = ("month", "weekday", "season", "trend")


class ContextColumns(NamedTuple):
    """A few columns of context that belong together: those of one column of the table, or of a built-in."""

    source: str  # the column, or the built-in
    names: tuple[str, ...]
    values: Array  # (rounds, columns); NaN where it is missing
    encode: Callable[[str], list[float]]  # a value that the user gives for the next round
    note: str = ""  # what is to be said of it


def built_in(name: str, moments: Sequence[datetime | None]) -> ContextColumns:
    """Context that is computed from the dates of all rounds, the one to decide included."""
    count = len(moments)
    if name == "trend":
        return ContextColumns(name, ("trend",), np.arange(count, dtype=float)[:, None], lambda text: [float(text)])
    dates = [moment for moment in moments if moment is not None]
    if len(dates) < count - 1 or not dates:
        raise ValueError(f"context = {name!r}: must be computed from dates, but the rounds of the table are numbers")
    found = from_dates(name, dates)
    unknown = np.full((count - len(dates), len(found.names)), np.nan)  # the date of the round to decide
    return found._replace(values=np.concatenate([found.values, unknown]))


def from_dates(name: str, dates: Sequence[datetime]) -> ContextColumns:
    count = len(dates)
    if name == "season":
        angles = [2 * pi * (moment.timetuple().tm_yday - 1) / DAYS for moment in dates]
        values = np.array([[sin(angle), cos(angle)] for angle in angles]).reshape(count, 2)
        return ContextColumns(name, ("season (sine)", "season (cosine)"), values, refuse_given(name))
    if name == "month":
        return indicators(name, [f"{moment.month}" for moment in dates], sorted({moment.month for moment in dates}))
    present = [WEEKDAYS[day] for day in sorted({moment.weekday() for moment in dates})]
    return indicators(name, [WEEKDAYS[moment.weekday()] for moment in dates], present)


def refuse_given(name: str) -> Callable[[str], list[float]]:
    def refuse(text: str) -> list[float]:
        raise ValueError(f"next_context: {name} = {text!r}: must be left out, as it is computed from the dates")

    return refuse


def indicators(name: str, cells: Sequence[str], values: Sequence[object]) -> ContextColumns:
    """0 or 1 for each value but the first; NaN where a cell is empty."""
    kept = [str(value) for value in values][1:]
    known = [str(value) for value in values]

    def encode(text: str) -> list[float]:
        if text not in known:
            raise ValueError(f"{name} = {text!r}: must be a value that past rounds have: {listed(known)}")
        return [float(text == value) for value in kept]

    table = [[np.nan] * len(kept) if cell == "" else encode(cell) for cell in cells]
    return ContextColumns(
        name, tuple(f"{name}={value}" for value in kept), np.array(table).reshape(len(cells), len(kept)), encode
    )


def number_part(name: str, values: Array) -> ContextColumns:
    def encode(text: str) -> list[float]:
        try:
            return [float(text)]
        except ValueError:
            raise ValueError(f"{name} = {text!r}: must be a number") from None

    return ContextColumns(name, (name,), values[:, None], encode)


def column_parts(
    column: Column, place: IntArray, count: int, arms: Sequence[tuple[str, IntArray]]
) -> list[ContextColumns]:
    """The context in a column. place: the round of every row. arms: of each arm its name and rows, for a long table.

    If the cells of a round differ, there is one column of context for each arm.
    """
    if column.flags is None and not column.is_number:
        texts = [column.texts[code] if code >= 0 else "" for code in column.codes]
        return [text_part(column.name, texts, place, count)]
    found = column.numbers if column.flags is None else np.where(column.flags < 0, np.nan, column.flags)
    values = np.asarray(found, float)
    together = per_round(values, place, count)
    if together is not None and is_calendar(column.name, together):
        cells = ["" if np.isnan(value) else f"{value:.0f}" for value in together]
        note = f"{column.name}: its numbers are taken as categories, as after the last one the first comes again"
        return [indicators(column.name, cells, by_frequency(cells))._replace(note=note)]
    if together is not None:
        return [number_part(column.name, together)]
    parts = []
    for arm, rows in arms:
        own = np.full(count, np.nan)
        own[place[rows]] = values[rows]
        parts.append(number_part(f"{column.name}.{arm}", own))
    return parts


def is_calendar(name: str, values: Array) -> bool:
    """Whether these are numbers of months, quarters, weekdays or hours, three of them at least.

    >>> is_calendar("saleMonth", np.array([1.0, 2.0, 12.0])), is_calendar("visits per hour", np.array([1.0, 2.0, 12.0]))
    (True, False)
    """
    seen = set(values[~np.isnan(values)].tolist())
    spaced = re.sub(r"[\W_]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).strip().casefold()
    ends = [length for words, length in LENGTHS.items() if re.search(rf"(?<!per )\b(?:{words}){ENDING}$", spaced)]
    return len(seen) > 2 and any(seen <= set(map(float, length)) for length in ends)


def per_round(values: Array, rounds: IntArray, count: int) -> Array | None:
    """The value of each round, NaN if it has none; None if rows of one round differ."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    known = ~np.isnan(values)
    np.minimum.at(low, rounds[known], values[known])
    np.maximum.at(high, rounds[known], values[known])
    if (low < high).any():
        return None
    return np.where(np.isfinite(low), low, np.nan)


def text_part(name: str, texts: Sequence[str], rounds: IntArray, count: int) -> ContextColumns:
    """A column of texts, the same in all rows of a round."""
    cells = [""] * count
    for text, t in zip(texts, rounds.tolist(), strict=True):
        if is_empty(text):
            cells[t] = cells[t] or NO_TEXT
        else:
            if cells[t] not in ("", NO_TEXT, text):
                raise ValueError(
                    f"context = {name!r}: must have one text for all rows of a round, but has {cells[t]!r} and {text!r}"
                )
            cells[t] = text
    values = by_frequency(cells)
    if len(values) > MOST_VALUES:
        accepted = f"numbers, or texts with at most {MOST_VALUES} values"
        raise ValueError(f"context = {name!r}: must be {accepted}; there are {len(values):,}")
    return indicators(name, cells, values)


def by_frequency(cells: Sequence[str]) -> list[str]:
    """The values of cells, the commonest first; empty cells have none."""
    often = Counter(cell for cell in cells if cell)
    return sorted(often, key=lambda value: (-often[value], value))


class Context(NamedTuple):
    """The context of all rounds that were played, and of the round to decide."""

    names: tuple[str, ...]
    values: Array  # (rounds, k)
    following: Array  # (k,)
    notes: list[str]


def whole_context(
    parts: Sequence[ContextColumns], played: int, given: Mapping[str, object], absent: set[str]
) -> Context:
    """Put the parts together. played: the number of rounds that were played; the row after them is the one to decide.

    given: values for the round to decide. absent: columns that belong to one arm, and are empty where it has no row.
    Context that is missing in the past is not made up: a filled-in value would be learned from like a real one.
    """
    names = [name for part in parts for name in part.names]
    values = np.concatenate([part.values for part in parts], axis=1) if parts else np.zeros((played + 1, 0))
    past = values[:played].copy()
    following = values[played].copy() if len(values) > played else np.full(len(names), np.nan)
    notes = [part.note for part in parts if part.note] + fill_absent(past, names, absent)
    ends = np.cumsum([len(part.names) for part in parts], dtype=int)
    columns = [(part, slice(end - len(part.names), end)) for part, end in zip(parts, ends, strict=True)]
    missing = [(part.source, int(np.isnan(past[:, own]).any(axis=1).sum())) for part, own in columns]
    if found := [f"{source} in {count:,} of {played:,} rounds" for source, count in missing if count]:
        raise ValueError(
            f"context is missing for {', '.join(found)}: fill it in, or leave out the column or the rounds"
        )
    for part, own in columns:
        if part.source in given:
            following[own] = part.encode(str(given[part.source]).strip())
    sources = [part.source for part in parts]
    if unknown := [name for name in given if name not in sources]:
        accepted = f"{listed(sources)}{suggestion(unknown[0], sources)}" if parts else "none: give columns with context"
        raise ValueError(f"next_context: {unknown[0]!r}: must be one of the context columns: {accepted}")
    if unsaid := [part.source for part, own in columns if np.isnan(following[own]).any()]:
        example = ",".join(f"{name}=..." for name in unsaid[:3])
        notes.append(
            f"{listed(unsaid)}: not known for the coming round, so the average of past rounds is taken: "
            f"give it with --next-context {example}, or in a row whose decision is empty"
        )
        following = np.where(np.isnan(following), past.mean(axis=0) if played else 0.0, following)
    return Context(tuple(names), past, following, notes)


def fill_absent(past: Array, names: Sequence[str], absent: set[str]) -> list[str]:
    """An arm's own context in rounds without it: its average, as nothing depends on it there."""
    filled = 0
    for k, name in enumerate(names):
        gaps = np.isnan(past[:, k])
        if name in absent and gaps.any() and not gaps.all():
            past[gaps, k] = past[~gaps, k].mean()
            filled += int(gaps.sum())
    return (
        [f"{filled:,} values of context are missing for arms that are not in a round: their average is taken"]
        if filled
        else []
    )


class Window(NamedTuple):
    """The rounds that were played and the one to decide, if the table has it, with their rows."""

    rounds: list[int]
    rows: IntArray
    place: IntArray  # the round of each of these rows, as a position in `rounds`
    length: int  # rounds, with the one to decide in any case


def context_of(
    frame: Frame,
    panel: Panel,
    played: IntArray,
    first: int | None,
    items: Sequence[Item],
    reading: Reading,
    given: Mapping[str, object],
) -> Context | None:
    """The context of the rounds that were played and of the one to decide, `first` in the table if it has that."""
    if not items:
        if given:
            raise ValueError(f"next_context = {dict(given)!r}: must be left out without context columns (--context)")
        return None
    rounds = [*played, *([first] if first is not None else [])]
    position = np.full(len(panel.dates.labels), -1)
    position[rounds] = np.arange(len(rounds))
    rows = np.flatnonzero(position[panel.place] >= 0)
    window = Window(rounds, rows, position[panel.place[rows]], len(played) + 1)
    parts: list[ContextColumns] = []
    absent: set[str] = set()
    for item in items:
        for part, own in parts_of_item(frame, panel, item, reading, window):
            parts.append(part)
            absent |= set(part.names) if own else set()
    return whole_context(parts, len(played), given, absent)


def parts_of_item(
    frame: Frame, panel: Panel, item: Item, reading: Reading, window: Window
) -> list[tuple[ContextColumns, bool]]:
    """The context that an item names: columns of the table, or a built-in; and whether each belongs to one arm."""
    free = [name for name in frame.names if name not in reading.used]
    named = item.is_pattern or item.name.casefold() in {name.casefold() for name in free}
    if not named and item.name.casefold() in BUILT_IN:
        values = [panel.dates.values[t] for t in window.rounds]
        values += [panel.dates.next_value] * (window.length - len(values))
        moments = [None if value is None else moment(panel.dates.kind, value) for value in values]
        return [(built_in(item.name.casefold(), moments), False)]
    if item.name in reading.used or not named:
        there = f"{quote_names(free)}, or {', '.join(BUILT_IN)}{did_you_mean(item.name, free)}"
        raise ValueError(f"{frame.name}: no column {item.name!r} for context; there are: {there}")
    found, arms = [], arm_rows(panel, window.rows)
    for one in resolve_item(frame, item, "context", free):
        column = frame[one.name]
        if len(window.rows) < frame.rows:
            column = replace(column, cells=column.cells.take(window.rows))
        made = column_parts(column, window.place, window.length, arms)
        found += [(part, len(made) > 1) for part in made]
    return found


def arm_rows(panel: Panel, rows: IntArray) -> list[tuple[str, IntArray]]:
    """The rows of each arm among some rows, as positions in these."""
    where = {int(row): k for k, row in enumerate(rows)} if panel.arm_rows else {}
    return [(arm, np.array([where[int(r)] for r in own if int(r) in where], np.int64)) for arm, own in panel.arm_rows]

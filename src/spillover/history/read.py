"""`read_history`: a table as people have it, from a file, standard input or a data frame."""

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.history.build_history import assemble, assemble_plain
from spillover.history.columns import (
    BY_NAME,
    GIVEN,
    Item,
    Reading,
    Wanted,
    any_form,
    as_items,
    as_wanted,
    plain_names,
    read_names,
)
from spillover.history.files import MEANINGS, NEEDED, OpenTable, match_columns, open_table
from spillover.history.find_columns import find_reading
from spillover.history.frame import INDEX, Style, read_frame, table_of
from spillover.history.panel import Ranges
from spillover.history.record import History, HistoryError, Problems

POINTS = {"point": ".", "comma": ",", ".": ".", ",": ","}
ORDERS = ("day-first", "month-first")
COPIED = 1 << 20  # bytes of standard input at a time
STDIN = "stdin"  # what messages call standard input
MOST_INPUT = 4_000_000_000  # bytes of standard input
MOST_COLUMNS = 16_384  # as many as a sheet of Excel has
Progress = Callable[[int], None]  # called with the number of bytes read so far


class Options(NamedTuple):
    """Options of `read_history`, checked."""

    wanted: Wanted
    context: tuple[Item, ...]
    next_context: Mapping[str, object]
    minimise: bool
    doses: bool
    style: Style
    reward_range: tuple[float, float] | None
    overall_range: tuple[float, float] | None
    progress: Progress

    @property
    def further(self) -> list[str]:
        """The other options of the command that say how cells are read."""
        dates = [f"--dates {self.style.dates}"] if self.style.dates else []
        points = {".": "point", ",": "comma"}
        return dates + ([f"--decimal {points[self.style.point]}"] if self.style.point else [])


def read_history(
    source: Any,
    *,
    columns: str | Mapping[str, Any] | None = None,
    context: str | Sequence[str] | None = None,
    next_context: Mapping[str, object] | None = None,
    minimise: bool = False,
    doses: bool = False,
    dates: str | None = None,
    decimal: str | None = None,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    progress: Progress = lambda read: None,
) -> History:
    """Read past decisions and their outcomes from a table.

    source: a path (CSV, also .gz; Parquet; Excel), "-" for standard input, a data frame (pandas, Polars, Arrow) or a
        mapping from names to columns; one row for each round and arm, or one row for each round.
    columns: what columns mean, as for `--columns`: "round=week,chosen=promo.*,outcome=sales.*", or a mapping from
        round, arm, chosen, dose, z, outcome and context to names. What is not given is found by name and content.
    context: columns known before each decision, or month, weekday, season, trend. next_context: their values in the
        round to decide, by column.
    minimise: smaller outcomes are better. doses: decisions are amounts.
    dates: "day-first" or "month-first"; decimal: "point" or "comma"; needed only where the table does not settle it.
    reward_range, overall_range: ranges of z and y to check, for a table with z.
    A table that cannot be read is a ValueError, with a line for each problem if it is a HistoryError.

    >>> table = {"week": [1, 2], "promo_a": ["yes", "no"], "promo_b": ["no", "yes"]}
    >>> table |= {"sales_a": ["$1,200.50", "$900"], "sales_b": [3, 4]}
    >>> history = read_history(table)
    >>> history.arms, history.y.tolist()
    (('a', 'b'), [[1200.5, 3.0], [900.0, 4.0]])
    >>> print(history.columns_option)
    --columns 'round=week,chosen=promo_*,outcome=sales_*'
    """
    validate.require(dates is None or dates in ORDERS, "dates", dates, f"one of {', '.join(ORDERS)}")
    validate.require(decimal is None or decimal in POINTS, "decimal", decimal, "one of point, comma")
    wanted = as_wanted(columns)
    named = read_names(context) if isinstance(context, str) else as_items(context)
    options = Options(
        wanted={role: items for role, items in wanted.items() if role != "context"},
        context=tuple(dict.fromkeys((*wanted.get("context", ()), *named))),
        next_context=next_context or {},
        minimise=minimise,
        doses=doses,
        style=Style(POINTS[decimal] if decimal else None, dates),
        reward_range=reward_range,
        overall_range=overall_range,
        progress=progress,
    )
    if isinstance(source, str) and source == "-":
        return read_standard_input(options)
    if isinstance(source, str | Path):
        return read_open(open_table(Path(source), wanted_names(options)), options)
    data = table_of(source)
    return read_open(OpenTable(Path("table"), data.column_names, data=data), options)


def name_of(source: str) -> str:
    """The name of a file in messages; "-" is standard input."""
    return STDIN if source == "-" else source


def read_standard_input(options: Options) -> History:
    """Standard input, kept in a file, as it is read more than once; messages call it stdin."""
    start = sys.stdin.buffer.read(COPIED)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("stdin.gz" if start[:2] == b"\x1f\x8b" else "stdin")
        copy_input(path, start)
        try:
            return read_open(open_table(path, wanted_names(options)), options)
        except HistoryError as error:
            raise error.renamed(str(path), STDIN) from None
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), STDIN)) from None


def copy_input(path: Path, start: bytes) -> None:
    """Write the rest of standard input to a file, part by part: it may be large, or never end."""
    size, part = 0, start
    with path.open("wb") as file:
        while part:
            size += file.write(part)
            if size > MOST_INPUT:
                raise ValueError(f"stdin: more than {MOST_INPUT:,} bytes: must be a file, not standard input")
            part = sys.stdin.buffer.read(COPIED)


def wanted_names(options: Options) -> list[str]:
    """Names that the header may have, to tell its separator."""
    renamed = plain_names(options.wanted) or {}
    return [renamed.get(name, name) for name in MEANINGS]


def read_open(table: OpenTable, options: Options) -> History:
    """The history in a table, with what is to be said of its file."""
    if len(table.names) > MOST_COLUMNS:
        advice = "a row for each round and arm needs only a few"
        raise ValueError(f"{table.path}: {len(table.names):,} columns: must be at most {MOST_COLUMNS:,} ({advice})")
    found = read_form(table, options)
    return replace(found, notes=(*table.notes, *found.notes)) if table.notes else found


def read_form(table: OpenTable, options: Options) -> History:
    """A table in the plain form is read as such; any other by what its columns seem to be."""
    renamed = plain_names(options.wanted)
    special = bool(options.context or options.doses or options.next_context or options.style.point)
    there = 0 if renamed is None or special else plain_columns(table.names, renamed)
    if renamed is None or not there:
        return read_any(table, options)
    if there == len(NEEDED):
        return read_plain(table, renamed, options)
    try:  # one name is not as in the plain form: a synonym, or a misspelling
        found = read_any(table, options)
    except ValueError:
        plain_places(table, renamed)  # an error that names the column
        raise
    if any(column.reason.startswith("by its content") for column in found.taken):
        plain_places(table, renamed)
    return found


def plain_columns(names: Sequence[str], renamed: Mapping[str, str]) -> int:
    """Count the columns of the plain form; 0 if z is missing, or more than one other."""
    folded = {name.casefold() for name in names}
    found = [name for name in NEEDED if renamed.get(name, name).casefold() in folded]
    return len(found) if "z" in found and len(found) >= len(NEEDED) - 1 else 0


def read_plain(table: OpenTable, renamed: Mapping[str, str], options: Options) -> History:
    """A table with one row for each round and arm: round, arm, chosen, z and y, in any order, every cell there."""
    places = plain_places(table, renamed)
    frame = read_frame(table, options.progress, places).styled(options.style)
    if not frame.rows:
        raise ValueError(f"{table.path}: has column names but no rows: must have one row for each round and arm")
    items = {meaning: (Item(table.names[place]),) for meaning, place in places.items()}
    undecided = frame[items["chosen"][0].name].codes < 0
    known = [frame[items[meaning][0].name].filled for meaning in ("z", "y") if meaning in items]
    if undecided.any() and not (undecided & np.any(known, axis=0)).any():  # the round to decide
        return read_any(table, options._replace(wanted=dict(items)))
    roles = {"round": "round", "arm": "arm", "chosen": "chosen", "z": "z", "y": "outcome"}
    reading = Reading(
        round=(items["round"][0].name,),
        arm=items["arm"][0].name,
        chosen=items["chosen"],
        outcome=items.get("y", ()),
        own=items["z"],
        reasons={role: GIVEN if meaning in renamed else BY_NAME for meaning, role in roles.items()},
    )
    unused = [name for place, name in enumerate(table.names) if place not in places.values()]
    if table.layout is None:
        unused = [name for name in unused if not INDEX.fullmatch(name)]
    given = {meaning: items.get(meaning, ()) for meaning in MEANINGS}
    found = assemble_plain(frame, reading, Ranges(options.reward_range, options.overall_range), unused, given)
    found = replace(found, columns_option=" ".join([found.columns_option, *options.further]))
    return replace(found, y=-found.y, z=-found.z, minimise=True) if options.minimise else found


def plain_places(table: OpenTable, renamed: Mapping[str, str]) -> dict[str, int]:
    """The places of the columns of the plain form; an error if it is not clear which they are."""
    problems = Problems()
    places = match_columns(table.names, renamed, problems)
    if places is None:
        raise problems.error(str(table.path), lambda rows: [])
    return places


def read_any(table: OpenTable, options: Options) -> History:
    """A table of any form."""
    frame = read_frame(table, options.progress).styled(options.style)
    if not frame.rows:
        if not frame.names:
            raise ValueError(f"{table.path}: is empty: must have a row for each round, or for each round and arm")
        plain_places(table, plain_names(options.wanted) or {})
        raise ValueError(f"{table.path}: has column names but no rows: must have one row for each round and arm")
    reading = find_reading(
        frame, any_form(options.wanted), doses=options.doses, context=options.context, further=options.further
    )
    return assemble(
        frame,
        reading,
        context=options.context,
        next_context=options.next_context,
        minimise=options.minimise,
        further=options.further,
    )

"""A history in the plain form: round, arm, chosen, z and y, one row for each round and arm, every cell there."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover.history.cells import (
    PLAIN_ROUND,
    Names,
    not_null,
    plain_decisions,
    plain_numbers,
    quote_cell,
    readable_cells,
)
from spillover.history.columns import BY_NAME, GIVEN, Item, Reading, did_you_mean, option_line, write_columns
from spillover.history.files import MEANINGS, OpenTable, batches, check_utf8, csv_error, match_columns, report_broken
from spillover.history.record import MOST_ARMS, MOST_ROUNDS, UNIT, History, Problems, natural_order, shows_baseline
from spillover.history.rounds import AskOrder, Calendar, calendar
from spillover.kernels import LARGEST_OUTCOME
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import quoted

# A decision from a hundred million rows takes minutes and 6 GB of memory.
MOST_ROWS = 100_000_000
MOST_BLANK = 2_000_000  # rows without any value: a spreadsheet writes a million

KINDS = {"round": np.int32, "arm": np.int32, "chosen": np.int8, "z": np.float64, "y": np.float64, "blank": np.int64}
LISTED = 5  # arms or rounds in a line
NEARLY = 0.6  # similarity from which on a name may be a misspelling of another
READABLE_TYPES = {
    "round": "whole numbers, dates (with or without a time) or text",
    "arm": "text or whole numbers",
    "chosen": "truth values, whole numbers or text",
    "z": "numbers or text",
    "y": "numbers or text",
}

Progress = Callable[[int], None]  # called with the number of bytes read so far
ASK = "rounds may have the day first or the month first: say which with --dates day-first or --dates month-first"
DECIMAL_COMMA = re.compile(r"= '[+-]?\d+,\d+'")  # in the text of a problem


class Rows(NamedTuple):
    """All rows in the order of the file, as compact columns of numbers: 25 bytes for a row."""

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


def check_types(table: OpenTable, places: Mapping[str, int]) -> None:
    """Refuse typed columns that cannot have their meaning before anything is read."""
    import pyarrow.parquet as parquet

    schema = parquet.read_schema(table.path) if table.data is None else table.data.schema
    for meaning, place in places.items():
        field = schema.field(place)
        if not is_readable(meaning, field.type):
            accepted = READABLE_TYPES[meaning]
            raise ValueError(f"{table.path}: column {field.name!r} is of type {field.type}: must be {accepted}")


def is_readable(meaning: str, kind: Any) -> bool:
    """Whether a column of this type can have this meaning; a dictionary counts as the type of its values."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_readable(meaning, kind.value_type)
    texts = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_null
    also = (types.is_date, types.is_timestamp) if meaning == "round" else (types.is_boolean,)
    accepted = (*texts, types.is_integer, types.is_decimal, types.is_floating, *also)
    return any(is_kind(kind) for is_kind in accepted)


def read_all(table: OpenTable, places: Mapping[str, int], progress: Progress) -> tuple[Rows, Problems]:
    """Read every cell; cells that cannot be read are problems, and missing in the rows.

    A file with rows of a wrong width, or that is not UTF-8, is read again, to say where.
    """
    import pyarrow as pa

    if table.layout is None:
        check_types(table, places)
        return read_rows(table, places, progress)
    with suppress(pa.ArrowInvalid, OSError, EOFError):
        return read_rows(table, places, progress)
    check_utf8(table.path)  # before arrow shows rows of a wrong width to Python, as text
    broken: list[int] = []

    def skip(row: Any) -> str:
        broken.append(row.actual_columns)
        return "skip"

    try:
        rows, problems = read_rows(table, places, progress, skip=skip)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        raise csv_error(table.layout, error) from None
    if broken:
        report_broken(table.layout, problems)
    return rows, problems


def read_rows(
    table: OpenTable,
    places: Mapping[str, int],
    progress: Progress,
    **options: Any,
) -> tuple[Rows, Problems]:
    """Read the cells, batch by batch. options: those of `csv_batches`."""
    comma = table.layout is not None and table.layout.separator != ","  # then texts may have decimal commas
    rounds = Names(most=MOST_ROUNDS, what=f"rounds in {table.path}")
    arms = Names(most=MOST_ARMS, what=f"arms in {table.path}")
    columns = {name: GrowingColumn(kind) for name, kind in KINDS.items()}
    problems, row, seen = Problems(), 0, 0
    for batch, read in batches(table, list(places.values()), **options):
        cells = zip(places.items(), batch.columns, strict=True)
        values = {meaning: checked_texts(table, place, column) for (meaning, place), column in cells}
        here: dict[str, Any] = {"round": rounds.codes(values["round"]), "arm": arms.codes(values["arm"])}
        count = batch.num_rows
        empty = np.flatnonzero((here["round"] < 0) & (here["arm"] < 0))
        blank = empty[all_empty(values, empty)]
        if len(blank):  # spreadsheets write lines with nothing but separators
            kept = np.setdiff1d(np.arange(count), blank)
            values = {name: column.take(kept) for name, column in values.items()}
            here = {name: codes[kept] for name, codes in here.items()} | {"blank": blank + seen}
        here["chosen"] = plain_decisions(values["chosen"], problems, row)
        for name in ("z", "y")[: 1 + ("y" in values)]:
            here[name] = plain_numbers(values[name], name, problems, row, comma=comma)
        for name, part in here.items():
            columns[name].add(part)
        row, seen = row + count - len(blank), seen + count
        if seen - row > MOST_BLANK:
            what = f"more than {MOST_BLANK:,} rows without any value"
            raise ValueError(f"{table.path}: {what}: must be at most that many")
        if row > MOST_ROWS:
            advice = "keep the latest rounds: old ones hardly matter"
            raise ValueError(f"{table.path}: more than {MOST_ROWS:,} rows: must be at most that many ({advice})")
        progress(read)
    found = {name: column.array() for name, column in columns.items() if name != "y" or name in places}
    return Rows(**{"y": None} | found, rounds=rounds.values, arms=arms.values), problems


class GrowingColumn:
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


def checked_texts(table: OpenTable, place: int, column: Any) -> Any:
    """A column of a batch, with texts for bytes and decimals; those of a CSV file were checked as they were read."""
    import pyarrow as pa

    try:
        return column if table.layout else readable_cells(column)
    except pa.ArrowInvalid:
        found = f"column {table.names[place]!r} is of type {column.type} and not all of it is UTF-8"
        raise ValueError(f"{table.path}: {found}: must be UTF-8 text") from None


def all_empty(values: dict[str, Any], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the given rows are empty in every column."""
    empty = np.ones(len(rows), np.bool_)
    if len(rows):
        for column in values.values():
            there = np.flatnonzero(not_null(column)[rows])
            texts = column.take(rows[there]).to_pylist()
            empty[there] &= np.array([isinstance(text, str) and not text.strip() for text in texts], np.bool_)
    return empty


class CompleteOutcomes(NamedTuple):
    """The outcomes of the rounds, ready for a policy to learn from."""

    z: Array
    y: Array
    arrived: BoolArray
    notes: list[str]


def check_rows(rows: Rows, dates: Calendar, arms: Sequence[int], problems: Problems) -> IntArray | None:
    """The cell (round * arms + arm) of every row; None, with problems, if a cell has no row or several."""
    n, before = len(arms), problems.count
    order = np.empty(n + 1, np.int64)
    order[list(arms)], order[-1] = np.arange(n), -1
    rank = np.append(dates.rank, -1).astype(np.int32)[rows.round]
    column = order.astype(np.int32)[rows.arm]

    def describe(row: int) -> str:
        place = rows.round[row]
        return f"round {quote_cell(rows.rounds[place] if place >= 0 else None)}: must be {PLAIN_ROUND}"

    problems.add("round", np.flatnonzero(rank < 0), describe)
    problems.add("arm", np.flatnonzero(column < 0), lambda row: "arm is empty: must be a name")
    if problems.count > before:
        return None
    keys: IntArray = rank.astype(np.int64)
    keys *= n  # in place: these are the longest arrays
    keys += column
    if not fills(keys, len(dates.labels) * n):
        label = "appears more than once: must have one row"
        problems.add(
            "twice",
            repeated(keys),
            lambda row: f"round {rows.rounds[rows.round[row]]}, arm {rows.arms[rows.arm[row]]!r}: {label}",
        )
        column, misspelt = check_spelling([rows.arms[k] for k in arms], rank, column, problems)
        check_complete(rows, rank, column, dates, arms, problems, misspelt)
    return keys if problems.count == before else None


def fills(keys: IntArray, cells: int) -> bool:
    """Whether every cell has exactly one row: a quick check, as this is the usual case."""
    if len(keys) != cells:
        return False
    seen = np.zeros(cells, np.bool_)
    seen[keys] = True
    return bool(seen.all())


def repeated(keys: IntArray) -> IntArray:
    """The positions of keys that stand before them already."""
    order = np.argsort(keys, kind="stable")
    return np.sort(order[1:][keys[order][1:] == keys[order][:-1]])


def check_spelling(
    names: Sequence[str], rank: Any, column: Any, problems: Problems, *, may_change: bool = False
) -> tuple[Any, set[int]]:
    """Report arms that are probably misspellings; returns the corrected column, and the misspelt arms.

    Such an arm appears in few rounds, and only in those where an arm of nearly the same name is missing.
    names: of the arms. rank, column: the round and the arm of every row. may_change: arms may come and go, so that the
    other arm must be there before and after.
    """
    often = np.bincount(column, minlength=len(names))
    rounds, misspelt = int(often.max()), set[int]()
    rare = np.flatnonzero(often * 2 < rounds)
    common = {names[k].casefold(): k for k in map(int, np.flatnonzero(often * 2 >= rounds))}
    for k in map(int, rare):
        close = get_close_matches(names[k].casefold(), list(common), 1, NEARLY)
        here = np.flatnonzero(column == k)
        if not close or np.isin(rank[here], rank[column == common[close[0]]]).any():
            continue
        other = rank[column == common[close[0]]]
        if may_change and (other.min() > rank[here].min() or other.max() < rank[here].max()):
            continue
        meant = common[close[0]]
        column = np.where(column == k, np.int32(meant), column)
        misspelt.add(k)
        seen = f"appears in {often[k]:,} of {int(rank.max()) + 1:,} rounds"
        text = f"arm {names[k]!r} {seen}, where {names[meant]!r} is missing: must be one of the arms"
        problems.add(f"spelling {names[k]}", here, described(f"{text}; did you mean {names[meant]}?"))
    return column, misspelt


def described(text: str) -> Callable[[int], str]:
    """The same text for every row."""
    return lambda row: text


def check_complete(
    rows: Rows,
    rank: Any,
    column: Any,
    dates: Calendar,
    arms: Sequence[int],
    problems: Problems,
    misspelt: Collection[int] = (),
) -> None:
    """Every round must have a row for every arm; `misspelt` names are no arms."""
    wanted = np.setdiff1d(np.arange(len(arms)), list(misspelt))
    lacking = np.flatnonzero(np.bincount(rank, minlength=len(dates.labels)) < len(wanted))
    names = [rows.arms[k] for k in arms]
    often = np.bincount(column, minlength=len(arms))
    rare = [names[k] for k in np.flatnonzero(often * 2 < often.max())]  # misspelt, perhaps

    def describe(t: int) -> str:
        absent = np.setdiff1d(wanted, column[rank == t])
        some = [names[k] for k in absent[:LISTED]]
        more = f" and {len(absent) - LISTED} more" if len(absent) > LISTED else ""
        others = [name for name in rare if name not in some]
        return (
            f"round {dates.labels[t]} has no row for {', '.join(map(repr, some))}{more}: "
            f"must have one for each of the {len(wanted)} arms{did_you_mean(some[0], others)}"
        )

    problems.add("missing", lacking, describe, rows=False)


def check_rewards(rows: Rows, problems: Problems, reward_range: Any, overall_range: Any) -> None:
    """z must be given for chosen arms only, and z and y must be in their ranges."""
    played = rows.chosen == 1
    stray = np.flatnonzero((rows.chosen == 0) & (rows.z != 0) & np.isfinite(rows.z))
    problems.add("not chosen", stray, lambda row: f"z = {rows.z[row]:g} for an arm that was not chosen: must be empty")
    low, high = UNIT if reward_range is None else reward_range
    outside = np.flatnonzero(played & ((rows.z < low) | (rows.z > high)))
    hint = "" if reward_range is not None or not len(outside) else range_hint(rows.z[played])
    problems.add("range", outside, lambda row: f"z = {rows.z[row]:g}: must be from {low:g} to {high:g}{hint}")
    if rows.y is None:
        return
    overall = rows.y
    least, most = (-LARGEST_OUTCOME, LARGEST_OUTCOME) if overall_range is None else overall_range
    beyond = np.flatnonzero((overall < least) | (overall > most))
    problems.add("overall", beyond, lambda row: f"y = {overall[row]:g}: must be from {least:g} to {most:g}")


def range_hint(z: Array) -> str:
    """Hint how to declare a range, with the range of the file."""
    return f"; z in the file is from {np.nanmin(z):g} to {np.nanmax(z):g}: give its full range with --range LOW HIGH"


def complete_outcomes(
    x: BoolArray, z: Array, y: Array | None, labels: Sequence[str], *, goes_on: bool = False
) -> CompleteOutcomes:
    """A round has arrived when z of every chosen arm and y of every arm are known; until then its values are 0.

    goes_on: these rounds come after others, all of which have arrived.
    """
    lacking = (x & np.isnan(z)).sum(axis=1)
    possible = x.sum(axis=1)
    if y is not None:
        lacking += np.isnan(y).sum(axis=1)
        possible += y.shape[1]
    arrived = lacking == 0
    partly = np.flatnonzero(~arrived & (lacking < possible))
    notes = []
    if len(partly):
        some = ", ".join(f"{labels[t]} ({lacking[t]} of {possible[t]} values missing)" for t in partly[:LISTED])
        more = f" and {len(partly) - LISTED:,} more" if len(partly) > LISTED else ""
        notes.append(f"rounds with missing values count as pending: {some}{more}")
    if y is not None and not arrived.any() and not goes_on:
        notes += why_nothing_arrived(x, z, y)
    z[~x] = 0.0
    z[~arrived] = 0.0
    if y is None:
        y = z
        notes.append("no column y: spill-over cannot be learned, so every arm counts for itself alone")
    else:
        y[~arrived] = 0.0
    return CompleteOutcomes(z, y, arrived, notes)


def why_nothing_arrived(x: BoolArray, z: Array, y: Array) -> list[str]:
    """Why no round counts as arrived although z is known: y is empty, or given for chosen arms only."""
    without = "or do without it with --columns y= (then no spill-over is learned)"
    if np.isnan(z[x]).all():
        return []
    if np.isnan(y).all():
        return [f"column y is empty, so all rounds count as pending: fill it in, {without}"]
    if np.isnan(y[~x]).all():
        needed = "give y of every arm, chosen or not"
        return [f"column y has values of chosen arms only, so all rounds count as pending: {needed}, {without}"]
    return []


def read_plain(
    table: OpenTable,
    renamed: Mapping[str, str],
    *,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    dates: str | None = None,
    progress: Progress = lambda read: None,
) -> History:
    """Read a table with one row for each round and arm: round, arm, chosen, z and y, in any order.

    renamed: the names of columns that were given. reward_range: range of z, (0, 1) by default. overall_range: range of
    y, any by default. All problems of the table are reported at once, in the `lines` of the HistoryError.
    """
    places = plain_places(table, renamed)
    rows, problems = read_all(table, places, progress)
    if table.layout and table.layout.separator == ",":
        hint = "decimal commas are accepted where semicolons or tabs separate columns"
        problems.add_hint("number", DECIMAL_COMMA, hint)
    if not len(rows.round):
        raise ValueError(f"{table.path}: has column names but no rows: must have one row for each round and arm")
    order = None
    try:
        order = calendar(rows.rounds, dates)
    except AskOrder:
        problems.add_text("round", ASK)
    except TypeError:
        kinds = "rounds are numbers and dates, or times with and without a zone"
        problems.add_text("round", f"{kinds}: must be of one kind")
    if order is not None:
        arms = natural_order(rows.arms)
        keys = check_rows(rows, order, arms, problems)
        check_rewards(rows, problems, reward_range, overall_range)
    if order is None or keys is None or problems.count:
        raise table.error(problems, lambda some: table.lines([rows.file_row(row) for row in some]))
    return pivot(table, places, renamed, rows, order, arms, keys)


def plain_places(table: OpenTable, renamed: Mapping[str, str]) -> dict[str, int]:
    """The places of the columns of the plain form; an error if it is not clear which they are."""
    problems = Problems()
    places = match_columns(table.names, renamed, problems)
    if places is None:
        raise problems.error(str(table.path), lambda rows: [])
    return places


def pivot(
    table: OpenTable,
    places: Mapping[str, int],
    given: Collection[str],
    rows: Rows,
    dates: Calendar,
    arms: list[int],
    keys: IntArray,
) -> History:
    """The rows as arrays with an axis for rounds and one for arms. given: meanings whose columns were named."""
    shape = (len(dates.labels), len(arms))
    x = np.zeros(shape, np.bool_)
    x.flat[keys] = rows.chosen == 1
    z, y = np.empty(shape), None
    z.flat[keys] = rows.z
    if rows.y is not None:
        y = np.empty(shape)
        y.flat[keys] = rows.y
    found = complete_outcomes(x, z, y, dates.labels)
    notes = [*dates.notes, *found.notes]
    names = table.names
    items = {meaning: (Item(names[place]),) for meaning, place in places.items()}
    roles = {"round": "round", "arm": "arm", "chosen": "chosen", "z": "z", "y": "outcome"}
    reading = Reading(
        round=(names[places["round"]],),
        arm=names[places["arm"]],
        chosen=items["chosen"],
        outcome=items.get("y", ()),
        own=items["z"],
        reasons={role: GIVEN if meaning in given else BY_NAME for meaning, role in roles.items()},
    )
    unused = [name for place, name in enumerate(names) if place not in places.values()]
    if table.layout is None:
        unused = [name for name in unused if not name.startswith("__index_level_")]  # pandas' row labels
    if unused:
        notes.append(f"columns not used: {', '.join(map(quoted, unused))}")
    return History(
        arms=tuple(rows.arms[k] for k in arms),
        rounds=dates.labels,
        x=x,
        z=found.z,
        y=found.y,
        arrived=found.arrived,
        has_overall=rows.y is not None,
        following=dates.following,
        notes=tuple(notes),
        has_baseline=rows.y is not None and shows_baseline(x, found.z, found.y, found.arrived),
        outcome_names=tuple(item.name for item in reading.outcome),
        taken=reading.taken(names),
        columns_option=option_line(write_columns({meaning: items.get(meaning, ()) for meaning in MEANINGS})),
    )

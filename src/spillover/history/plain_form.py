"""A history in the plain form: round, arm, chosen, z and y, one row for each round and arm, every cell there."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover.history.cells import PLAIN_ROUND, Names, not_null, plain_decisions, plain_numbers, quote_cell
from spillover.history.columns import BY_NAME, GIVEN, Item, Reading, did_you_mean, option_line, write_columns
from spillover.history.files import MEANINGS, NotPlain, Source, batches, lines_of
from spillover.history.problems import HistoryError, Problems
from spillover.history.record import MOST_ARMS, MOST_ROUNDS, UNIT, History, natural_order, shows_baseline
from spillover.history.rounds import AskOrder, Calendar, calendar
from spillover.kernels import LARGEST_OUTCOME
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import quoted

# A decision from a hundred million rows takes minutes and 6 GB of memory.
MOST_ROWS = 100_000_000
MOST_BLANK = 2_000_000  # rows without any value: a spreadsheet writes a million

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
        grown["chosen"].add(plain_decisions(values["chosen"], problems, row))
        for name in ("z", "y"):
            if name in values:
                grown[name].add(plain_numbers(values[name], name, problems, row, comma=comma))
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


LISTED = 5  # arms or rounds in a line
NEARLY = 0.6  # similarity from which on a name may be a misspelling of another


class CompleteOutcomes(NamedTuple):
    """The outcomes of the rounds, ready for a policy to learn from."""

    z: Array
    y: Array
    arrived: BoolArray
    notes: list[str]


def check_rows(table: Table, dates: Calendar, arms: Sequence[int], problems: Problems) -> IntArray | None:
    """The cell (round * arms + arm) of every row; None, with problems, if a cell has no row or several."""
    n, before = len(arms), problems.count
    order = np.empty(n + 1, np.int64)
    order[list(arms)], order[-1] = np.arange(n), -1
    rank = np.append(dates.rank, -1).astype(np.int32)[table.round]
    column = order.astype(np.int32)[table.arm]

    def describe(row: int) -> str:
        place = table.round[row]
        return f"round {quote_cell(table.rounds[place] if place >= 0 else None)}: must be {PLAIN_ROUND}"

    problems.add("round", np.flatnonzero(rank < 0), describe)
    problems.add("arm", np.flatnonzero(column < 0), lambda row: "arm is empty: must be a name")
    if problems.count > before:
        return None
    keys: IntArray = rank.astype(np.int64)
    keys *= n  # in place: these are the longest arrays
    keys += column
    if not fills(keys, len(dates.labels) * n):
        check_duplicates(table, keys, problems)
        column, misspelt = check_spelling([table.arms[k] for k in arms], rank, column, problems)
        check_complete(table, rank, column, dates, arms, problems, misspelt)
    return keys if problems.count == before else None


def fills(keys: IntArray, cells: int) -> bool:
    """Whether every cell has exactly one row: a quick check, as this is the usual case."""
    if len(keys) != cells:
        return False
    seen = np.zeros(cells, np.bool_)
    seen[keys] = True
    return bool(seen.all())


def check_duplicates(table: Table, keys: IntArray, problems: Problems) -> None:
    """No arm twice in a round."""
    order = np.argsort(keys, kind="stable")
    again = order[1:][keys[order][1:] == keys[order][:-1]]
    problems.add(
        "twice",
        np.sort(again),
        lambda row: (
            f"round {table.rounds[table.round[row]]}, arm {table.arms[table.arm[row]]!r}: "
            "appears more than once: must have one row"
        ),
    )


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
    table: Table,
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
    names = [table.arms[k] for k in arms]
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


def check_rewards(table: Table, problems: Problems, reward_range: Any, overall_range: Any) -> None:
    """z must be given for chosen arms only, and z and y must be in their ranges."""
    played = table.chosen == 1
    stray = np.flatnonzero((table.chosen == 0) & (table.z != 0) & np.isfinite(table.z))
    problems.add("not chosen", stray, lambda row: f"z = {table.z[row]:g} for an arm that was not chosen: must be empty")
    low, high = UNIT if reward_range is None else reward_range
    outside = np.flatnonzero(played & ((table.z < low) | (table.z > high)))
    hint = "" if reward_range is not None or not len(outside) else range_hint(table.z[played])
    problems.add("range", outside, lambda row: f"z = {table.z[row]:g}: must be from {low:g} to {high:g}{hint}")
    if table.y is None:
        return
    overall = table.y
    least, most = (-LARGEST_OUTCOME, LARGEST_OUTCOME) if overall_range is None else overall_range
    beyond = np.flatnonzero((overall < least) | (overall > most))
    problems.add("overall", beyond, lambda row: f"y = {overall[row]:g}: must be from {least:g} to {most:g}")


def range_hint(z: Array) -> str:
    """How to declare a range, with the range of the file."""
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


ASK = "rounds may have the day first or the month first: say which with --dates day-first or --dates month-first"
DECIMAL_COMMA = re.compile(r"= '[+-]?\d+,\d+'")  # in the text of a problem


def read_plain(
    source: Source,
    problems: Problems,
    *,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    dates: str | None = None,
    progress: Progress = lambda read: None,
) -> History:
    """Read a file with one row for each round and arm: round, arm, chosen, z and y, in any order.

    reward_range: range of z, (0, 1) by default. overall_range: range of y, any by default.
    All problems of the file are reported at once, in the `lines` of the HistoryError.
    """
    path = source.path
    table = read_table(source, problems, progress)
    if source.layout and source.layout.separator == ",":
        hint = "decimal commas are accepted where semicolons or tabs separate columns"
        problems.add_hint("number", DECIMAL_COMMA, hint)
    if not len(table.round):
        raise ValueError(f"{path}: has column names but no rows: must have one row for each round and arm")
    try:
        order = calendar(table.rounds, dates)
    except AskOrder:
        problems.add_text("round", ASK)
        raise history_error(source, table, problems) from None
    except TypeError:
        kinds = "rounds are numbers and dates, or times with and without a zone"
        problems.add_text("round", f"{kinds}: must be of one kind")
        raise history_error(source, table, problems) from None
    arms = natural_order(table.arms)
    keys = check_rows(table, order, arms, problems)
    check_rewards(table, problems, reward_range, overall_range)
    if problems.count or keys is None:
        raise history_error(source, table, problems)
    return pivot(table, order, arms, keys, source)


def history_error(source: Source, table: Table, problems: Problems) -> HistoryError:
    """All problems with their lines; rows of a Parquet file count from 1."""

    def places(rows: list[int]) -> Sequence[int | None]:
        there = [table.file_row(row) for row in rows]
        return lines_of(source.layout, there) if source.layout else [row + source.first_row for row in there]

    return problems.error(str(source.path), places, "" if source.layout else "row ")


def pivot(table: Table, dates: Calendar, arms: list[int], keys: Any, source: Source) -> History:
    """The rows as arrays with an axis for rounds and one for arms."""
    shape = (len(dates.labels), len(arms))
    x = np.zeros(shape, np.bool_)
    x.flat[keys] = table.chosen == 1
    z, y = np.empty(shape), None
    z.flat[keys] = table.z
    if table.y is not None:
        y = np.empty(shape)
        y.flat[keys] = table.y
    found = complete_outcomes(x, z, y, dates.labels)
    notes = [*dates.notes, *found.notes]
    names = source.names
    columns = {meaning: names[place] for meaning, place in source.columns.places.items()}
    own, overall = (items_of(columns, name) for name in ("z", "y"))
    given = {("outcome" if name == "y" else name) for name in source.given}
    reading = Reading(
        round=(columns["round"],),
        arm=columns["arm"],
        chosen=(Item(columns["chosen"]),),
        outcome=overall,
        own=own,
        reasons={role: GIVEN if role in given else BY_NAME for role in ("round", "arm", "chosen", "outcome", "z")},
    )
    if source.columns.ignored:
        notes.append(f"columns not used: {', '.join(map(quoted, source.columns.ignored))}")
    return History(
        arms=tuple(table.arms[k] for k in arms),
        rounds=dates.labels,
        x=x,
        z=found.z,
        y=found.y,
        arrived=found.arrived,
        has_overall=table.y is not None,
        following=dates.following,
        notes=tuple(notes),
        has_baseline=table.y is not None and shows_baseline(x, found.z, found.y, found.arrived),
        outcome_names=tuple(item.name for item in overall),
        taken=reading.taken(names),
        columns_option=option_line(write_columns({name: items_of(columns, name) for name in MEANINGS})),
    )


def items_of(columns: Mapping[str, str], name: str) -> tuple[Item, ...]:
    """The column of a meaning, if there is one."""
    return (Item(columns[name]),) if name in columns else ()

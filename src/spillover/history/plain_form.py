"""A history in the plain form: round, arm, chosen, z and y, one row for each round and arm, every cell there."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spillover.history.baseline import shows_baseline
from spillover.history.calendar import Calendar, calendar
from spillover.history.check import check_rewards, check_rows, outcomes
from spillover.history.columns_option import Item, write_columns
from spillover.history.header import MEANINGS
from spillover.history.lines import lines_of
from spillover.history.periods import AskOrder
from spillover.history.problems import HistoryError, Problems
from spillover.history.reading import BY_NAME, GIVEN, Reading, option_line
from spillover.history.record import History, natural_order
from spillover.history.source import Source
from spillover.history.table import Progress, Table, read_table
from spillover.validate import quoted

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
    found = outcomes(x, z, y, dates.labels)
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

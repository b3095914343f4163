"""A history: the decisions and outcomes of all rounds, checked, with the arms in a fixed order."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spillover.history.calendar import Calendar, calendar
from spillover.history.check import check_rewards, check_rows, outcomes
from spillover.history.header import check_distinct
from spillover.history.lines import lines_of
from spillover.history.problems import HistoryError, Problems
from spillover.history.source import Source, open_source
from spillover.history.table import Progress, Table, read_table
from spillover.types import Array, BoolArray
from spillover.validate import quoted

DECIMAL_COMMA = re.compile(r"= '[+-]?\d+,\d+'")  # in the text of a problem


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """Past decisions and their outcomes; rows are rounds in order, columns are arms in natural order."""

    arms: tuple[str, ...]
    rounds: tuple[str, ...]  # their labels
    x: BoolArray  # (rounds, arms)
    z: Array  # 0 for arms that were not chosen, and for rounds that have not arrived
    y: Array  # z if the file has no y
    arrived: BoolArray  # (rounds,): whether all outcomes of the round are known
    has_overall: bool  # whether the file has y: without it no spill-over can be learned
    following: str | None  # the label of the next round, if the rounds have a regular step
    notes: tuple[str, ...]  # what the owner of the file should know
    observes: str = "both"  # "both": z and y; "overall": y only; "payoff": one outcome for all arms
    dose: Any = None  # (rounds, arms): amounts relative to each arm's reference dose; None: yes or no
    reference_dose: Any = None  # (arms,): the average amount where it is positive, in the units of the table
    context: Any = None  # (rounds, k), as in the table; None: no context
    context_names: tuple[str, ...] = ()
    next_context: Any = None  # (k,): of the round to decide
    minimise: bool = False  # whether y and z are the negated outcomes of the table
    taken: tuple[Any, ...] = ()  # what each column of the table was taken for, and why
    columns_option: str = ""  # the options to paste for the same reading

    @property
    def pending(self) -> tuple[str, ...]:
        """Rounds whose outcomes have not arrived."""
        return tuple(self.rounds[k] for k in np.flatnonzero(~self.arrived))

    @cached_property
    def observed(self) -> BoolArray:
        """Which arms have outcomes, (arms,)."""
        return np.asarray(np.any(self.x, axis=0, where=self.arrived[:, None]))

    @property
    def nothing_chosen(self) -> bool:
        """Whether some rounds have outcomes, but no arm was chosen in any of them."""
        return bool(self.arrived.any() and not self.observed.any())


def read_history(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    progress: Progress = lambda read: None,
) -> History:
    """Read a file with one row for each round and arm: round, arm, chosen, z and y, in any order.

    columns: other names of the columns, such as {"round": "day"}; {"y": ""} if there is no y.
    reward_range: range of z, (0, 1) by default. overall_range: range of y, any by default.
    All problems of the file are reported at once, in the `lines` of the HistoryError.
    """
    path, problems = Path(path), Problems()
    check_distinct(columns or {}, columns)
    source = open_source(path, columns or {}, problems)
    if source is None:
        raise problems.error(str(path), lambda rows: [])
    table = read_table(source, problems, progress)
    if source.layout and source.layout.separator == ",":
        hint = "decimal commas are accepted where semicolons or tabs separate columns"
        problems.add_hint("number", DECIMAL_COMMA, hint)
    if not len(table.round):
        raise ValueError(f"{path}: has column names but no rows: must have one row for each round and arm")
    try:
        dates = calendar(table.rounds)
    except TypeError:
        kinds = "rounds are numbers and dates, or times with and without a zone"
        problems.add_text("round", f"{kinds}: must be of one kind")
        raise history_error(source, table, problems) from None
    arms = natural_order(table.arms)
    keys = check_rows(table, dates, arms, problems)
    check_rewards(table, problems, reward_range, overall_range)
    if problems.count or keys is None:
        raise history_error(source, table, problems)
    return pivot(table, dates, arms, keys, source)


def history_error(source: Source, table: Table, problems: Problems) -> HistoryError:
    """All problems with their lines; rows of a Parquet file count from 1."""

    def places(rows: list[int]) -> Sequence[int | None]:
        there = [table.file_row(row) for row in rows]
        return lines_of(source.layout, there) if source.layout else [row + 1 for row in there]

    return problems.error(str(source.path), places, "" if source.layout else "row ")


def natural_order(names: list[str]) -> list[int]:
    """Positions of names in natural order: arm 2 before arm 10.

    >>> natural_order(["arm 10", "arm 2", "Arm 1"])
    [2, 1, 0]
    """
    return sorted(range(len(names)), key=lambda k: natural(names[k]))


def natural(name: str) -> tuple[Any, ...]:
    parts = re.split(r"(\d+)", name.casefold())
    return [int(part) if k % 2 else part for k, part in enumerate(parts)], name


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
    )

"""A history: what was chosen in every round and what came of it, checked, with the arms in one fixed order."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spillover.history.calendar import Calendar, calendar
from spillover.history.check import check_rewards, check_rows, outcomes
from spillover.history.lines import lines_of
from spillover.history.problems import HistoryError, Problems
from spillover.history.source import Source, open_source
from spillover.history.table import Progress, Table, read_table
from spillover.types import Array, BoolArray
from spillover.validate import quoted

DECIMAL_COMMA = re.compile(r"= '[+-]?\d+,\d+'")  # in what is said of a cell


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """What was done and what came of it; the rows are rounds in their order, the columns arms in natural order."""

    arms: tuple[str, ...]
    rounds: tuple[str, ...]  # what they are called
    x: BoolArray  # (rounds, arms)
    z: Array  # 0 for arms that were not chosen and for what is not known yet
    y: Array  # z if the file has no y
    arrived: BoolArray  # (rounds,): whether all outcomes of the round are there
    has_overall: bool  # whether the file has y: without it no spill-over can be learned
    following: str | None  # what the next round is called, if that can be told
    notes: tuple[str, ...]  # what somebody should know who gave this file

    @property
    def pending(self) -> tuple[str, ...]:
        """Rounds whose outcomes are still to come."""
        return tuple(self.rounds[k] for k in np.flatnonzero(~self.arrived))

    @cached_property
    def observed(self) -> BoolArray:
        """Which arms have outcomes, (arms,)."""
        return np.asarray(np.any(self.x, axis=0, where=self.arrived[:, None]))


def read_history(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    progress: Progress = lambda read: None,
) -> History:
    """Read a file with one row for each round and arm: round, arm, chosen, z and y, in any order.

    columns: other names of the columns, such as {"round": "day"}; {"y": ""} says that there is none.
    reward_range: what z can be, (0, 1) unless it is given. overall_range: what y can be, anything unless it is given.
    All problems of the file are told at once, in the `lines` of the HistoryError.
    """
    path, problems = Path(path), Problems()
    source = open_source(path, columns or {}, problems)
    if source is None:
        raise problems.error(str(path), lambda rows: [])
    table = read_table(source, problems, progress)
    if source.layout and source.layout.separator == ",":
        problems.add_hint("number", DECIMAL_COMMA, "decimal commas are read where semicolons or tabs separate columns")
    if not len(table.round):
        raise ValueError(f"{path}: has column names and no rows: must have one row for each round and arm")
    try:
        dates = calendar(table.rounds)
    except TypeError:
        problems.say("round", "rounds are numbers and dates, or times with and without a zone: must be of one kind")
        raise refusal(source, table, problems) from None
    arms = natural_order(table.arms)
    keys = check_rows(table, dates, arms, problems)
    check_rewards(table, problems, reward_range, overall_range)
    if problems.count or keys is None:
        raise refusal(source, table, problems)
    return pivoted(table, dates, arms, keys, source)


def refusal(source: Source, table: Table, problems: Problems) -> HistoryError:
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


def pivoted(table: Table, dates: Calendar, arms: list[int], keys: Any, source: Source) -> History:
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
        notes.append(f"columns that nobody reads: {', '.join(map(quoted, source.columns.ignored))}")
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

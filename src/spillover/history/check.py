"""Whether rows make a history: each arm once in each round, rewards where they belong and within their range."""

from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from spillover.history.calendar import Calendar
from spillover.history.cells import ROUND, quote_cell
from spillover.history.naming import did_you_mean
from spillover.history.problems import Problems
from spillover.history.table import Table
from spillover.kernels import LARGEST_OUTCOME
from spillover.types import Array, BoolArray, IntArray

UNIT = (0.0, 1.0)
LISTED = 5  # arms or rounds in a line
NEARLY = 0.6  # similarity from which on a name may be a misspelling of another


class Outcomes(NamedTuple):
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
        return f"round {quote_cell(table.rounds[place] if place >= 0 else None)}: must be {ROUND}"

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


def outcomes(x: BoolArray, z: Array, y: Array | None, labels: Sequence[str], *, goes_on: bool = False) -> Outcomes:
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
    return Outcomes(z, y, arrived, notes)


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

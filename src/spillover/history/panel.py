"""The cells of a table by round and arm: what was decided and what came out, missing cells as NaN."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spillover.history.candidates import arm_key, ask_order, part_numbers
from spillover.history.cells import MISSING, YES_OR_NO, Unclear, is_empty, quote_cell
from spillover.history.columns import (
    PARTS,
    Item,
    Reading,
    is_a,
)
from spillover.history.frame import Column, Frame
from spillover.history.plain_form import check_spelling, repeated
from spillover.history.record import MOST_ARMS, MOST_ROUNDS, Problems, natural_order
from spillover.history.rounds import ANY_ROUND, AskOrder, Calendar, calendar, joined_periods
from spillover.kernels import LARGEST_OUTCOME
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import listed

NO_ARM = "none"  # in a column that names the chosen arm


class Panel(NamedTuple):
    """Arrays with an axis for rounds, in order, and one for arms, in natural order."""

    arms: tuple[str, ...]
    dates: Calendar
    place: IntArray  # the round of every row of the table
    arm_rows: list[tuple[str, IntArray]]  # the rows of each arm, in a table with one row for each round and arm
    decision: Array  # 1 or 0, or an amount; NaN where it is missing
    present: BoolArray  # whether there is a row
    y: Array  # (rounds, arms), or (rounds, 1) if there is one outcome for all arms
    z: Array | None
    outcome_names: tuple[str, ...]


def build_panel(frame: Frame, reading: Reading) -> Panel:
    """The cells by round and arm; every problem of the table is reported."""
    problems = Problems()
    dates, place = round_places(frame, reading.round, problems)
    if problems.count:
        raise frame.error(problems)
    if len(dates.labels) > MOST_ROUNDS:
        raise ValueError(f"{frame.name}: more than {MOST_ROUNDS:,} rounds: must be at most that many")
    build = wide_panel if reading.arm is None else long_panel
    found = build(frame, reading, dates, place, problems)
    if problems.count:
        raise frame.error(problems)
    return found


def round_places(frame: Frame, names: Sequence[str], problems: Problems) -> tuple[Calendar, IntArray]:
    """The rounds in order, and the round of every row."""
    if not names:
        rows = np.arange(frame.rows)
        dates = calendar([str(row + 1) for row in range(frame.rows)])
        return dates._replace(following=str(frame.rows + 1)), rows
    column = frame[names[0]]
    codes, texts = (column.codes, column.texts) if len(names) == 1 else joined(frame, names)
    try:
        dates = calendar([text or "?" for text in texts], column.style.dates)
    except AskOrder:
        ask_order(frame, column)
    except TypeError:
        kinds = "rounds are numbers and dates, or times with and without a zone"
        problems.add_text("round", f"{kinds}: must be of one kind")
        return calendar([]), np.zeros(frame.rows, np.int64)
    place = np.append(dates.rank, -1)[codes]
    label = " and ".join(names)

    def describe(row: int) -> str:
        return f"{label} {quote_cell(texts[codes[row]] if codes[row] >= 0 else None)}: must be {ANY_ROUND}"

    problems.add("round", np.flatnonzero(place < 0), describe)
    return dates, place


def joined(frame: Frame, names: Sequence[str]) -> tuple[IntArray, list[str]]:
    """Rounds that are written in two or three columns, as codes and texts."""
    kind = next((kind for kind, some in PARTS.items() if is_a(names[1], some)), "month")
    numbers = [np.asarray(frame[name].numbers, float) for name in names if name != names[1]]
    numbers.insert(1, part_numbers(frame[names[1]], kind))
    whole = np.stack([np.where(np.isnan(one), -1, one).astype(np.int64) for one in numbers], axis=1)
    kinds, codes = np.unique(whole, axis=0, return_inverse=True)
    if len(names) == 3:
        return codes.ravel(), [f"{year:04d}-{month:02d}-{day:02d}" for year, month, day in kinds.tolist()]
    return codes.ravel(), joined_periods(four_digit_years(kinds[:, 0]), kinds[:, 1].tolist(), kind)


def four_digit_years(years: IntArray) -> list[int]:
    return [year + 1900 if 0 <= year < 100 else year for year in years.tolist()]


def long_panel(frame: Frame, reading: Reading, dates: Calendar, place: IntArray, problems: Problems) -> Panel:
    """One row for each round and arm."""
    column = frame[reading.arm or ""]
    problems.add("arm", np.flatnonzero(column.codes < 0), lambda row: f"{column.name} is empty: must be a name")
    known = np.unique(column.codes[column.codes >= 0])
    names = [column.texts[code] for code in known]
    ordered = natural_order(names)
    arms = tuple(names[k] for k in ordered)
    check_arms(frame, arms)
    position = np.full(len(column.texts) + 1, -1, np.int64)
    position[known[ordered]] = np.arange(len(arms))
    which = position[column.codes]
    keys = place * len(arms) + which
    named = np.flatnonzero(which >= 0)  # the others are reported already
    one = "must have one row (add them up, or name the right columns with --columns)"
    problems.add(
        "twice",
        named[repeated(keys[named])],
        lambda row: f"round {dates.labels[place[row]]}, arm {arms[which[row]]!r}: appears more than once: {one}",
    )
    if not problems.count and len(keys) < len(dates.labels) * len(arms):
        check_spelling(arms, place, which, problems, may_change=True)
    shape = (len(dates.labels), len(arms))
    decision, y, z = np.full(shape, np.nan), np.full(shape, np.nan), None
    good = which >= 0
    decision.flat[keys[good]] = decisions(frame[reading.chosen[0].name], reading.amounts, problems)[good]
    if reading.own:
        z = np.full(shape, np.nan)
        z.flat[keys[good]] = numbers(frame[reading.own[0].name], problems)[good]
    if reading.outcome:
        require_one(frame, reading.outcome)
        y.flat[keys[good]] = numbers(frame[reading.outcome[0].name], problems)[good]
    present = np.zeros(shape, np.bool_)
    present.flat[keys[good]] = True
    rows = [(arm, np.flatnonzero(which == k)) for k, arm in enumerate(arms)]
    outcome = tuple(item.name for item in reading.outcome)
    if is_common(y):
        y = np.nanmax(np.where(np.isnan(y), -np.inf, y), axis=1, keepdims=True)
        y[np.isneginf(y)] = np.nan
    return Panel(arms, dates, place, rows, decision, present, y, z, outcome)


def require_one(frame: Frame, items: Sequence[Item]) -> None:
    if len(items) != 1:
        names = listed(item.name for item in items)
        raise ValueError(
            f"{frame.name}: outcome = {names}: must be one column in a table with one row for each round and arm"
        )


def is_common(y: Array) -> bool:
    """Whether all arms of a round have the same outcome, in every round: it is that of the round, not of the arm."""
    several = (~np.isnan(y)).sum(axis=1) > 1
    if y.shape[1] < 2 or several.sum() < 2:
        return False
    low = np.where(np.isnan(y), np.inf, y).min(axis=1)[several]
    high = np.where(np.isnan(y), -np.inf, y).max(axis=1)[several]
    return bool((low == high).all() and len(np.unique(low)) > 2)


def wide_panel(frame: Frame, reading: Reading, dates: Calendar, place: IntArray, problems: Problems) -> Panel:
    """One row for each round, one column for each arm."""
    again = np.setdiff1d(np.arange(len(place)), np.unique(place, return_index=True)[1])
    problems.add(
        "twice", again, lambda row: f"round {dates.labels[place[row]]}: appears more than once: must have one row"
    )
    chosen = decisions_by_arm(frame, reading, problems)
    outcome = outcomes_by_arm(frame, reading, list(chosen), problems)
    own = {arm: numbers(frame[item.name], problems) for item in reading.own if (arm := match(item, list(chosen)))}
    extra = [arm for arm in outcome if arm not in chosen] if outcome and "" not in outcome else []
    names = [*chosen, *extra]
    arms = tuple(names[k] for k in natural_order(names))
    check_arms(frame, arms)
    shape = (len(dates.labels), len(arms))
    rows = np.argsort(place, kind="stable")[: shape[0]] if not problems.count else np.zeros(shape[0], np.int64)
    nothing = np.full(frame.rows, np.nan)
    undecided = np.isnan(np.stack(list(chosen.values()))).all(axis=0)
    never = np.where(undecided, np.nan, 0.0)  # an arm with outcomes and no decisions
    decision = np.stack([chosen.get(arm, never) for arm in arms], axis=1)[rows]
    labels = [""] if "" in outcome else arms
    y = np.stack([outcome.get(arm, nothing) for arm in labels], axis=1)[rows]
    z = np.stack([own.get(arm, nothing) for arm in arms], axis=1)[rows] if own else None
    present = np.ones(shape, np.bool_)
    item_names = tuple(item.name for item in reading.outcome)
    return Panel(arms, dates, place, [], decision, present, y, z, item_names)


def check_arms(frame: Frame, arms: Sequence[str]) -> None:
    if len(arms) > MOST_ARMS:
        raise ValueError(
            f"more than {MOST_ARMS:,} arms in {frame.name}: must be at most that many (if this is the wrong column, "
            "name the right one with --columns)"
        )


def match(item: Item, arms: Sequence[str]) -> str | None:
    """The arm that a column belongs to."""
    wanted = arm_key(item.label or item.name)
    return next((arm for arm in arms if arm_key(arm) == wanted), None)


def decisions_by_arm(frame: Frame, reading: Reading, problems: Problems) -> dict[str, Array]:
    """The decisions of each arm, for every row."""
    first = reading.chosen[0]
    if len(reading.chosen) == 1 and first.label is None:
        return one_hot(frame[first.name], None)
    found: dict[str, Array] = {}
    for item in reading.chosen:
        arm = item.label or item.name
        if arm in found:
            raise ValueError(f"{frame.name}: two columns are the decisions of {arm!r}: each arm must have one")
        found[arm] = decisions(frame[item.name], reading.amounts, problems)
    return found


def outcomes_by_arm(frame: Frame, reading: Reading, arms: list[str], problems: Problems) -> dict[str, Array]:
    """The outcomes of each arm, for every row; with "" as the only key if there is one outcome for all arms."""
    if len(reading.outcome) == 1 and len(arms) >= 1:
        column = frame[reading.outcome[0].name]
        if names_arms(column, arms):
            return one_hot(column, arms)
        values = numbers(column, problems)
        return {arms[0] if len(arms) == 1 else "": values}
    found: dict[str, Array] = {}
    for item in reading.outcome:
        found[match(item, arms) or item.label or item.name] = numbers(frame[item.name], problems)
    lacking = [arm for arm in arms if arm not in found]
    if lacking and reading.outcome:
        raise ValueError(
            f"{frame.name}: no outcome column for {', '.join(map(repr, lacking[:5]))}: must have one for each arm, or "
            "one for all of them together"
        )
    return found


def names_arms(column: Column, arms: Sequence[str]) -> bool:
    """Whether the values of a column are the names of arms."""
    values = {arm_key(text) for text in column.texts if not is_empty(text)}
    return bool(values) and values <= {arm_key(arm) for arm in arms}


def one_hot(column: Column, arms: Sequence[str] | None) -> dict[str, Array]:
    """1 for the arm that a cell names, 0 for the others ("none": for all of them); NaN where it is empty."""
    texts = [column.texts[code] if code >= 0 else "" for code in column.codes]
    keys = np.array([arm_key(text) for text in texts])
    empty = np.array([is_empty(text) for text in texts]) & (keys != NO_ARM)
    names = list(dict.fromkeys(text for text in column.texts if not is_empty(text))) if arms is None else list(arms)
    return {arm: np.where(empty, np.nan, (keys == arm_key(arm)).astype(float)) for arm in names}


def decisions(column: Column, amounts: bool, problems: Problems) -> Array:
    """1 or 0, or an amount; NaN where the cell is empty."""
    if amounts:
        found = numbers(column, problems)
        problems.add(
            f"amount {column.name}",
            np.flatnonzero(found < 0),
            lambda row: f"{column.name} = {found[row]:g}: must be an amount from 0 on",
        )
        return found
    flags = column.flags
    if flags is not None:
        return np.where(flags < 0, np.nan, flags)
    if column.is_blank:
        return np.full(len(column), np.nan)
    report_no_flags(column, problems)
    return np.full(len(column), np.nan)


def report_no_flags(column: Column, problems: Problems) -> None:
    """Cells that are neither yes nor no: amounts, or something else."""
    values = column.numbers
    if isinstance(values, np.ndarray):
        bad = np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))
        fix = "take amounts as they are with --doses (or dose= instead of chosen= in --columns)"
        problems.add("decision amount", bad, lambda row: f"{column.name} = {values[row]:g}: must be {YES_OR_NO}; {fix}")
        return
    from spillover.history.cells import NO, YES

    known = np.array([text.casefold() in YES | NO or is_empty(text) for text in column.texts] + [True])
    texts, codes = column.texts, column.codes
    problems.add(
        "decision",
        np.flatnonzero(~known[codes]),
        lambda row: f"{column.name} {quote_cell(texts[codes[row]])}: must be {YES_OR_NO}",
    )


def numbers(column: Column, problems: Problems) -> Array:
    """The numbers of a column, yes as 1 and no as 0 if both occur; cells that are none of these are reported."""
    found = column.numbers
    flags = column.flags if isinstance(found, Unclear) else None
    if flags is not None and (flags == 1).any() and (flags == 0).any():
        return np.where(flags == MISSING, np.nan, flags)
    if isinstance(found, Unclear):
        bad = np.array([text in found.texts for text in column.texts] + [False])
        texts, codes, accepted = column.texts, column.encoded[0], found.accepted
        problems.add(
            "number decimal" if "--decimal" in accepted else f"number {column.name}",
            np.flatnonzero(bad[codes]),
            lambda row: f"{column.name} {quote_cell(texts[codes[row]])}: must be {accepted}",
        )
        return np.full(len(column), np.nan)
    most = LARGEST_OUTCOME
    values = found
    problems.add(
        f"size {column.name}",
        np.flatnonzero(np.abs(values) > most),
        lambda row: f"{column.name} = {values[row]:g}: must be from {-most:g} to {most:g}",
    )
    return values

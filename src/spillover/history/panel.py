"""The cells of a table by round and arm: what was decided and what came out, missing cells as NaN."""

from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spillover.formatting import first_of
from spillover.history.candidates import arm_key, ask_order, part_numbers
from spillover.history.cells import (
    A_NUMBER,
    MISSING,
    NO,
    YES,
    YES_OR_NO,
    Problems,
    Unclear,
    is_empty,
    parse_numbers,
    quote_cell,
)
from spillover.history.columns import MOST_ARMS, PARTS, Item, Reading, Wanted, did_you_mean, is_a, natural_order
from spillover.history.files import report_broken
from spillover.history.frame import Column, Frame, Style
from spillover.history.rounds import ANY_ROUND, AskOrder, Calendar, calendar, joined_periods
from spillover.kernels import LARGEST_OUTCOME
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import listed

MOST_ROUNDS = 2_000_000
ONE_ROW = "must have one row (add them up, or name the right columns with --columns)"
NEARLY = 0.6  # similarity from which on a name may be a misspelling of another
LISTED = 5  # arms in a line
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


UNIT = (0.0, 1.0)  # the range of z, if none is declared


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


def build_panel(frame: Frame, reading: Reading, plain: Options | None = None) -> Panel:
    """The cells by round and arm; every problem of the table is reported.

    plain: of a table in the plain form, in which every round has a row for every arm.
    """
    problems = Problems()
    if frame.broken and frame.table.layout is not None:
        report_broken(frame.table.layout, problems)
    dates, place = round_places(frame, reading.round, problems)
    if problems.count and plain is None:
        raise frame.error(problems)
    if len(dates.labels) > MOST_ROUNDS:
        raise ValueError(f"{frame.name}: more than {MOST_ROUNDS:,} rounds: must be at most that many")
    if reading.arm is None:
        found = wide_panel(frame, reading, dates, place, problems)
    else:
        found = long_panel(frame, reading, dates, place, problems, plain)
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
        return calendar([]), np.full(frame.rows, -1)
    place: Any = np.append(dates.rank, -1).astype(np.int32)[codes]
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


def long_panel(
    frame: Frame, reading: Reading, dates: Calendar, place: IntArray, problems: Problems, plain: Options | None
) -> Panel:
    """One row for each round and arm."""
    column = frame[reading.arm or ""]
    problems.add("arm", np.flatnonzero(column.codes < 0), lambda row: f"{column.name} is empty: must be a name")
    known = np.flatnonzero(np.bincount(column.codes + 1, minlength=len(column.texts) + 1)[1:])
    names = [column.texts[code] for code in known]
    ordered = natural_order(names)
    arms = tuple(names[k] for k in ordered)
    check_arms(frame, arms)
    position = np.full(len(column.texts) + 1, -1, np.int32)
    position[known[ordered]] = np.arange(len(arms))
    which = position[column.codes]
    strict = plain is not None
    chosen = decisions(frame[reading.chosen[0].name], reading.amounts, problems, strict=strict)
    if reading.outcome:
        require_one(frame, reading.outcome)
    own, outcome = (
        numbers(frame[items[0].name], problems, strict=strict) if items else None
        for items in (reading.own, reading.outcome)
    )
    good = (which >= 0) & (place >= 0)  # the others are reported already
    shape = (len(dates.labels), len(arms))
    keys = place.astype(np.int64)
    keys *= len(arms)  # in place: these are the longest arrays
    keys += which
    if not (good.all() and fills(keys, shape[0] * shape[1])):
        some = np.flatnonzero(good)
        one = "must have one row" if strict else ONE_ROW
        problems.add(
            "twice",
            some[repeated(keys[some])],
            lambda row: f"round {dates.labels[place[row]]}, arm {arms[which[row]]!r}: appears more than once: {one}",
        )
        if good.all() and (strict or not problems.count):
            found, misspelt = check_spelling(arms, place, which, problems, may_change=not strict)
            if strict:
                check_complete(arms, dates, place, found, problems, misspelt)
    if plain is not None:
        check_rewards(reading, chosen, own, outcome, plain, problems)
    here: Any = slice(None) if good.all() else np.flatnonzero(good)

    def by_round(values: Array | None) -> Array:
        cells = np.full(shape, np.nan)
        if values is not None:
            cells.flat[keys[here]] = values[here]
        return cells

    y = by_round(outcome)
    if not strict and is_common(y):
        y = np.nanmax(np.where(np.isnan(y), -np.inf, y), axis=1, keepdims=True)
        y[np.isneginf(y)] = np.nan
    return Panel(
        arms,
        dates,
        place,
        [] if strict else [(arm, np.flatnonzero(which == k)) for k, arm in enumerate(arms)],
        by_round(chosen),
        present=np.isfinite(by_round(np.ones(len(keys)))),
        y=y,
        z=None if own is None else by_round(own),
        outcome_names=tuple(item.name for item in reading.outcome),
    )


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
        problems.add(f"spelling {names[k]}", here, partial(described, f"{text}; did you mean {names[meant]}?"))
    return column, misspelt


def described(text: str, row: int) -> str:
    """The same text for every row."""
    return text


def check_complete(
    names: Sequence[str],
    dates: Calendar,
    rank: Any,
    column: Any,
    problems: Problems,
    misspelt: Collection[int],
) -> None:
    """Every round must have a row for every arm; `misspelt` names are no arms."""
    wanted = np.setdiff1d(np.arange(len(names)), list(misspelt))
    lacking = np.flatnonzero(np.bincount(rank, minlength=len(dates.labels)) < len(wanted))
    often = np.bincount(column, minlength=len(names))
    rare = [names[int(k)] for k in np.flatnonzero(often * 2 < often.max())]  # misspelt, perhaps

    def describe(t: int) -> str:
        absent = np.setdiff1d(wanted, column[rank == t])
        some = [names[int(k)] for k in absent]
        others = [name for name in rare if name not in some[:LISTED]]
        return (
            f"round {dates.labels[t]} has no row for {first_of(list(map(repr, some)), LISTED)}: "
            f"must have one for each of the {len(wanted)} arms{did_you_mean(some[0], others)}"
        )

    problems.add("missing", lacking, describe, rows=False)


def check_rewards(
    reading: Reading, chosen: Array, z: Any, y: Array | None, options: Options, problems: Problems
) -> None:
    """z must be given for chosen arms only, and z and y must be in their ranges."""
    own, played = reading.own[0].name, chosen == 1
    stray = np.flatnonzero((chosen == 0) & (z != 0) & np.isfinite(z))
    problems.add("not chosen", stray, lambda row: f"{own} = {z[row]:g} for an arm that was not chosen: must be empty")
    low, high = UNIT if options.reward_range is None else options.reward_range
    outside = np.flatnonzero(played & ((z < low) | (z > high)))
    hint = "" if options.reward_range is not None or not len(outside) else range_hint(z[played])
    problems.add("range", outside, lambda row: f"{own} = {z[row]:g}: must be from {low:g} to {high:g}{hint}")
    if y is not None and options.overall_range is not None:
        values, (least, most) = y, options.overall_range
        beyond = np.flatnonzero((values < least) | (values > most))
        name = reading.outcome[0].name
        problems.add("overall", beyond, lambda row: f"{name} = {values[row]:g}: must be from {least:g} to {most:g}")


def range_hint(z: Array) -> str:
    """Hint how to declare a range, with the range of the file."""
    return f"; z in the file is from {np.nanmin(z):g} to {np.nanmax(z):g}: give its full range with --range LOW HIGH"


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


def decisions(column: Column, amounts: bool, problems: Problems, *, strict: bool = False) -> Array:
    """1 or 0, or an amount; NaN where the cell is empty, which is a problem if strict."""
    if amounts:
        found = numbers(column, problems)
        report(column, problems, f"amount {column.name}", found < 0, "an amount from 0 on", found)
        return found
    flags = column.flags
    if flags is not None:
        found = np.where(flags < 0, np.nan, flags)
    elif column.is_blank:
        found = np.full(len(column), np.nan)
    else:
        found = report_no_flags(column, problems)
    if strict:
        none = column.by_text([is_empty(text) for text in column.texts], True) & np.isnan(found)
        report(column, problems, "chosen", none, YES_OR_NO.partition(", Y")[0])
    return found


def report(
    column: Column, problems: Problems, kind: str, wrong: BoolArray, accepted: str, values: Array | None = None
) -> None:
    """Report cells of a column, as they are written or as the numbers that they are."""

    def describe(row: int) -> str:
        given = column.quoted(row) if values is None else f"= {values[row]:g}"
        return f"{column.name} {given}: must be {accepted}"

    problems.add(kind, np.flatnonzero(wrong), describe)


def report_no_flags(column: Column, problems: Problems) -> Array:
    """Report cells that are neither yes nor no: amounts, or something else; the others as 1 or 0."""
    values = column.numbers
    if isinstance(values, np.ndarray):
        bad = ~np.isnan(values) & (values != 0) & (values != 1)
        fix = "take amounts as they are with --doses (or dose= instead of chosen= in --columns)"
        report(column, problems, "decision amount", bad, f"{YES_OR_NO}; {fix}", values)
        return np.where(bad, np.nan, values)
    folded = [text.casefold() for text in column.texts]
    known = column.by_text([text in YES | NO or is_empty(text) for text in folded], True)
    report(column, problems, "decision", ~known, YES_OR_NO)
    flags = [float(text in YES) if text in YES | NO else np.nan for text in folded]
    return np.asarray(column.by_text(flags, np.nan))


def numbers(column: Column, problems: Problems, *, strict: bool = False) -> Array:
    """The numbers of a column, yes as 1 and no as 0 if both occur; cells that are none of these are reported.

    strict: only an empty cell says that a value is missing, and no text such as NA.
    """
    found = column.numbers
    flags = column.flags if isinstance(found, Unclear) and not strict else None
    if flags is not None and (flags == 1).any() and (flags == 0).any():
        return np.where(flags == MISSING, np.nan, flags)
    if isinstance(found, Unclear):
        bad, accepted = column.by_text([text in found.texts for text in column.texts], False), found.accepted
        kind = "number decimal" if "--decimal" in accepted else f"number {column.name}"
        report(column, problems, kind, bad, accepted)
        rest = parse_numbers(["" if text in found.texts else text for text in column.texts], column.style.point)
        values = column.by_text(rest, np.nan) if isinstance(rest, np.ndarray) else np.full(len(column), np.nan)
    else:
        values = found
    if strict:
        report(column, problems, f"number {column.name}", np.isnan(values) & column.says_missing, A_NUMBER)
    most = LARGEST_OUTCOME
    report(column, problems, f"size {column.name}", np.abs(values) > most, f"from {-most:g} to {most:g}", values)
    return values

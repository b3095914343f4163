"""From the cells of a table to a history: what was decided and what came out, by round and arm."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spillover.history.cells import MISSING, YES_OR_NO, Unclear, is_empty, quote_cell
from spillover.history.columns import (
    STAR,
    Item,
    Reading,
    collapsed,
    did_you_mean,
    option_line,
    quote_names,
    resolve_item,
    write_item,
)
from spillover.history.context import BUILT_IN, Context, Part, built_in, column_parts, whole_context
from spillover.history.find_columns import arm_key
from spillover.history.find_rounds import NO_ROUNDS, ask_order, part_numbers
from spillover.history.frame import Column, Frame
from spillover.history.plain_form import check_spelling
from spillover.history.problems import HistoryError, Problems
from spillover.history.record import MOST_ARMS, MOST_ROUNDS, History, natural_order
from spillover.history.rounds import ANY_ROUND, AskOrder, Calendar, calendar, joined_periods, moment
from spillover.history.synonyms import PARTS, is_a
from spillover.kernels import LARGEST_OUTCOME
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import listed, quoted

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


def build_panel(frame: Frame, reading: Reading, order: Callable[[list[str]], list[int]]) -> Panel:
    """The cells by round and arm; every problem of the table is reported. order: of the names of arms."""
    problems = Problems()
    dates, place = round_places(frame, reading.round, problems)
    if problems.count:
        raise frame.error(problems)
    if len(dates.labels) > MOST_ROUNDS:
        raise ValueError(f"{frame.name}: more than {MOST_ROUNDS:,} rounds: must be at most that many")
    build = wide_panel if reading.arm is None else long_panel
    found = build(frame, reading, order, dates, place, problems)
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


def long_panel(
    frame: Frame,
    reading: Reading,
    order: Callable[[list[str]], list[int]],
    dates: Calendar,
    place: IntArray,
    problems: Problems,
) -> Panel:
    """One row for each round and arm."""
    column = frame[reading.arm or ""]
    problems.add("arm", np.flatnonzero(column.codes < 0), lambda row: f"{column.name} is empty: must be a name")
    known = np.unique(column.codes[column.codes >= 0])
    names = [column.texts[code] for code in known]
    ordered = order(names)
    arms = tuple(names[k] for k in ordered)
    check_arms(frame, arms)
    position = np.full(len(column.texts) + 1, -1, np.int64)
    position[known[ordered]] = np.arange(len(arms))
    which = position[column.codes]
    keys = place * len(arms) + which
    report_twice(frame, dates, place, arms, which, keys, problems)
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


def report_twice(
    frame: Frame,
    dates: Calendar,
    place: IntArray,
    arms: Sequence[str],
    which: IntArray,
    keys: IntArray,
    problems: Problems,
) -> None:
    """No arm twice in a round."""
    named = np.flatnonzero(which >= 0)  # the others are reported already
    order = named[np.argsort(keys[named], kind="stable")]
    again = np.sort(order[1:][keys[order][1:] == keys[order][:-1]])
    label = "must have one row (add them up, or name the right columns with --columns)"
    problems.add(
        "twice",
        again,
        lambda row: f"round {dates.labels[place[row]]}, arm {arms[which[row]]!r}: appears more than once: {label}",
    )


def wide_panel(
    frame: Frame,
    reading: Reading,
    order: Callable[[list[str]], list[int]],
    dates: Calendar,
    place: IntArray,
    problems: Problems,
) -> Panel:
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
    arms = tuple(names[k] for k in order(names))
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


LISTED = 5  # arms in a note


class Split(NamedTuple):
    """The rounds that were played, and the first one to decide."""

    played: IntArray
    first: int | None  # the round to decide, if the table has it
    notes: list[str]


def assemble(
    frame: Frame,
    reading: Reading,
    *,
    context: Sequence[Item] = (),
    next_context: Mapping[str, object] | None = None,
    minimise: bool = False,
    further: Sequence[str] = (),
) -> History:
    """The history that a table holds under a reading of its columns. further: other options, for the line to paste."""
    panel, blanks = with_blanks_as_no(build_panel(frame, reading, natural_order))
    split = split_rounds(panel)
    refuse_undecided(frame, panel, split)
    in_order = [NO_ROUNDS.reason] if reading.reasons.get("round") == NO_ROUNDS.reason else []
    notes = [*in_order, *blanks, *panel.dates.notes, *split.notes, *missing_notes(panel, split.played, reading)]
    given_context = context_of(frame, panel, split, context, reading, next_context or {})
    whole = Reading(**{**reading.__dict__, "context": tuple(context)})
    if given_context is not None:
        notes += given_context.notes
    notes += unused_notes(frame, whole, panel)
    here = split.played
    decision = np.nan_to_num(panel.decision[here])
    x = decision > 0
    y, z, observes = observed_outcomes(panel, here, reading)
    sign = -1.0 if minimise else 1.0
    reference = reference_doses(decision) if reading.amounts else None
    labels = panel.dates.labels
    return History(
        arms=panel.arms,
        rounds=tuple(labels[t] for t in here),
        x=x,
        z=None if z is None else sign * z,
        y=sign * y,
        arrived=np.asarray(np.isfinite(panel.y[here] if reading.outcome else y).any(axis=1)),
        has_overall=bool(reading.outcome),
        following=panel.dates.following if split.first is None else labels[split.first],
        notes=tuple(notes),
        observes=observes,
        dose=None if reference is None else np.where(x, decision / reference, 0.0),
        reference_dose=reference,
        context=None if given_context is None else given_context.values,
        context_names=() if given_context is None else given_context.names,
        next_context=None if given_context is None else given_context.following,
        minimise=minimise,
        has_baseline=True,
        outcome_names=panel.outcome_names,
        taken=whole.taken(frame.names),
        columns_option=option_line(whole.columns(frame.names), further),
    )


def with_blanks_as_no(panel: Panel) -> tuple[Panel, list[str]]:
    """Where no cell says "not chosen", empty cells of rounds with a decision or an outcome do; and a note."""
    there = ~np.isnan(panel.decision)
    played = there.any(axis=1, keepdims=True) | ~np.isnan(panel.y).all(axis=1, keepdims=True)
    blank = ~there & panel.present & played
    if not blank.any() or not there.any() or (panel.decision == 0).any():
        return panel, []
    note = f"{counted(int(blank.sum()), 'empty decision')} taken as not chosen: no other cell says so"
    return panel._replace(decision=np.where(blank, 0.0, panel.decision)), [note]


def split_rounds(panel: Panel) -> Split:
    """Rounds without decisions and outcomes: those at the end are to decide, others are left out."""
    decided = ~np.isnan(panel.decision).all(axis=1)
    known = ~np.isnan(panel.y).all(axis=1)
    empty: BoolArray = np.asarray(~decided & ~known)
    last = int(np.flatnonzero(~empty)[-1]) if (~empty).any() else -1
    between = np.flatnonzero(empty[: last + 1])
    tail = len(empty) - 1 - last
    notes = []
    labels = panel.dates.labels
    if len(between):
        notes.append(
            f"{counted(len(between), 'round')} without decision and outcome left out, the first {labels[between[0]]}"
        )
    if tail > 1:
        notes.append(f"{tail} rounds are to decide: the answer is for the first, {labels[last + 1]}")
    return Split(np.flatnonzero(~empty), last + 1 if tail else None, notes)


def counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' if count != 1 else ''}"


def refuse_undecided(frame: Frame, panel: Panel, split: Split) -> None:
    """Outcomes without a decision: nobody can tell what they belong to."""
    if not len(split.played) and split.first is None:
        raise ValueError(f"{frame.name}: no round has a decision or an outcome: must have some")
    lacking = np.isnan(panel.decision) & panel.present
    per_arm = panel.y.shape == panel.decision.shape
    outcome = ~np.isnan(panel.y) if per_arm else ~np.isnan(panel.y).all(axis=1, keepdims=True)
    bad = np.argwhere(lacking & outcome)
    if len(bad):
        t, arm = bad[0]
        some = f"the first for {panel.arms[arm]!r} in round {panel.dates.labels[t]}"
        fix = "fill in whether the arm was chosen, or empty the outcome too"
        line = f"{frame.name}: {counted(len(bad), 'decision')} missing although there is an outcome, {some}: {fix}"
        raise HistoryError(frame.name, [line], len(bad))


def missing_notes(panel: Panel, played: IntArray, reading: Reading) -> list[str]:
    """What is missing and how it is taken: one note for each cause."""
    notes: list[str] = []
    if not len(played):
        return notes
    there = ~np.isnan(panel.decision[played])
    labels = panel.dates.labels
    first, last = there.argmax(axis=0), len(there) - 1 - there[::-1].argmax(axis=0)
    ever = there.any(axis=0)
    came = [f"{panel.arms[k]} from {labels[played[first[k]]]} on" for k in np.flatnonzero(ever & (first > 0))]
    went = [f"{panel.arms[k]} until {labels[played[last[k]]]}" for k in np.flatnonzero(ever & (last < len(there) - 1))]
    if came or went:
        some = ", ".join([*came, *went][:LISTED])
        more = f" and {len(came) + len(went) - LISTED} more" if len(came) + len(went) > LISTED else ""
        notes.append(f"not in all rounds: {some}{more}; in the others taken as not chosen, with unknown outcomes")
    index = np.arange(len(there))[:, None]
    within = ~there & (index > first) & (index < last) & ever
    if within.any():
        notes.append(
            f"{counted(int(within.sum()), 'row')} missing between an arm's first and last round: taken as not chosen, "
            "with unknown outcomes"
        )
    if reading.outcome:
        y = panel.y[played]
        lacks = np.isnan(y) & (there if y.shape == there.shape else True)
        partly = lacks & ~np.isnan(y).all(axis=1, keepdims=True)
        if partly.any():
            rounds = int(partly.any(axis=1).sum())
            notes.append(
                f"{counted(int(partly.sum()), 'outcome')} missing in {counted(rounds, 'round')}: the others are used"
            )
    return notes


def observed_outcomes(panel: Panel, played: IntArray, reading: Reading) -> tuple[Array, Array | None, str]:
    """y, z and what is observed."""
    chosen = np.nan_to_num(panel.decision[played]) > 0
    z = None if panel.z is None else np.where(chosen, panel.z[played], 0.0)
    if not reading.outcome:
        if z is None:
            raise ValueError("columns: must name an outcome")
        return z.copy(), z, "both"
    y = panel.y[played]
    if y.shape == chosen.shape:
        return y.copy(), z, "overall" if z is None else "both"
    whole = np.zeros(chosen.shape)
    whole[:, :1] = y
    return whole, None, "payoff"


def reference_doses(decision: Array) -> Array:
    """The average amount of each arm where it is positive; 1 for an arm that never had any."""
    count = (decision > 0).sum(axis=0)
    return np.where(count > 0, decision.sum(axis=0) / np.maximum(count, 1), 1.0)


def context_of(
    frame: Frame, panel: Panel, split: Split, items: Sequence[Item], reading: Reading, given: Mapping[str, object]
) -> Context | None:
    """The context of the rounds that were played and of the one to decide."""
    if not items:
        if given:
            raise ValueError(f"next_context = {dict(given)!r}: must be left out without context columns (--context)")
        return None
    rounds = [*split.played, *([split.first] if split.first is not None else [])]
    position = np.full(len(panel.dates.labels), -1)
    position[rounds] = np.arange(len(rounds))
    rows = np.flatnonzero(position[panel.place] >= 0)
    count = len(split.played) + 1
    parts: list[Part] = []
    absent: set[str] = set()
    for item in items:
        for part, own in parts_of_item(frame, panel, item, reading, rounds, position, rows, count):
            parts.append(part)
            absent |= set(part.names) if own else set()
    return whole_context(parts, len(split.played), given, absent)


def parts_of_item(
    frame: Frame,
    panel: Panel,
    item: Item,
    reading: Reading,
    rounds: Sequence[int],
    position: IntArray,
    rows: IntArray,
    count: int,
) -> list[tuple[Part, bool]]:
    """The context that an item names: columns of the table, or a built-in; and whether each belongs to one arm."""
    free = [name for name in frame.names if name not in reading.used]
    named = not item.is_pattern and item.name.casefold() in {name.casefold() for name in free}
    if not named and not item.is_pattern and item.name.casefold() in BUILT_IN:
        values = [panel.dates.values[t] for t in rounds]
        values += [panel.dates.next_value] * (count - len(values))
        moments = [None if value is None else moment(panel.dates.kind, value) for value in values]
        return [(built_in(item.name.casefold(), moments), False)]
    if item.name in reading.used or (not named and not item.is_pattern):
        there = f"{quote_names(free)}, or {', '.join(BUILT_IN)}{did_you_mean(item.name, free)}"
        raise ValueError(f"{frame.name}: no column {item.name!r} for context; there are: {there}")
    found = []
    for one in resolve_item(frame, item, "context", free):
        column = frame[one.name]
        place = position[panel.place[rows]]
        kept = type(column)(column.name, column.cells.take(rows), column.style) if len(rows) < frame.rows else column
        arms = arm_rows(panel, rows)
        made = column_parts(kept, place, count, arms)
        found += [(part, len(made) > 1) for part in made]
    return found


def arm_rows(panel: Panel, rows: IntArray) -> list[tuple[str, IntArray]]:
    """The rows of each arm among some rows, as positions in these."""
    where = {int(row): k for k, row in enumerate(rows)} if panel.arm_rows else {}
    return [(arm, np.array([where[int(r)] for r in own if int(r) in where], np.int64)) for arm, own in panel.arm_rows]


def unused_notes(frame: Frame, reading: Reading, panel: Panel) -> list[str]:
    """Columns that are not used; numbers among them are offered as context."""
    context = {name for item in reading.context for name in names_of(frame, item, reading)}
    left = [column for column in frame.columns if column.name not in reading.used | context]
    offered = [c.name for c in left if could_be_context(c.name, c.is_number, varies(c.codes))]
    ignored = [column.name for column in left if column.name not in offered]
    notes = []
    if offered:
        free = [name for name in frame.names if name not in reading.used]
        short = collapsed(offered, free)
        said = ", ".join(quoted(name.replace(STAR, "*")) for name in short[:LISTED]) + (
            f" and {len(short) - LISTED} more" if len(short) > LISTED else ""
        )
        option = shlex.quote(",".join(write_item(Item(name)) for name in short[:LISTED]))
        notes.append(f"not used, but could be context if known before the decision: {said} (--context {option})")
    if ignored:
        notes.append(f"columns not used: {', '.join(map(quoted, ignored))}")
    return notes


def names_of(frame: Frame, item: Item, reading: Reading) -> list[str]:
    free = [name for name in frame.names if name not in reading.used]
    if item.is_pattern or item.name.casefold() in {name.casefold() for name in free}:
        return [one.name for one in resolve_item(frame, item, "context", free)]
    return []


def could_be_context(name: str, is_number: bool, differs: bool) -> bool:
    from spillover.history.find_columns import TOTAL, parts_of
    from spillover.history.synonyms import OUTCOME, ROW_NUMBER, rank

    known_after = rank(name, OUTCOME) is not None or bool(parts_of(name) & set(TOTAL.split()))
    label = rank(name, ROW_NUMBER) is not None or bool(parts_of(name) & {"id", "hid", "code"})
    return is_number and differs and not label and not known_after


def varies(codes: IntArray) -> bool:
    return len(np.unique(codes[codes >= 0])) > 1

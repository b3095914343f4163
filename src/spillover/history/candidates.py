"""Candidates for rounds, arms, decisions and outcomes among the columns of a table, by name and by content."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spillover.history import columns
from spillover.history.cells import quote_cell
from spillover.history.columns import (
    BY_NAME,
    GIVEN,
    KNOWN,
    MOST_ARMS,
    NAMED,
    PARTLY,
    UNNAMED,
    Group,
    Item,
    find_groups,
    is_circumstance,
    is_outcome,
    is_total,
    level_of,
    parts_of,
)
from spillover.history.frame import Column, Frame
from spillover.history.rounds import ANY_ROUND, NUMBER, TWO_ORDERS, part_value
from spillover.types import Array, IntArray

DATES = "by its content: dates"
ROW_NUMBERS = "by its content: it numbers the rows"
NAMES = "by its content: names that appear once in each round"
MANY = 20  # codes for each row up to which they are counted without sorting


class RoundColumns(NamedTuple):
    """Columns that may be the rounds."""

    names: tuple[str, ...]
    reason: str
    rank: int  # the smaller, the surer


NO_ROUNDS = RoundColumns((), "no column of rounds: the rows are taken in their order", 9)


class RowLayout(NamedTuple):
    """The columns of rounds and arms; without arms there is one row for each round."""

    rounds: RoundColumns
    arm: str | None = None
    reason: str = ""


def round_candidates(frame: Frame) -> list[RoundColumns]:
    """Columns that may be the rounds, the surest first."""
    found = spelt_out(frame)
    parts = {name for candidate in found for name in candidate.names}
    for column in frame.columns:
        candidate = None if column.name in parts or column.is_blank else round_candidate(frame, column)
        found += [candidate] if candidate else []
    return sorted(found, key=lambda candidate: (candidate.rank, -len(candidate.names)))


def round_candidate(frame: Frame, column: Column) -> RoundColumns | None:
    """A column as rounds, if its name or its content says so."""
    named = columns.rank(column.name, columns.ROUND)
    counts = columns.rank(column.name, columns.ROW_NUMBER) is not None
    if column.quick_numbers is not None and named is None and not counts:
        return None  # numbers are no dates
    if column.asks_order:
        ask_order(frame, column)
    if named is not None and column.parsed_rounds:  # a few mistakes are reported later
        return RoundColumns((column.name,), BY_NAME, 2 * named)
    if column.rounds and column.rounds.kind != NUMBER:
        return RoundColumns((column.name,), DATES, 3)
    if counts and column.rounds and column.is_unique:
        return RoundColumns((column.name,), ROW_NUMBERS, 4)
    return None


def ask_order(frame: Frame, column: Column) -> None:
    text = next(text for text in column.texts if TWO_ORDERS.fullmatch(text))
    question = "may have the day first or the month first, and no value of the column settles it"
    raise ValueError(
        f"{frame.name}: {column.name} = {text!r} {question}: say which with --dates day-first or --dates month-first"
    )


def spelt_out(frame: Frame) -> list[RoundColumns]:
    """Rounds in two or three columns: year and month (or quarter, or week), and the day."""
    year = one_named(frame, columns.YEAR[0])
    for kind in columns.PARTS:
        part = one_named(frame, columns.PARTS[kind])
        if year and part and is_whole(frame[year]) and is_part(frame[part], kind):
            day = one_named(frame, columns.DAY) if kind == "month" else None
            if day and is_whole(frame[day]):
                return [RoundColumns((year, part, day), BY_NAME, 1)]
            return [RoundColumns((year, part), BY_NAME, 1)]
    return []


def one_named(frame: Frame, some: str) -> str | None:
    found = [name for name in frame.names if columns.is_a(name, some)]
    return found[0] if len(found) == 1 else None


def is_whole(column: Column) -> bool:
    """Whether the cells are whole numbers."""
    values = column.numbers
    return isinstance(values, np.ndarray) and not column.is_blank and bool((values[~np.isnan(values)] % 1 == 0).all())


def is_part(column: Column, kind: str) -> bool:
    """Whether the cells are months, quarters or weeks of a year."""
    most = {"month": 12, "quarter": 4, "week": 53}[kind]
    values = part_numbers(column, kind)
    known = values[~np.isnan(values)]
    return bool(len(known) and (known % 1 == 0).all() and known.min() >= 1 and known.max() <= most)


def part_numbers(column: Column, kind: str) -> Array:
    """The month, quarter or week of every row: a number, a month's name, Q1, W5; NaN where it is none."""
    if column.quick_numbers is not None:
        return column.quick_numbers
    return np.asarray(column.by_text([part_value(kind, text) for text in column.texts], np.nan))


def joint_codes(frame: Frame, names: Sequence[str]) -> IntArray:
    """For every row a number from 0 on, the same for rows that are equal in all these columns."""
    codes = np.zeros(frame.rows, np.int64)
    for name in names:
        column = frame[name]
        codes = codes * (len(column.texts) + 1) + column.codes + 1
        if int(codes.max(initial=0)) > MANY * frame.rows:
            codes = np.unique(codes, return_inverse=True)[1]
    return codes


def distinct(codes: IntArray) -> int:
    """The number of different codes."""
    if int(codes.max(initial=0)) <= MANY * len(codes):
        return int(np.count_nonzero(np.bincount(codes)))  # quicker than sorting
    return len(np.unique(codes))


def are_distinct(frame: Frame, names: Sequence[str]) -> bool:
    return distinct(joint_codes(frame, names)) == frame.rows


def arm_candidates(frame: Frame, rounds: Sequence[str]) -> list[tuple[str, str]]:
    """Columns that name the arm, given the rounds, with reasons: rows must be distinct by round and arm."""
    named, others = [], []
    for column in frame.columns:
        if column.name in rounds or column.is_blank or not 1 <= len(column.texts) <= MOST_ARMS:
            continue
        position = columns.rank(column.name, columns.ARM)
        if position is not None and are_distinct(frame, [*rounds, column.name]):
            named.append((position, column.name))
        elif names_units(column) and are_distinct(frame, [*rounds, column.name]):
            others.append((column.name, NAMES))
    best = min((position for position, _ in named), default=0)
    found = [(name, BY_NAME) for position, name in named if position == best] or others
    return found[:1] if one_to_one(frame, [name for name, _ in found]) else found


def names_units(column: Column) -> bool:
    """Whether a column holds names, or numbers that are called identifiers."""
    if column.quick_numbers is not None:
        return bool(re.search(r"(^|[_. ])[a-z]{0,4}id$", column.name.casefold())) and is_whole(column)
    return not column.is_number and (column.rounds is None or column.rounds.kind == NUMBER)


def one_to_one(frame: Frame, names: Sequence[str]) -> bool:
    """Whether columns say the same: each value of one belongs to one value of the other."""
    count = distinct(joint_codes(frame, names))
    return all(distinct(joint_codes(frame, [name])) == count for name in names)


def find_layouts(frame: Frame, rounds: Sequence[str] | None, arm: str | None) -> list[RowLayout]:
    """The layouts that fit equally well; usually one. rounds, arm: columns that were given."""
    given = None if rounds is None else [RoundColumns(tuple(rounds), GIVEN, 0)]
    candidates = given if given is not None else round_candidates(frame)
    if arm is not None:
        fitting = [c for c in candidates if c.names and are_distinct(frame, [*c.names, arm])]
        best = (fitting or candidates or [NO_ROUNDS])[0]
        return [RowLayout(best, arm, GIVEN)]
    for candidate in candidates:
        if not candidate.names or are_distinct(frame, candidate.names):
            return [RowLayout(candidate, only_arm(frame), BY_NAME)]
        arms = arm_candidates(frame, candidate.names)
        if arms:
            return [RowLayout(candidate, name, reason) for name, reason in arms]
    if candidates:
        refuse_repeated(frame, candidates[0])
    refuse_unreadable(frame)
    return [RowLayout(NO_ROUNDS)]


def wide_layout(frame: Frame, rounds: Sequence[str] | None) -> RowLayout:
    """The rounds of a table that is known to have one row for each."""
    if rounds is not None:
        return RowLayout(RoundColumns(tuple(rounds), GIVEN, 0))
    candidates = round_candidates(frame)
    fitting = [candidate for candidate in candidates if are_distinct(frame, candidate.names)]
    if not candidates:
        refuse_unreadable(frame)
    return RowLayout((fitting or candidates or [NO_ROUNDS])[0])


def only_arm(frame: Frame) -> str | None:
    """A column that names the arm, the same one in every row."""
    named = [column for column in frame.columns if columns.rank(column.name, columns.ARM) is not None]
    return next((column.name for column in named if len(np.unique(column.codes)) == 1), None)


def refuse_unreadable(frame: Frame) -> None:
    """A column that is called a round and has another value in every row, none of which can be read."""
    for column in frame.columns:
        if columns.rank(column.name, columns.ROUND) is not None and column.is_unique and not column.is_number:
            cell = f"{column.name} {quote_cell(column.texts[0])}"
            raise ValueError(
                f"{frame.name}: {cell}: must be {ANY_ROUND}; to take the rows in their order, add --columns round="
            )


def refuse_repeated(frame: Frame, rounds: RoundColumns) -> None:
    """Several rows for a round, and no column that tells them apart."""
    codes = joint_codes(frame, rounds.names)
    most = int(np.bincount(codes).max())
    named = [name for name in frame.names if columns.rank(name, columns.ARM) is not None and name not in rounds.names]
    together = " and ".join(rounds.names)
    if named:
        reason = f"there are up to {most:,} rows for one {together}, and {named[0]} does not tell them apart"
        fix = f"add up the rows of each {together} and {named[0]}, or name the arm's column with --columns arm=NAME"
    else:
        reason = f"there are up to {most:,} rows for one {together}, and no column names the arm"
        fix = "name it with --columns arm=NAME, or take each row as a round with --columns round="
    raise ValueError(f"{frame.name}: {reason}: {fix}")


PER_ARM = 5  # an outcome for each arm tells more than one for all
YES_NO = "by its content: only 0 and 1 (or yes and no)"
AMOUNTS = "by its content: amounts, some of them 0"
ONLY_NUMBER = "by its content: the only column of numbers left"
ARM_NAMES = "by its content: its values are the arms"
DECISION_NAMES = "by its name; its values are the arms, one chosen in each round"
SURE_ROUNDS = 3  # rank up to which rounds are named as such, or are dates
MOST_LOOSE = 12  # columns of 0 and 1 that may all be arms although nothing says so
MOST_FACTOR = 200  # values of a column that names the chosen arm
ROUNDED = 1e-3  # of the largest total: parts are often rounded


class Candidate(NamedTuple):
    """Columns that may have a meaning."""

    items: tuple[Item, ...]
    level: int
    reason: str

    @property
    def columns(self) -> set[str]:
        return {item.name for item in self.items}


def is_label(column: Column) -> bool:
    """Whether a column numbers or names something: an identifier, a year, a row number."""
    some = parts_of(column.name)
    named = (
        columns.rank(column.name, columns.ROW_NUMBER) is not None
        or columns.rank(column.name, columns.ROUND) is not None
    )
    return named or bool(some & {"id", "hid", "code", "uid", "uuid"})


def varies_between_arms(frame: Frame, column: Column, rounds: Sequence[str]) -> bool:
    """Whether the cells of a round differ in some round."""
    together = distinct(joint_codes(frame, rounds))
    return distinct(joint_codes(frame, [*rounds, column.name])) > together


def long_decisions(frame: Frame, layout: RowLayout, amounts: bool) -> list[Candidate]:
    """Columns of a table with one row for each round and arm that may say what was chosen."""
    found = []
    for column in frame.columns:
        level = level_of(column.name, columns.CHOSEN)
        used = column.name in (*layout.rounds.names, layout.arm)
        if used or is_circumstance(column.name) or is_outcome(column.name) or not is_decision(column, level, amounts):
            continue
        if level < KNOWN and is_constant(column):
            continue
        if amounts and level < KNOWN:
            continue
        if not varies_between_arms(frame, column, layout.rounds.names) and frame.rows > 1:
            level -= NAMED  # the same for all arms: probably not a decision about one of them
        found.append(Candidate((Item(column.name),), level, reason_for(level, AMOUNTS if amounts else YES_NO)))
    return found


def wide_decisions(frame: Frame, layout: RowLayout, amounts: bool) -> list[Candidate]:
    """Columns, or groups of columns, of a table with one row for each round that may say what was chosen."""
    levels = {c.name: level_of(c.name, columns.CHOSEN) for c in frame.columns}
    allowed = [c.name for c in frame.columns if is_decision(c, levels[c.name], amounts)]
    allowed += near_decisions(
        frame, [name for name in frame.names if name not in layout.rounds.names], allowed, amounts
    )
    named = set(allowed)
    able = [c for c in frame.columns if c.name in named and (levels[c.name] >= KNOWN or not is_constant(c))]
    able_names = [c.name for c in able if c.name not in layout.rounds.names and not is_label(c)]
    groups = [
        g for g in find_groups([n for n in allowed if n not in layout.rounds.names]) if not is_circumstance(g.key)
    ]
    reason = AMOUNTS if amounts else YES_NO
    found = [
        Candidate(g.items, level_of(g.key, columns.CHOSEN), reason_for(level_of(g.key, columns.CHOSEN), reason))
        for g in groups
        if (level_of(g.key, columns.CHOSEN) >= KNOWN or set(g.columns) & set(able_names))
        and (not amounts or any(is_amount(frame[name]) for name in g.columns))
    ]
    found = without_parts([c for c in found if c.level >= PARTLY])
    grouped = {name for c in found for name in c.columns}
    if amounts:
        return found
    loose = [name for name in able_names if name not in grouped and not is_circumstance(name) and not is_outcome(name)]
    levels = {name: level_of(name, columns.CHOSEN) for name in loose}
    found += [Candidate((Item(n, n),), level, BY_NAME) for n, level in levels.items() if level > UNNAMED]
    factors = named_decisions(frame, layout)
    return found or [one for one in factors if one.reason == BY_NAME] or loose_decisions(loose, layout) or factors


def loose_decisions(names: Sequence[str], layout: RowLayout) -> list[Candidate]:
    """Columns of 0 and 1 whose names say nothing: all are arms; where rounds are unsure, each may be the only one."""
    if not names:
        return []
    together = [Candidate(tuple(Item(name, name) for name in names), UNNAMED, YES_NO)]
    if len(names) == 1 or layout.rounds.rank <= SURE_ROUNDS:
        return together
    alone = [Candidate((Item(name, name),), UNNAMED, YES_NO) for name in names]
    return [*(together if len(names) <= MOST_LOOSE else []), *alone]


def is_decision(column: Column, level: int, amounts: bool) -> bool:
    """Whether the cells can be decisions; where the name says so, a few mistakes are reported later."""
    if amounts:
        return is_amount(column) or (column.flags is not None and column.is_number)
    return column.flags is not None or (level >= PARTLY and column.seems_flag)


def without_parts(found: Sequence[Candidate]) -> list[Candidate]:
    """Without candidates that are part of another one that is as sure."""
    return [
        one for one in found if not any(one.columns < other.columns and one.level <= other.level for other in found)
    ]


def named_decisions(frame: Frame, layout: RowLayout) -> list[Candidate]:
    """Columns that name the arm chosen in each round."""
    found = []
    for column in frame.columns:
        level = max(level_of(column.name, columns.ARM), level_of(column.name, columns.CHOSEN))
        few = not column.is_number and 2 <= len(set(column.texts) - {""}) <= MOST_FACTOR
        if few and level >= KNOWN and column.name not in layout.rounds.names:
            named = columns.rank(column.name, columns.CHOSEN) == 0 or columns.plain(column.name) in ("arm", "action")
            found.append(Candidate((Item(column.name),), level, BY_NAME if named else DECISION_NAMES))
    return found


def is_constant(column: Column) -> bool:
    """Whether all cells are the same; an empty cell may mean no."""
    flags = column.flags
    return flags is not None and not bool((flags == 1).any() and (flags < 1).any())


def is_amount(column: Column) -> bool:
    """Whether a column holds amounts: numbers from 0 on, some of them 0."""
    values = column.numbers if column.is_number else None
    if not isinstance(values, np.ndarray) or column.flags is not None:
        return False
    known = values[~np.isnan(values)]
    return bool((known >= 0).all() and (known > 0).any())


def reason_for(level: int, content: str) -> str:
    return BY_NAME if level >= PARTLY else content


def outcomes_of(frame: Frame, layout: RowLayout, decision: Candidate) -> list[Candidate]:
    """Columns that may be the outcome, given the decisions."""
    taken = decision.columns | {*layout.rounds.names, layout.arm}
    pending = [c.name for c in frame.columns if c.is_blank and level_of(c.name, columns.OUTCOME) >= PARTLY]
    able = [c for c in frame.columns if c.seems_number or c.name in pending]
    numeric = [c for c in able if c.name not in taken and not is_label(c)]
    grouped = [] if layout.arm else group_outcomes(frame, decision, numeric, taken)
    own = {name for group in grouped for name in group.columns}
    found = [] if layout.arm else [*grouped, *factor_outcomes(frame, decision, taken | own)]
    for column in numeric:
        if any(is_sum(frame, column.name, group.items) for group in grouped):
            continue  # the outcomes of the arms tell more than their sum
        level = level_of(column.name, columns.OUTCOME)
        if level >= KNOWN or (not is_circumstance(column.name) and (column.flags is None or level > UNNAMED)):
            found.append(Candidate((Item(column.name),), level, reason_for(level, ONLY_NUMBER)))
    return without_parts(found)


def group_outcomes(
    frame: Frame, decision: Candidate, numeric: Sequence[Column], taken: set[str | None]
) -> list[Candidate]:
    """An outcome for each arm, in columns named after the arms."""
    arms = {arm_key(item.label or item.name) for item in decision.items}
    if len(arms) < 2:
        return []
    names = [column.name for column in numeric]
    names += near_outcomes(frame, arms, names, [name for name in frame.names if name not in taken])
    found = []
    for group in find_groups(names):
        level = level_of(group.key, columns.OUTCOME)
        if arms <= {arm_key(arm) for arm in group.arms} and not is_circumstance(group.key):
            own = tuple(item for item in group.items if arm_key(item.label or "") in arms)
            items = without_totals(frame, group.items, own) if level >= PARTLY else own
            reason = BY_NAME if level >= PARTLY else "by its name: columns named after the arms"
            found.append(Candidate(items, max(level, PARTLY) + PER_ARM, reason))
    same = tuple(Item(name, name) for name in names if arm_key(name) in arms)
    if {arm_key(item.name) for item in same} == arms:
        found.append(Candidate(same, KNOWN + PER_ARM, "by its name: columns named after the arms"))
    return found


def arm_key(name: str) -> str:
    return name.strip().casefold()


def factor_outcomes(frame: Frame, decision: Candidate, taken: set[str | None]) -> list[Candidate]:
    """A column whose values are the arms: the outcome is 1 for the arm that it names, 0 for the others."""
    arms = {arm_key(item.label or item.name) for item in decision.items}
    found = []
    for column in frame.columns:
        few = column.name not in taken and len(column.texts) <= 2 * len(arms) + 1
        values = {arm_key(text) for text in column.texts if text} if few else set()
        if len(values) > 1 and values <= arms:
            found.append(Candidate((Item(column.name),), NAMED + PER_ARM, ARM_NAMES))
    return found


def own_rewards(frame: Frame, layout: RowLayout, decision: Candidate, taken: set[str]) -> tuple[Item, ...]:
    """The arms' own rewards, found by name only."""
    left = [c.name for c in frame.columns if c.seems_number and c.name not in taken]
    if layout.arm is not None:
        named = [name for name in left if columns.rank(name, columns.OWN) is not None]
        return (Item(named[0]),) if len(named) == 1 else ()
    arms = {arm_key(item.label or item.name) for item in decision.items}
    for group in find_groups(left):
        if columns.rank(group.key, columns.OWN) is not None and {arm_key(arm) for arm in group.arms} == arms:
            return group.items
    return ()


def arm_keys(group: Group) -> set[str]:
    """The arms of a group, in one spelling."""
    return {arm_key(arm) for arm in group.arms}


def near_decisions(frame: Frame, names: Sequence[str], allowed: Sequence[str], amounts: bool) -> list[str]:
    """Columns named like decisions: most cells are some, or the arm has a column in another group, as all others do.

    They are read with the group, so that cells that are none are reported. Left out, an arm would be missing without a
    word.
    """
    groups, good, found = find_groups(names), set(allowed), list[str]()
    for group in groups:
        inside = [column in good for column in group.columns]
        if columns.rank(group.key, columns.CHOSEN) is None or 2 * sum(inside) < len(inside) or all(inside):
            continue
        arms = {arm_key(arm) for arm, here in zip(group.arms, inside, strict=True) if here}
        others = [arm_keys(other) for other in groups if other.pattern != group.pattern and arms <= arm_keys(other)]
        for name, arm in zip(group.columns, group.arms, strict=True):
            column = frame[name]
            mostly = column.seems_number if amounts else column.seems_flag
            everywhere = any(arm_key(arm) in some for some in others)
            if name not in good and not is_total(arm) and not column.is_blank and (mostly or everywhere):
                found.append(name)
    return list(dict.fromkeys(found))


def near_outcomes(frame: Frame, arms: set[str], numeric: Sequence[str], free: Sequence[str]) -> list[str]:
    """Columns named like the outcomes of arms, if those of some arms are numbers."""
    found = []
    for group in find_groups(free):
        if columns.rank(group.key, columns.OUTCOME) is None or not arms <= arm_keys(group):
            continue
        own = [n for n, arm in zip(group.columns, group.arms, strict=True) if arm_key(arm) in arms]
        lacking = [name for name in own if name not in numeric and not frame[name].is_blank]
        found += lacking if len(lacking) < len(own) else []
    return list(dict.fromkeys(found))


def is_sum(frame: Frame, name: str, parts: Sequence[Item]) -> bool:
    """Whether a column is the sum of several others, wherever all of them are known."""
    columns = [frame[item.name].numbers for item in parts if item.name != name]
    total = frame[name].numbers
    if len(columns) < 2 or not isinstance(total, np.ndarray):
        return False
    values = [column for column in columns if isinstance(column, np.ndarray)]
    if len(values) < len(columns):
        return False
    known = np.isfinite(total) & np.isfinite(values).all(axis=0)
    rest = np.abs(total - np.sum(values, axis=0))[known]
    return bool(len(rest) > 1 and np.ptp(total[known]) > 0 and rest.max() <= ROUNDED * np.abs(total[known]).max())


def without_totals(frame: Frame, items: Sequence[Item], own: Sequence[Item]) -> tuple[Item, ...]:
    """Outcomes without those that add up the others. own: the outcomes of arms that have decisions."""
    return tuple(
        item
        for item in items
        if item in own or not (is_total(item.label or item.name) or is_sum(frame, item.name, own))
    )


def surest(found: Sequence[Candidate]) -> list[Candidate]:
    best = max((candidate.level for candidate in found), default=0)
    return [candidate for candidate in found if candidate.level == best]

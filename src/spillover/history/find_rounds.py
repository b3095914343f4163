"""Find the columns of rounds and arms: by their names, by their content, and by what makes rows distinct."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spillover.history import synonyms
from spillover.history.cells import quote_cell
from spillover.history.columns import BY_NAME, GIVEN
from spillover.history.frame import Column, Frame
from spillover.history.record import MOST_ARMS
from spillover.history.rounds import ANY_ROUND, NUMBER, part_value
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
    named = synonyms.rank(column.name, synonyms.ROUND)
    counts = synonyms.rank(column.name, synonyms.ROW_NUMBER) is not None
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
    text = next(text for text in column.texts if text)
    question = "may have the day first or the month first, and no value of the column settles it"
    raise ValueError(
        f"{frame.name}: {column.name} = {text!r} {question}: say which with --dates day-first or --dates month-first"
    )


def spelt_out(frame: Frame) -> list[RoundColumns]:
    """Rounds in two or three columns: year and month (or quarter, or week), and the day."""
    year = one_named(frame, synonyms.YEAR[0])
    for kind in synonyms.PARTS:
        part = one_named(frame, synonyms.PARTS[kind])
        if year and part and is_whole(frame[year]) and is_part(frame[part], kind):
            day = one_named(frame, synonyms.DAY) if kind == "month" else None
            if day and is_whole(frame[day]):
                return [RoundColumns((year, part, day), BY_NAME, 1)]
            return [RoundColumns((year, part), BY_NAME, 1)]
    return []


def one_named(frame: Frame, some: str) -> str | None:
    found = [name for name in frame.names if synonyms.is_a(name, some)]
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
    return np.array([*(part_value(kind, text) for text in column.texts), np.nan])[column.encoded[0]]


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
        position = synonyms.rank(column.name, synonyms.ARM)
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
    named = [column for column in frame.columns if synonyms.rank(column.name, synonyms.ARM) is not None]
    return next((column.name for column in named if len(np.unique(column.codes)) == 1), None)


def refuse_unreadable(frame: Frame) -> None:
    """A column that is called a round and has another value in every row, none of which can be read."""
    for column in frame.columns:
        if synonyms.rank(column.name, synonyms.ROUND) is not None and column.is_unique and not column.is_number:
            cell = f"{column.name} {quote_cell(column.texts[0])}"
            raise ValueError(
                f"{frame.name}: {cell}: must be {ANY_ROUND}; to take the rows in their order, add --columns round="
            )


def refuse_repeated(frame: Frame, rounds: RoundColumns) -> None:
    """Several rows for a round, and no column that tells them apart."""
    codes = joint_codes(frame, rounds.names)
    most = int(np.bincount(codes).max())
    named = [name for name in frame.names if synonyms.rank(name, synonyms.ARM) is not None and name not in rounds.names]
    together = " and ".join(rounds.names)
    if named:
        reason = f"there are up to {most:,} rows for one {together}, and {named[0]} does not tell them apart"
        fix = f"add up the rows of each {together} and {named[0]}, or name the arm's column with --columns arm=NAME"
    else:
        reason = f"there are up to {most:,} rows for one {together}, and no column names the arm"
        fix = "name it with --columns arm=NAME, or take each row as a round with --columns round="
    raise ValueError(f"{frame.name}: {reason}: {fix}")

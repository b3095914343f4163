"""Candidates for decisions and outcomes among the columns of a table, by name and by content.

A candidate's level is what counts: candidates of the same level are equally plausible.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spillover.history import synonyms
from spillover.history.columns import BY_NAME, Group, Item, find_groups
from spillover.history.find_rounds import RowLayout, distinct, joint_codes
from spillover.history.frame import Column, Frame
from spillover.history.synonyms import (
    KNOWN,
    NAMED,
    PARTLY,
    UNNAMED,
    is_circumstance,
    is_outcome,
    is_total,
    level_of,
    parts_of,
)

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
        synonyms.rank(column.name, synonyms.ROW_NUMBER) is not None
        or synonyms.rank(column.name, synonyms.ROUND) is not None
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
        level = level_of(column.name, synonyms.CHOSEN)
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
    levels = {c.name: level_of(c.name, synonyms.CHOSEN) for c in frame.columns}
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
        Candidate(g.items, level_of(g.key, synonyms.CHOSEN), reason_for(level_of(g.key, synonyms.CHOSEN), reason))
        for g in groups
        if (level_of(g.key, synonyms.CHOSEN) >= KNOWN or set(g.columns) & set(able_names))
        and (not amounts or any(is_amount(frame[name]) for name in g.columns))
    ]
    found = without_parts([c for c in found if c.level >= PARTLY])
    grouped = {name for c in found for name in c.columns}
    if amounts:
        return found
    loose = [name for name in able_names if name not in grouped and not is_circumstance(name) and not is_outcome(name)]
    levels = {name: level_of(name, synonyms.CHOSEN) for name in loose}
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
        level = max(level_of(column.name, synonyms.ARM), level_of(column.name, synonyms.CHOSEN))
        few = not column.is_number and 2 <= len(set(column.texts) - {""}) <= MOST_FACTOR
        if few and level >= KNOWN and column.name not in layout.rounds.names:
            named = synonyms.rank(column.name, synonyms.CHOSEN) == 0 or synonyms.plain(column.name) in ("arm", "action")
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
    pending = [c.name for c in frame.columns if c.is_blank and level_of(c.name, synonyms.OUTCOME) >= PARTLY]
    able = [c for c in frame.columns if c.seems_number or c.name in pending]
    numeric = [c for c in able if c.name not in taken and not is_label(c)]
    grouped = [] if layout.arm else group_outcomes(frame, decision, numeric, taken)
    own = {name for group in grouped for name in group.columns}
    found = [] if layout.arm else [*grouped, *factor_outcomes(frame, decision, taken | own)]
    for column in numeric:
        if any(is_sum(frame, column.name, group.items) for group in grouped):
            continue  # the outcomes of the arms tell more than their sum
        level = level_of(column.name, synonyms.OUTCOME)
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
        level = level_of(group.key, synonyms.OUTCOME)
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
        named = [name for name in left if synonyms.rank(name, synonyms.OWN) is not None]
        return (Item(named[0]),) if len(named) == 1 else ()
    arms = {arm_key(item.label or item.name) for item in decision.items}
    for group in find_groups(left):
        if synonyms.rank(group.key, synonyms.OWN) is not None and {arm_key(arm) for arm in group.arms} == arms:
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
        if synonyms.rank(group.key, synonyms.CHOSEN) is None or 2 * sum(inside) < len(inside) or all(inside):
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
        if synonyms.rank(group.key, synonyms.OUTCOME) is None or not arms <= arm_keys(group):
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

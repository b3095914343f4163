"""Find what each column of a table means, by name and by content; several good answers are a question.

A candidate's level is what counts: candidates of the same level are equally plausible, and then the user is asked.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from spillover.history import synonyms
from spillover.history.columns import (
    BY_NAME,
    GIVEN,
    Group,
    Item,
    Reading,
    Wanted,
    collapsed,
    find_groups,
    option_line,
    quote_names,
    resolve,
    write_columns,
)
from spillover.history.find_rounds import RowLayout, distinct, find_layouts, joint_codes, wide_layout
from spillover.history.frame import Column, Frame
from spillover.history.problems import HistoryError
from spillover.history.synonyms import is_a

NAMED, KNOWN, PARTLY, UNNAMED = 30, 20, 10, 0  # levels of names
PER_ARM = 5  # an outcome for each arm tells more than one for all
YES_NO = "by its content: only 0 and 1 (or yes and no)"
AMOUNTS = "by its content: amounts, some of them 0"
ONLY_NUMBER = "by its content: the only column of numbers left"
ARM_NAMES = "by its content: its values are the arms"
DECISION_NAMES = "by its name; its values are the arms, one chosen in each round"
CALENDAR = (
    "jan feb mar apr may jun jul aug sep oct nov dec january february march april june july august september october "
    "november december mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday spring "
    "summer autumn fall winter spr sum q1 q2 q3 q4 christmas xmas easter"
)
FROM_CONTENT = frozenset({YES_NO, AMOUNTS, ONLY_NUMBER, DECISION_NAMES})  # weak, if nothing else supports them
SURE_ROUNDS = 3  # rank up to which rounds are named as such, or are dates
MOST_LOOSE = 12  # columns of 0 and 1 that may all be arms although nothing says so
MOST_FACTOR = 200  # values of a column that names the chosen arm
TOTAL = "total totals sum all overall grandtotal subtotal gesamt summe"
ROUNDED = 1e-3  # of the largest total: parts are often rounded
UNNAMED_COLUMN = re.compile(r"column \d+")  # as columns without a name are called
MOST_READINGS = 8  # readings in a question
LONG = 1_000  # characters of an option that nobody wants to paste
MOST_ASKED = 20  # decisions that are looked at, if that many are equally plausible
STAR_SHOWN = str.maketrans({"\0": "*"})


class Candidate(NamedTuple):
    """Columns that may have a meaning."""

    items: tuple[Item, ...]
    level: int
    reason: str

    @property
    def columns(self) -> set[str]:
        return {item.name for item in self.items}


@lru_cache(65536)
def level_of(name: str, some: tuple[str, ...]) -> int:
    """How sure a name is: the whole name is known, or a part of it."""
    position = synonyms.rank(name, some)
    if position is not None:
        return NAMED if position == 0 else KNOWN
    return (
        PARTLY if parts_of(name) & set(" ".join(some).split()) - {"on", "x", "t", "y", "s", "ad", "open"} else UNNAMED
    )


@lru_cache(65536)
def parts_of(name: str) -> frozenset[str]:
    """The words in a name."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return frozenset(part for part in re.split(r"[\W_\d]+", spaced.casefold()) if part)


@lru_cache(65536)
def is_circumstance(name: str) -> bool:
    """Whether a name is that of a season, a holiday, a price: something that nobody chooses, or context at best."""
    known = set(synonyms.CONTEXT[0].split())
    return bool(parts_of(name) & (known | set(CALENDAR.split()))) or synonyms.plain(name) in known


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


def is_outcome(name: str) -> bool:
    """Whether a name is that of an outcome, and not of a decision."""
    return synonyms.rank(name, synonyms.OUTCOME) is not None and synonyms.rank(name, synonyms.CHOSEN) is None


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
    return {arm.strip().casefold() for arm in group.arms}


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
        arms = {arm.strip().casefold() for arm, here in zip(group.arms, inside, strict=True) if here}
        others = [arm_keys(other) for other in groups if other.pattern != group.pattern and arms <= arm_keys(other)]
        for name, arm in zip(group.columns, group.arms, strict=True):
            column = frame[name]
            mostly = column.seems_number if amounts else column.seems_flag
            everywhere = any(arm.strip().casefold() in some for some in others)
            if name not in good and not is_total(arm) and not column.is_blank and (mostly or everywhere):
                found.append(name)
    return list(dict.fromkeys(found))


def near_outcomes(frame: Frame, arms: set[str], numeric: Sequence[str], free: Sequence[str]) -> list[str]:
    """Columns named like the outcomes of arms, if those of some arms are numbers."""
    found = []
    for group in find_groups(free):
        if synonyms.rank(group.key, synonyms.OUTCOME) is None or not arms <= arm_keys(group):
            continue
        own = [n for n, arm in zip(group.columns, group.arms, strict=True) if arm.strip().casefold() in arms]
        lacking = [name for name in own if name not in numeric and not frame[name].is_blank]
        found += lacking if len(lacking) < len(own) else []
    return list(dict.fromkeys(found))


def is_total(name: str) -> bool:
    """Whether a name is that of a total.

    >>> is_total("Grand total"), is_total("totality")
    (True, False)
    """
    return is_a(name, TOTAL)


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


def find_reading(
    frame: Frame, wanted: Wanted, *, doses: bool = False, context: Sequence[Item] = (), further: Sequence[str] = ()
) -> Reading:
    """The reading of a table; given columns are taken as they are, the others are found.

    doses: columns may hold amounts. context: columns that are given as such, so that they are no decisions and no
    outcomes. further: other options, for the lines to paste.
    """
    given = resolve(frame, wanted)
    if "chosen" in given and "dose" in given:
        raise ValueError("columns: must have chosen= (yes or no) or dose= (amounts), not both")
    amounts = doses or "dose" in given
    decided = given.get("dose", given.get("chosen"))
    rounds = tuple(item.name for item in given["round"]) if "round" in given else None
    arm = given["arm"][0].name if "arm" in given else None
    if arm is None and decided is not None and is_wide(frame, decided):
        layouts = [wide_layout(frame, rounds)]
    else:
        layouts = find_layouts(frame, rounds, arm)
    found = []
    for layout in layouts:
        free = without(frame, known_before(frame, layout, context))
        for decision in decision_candidates(free if decided is None else frame, layout, decided, amounts)[:MOST_ASKED]:
            found += readings(free, layout, decision, given, amounts)
    if not found:
        raise ValueError(f"{frame.name}: {nothing_found(frame, layouts[0], decided, amounts)}")
    if len(found) > 1 or is_weak(found[0], layouts[0]):
        raise question(frame, found, further)
    return found[0]


def known_before(frame: Frame, layout: RowLayout, context: Sequence[Item]) -> set[str]:
    """The columns that are given as context; those of some arms only, of a group of outcomes or decisions, are none."""
    used = (*layout.rounds.names, layout.arm)
    found = {name for name in frame.names if name not in used and any(item.names(name) for item in context)}
    for group in find_groups(frame.names) if found else []:
        is_role = any(level_of(group.key, some) > UNNAMED for some in (synonyms.OUTCOME, synonyms.CHOSEN))
        found -= set(group.columns) if is_role and not found >= set(group.columns) else set()
    return found


def without(frame: Frame, names: Collection[str]) -> Frame:
    """The table without some columns."""
    return replace(frame, columns=tuple(column for column in frame.columns if column.name not in names))


def is_weak(reading: Reading, layout: RowLayout) -> bool:
    """Whether content alone suggests a reading: then it is offered, not taken."""
    guessed = sum(reading.reasons[role] in FROM_CONTENT for role in ("chosen", "outcome"))
    return guessed > (0 if layout.rounds.rank > SURE_ROUNDS and layout.rounds.reason != GIVEN else 1)


def is_wide(frame: Frame, decided: Sequence[Item]) -> bool:
    """Whether given decisions are one column for each arm."""
    return len(decided) > 1 or any(item.label is not None for item in decided)


def decision_candidates(
    frame: Frame, layout: RowLayout, decided: Sequence[Item] | None, amounts: bool
) -> list[Candidate]:
    """The decisions that were given, or the surest ones."""
    if decided is not None:
        items = tuple(decided) if layout.arm is not None else tuple(labelled(frame, item) for item in decided)
        return [Candidate(items, UNNAMED, GIVEN)]
    found = (wide_decisions if layout.arm is None else long_decisions)(frame, layout, amounts)
    return surest(found)


def labelled(frame: Frame, item: Item) -> Item:
    """A column with its arm: its own name, unless its values are the arms."""
    column = frame[item.name]
    names_arms = item.label is None and column.flags is None and not column.is_number
    return item if item.label is not None or names_arms else Item(item.name, item.name)


def surest(found: Sequence[Candidate]) -> list[Candidate]:
    best = max((candidate.level for candidate in found), default=0)
    return [candidate for candidate in found if candidate.level == best]


def readings(frame: Frame, layout: RowLayout, decision: Candidate, given: Wanted, amounts: bool) -> list[Reading]:
    """The readings with this decision, one for each outcome that is as sure as any other."""
    own = given.get("z")
    taken = decision.columns | {*layout.rounds.names} | {layout.arm or ""}
    own = own_rewards(frame, layout, decision, taken) if own is None else own
    if "outcome" in given:
        outcomes = [Candidate(given["outcome"], UNNAMED, GIVEN)]
    else:
        outcomes = surest(outcomes_of(without(frame, {item.name for item in own}), layout, decision))
        if not outcomes and own:  # the arms' own rewards alone
            outcomes = [Candidate((), UNNAMED, GIVEN)]
    reasons = {"round": layout.rounds.reason, "arm": layout.reason, "chosen": decision.reason}
    return [
        Reading(
            round=layout.rounds.names,
            arm=layout.arm,
            chosen=decision.items,
            amounts=amounts,
            outcome=outcome.items,
            own=tuple(own),
            reasons=reasons | {"outcome": outcome.reason, "z": GIVEN if "z" in given else "by its name"},
        )
        for outcome in outcomes
    ]


def question(frame: Frame, found: Sequence[Reading], further: Sequence[str]) -> HistoryError:
    """The readings that are equally plausible, each with the line to paste."""
    unclear = []
    for role, about in (("arm", "the arm"), ("chosen", "what was chosen"), ("outcome", "the outcome")):
        values = dict.fromkeys(shown(frame, reading, role) for reading in found)
        if len(values) > 1:
            some = list(values)[:MOST_READINGS]
            more = f" and {len(values) - MOST_READINGS} more" if len(values) > MOST_READINGS else ""
            unclear.append(f"{about} may be {', '.join(some)}{more}")
    one = "only the content of columns suggests how to read this table: confirm it with this option, or name others"
    asked = f"{'; '.join(unclear)}: say which, with one of these options" if unclear else one
    lines = [f"{frame.name}: {asked}"]
    lines += [f"{frame.name}:   {option_line(to_paste(frame, r, found), further)}" for r in found[:MOST_READINGS]]
    if len(found) > MOST_READINGS:
        lines.append(f"{frame.name}:   (and {len(found) - MOST_READINGS} more, likewise)")
    return HistoryError(frame.name, lines, 1)


def to_paste(frame: Frame, reading: Reading, others: Sequence[Reading]) -> str:
    """The text for `--columns` that settles a reading; without many decisions, if they are found in any case."""
    whole = reading.columns(frame.names)
    if len(whole) <= LONG or any(other.chosen != reading.chosen for other in others):
        return whole
    return replace(reading, chosen=()).columns(frame.names)


def shown(frame: Frame, reading: Reading, role: str) -> str:
    """The columns of a role in a few words."""
    if role == "arm":
        return reading.arm or "no column"
    items = reading.chosen if role == "chosen" else reading.outcome
    short = collapsed([item.name for item in items], frame.names)
    return " with ".join(short[:4]).translate(STAR_SHOWN) + (" ..." if len(short) > 4 else "")


def nothing_found(frame: Frame, layout: RowLayout, decided: Sequence[Item] | None, amounts: bool) -> str:
    """Why a table cannot be read, and what to do."""
    there = f"there are: {quote_names(frame.names)}"
    unnamed = sum(UNNAMED_COLUMN.fullmatch(name) is not None for name in frame.names)
    if 2 * unnamed > len(frame.names):
        above = "the first line must have the column names: delete titles and empty lines above them"
        return f"{unnamed} of {len(frame.names)} columns have no name: {above}; {there}"
    decisions = decision_candidates(frame, layout, decided, amounts)
    if decisions:
        names = ", ".join(sorted(decisions[0].columns)[:4])
        return f"no column of outcomes beside {names}: name it with --columns outcome=NAME; {there}"
    groups = find_groups([column.name for column in frame.columns if is_amount(column)])
    likely = wide_decisions(frame, layout, True) if layout.arm is None else long_decisions(frame, layout, True)
    if not amounts and likely:
        best = surest(likely)[0]
        some = ", ".join(item.name for item in best.items[:3]) + (" ..." if len(best.items) > 3 else "")
        return (
            f"no column says what was chosen with yes or no; {some} may be amounts: add --doses to take them as such, "
            f"or name the columns with --columns 'dose=NAME;NAME'; {there}"
        )
    pattern = f"dose={groups[0].pattern.translate(STAR_SHOWN)}" if groups else loose_amounts(frame, layout)
    such = f" (such as {option_line(pattern)})" if pattern else ""
    if amounts:
        return f"no column says what was chosen (amounts): name it with --columns 'dose=NAME;NAME'{such}; {there}"
    doses = f", or the amounts with --columns 'dose=NAME;NAME'{such}" if pattern else ""
    return (
        f"no column says what was chosen (0 and 1, or yes and no): name it with --columns chosen=NAME{doses}; {there}"
    )


def loose_amounts(frame: Frame, layout: RowLayout) -> str:
    """Columns that may be amounts by their content alone, as text for `--columns`."""
    able = [c for c in frame.columns if is_amount(c) and c.name not in (*layout.rounds.names, layout.arm)]
    items = [Item(c.name) for c in able if not (is_outcome(c.name) or is_circumstance(c.name) or is_label(c))]
    return write_columns({"dose": tuple(items[:MOST_READINGS])}) if items else ""

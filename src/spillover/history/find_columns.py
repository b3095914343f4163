"""Find what each column of a table means, by name and by content; several good answers are a question.

Candidates of the same level are equally plausible, and then the user is asked.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from spillover.history import columns
from spillover.history.candidates import (
    AMOUNTS,
    DECISION_NAMES,
    ONLY_NUMBER,
    SURE_ROUNDS,
    YES_NO,
    Candidate,
    RowLayout,
    find_layouts,
    is_amount,
    is_label,
    long_decisions,
    outcomes_of,
    own_rewards,
    surest,
    wide_decisions,
    wide_layout,
)
from spillover.history.columns import (
    GIVEN,
    UNNAMED,
    Item,
    Reading,
    Wanted,
    collapsed,
    find_groups,
    is_circumstance,
    is_outcome,
    level_of,
    option_line,
    quote_names,
    resolve,
    write_columns,
)
from spillover.history.frame import Frame
from spillover.history.record import HistoryError

FROM_CONTENT = frozenset({YES_NO, AMOUNTS, ONLY_NUMBER, DECISION_NAMES})  # weak, if nothing else supports them
UNNAMED_COLUMN = re.compile(r"column \d+")  # as columns without a name are called
MOST_READINGS = 8  # readings in a question
LONG = 1_000  # characters of an option that nobody wants to paste
MOST_ASKED = 20  # decisions that are looked at, if that many are equally plausible
STAR_SHOWN = str.maketrans({"\0": "*"})


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
        is_role = any(level_of(group.key, some) > UNNAMED for some in (columns.OUTCOME, columns.CHOSEN))
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

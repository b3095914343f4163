"""Read a table as people have it: find what each column means, by name and content, and build its history.

Candidates for a meaning that are of the same level are equally plausible, and then the user is asked.
"""

import re
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spillover import validate
from spillover.formatting import first_of
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
from spillover.history.cells import HistoryError, Problems
from spillover.history.columns import (
    BY_NAME,
    GIVEN,
    UNNAMED,
    Item,
    Reading,
    Wanted,
    any_form,
    as_items,
    as_wanted,
    collapsed,
    find_groups,
    is_circumstance,
    is_outcome,
    level_of,
    option_line,
    plain_names,
    quote_names,
    read_names,
    resolve,
    write_columns,
)
from spillover.history.files import MEANINGS, NEEDED, OpenTable, match_columns, open_table
from spillover.history.frame import INDEX, Frame, Style, read_frame, table_of
from spillover.history.panel import Options, Progress
from spillover.history.record import History, assemble, assemble_plain

FROM_CONTENT = frozenset({YES_NO, AMOUNTS, ONLY_NUMBER, DECISION_NAMES})  # weak, if nothing else supports them
UNNAMED_COLUMN = re.compile(r"column \d+")  # as columns without a name are called
MOST_READINGS = 8  # readings in a question
LONG = 1_000  # characters of an option that nobody wants to paste
MOST_ASKED = 20  # decisions that are looked at, if that many are equally plausible
STAR_SHOWN = str.maketrans({"\0": "*"})


POINTS = {"point": ".", "comma": ",", ".": ".", ",": ","}
ORDERS = ("day-first", "month-first")
COPIED = 1 << 20  # bytes of standard input at a time
STDIN = "stdin"  # what messages call standard input
MOST_INPUT = 4_000_000_000  # bytes of standard input
MOST_COLUMNS = 16_384  # as many as a sheet of Excel has


def read_history(
    source: Any,
    *,
    columns: str | Mapping[str, Any] | None = None,
    context: str | Sequence[str] | None = None,
    next_context: Mapping[str, object] | None = None,
    minimise: bool = False,
    doses: bool = False,
    dates: str | None = None,
    decimal: str | None = None,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    progress: Progress = lambda read: None,
) -> History:
    """Read past decisions and their outcomes from a table.

    source: a path (CSV, also .gz; Parquet; Excel), "-" for standard input, a data frame (pandas, Polars, Arrow) or a
        mapping from names to columns; one row for each round and arm, or one row for each round.
    columns: what columns mean, as for `--columns`: "round=week,chosen=promo.*,outcome=sales.*", or a mapping from
        round, arm, chosen, dose, z, outcome and context to names. What is not given is found by name and content.
    context: columns known before each decision, or month, weekday, season, trend. next_context: their values in the
        round to decide, by column.
    minimise: smaller outcomes are better. doses: decisions are amounts.
    dates: "day-first" or "month-first"; decimal: "point" or "comma"; needed only where the table does not settle it.
    reward_range, overall_range: ranges of z and y to check, for a table with z.
    A table that cannot be read is a ValueError, with a line for each problem if it is a HistoryError.

    >>> table = {"week": [1, 2], "promo_a": ["yes", "no"], "promo_b": ["no", "yes"]}
    >>> table |= {"sales_a": ["$1,200.50", "$900"], "sales_b": [3, 4]}
    >>> history = read_history(table)
    >>> history.arms, history.y.tolist()
    (('a', 'b'), [[1200.5, 3.0], [900.0, 4.0]])
    >>> print(history.columns_option)
    --columns 'round=week,chosen=promo_*,outcome=sales_*'
    """
    validate.require(dates is None or dates in ORDERS, "dates", dates, f"one of {', '.join(ORDERS)}")
    validate.require(decimal is None or decimal in POINTS, "decimal", decimal, "one of point, comma")
    wanted = as_wanted(columns)
    named = read_names(context) if isinstance(context, str) else as_items(context)
    options = Options(
        wanted={role: items for role, items in wanted.items() if role != "context"},
        context=tuple(dict.fromkeys((*wanted.get("context", ()), *named))),
        next_context=next_context or {},
        minimise=minimise,
        doses=doses,
        style=Style(POINTS[decimal] if decimal else None, dates),
        reward_range=reward_range,
        overall_range=overall_range,
        progress=progress,
    )
    if isinstance(source, str) and source == "-":
        return read_standard_input(options)
    if isinstance(source, str | Path):
        return read_open(open_table(Path(source), wanted_names(options)), options)
    data = table_of(source)
    return read_open(OpenTable(Path("table"), data.column_names, data=data), options)


def name_of(source: str) -> str:
    """The name of a file in messages; "-" is standard input."""
    return STDIN if source == "-" else source


def read_standard_input(options: Options) -> History:
    """Standard input, kept in a file, as it is read more than once; messages call it stdin."""
    start = sys.stdin.buffer.read(COPIED)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("stdin.gz" if start[:2] == b"\x1f\x8b" else "stdin")
        copy_input(path, start)
        try:
            return read_open(open_table(path, wanted_names(options)), options)
        except HistoryError as error:
            raise error.renamed(str(path), STDIN) from None
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), STDIN)) from None


def copy_input(path: Path, start: bytes) -> None:
    """Write the rest of standard input to a file, part by part: it may be large, or never end."""
    size, part = 0, start
    with path.open("wb") as file:
        while part:
            size += file.write(part)
            if size > MOST_INPUT:
                raise ValueError(f"stdin: more than {MOST_INPUT:,} bytes: must be a file, not standard input")
            part = sys.stdin.buffer.read(COPIED)


def wanted_names(options: Options) -> list[str]:
    """Names that the header may have, to tell its separator."""
    renamed = plain_names(options.wanted) or {}
    return [renamed.get(name, name) for name in MEANINGS]


def read_open(table: OpenTable, options: Options) -> History:
    """The history in a table, with what is to be said of its file."""
    if len(table.names) > MOST_COLUMNS:
        advice = "a row for each round and arm needs only a few"
        raise ValueError(f"{table.path}: {len(table.names):,} columns: must be at most {MOST_COLUMNS:,} ({advice})")
    found = read_form(table, options)
    return replace(found, notes=(*table.notes, *found.notes)) if table.notes else found


def read_form(table: OpenTable, options: Options) -> History:
    """A table in the plain form is read as such; any other by what its columns seem to be."""
    renamed = plain_names(options.wanted)
    special = bool(options.context or options.doses or options.next_context or options.style.point)
    there = 0 if renamed is None or special else plain_columns(table.names, renamed)
    if renamed is None or not there:
        return read_any(table, options)
    if there == len(NEEDED):
        return read_plain(table, renamed, options)
    try:  # one name is not as in the plain form: a synonym, or a misspelling
        found = read_any(table, options)
    except ValueError:
        plain_places(table, renamed)  # an error that names the column
        raise
    if any(column.reason.startswith("by its content") for column in found.taken):
        plain_places(table, renamed)
    return found


def plain_columns(names: Sequence[str], renamed: Mapping[str, str]) -> int:
    """Count the columns of the plain form; 0 if z is missing, or more than one other."""
    folded = {name.casefold() for name in names}
    found = [name for name in NEEDED if renamed.get(name, name).casefold() in folded]
    return len(found) if "z" in found and len(found) >= len(NEEDED) - 1 else 0


def read_plain(table: OpenTable, renamed: Mapping[str, str], options: Options) -> History:
    """A table with one row for each round and arm: round, arm, chosen, z and y, in any order, every cell there."""
    places = plain_places(table, renamed)
    frame = read_frame(table, options.progress, places).styled(options.style)
    if not frame.rows:
        raise ValueError(f"{table.path}: has column names but no rows: must have one row for each round and arm")
    items = {meaning: (Item(table.names[place]),) for meaning, place in places.items()}
    undecided = frame[items["chosen"][0].name].codes < 0
    known = [frame[items[meaning][0].name].filled for meaning in ("z", "y") if meaning in items]
    if undecided.any() and not (undecided & np.any(known, axis=0)).any():  # the round to decide
        return read_any(table, options._replace(wanted=dict(items)))
    roles = {"round": "round", "arm": "arm", "chosen": "chosen", "z": "z", "y": "outcome"}
    reading = Reading(
        round=(items["round"][0].name,),
        arm=items["arm"][0].name,
        chosen=items["chosen"],
        outcome=items.get("y", ()),
        own=items["z"],
        reasons={role: GIVEN if meaning in renamed else BY_NAME for meaning, role in roles.items()},
    )
    unused = [name for place, name in enumerate(table.names) if place not in places.values()]
    if table.layout is None:
        unused = [name for name in unused if not INDEX.fullmatch(name)]
    given = {meaning: items.get(meaning, ()) for meaning in MEANINGS}
    return assemble_plain(frame, reading, options, unused, given)


def plain_places(table: OpenTable, renamed: Mapping[str, str]) -> dict[str, int]:
    """The places of the columns of the plain form; an error if it is not clear which they are."""
    problems = Problems()
    places = match_columns(table.names, renamed, problems)
    if places is None:
        raise problems.error(str(table.path), lambda rows: [])
    return places


def read_any(table: OpenTable, options: Options) -> History:
    """A table of any form."""
    frame = read_frame(table, options.progress).styled(options.style)
    if not frame.rows:
        if not frame.names:
            raise ValueError(f"{table.path}: is empty: must have a row for each round, or for each round and arm")
        plain_places(table, plain_names(options.wanted) or {})
        raise ValueError(f"{table.path}: has column names but no rows: must have one row for each round and arm")
    return assemble(frame, find_reading(frame, options), options)


def find_reading(frame: Frame, options: Options) -> Reading:
    """The reading of a table; given columns are taken as they are, the others are found.

    Columns that are given as context are no decisions and no outcomes.
    """
    given = resolve(frame, any_form(options.wanted))
    if "chosen" in given and "dose" in given:
        raise ValueError("columns: must have chosen= (yes or no) or dose= (amounts), not both")
    amounts = options.doses or "dose" in given
    decided = given.get("dose", given.get("chosen"))
    rounds = tuple(item.name for item in given["round"]) if "round" in given else None
    arm = given["arm"][0].name if "arm" in given else None
    if arm is None and decided is not None and is_wide(frame, decided):
        layouts = [wide_layout(frame, rounds)]
    else:
        layouts = find_layouts(frame, rounds, arm)
    found = []
    for layout in layouts:
        free = without(frame, known_before(frame, layout, options.context))
        for decision in decision_candidates(free if decided is None else frame, layout, decided, amounts)[:MOST_ASKED]:
            found += readings(free, layout, decision, given, amounts)
    if not found:
        raise ValueError(f"{frame.name}: {nothing_found(frame, layouts[0], decided, amounts)}")
    if len(found) > 1 or is_weak(found[0], layouts[0]):
        raise question(frame, found, options.further)
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
            unclear.append(f"{about} may be {first_of(list(values), MOST_READINGS)}")
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

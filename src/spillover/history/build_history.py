"""Build a history from the cells by round and arm: count and say what is missing, set rounds to decide apart."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spillover.history.candidates import NO_ROUNDS
from spillover.history.columns import (
    OUTCOME,
    ROW_NUMBER,
    STAR,
    TOTAL,
    Item,
    Reading,
    collapsed,
    option_line,
    parts_of,
    rank,
    resolve_item,
    write_columns,
    write_item,
)
from spillover.history.context import context_of
from spillover.history.frame import Frame
from spillover.history.panel import Panel, Ranges, build_panel
from spillover.history.record import History, HistoryError, shows_baseline
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import quoted

LISTED = 5  # arms or rounds in a note


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
    panel, blanks = with_blanks_as_no(build_panel(frame, reading))
    split = split_rounds(panel)
    refuse_undecided(frame, panel, split)
    in_order = [NO_ROUNDS.reason] if reading.reasons.get("round") == NO_ROUNDS.reason else []
    notes = [*in_order, *blanks, *panel.dates.notes, *split.notes, *missing_notes(panel, split.played, reading)]
    given_context = context_of(frame, panel, split.played, split.first, context, reading, next_context or {})
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


def assemble_plain(
    frame: Frame, reading: Reading, ranges: Ranges, unused: Sequence[str], given: Mapping[str, Sequence[Item]]
) -> History:
    """The history of a table in the plain form. unused: its other columns. given: its columns as options name them."""
    panel = build_panel(frame, reading, ranges)
    x, labels = panel.decision == 1, panel.dates.labels
    z: Any = panel.z
    found = complete_outcomes(x, z, panel.y if reading.outcome else None, labels)
    left = [f"columns not used: {', '.join(map(quoted, unused))}"] if unused else []
    return History(
        arms=panel.arms,
        rounds=labels,
        x=x,
        z=found.z,
        y=found.y,
        arrived=found.arrived,
        has_overall=bool(reading.outcome),
        following=panel.dates.following,
        notes=(*panel.dates.notes, *found.notes, *left),
        has_baseline=bool(reading.outcome) and shows_baseline(x, found.z, found.y, found.arrived),
        outcome_names=panel.outcome_names,
        taken=reading.taken(frame.table.names),
        columns_option=option_line(write_columns(given)),
    )


class CompleteOutcomes(NamedTuple):
    """The outcomes of the rounds, ready for a policy to learn from."""

    z: Array
    y: Array
    arrived: BoolArray
    notes: list[str]


def complete_outcomes(
    x: BoolArray, z: Array, y: Array | None, labels: Sequence[str], *, goes_on: bool = False
) -> CompleteOutcomes:
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
    return CompleteOutcomes(z, y, arrived, notes)


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


def with_blanks_as_no(panel: Panel) -> tuple[Panel, list[str]]:
    """Take empty decisions of rounds that were played as "not chosen" if no cell says so; with a note."""
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
    """Say what is missing and how it is treated, one note for each cause."""
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

    known_after = rank(name, OUTCOME) is not None or bool(parts_of(name) & set(TOTAL.split()))
    label = rank(name, ROW_NUMBER) is not None or bool(parts_of(name) & {"id", "hid", "code"})
    return is_number and differs and not label and not known_after


def varies(codes: IntArray) -> bool:
    return len(np.unique(codes[codes >= 0])) > 1

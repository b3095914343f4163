"""A history: the decisions and outcomes of all rounds, from the cells of a table, and notes on what is missing."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover.formatting import count_of, first_of
from spillover.history.candidates import NO_ROUNDS
from spillover.history.cells import HistoryError
from spillover.history.columns import (
    OUTCOME,
    ROW_NUMBER,
    STAR,
    TOTAL,
    Item,
    Reading,
    TakenColumn,
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
from spillover.history.panel import UNIT, Options, Panel, build_panel
from spillover.kernels import NARROWEST_RANGE
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import quoted

WIDER = 0.1  # share of the range of rewards that is added to it
TAILS = (0.025, 0.975)  # quantiles between which an outcome varies
DEVIATIONS = 4.0  # standard deviations in the range of an outcome whose quantiles coincide
Range = tuple[float, float]
ROUNDS_FOR_EACH_ARM = 2  # rounds that are looked at, the last ones; at least FEWEST_ROUNDS
FEWEST_ROUNDS = 1_000
SURE = 5.0  # standard errors from which on an intercept is no chance
SINGULAR = 1e-5  # of the scaled design, from which on its columns count as dependent
EXACT = 1e-9  # share of the largest outcome below which an intercept is rounding
CONSTANT = 1e-12  # standard deviation, relative to the size of the values, of a column that does not vary


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """Past decisions and their outcomes; rows are rounds in order, columns are arms in natural order.

    A table with own rewards z as `spillover next --example` writes it has complete rounds only: z is 0 for arms that
    were not chosen, and both are 0 in rounds that have not arrived. In other tables y (and z) are NaN where missing.

    >>> from spillover.history import read_history
    >>> table = {"week": [1, 2, 3], "promo_a": [1, 0, 1], "promo_b": [0, 1, 1]}
    >>> table |= {"sales_a": [9, 5, None], "sales_b": [3, 4, None]}
    >>> history = read_history(table)
    >>> history.arms, history.pending
    (('a', 'b'), ('3',))
    """

    arms: tuple[str, ...]
    rounds: tuple[str, ...]  # their labels
    x: BoolArray  # (rounds, arms)
    z: Any  # (rounds, arms); None: the table has no own rewards
    y: Array  # (rounds, arms); z if the table has no y; with observes="payoff" the sum is in the first column
    arrived: BoolArray  # (rounds,): whether outcomes of the round are known
    has_overall: bool = True  # whether the table has y: without it no spill-over can be learned
    following: str | None  # the label of the next round, if the rounds have a regular step
    notes: tuple[str, ...]  # what the owner of the table should know
    observes: str = "both"  # "both": z and y; "overall": y only; "payoff": one outcome for all arms
    dose: Any = None  # (rounds, arms): amounts relative to each arm's reference dose; None: yes or no
    reference_dose: Any = None  # (arms,): the average amount where it is positive, in the units of the table
    context: Any = None  # (rounds, k), as in the table; None: no context
    context_names: tuple[str, ...] = ()
    next_context: Any = None  # (k,): of the round to decide
    minimise: bool = False  # whether y and z are the negated outcomes of the table
    has_baseline: bool = False  # whether outcomes may differ from 0 where nothing is chosen
    outcome_names: tuple[str, ...] = ()  # the table's columns of y
    taken: tuple[TakenColumn, ...] = ()  # what each column of the table was taken for, and why
    columns_option: str = ""  # the options to paste for the same reading

    @property
    def pending(self) -> tuple[str, ...]:
        """Rounds whose outcomes have not arrived."""
        return tuple(self.rounds[k] for k in np.flatnonzero(~self.arrived))

    @cached_property
    def observed(self) -> BoolArray:
        """Which arms have outcomes, (arms,)."""
        known = np.isfinite(self.y) | (self.observes == "payoff")
        return np.asarray(np.any(self.x & known, axis=0, where=self.arrived[:, None]))

    @cached_property
    def extremes(self) -> Range:
        """The smallest and the largest z where arms were chosen, 0 included."""
        known = self.z[self.x & self.arrived[:, None] & np.isfinite(self.z)]
        return float(known.min(initial=0.0)), float(known.max(initial=0.0))

    @property
    def nothing_chosen(self) -> bool:
        """Whether some rounds have outcomes, but no arm was chosen in any of them."""
        return bool(self.arrived.any() and not self.observed.any())


def reward_range_of(history: History, declared: Range | None) -> Range:
    """The range of own rewards, from the data: what a policy takes as the scale of effects.

    With own rewards z: from the smallest to the largest reward, 0 included, widened by a tenth. If all of them lie
    between 0 and 1, that range counts as declared.
    Without z: effects are assumed to be no larger than outcomes vary. An outcome varies between its 2.5% and 97.5%
    quantiles (four standard deviations where these coincide, as for rare events); the arm that varies most counts, and
    the range is as wide in both directions: effects may be negative. A policy has one range for all arms.

    A declared range only matters where it is narrower: outside of what the data show it says nothing. So the decision
    does not depend on a range that was declared generously, and scaling all outcomes scales the range.
    """
    declared = default_range(history) if declared is None else declared
    if history.minimise and declared is not None:
        declared = flipped(declared)
    from_data = range_of_rewards(history) if history.observes == "both" else range_of_effects(history)
    if declared is None:
        return from_data
    low, high = max(from_data[0], declared[0]), min(from_data[1], declared[1])
    return (low, high) if high - low >= NARROWEST_RANGE else declared


def default_range(history: History) -> Range | None:
    """The range that counts as declared if none is: 0 to 1 where the rewards of the table allow it."""
    if history.observes != "both":
        return None
    low, high = flipped(history.extremes) if history.minimise else history.extremes
    return UNIT if UNIT[0] <= low and high <= UNIT[1] else None


def flipped(pair: Range) -> Range:
    """The range of negated values."""
    return -pair[1], -pair[0]


def range_of_rewards(history: History) -> Range:
    """The range of z where arms were chosen, and 0."""
    low, high = history.extremes
    if high - low < NARROWEST_RANGE:
        return UNIT
    more = WIDER * (high - low)
    return low - more if low < 0 else 0.0, high + more if high > 0 else 0.0


def range_of_effects(history: History) -> Range:
    """As far in both directions as the outcomes of an arm vary."""
    outcomes = history.y[:, :1] if history.observes == "payoff" else history.y
    widths = [width(column[np.isfinite(column)]) for column in outcomes[history.arrived].T]
    most = max(widths, default=0.0)
    return (-most, most) if most >= NARROWEST_RANGE else (-1.0, 1.0)


def width(values: Array) -> float:
    """The spread of an outcome; its size if it does not vary."""
    if not len(values):
        return 0.0
    low, high = np.quantile(values, TAILS)
    return float(high - low) or DEVIATIONS * float(values.std()) or float(np.abs(values).max())


def shows_baseline(x: BoolArray, z: Array, y: Array, arrived: BoolArray) -> bool:
    """Whether outcomes differ from 0 where nothing is chosen, or would by extrapolation.

    Without a baseline y is a linear function of z: the intercept of a regression of y on z is 0 for every arm.
    """
    most = max(FEWEST_ROUNDS, ROUNDS_FOR_EACH_ARM * x.shape[1])
    known: Any = slice(-most, None) if arrived.all() else np.flatnonzero(arrived)[-most:]
    x, z, y = x[known], z[known], y[known]
    count = len(y)
    if bool(y[~x.any(axis=1)].any()):
        return True
    used = z[:, (z != 0.0).any(axis=0)]
    if count <= used.shape[1] + 1 or not used.shape[1]:
        return False
    design = np.concatenate([np.ones((count, 1)), used], axis=1)
    design /= np.sqrt((design**2).sum(axis=0))
    gram = design.T @ design
    try:
        root = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    if root.diagonal().min() < SINGULAR:  # such as rewards of constant sum: the intercept cannot be told
        return False
    factors = np.linalg.solve(gram, np.eye(len(gram), 1)[:, 0])
    intercepts = np.abs(design @ factors @ y) / np.sqrt(count)
    doubtful = intercepts > EXACT * np.abs(y).max(axis=0)
    if not doubtful.any():
        return False
    outcomes = y[:, doubtful]
    residual = outcomes - design @ np.linalg.solve(gram, design.T @ outcomes)
    variance = (residual**2).sum(axis=0) / max(count - used.shape[1] - 1, 1)
    return bool((intercepts[doubtful] > SURE * np.sqrt(factors[0] / count * variance)).any())


class StandardContext(NamedTuple):
    """Context that a policy learns from, and what to decide with."""

    names: tuple[str, ...]
    values: Array  # (rounds, k)
    following: Array  # (k,): of the round to decide
    dropped: tuple[str, ...]  # columns that do not vary


def standard_context(history: History) -> StandardContext | None:
    """The context of a history, standardised; None if there is none, or none that varies."""
    if history.context is None or not len(history.context):
        return None
    values = np.asarray(history.context, float)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    varies = deviation > CONSTANT * np.maximum(np.abs(values).max(axis=0, initial=0.0), CONSTANT)
    names = np.array(history.context_names, object)
    if not varies.any():
        return None
    following = mean if history.next_context is None else np.asarray(history.next_context, float)
    scaled = (values[:, varies] - mean[varies]) / deviation[varies]
    next_scaled = (following[varies] - mean[varies]) / deviation[varies]
    return StandardContext(tuple(names[varies]), scaled, next_scaled, tuple(names[~varies]))


LISTED = 5  # arms or rounds in a note


class Split(NamedTuple):
    """The rounds that were played, and the first one to decide."""

    played: IntArray
    first: int | None  # the round to decide, if the table has it
    notes: list[str]


def assemble(frame: Frame, reading: Reading, options: Options) -> History:
    """The history that a table holds under a reading of its columns."""
    context, sign = options.context, -1.0 if options.minimise else 1.0
    panel, blanks = with_blanks_as_no(build_panel(frame, reading))
    split = split_rounds(panel)
    refuse_undecided(frame, panel, split)
    in_order = [NO_ROUNDS.reason] if reading.reasons.get("round") == NO_ROUNDS.reason else []
    notes = [*in_order, *blanks, *panel.dates.notes, *split.notes, *missing_notes(panel, split.played, reading)]
    given_context = context_of(frame, panel, split.played, split.first, context, reading, options.next_context)
    whole = replace(reading, context=context)
    if given_context is not None:
        notes += given_context.notes
    notes += unused_notes(frame, whole, panel)
    here = split.played
    decision = np.nan_to_num(panel.decision[here])
    x = decision > 0
    y, z, observes = observed_outcomes(panel, here, reading)
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
        minimise=options.minimise,
        has_baseline=True,
        outcome_names=panel.outcome_names,
        taken=whole.taken(frame.names),
        columns_option=option_line(whole.columns(frame.names), options.further),
    )


def assemble_plain(
    frame: Frame, reading: Reading, options: Options, unused: Sequence[str], given: Mapping[str, Sequence[Item]]
) -> History:
    """The history of a table in the plain form. unused: its other columns. given: its columns as options name them."""
    panel = build_panel(frame, reading, options)
    x, labels = panel.decision == 1, panel.dates.labels
    z: Any = panel.z
    found = complete_outcomes(x, z, panel.y if reading.outcome else None, labels)
    left = [f"columns not used: {', '.join(map(quoted, unused))}"] if unused else []
    return History(
        arms=panel.arms,
        rounds=labels,
        x=x,
        z=-found.z if options.minimise else found.z,
        y=-found.y if options.minimise else found.y,
        arrived=found.arrived,
        has_overall=bool(reading.outcome),
        following=panel.dates.following,
        notes=(*panel.dates.notes, *found.notes, *left),
        has_baseline=bool(reading.outcome) and shows_baseline(x, found.z, found.y, found.arrived),
        outcome_names=panel.outcome_names,
        taken=reading.taken(frame.table.names),
        minimise=options.minimise,
        columns_option=option_line(write_columns(given), options.further),
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
        some = [f"{labels[t]} ({lacking[t]} of {possible[t]} values missing)" for t in partly[:LISTED]]
        notes.append(f"rounds with missing values count as pending: {first_of(some, LISTED, len(partly))}")
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
    note = f"{count_of(int(blank.sum()), 'empty decision')} taken as not chosen: no other cell says so"
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
            f"{count_of(len(between), 'round')} without decision and outcome left out, the first {labels[between[0]]}"
        )
    if tail > 1:
        notes.append(f"{tail} rounds are to decide: the answer is for the first, {labels[last + 1]}")
    return Split(np.flatnonzero(~empty), last + 1 if tail else None, notes)


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
        line = f"{frame.name}: {count_of(len(bad), 'decision')} missing although there is an outcome, {some}: {fix}"
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
        some = first_of([*came, *went], LISTED)
        notes.append(f"not in all rounds: {some}; in the others taken as not chosen, with unknown outcomes")
    index = np.arange(len(there))[:, None]
    within = ~there & (index > first) & (index < last) & ever
    if within.any():
        notes.append(
            f"{count_of(int(within.sum()), 'row')} missing between an arm's first and last round: taken as not chosen, "
            "with unknown outcomes"
        )
    if reading.outcome:
        y = panel.y[played]
        lacks = np.isnan(y) & (there if y.shape == there.shape else True)
        partly = lacks & ~np.isnan(y).all(axis=1, keepdims=True)
        if partly.any():
            rounds = int(partly.any(axis=1).sum())
            notes.append(
                f"{count_of(int(partly.sum()), 'outcome')} missing in {count_of(rounds, 'round')}: the others are used"
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
        said = first_of([quoted(name.replace(STAR, "*")) for name in short], LISTED)
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

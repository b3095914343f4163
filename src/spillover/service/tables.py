"""A stream as a table and as a history: the one that `spillover next` reads from its export."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spillover.history import History, read_history
from spillover.history.build_history import complete_outcomes
from spillover.history.record import shows_baseline
from spillover.history.rounds import calendar
from spillover.service.ledger import Ledger
from spillover.service.settings import Settings, is_number

FIRST = "1"  # the round to decide where none is named and none was played


class Coming(NamedTuple):
    """The round to decide, and what is known of it before."""

    label: str | None  # None: the one that follows in the calendar
    context: Mapping[str, Any]
    unavailable: tuple[str, ...] = ()


def learned_rounds(ledger: Ledger) -> list[str]:
    """The rounds of the history, in order: those that took place, without those of which too little will arrive."""
    if not ledger.expired:
        return ledger.played
    return [label for label in ledger.played if label not in ledger.expired or usable(ledger, label)]


def usable(ledger: Ledger, label: str) -> bool:
    """Whether something can be learned from an expired round: with z only if it is complete."""
    if ledger.settings.plain:
        return ledger.missing(label) == 0
    row = ledger.rows[label]
    known = ledger.z[row] if ledger.settings.observes == "own" else ledger.y[row]
    return bool(np.isfinite(known).any())


def decision_column(settings: Settings) -> str:
    """What a column with decisions is called: they are yes or no, or amounts."""
    return "dose" if settings.doses else "chosen"


def decision_cells(ledger: Ledger, rows: Sequence[int], count: int, arms: slice = slice(None)) -> Any:
    """What was done: 1 or 0, or an amount."""
    import pyarrow as pa

    if ledger.settings.doses:
        return cells(ledger.dose[rows, arms], count, pa.float64())
    return cells(ledger.x[rows, arms], count, pa.int8())


def table_of(ledger: Ledger, coming: Coming | None = None) -> Any:
    """The export as an Arrow table. coming: the round to decide; it has rows where its context must be said, and
    before the first round.
    """
    labels = learned_rounds(ledger)
    rows = [ledger.rows[label] for label in labels]
    undecided = []
    if coming is not None and (not labels or (ledger.settings.context and coming.label is not None)):
        undecided = [coming.label or FIRST]
    contexts = [ledger.context[label] for label in labels] + [coming.context for _ in undecided if coming is not None]
    form = wide_columns if ledger.settings.observes == "payoff" else long_columns
    return form(ledger, rows, [*labels, *undecided], contexts)


def long_columns(
    ledger: Ledger, rows: Sequence[int], labels: Sequence[str], contexts: Sequence[Mapping[str, Any]]
) -> Any:
    """One row for each round and arm."""
    import pyarrow as pa

    settings, n, count = ledger.settings, len(ledger.settings.arms), len(labels)
    columns: dict[str, Any] = {
        "round": pa.array(labels, pa.string()).take(np.repeat(np.arange(count), n)),
        "arm": pa.array(settings.arms, pa.string()).take(np.tile(np.arange(n), count)),
        decision_column(settings): decision_cells(ledger, rows, count),
    }
    if settings.sees_own:
        columns["z"] = cells(ledger.z[rows], count, pa.float64())
    if settings.sees_overall:
        columns["y"] = cells(ledger.y[rows], count, pa.float64())
    for name in settings.given_context:
        columns[name] = context_cells([known.get(name) for known in contexts]).take(np.repeat(np.arange(count), n))
    return pa.table(columns)


def wide_columns(
    ledger: Ledger, rows: Sequence[int], labels: Sequence[str], contexts: Sequence[Mapping[str, Any]]
) -> Any:
    """One row for each round, with a column for each arm."""
    import pyarrow as pa

    settings, count = ledger.settings, len(labels)
    columns: dict[str, Any] = {"round": pa.array(labels, pa.string())}
    for k, arm in enumerate(settings.arms):
        columns[f"{decision_column(settings)}.{arm}"] = decision_cells(ledger, rows, count, slice(k, k + 1))
    columns["payoff"] = cells(ledger.y[rows, :1], count, pa.float64())
    for name in settings.given_context:
        columns[name] = context_cells([known.get(name) for known in contexts])
    return pa.table(columns)


def cells(values: Any, rounds: int, kind: Any) -> Any:
    """Values row by row, empty where one is not known and in the rounds to decide after the others."""
    import pyarrow as pa

    whole = np.full((rounds, values.shape[1]), np.nan)
    whole[: len(values)] = values
    flat = whole.ravel()
    return pa.array(flat, pa.float64(), mask=np.isnan(flat)).cast(kind)


def context_cells(values: Sequence[Any]) -> Any:
    """Context as numbers if all are numbers, else as texts."""
    import pyarrow as pa

    if all(is_number(value) for value in values):
        return pa.array([float(value) for value in values], pa.float64())
    return pa.array([str(value) for value in values], pa.string())


def columns_option(settings: Settings) -> str | None:
    """The value of --columns; None for the plain form, whose columns need no explanation."""
    decided = decision_column(settings)
    if settings.observes == "payoff":
        return f"round=round,{decided}={decided}.*,outcome=payoff"
    if settings.plain:
        return None
    names = ["round", "arm", decided, *(["z"] if settings.sees_own else []), *(["y"] if settings.sees_overall else [])]
    return ",".join(f"{'outcome' if name == 'y' else name}={name}" for name in names)


# --- histories -------------------------------------------------------------------------------------------------------


def history_of(ledger: Ledger, coming: Coming | None = None) -> History:
    """The history of a stream. coming: the round to decide, where its context or its name is part of the table."""
    settings, labels = ledger.settings, learned_rounds(ledger)
    if settings.plain and labels:
        return with_calendar(plain_history(ledger, labels))
    return read_history(
        table_of(ledger, coming or Coming(None, {})),
        columns=columns_option(settings),
        context=list(settings.context) or None,
        minimise=settings.minimise,
        reward_range=settings.question.reward_range,
        overall_range=settings.question.overall_range,
    )


def plain_history(
    ledger: Ledger,
    labels: Sequence[str],
    known: History | None = None,
    unchanged: int = 0,
) -> History:
    """The history of a stream with own rewards as far as a policy learns from it; see `with_calendar`.

    The cells become a history by the functions that read them from a file, without the detour. known: an earlier
    history of the stream, of which so many rounds are unchanged.
    """
    settings = ledger.settings
    start = 0 if known is None else all_arrived(known, unchanged)
    rows = [ledger.rows[label] for label in labels[start:]]
    overall = ledger.y[rows] if settings.sees_overall else None
    new = complete_outcomes(ledger.x[rows], ledger.z[rows], overall, labels[start:], goes_on=start > 0)
    parts: list[Any] = [ledger.x[rows], *(-part if settings.minimise else part for part in (new.z, new.y)), new.arrived]
    if known is not None and start > 0:
        before = (known.x, known.z, known.y, known.arrived)
        parts = [np.concatenate([old[:start], part]) for old, part in zip(before, parts, strict=True)]
    x, z, y, arrived = parts
    return History(
        arms=settings.arms,
        rounds=tuple(labels),
        x=x,
        z=z,
        y=y,
        arrived=arrived,
        has_overall=settings.sees_overall,
        following=None,
        notes=tuple(new.notes),
        minimise=settings.minimise,
        has_baseline=settings.sees_overall and shows_baseline(x, z, y, arrived),
    )


def all_arrived(history: History, most: int) -> int:
    """How many of the first rounds have arrived without a gap, `most` at most."""
    pending = np.flatnonzero(~history.arrived[:most])
    return int(pending[0]) if len(pending) else most


def with_calendar(history: History) -> History:
    """The same with what people want to know of its rounds: gaps between them, and the one that follows."""
    dates = calendar(history.rounds)
    notes = (*dates.notes, *history.notes)
    return replace(history, rounds=dates.labels, following=dates.following, notes=notes)

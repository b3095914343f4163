"""A stream as a table: what an export has, and the options with which `spillover next` reads it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

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
    if is_plain(ledger.settings):
        return ledger.missing(label) == 0
    row = ledger.rows[label]
    known = ledger.z[row] if ledger.settings.observes == "own" else ledger.y[row]
    return bool(np.isfinite(known).any())


def is_plain(settings: Settings) -> bool:
    """Whether an export has the plain form: round, arm, chosen, z and y."""
    return settings.sees_own and not settings.context and not settings.doses


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
    if is_plain(settings):
        return None
    names = ["round", "arm", decided, *(["z"] if settings.sees_own else []), *(["y"] if settings.sees_overall else [])]
    return ",".join(f"{'outcome' if name == 'y' else name}={name}" for name in names)

"""A stream as a history: the table that an export has, the options that go with it, and the history that they give."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spillover.history import History, read_history
from spillover.service.ledger import Ledger
from spillover.service.settings import Settings

LONG = ("round", "arm", "chosen")


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
    row, settings = ledger.rows[label], ledger.settings
    if settings.sees_own and not settings.context:
        own = not np.isnan(ledger.z[row][ledger.x[row]]).any()
        return own and not (settings.sees_overall and np.isnan(ledger.y[row]).any())
    known = ledger.z[row] if settings.observes == "own" else ledger.y[row]
    return bool(np.isfinite(known).any())


def table_of(ledger: Ledger, coming: Coming | None = None) -> dict[str, list[Any]]:
    """The columns of an export. coming: the round to decide, which is part of the table where there is context."""
    labels = learned_rounds(ledger)
    undecided = (
        coming if coming is not None and coming.label is not None and (ledger.settings.context or not labels) else None
    )
    form = wide_table if ledger.settings.observes == "payoff" else long_table
    return form(ledger, labels, undecided)


def long_table(ledger: Ledger, labels: Sequence[str], coming: Coming | None) -> dict[str, list[Any]]:
    """One row for each round and arm."""
    settings, n = ledger.settings, len(ledger.settings.arms)
    rows = [ledger.rows[label] for label in labels]
    columns: dict[str, list[Any]] = {
        "round": [label for label in labels for _ in range(n)],
        "arm": list(settings.arms) * len(labels),
        "chosen": ledger.x[rows].astype(int).ravel().tolist(),
    }
    if settings.sees_own:
        columns["z"] = cells(ledger.z[rows])
    if settings.sees_overall:
        columns["y"] = cells(ledger.y[rows])
    for name in settings.given_context:
        columns[name] = [ledger.context[label].get(name) for label in labels for _ in range(n)]
    if coming is not None:
        for name, values in columns.items():
            own: dict[str, list[Any]] = {"round": [coming.label] * n, "arm": list(settings.arms)}
            values += own.get(name, [coming.context.get(name)] * n)
    return columns


def wide_table(ledger: Ledger, labels: Sequence[str], coming: Coming | None) -> dict[str, list[Any]]:
    """One row for each round, with a column for each arm."""
    settings = ledger.settings
    rows = [ledger.rows[label] for label in labels]
    columns: dict[str, list[Any]] = {"round": list(labels)}
    for k, arm in enumerate(settings.arms):
        columns[f"chosen.{arm}"] = ledger.x[rows, k].astype(int).tolist()
    columns["payoff"] = cells(ledger.y[rows, :1])
    for name in settings.given_context:
        columns[name] = [ledger.context[label].get(name) for label in labels]
    if coming is not None:
        for name, values in columns.items():
            values.append(coming.label if name == "round" else coming.context.get(name))
    return columns


def cells(values: Any) -> list[Any]:
    """Numbers row by row, None where one is not known."""
    return [None if value != value else value for value in values.ravel().tolist()]


def columns_option(settings: Settings) -> str | None:
    """The value of --columns; None for the plain form, whose columns need no explanation."""
    if settings.observes == "payoff":
        return "round=round,chosen=chosen.*,outcome=payoff"
    names = [*LONG, *(["z"] if settings.sees_own else []), *(["y"] if settings.sees_overall else [])]
    plain = settings.sees_own and not settings.context
    return None if plain else ",".join(f"{'outcome' if name == 'y' else name}={name}" for name in names)


def history_of(ledger: Ledger, coming: Coming | None = None) -> History:
    """The history that `spillover next` reads from the export."""
    settings = ledger.settings
    if not learned_rounds(ledger):
        return empty_history(settings, coming)
    return read_history(
        table_of(ledger, coming),
        columns=columns_option(settings),
        context=list(settings.context) or None,
        minimise=settings.minimise,
        reward_range=settings.reward_range,
        overall_range=settings.overall_range,
    )


def empty_history(settings: Settings, coming: Coming | None) -> History:
    """The history before the first round."""
    n = len(settings.arms)
    return History(
        arms=settings.arms,
        rounds=(),
        x=np.zeros((0, n), np.bool_),
        z=np.zeros((0, n)) if settings.sees_own else None,
        y=np.zeros((0, n)),
        arrived=np.zeros(0, np.bool_),
        has_overall=settings.observes != "own",
        following=None if coming is None else coming.label,
        notes=(),
        observes="both" if settings.sees_own else settings.observes,
        minimise=settings.minimise,
        has_baseline=not settings.sees_own,
    )

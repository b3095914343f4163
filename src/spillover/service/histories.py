"""A stream as a history: the one that `spillover next` reads from its export."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spillover.history import History, read_history
from spillover.history.plain_form import complete_outcomes
from spillover.history.record import shows_baseline
from spillover.history.rounds import calendar
from spillover.service.ledger import Ledger
from spillover.service.shared_rows import SharedRows
from spillover.service.table import Coming, columns_option, is_plain, learned_rounds, table_of


def history_of(ledger: Ledger, coming: Coming | None = None) -> History:
    """The history of a stream. coming: the round to decide, where its context or its name is part of the table."""
    settings, labels = ledger.settings, learned_rounds(ledger)
    if is_plain(settings) and labels:
        return with_calendar(plain_history(ledger, labels))
    return read_history(
        table_of(ledger, coming or Coming(None, {})),
        columns=columns_option(settings),
        context=list(settings.context) or None,
        minimise=settings.minimise,
        reward_range=settings.reward_range,
        overall_range=settings.overall_range,
    )


def plain_history(
    ledger: Ledger,
    labels: Sequence[str],
    known: History | None = None,
    unchanged: int = 0,
    memory: SharedRows | None = None,
) -> History:
    """The history of a stream with own rewards as far as a policy learns from it; see `with_calendar`.

    The cells become a history by the functions that read them from a file, without the detour. known: an earlier
    history of the stream, of which so many rounds are unchanged. memory: what both can share.
    """
    settings = ledger.settings
    start = 0 if known is None else all_arrived(known, unchanged)
    rows = [ledger.rows[label] for label in labels[start:]]
    overall = ledger.y[rows] if settings.sees_overall else None
    new = complete_outcomes(ledger.x[rows], ledger.z[rows], overall, labels[start:], goes_on=start > 0)
    parts: list[Any] = [ledger.x[rows], *(-part if settings.minimise else part for part in (new.z, new.y)), new.arrived]
    if known is not None and start > 0:
        before = (known.x, known.z, known.y, known.arrived)
        parts = (memory or SharedRows()).joined(before, start, parts)
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

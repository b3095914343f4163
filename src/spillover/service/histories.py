"""A stream as a history: the one that `spillover next` reads from its export."""

from collections.abc import Sequence
from dataclasses import replace

from spillover.history import History, read_history
from spillover.history.baseline import shows_baseline
from spillover.history.calendar import calendar
from spillover.history.check import outcomes
from spillover.service.ledger import Ledger
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


def plain_history(ledger: Ledger, labels: Sequence[str]) -> History:
    """The history of a stream with own rewards as far as a policy learns from it; see `with_calendar`.

    The cells become a history by the functions that read them from a file, without the detour.
    """
    settings, rows = ledger.settings, [ledger.rows[label] for label in labels]
    x = ledger.x[rows]
    found = outcomes(x, ledger.z[rows], ledger.y[rows] if settings.sees_overall else None, labels)
    baseline = settings.sees_overall and shows_baseline(x, found.z, found.y, found.arrived)
    return History(
        arms=settings.arms,
        rounds=tuple(labels),
        x=x,
        z=-found.z if settings.minimise else found.z,
        y=-found.y if settings.minimise else found.y,
        arrived=found.arrived,
        has_overall=settings.sees_overall,
        following=None,
        notes=tuple(found.notes),
        minimise=settings.minimise,
        has_baseline=baseline,
    )


def with_calendar(history: History) -> History:
    """The same with what people want to know of its rounds: gaps between them, and the one that follows."""
    dates = calendar(history.rounds)
    notes = (*dates.notes, *history.notes)
    return replace(history, rounds=dates.labels, following=dates.following, notes=notes)

"""The order of rounds: numbers or dates, their labels, the next one, and gaps between them."""

from calendar import monthrange
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spillover.history.periods import DATE, NUMBER, parse_rounds, period_label
from spillover.types import IntArray

FEWEST = 3  # dates needed to recognise a regular step


class Calendar(NamedTuple):
    """The order of the rounds."""

    rank: IntArray  # position of each round as it was written; -1 where it cannot be read
    labels: tuple[str, ...]  # in order
    following: str | None  # the label of the next round, if the rounds have a regular step
    notes: tuple[str, ...]
    kind: str = NUMBER  # how the rounds are written: numbers, dates, months, quarters or weeks
    values: tuple[Any, ...] = ()  # in order: numbers (running ones for months, quarters and weeks) or dates
    next_value: Any = None  # of the next round


def calendar(texts: Sequence[str], dates: str | None = None) -> Calendar:
    """Sort rounds; one that is written in two ways (1 and 1.0) counts once.

    dates: the order of day and month, "day-first" or "month-first", where the rounds do not settle it.

    >>> calendar(["3", "1", "2", "1.0"])[:3]
    (array([2, 0, 1, 0]), ('1', '2', '3'), '4')
    >>> calendar(["2026-01-31", "2026-02-28", "2026-03-31"]).following
    '2026-04-30'
    >>> calendar(["Nov 2026", "Dec 2026"]).following
    '2027-01'
    """
    kind, values = parse_rounds(texts, dates)
    known: list[Any] = sorted({value for value in values if value is not None})
    place = {value: k for k, value in enumerate(known)}
    rank = np.array([place.get(value, -1) for value in values], np.int64)
    labels = tuple(round_labels(known, kind))
    if len(known) < 2:
        following = known[0] + 1 if known and isinstance(known[0], int) else None
        next_label = None if following is None else period_label(kind, following)
        return Calendar(rank, labels, next_label, (), kind, tuple(known), following)
    steps: list[Any] = monthly(known) or [later - earlier for earlier, later in pairwise(known)]
    usual = Counter(steps).most_common(1)[0][0]
    gaps = [k for k, step in enumerate(steps) if step != usual]
    regular = isinstance(known[0], int) or (not gaps and len(known) >= FEWEST)
    following = after(known[-1], usual, known) if regular else None
    next_label = None if following is None else round_labels([*known, following], kind)[-1]
    notes = tuple(gap_notes(known, labels, usual, gaps, kind))
    return Calendar(rank, labels, next_label, notes, kind, tuple(known), following)


def round_labels(known: Sequence[Any], kind: str = DATE) -> list[str]:
    """Numbers and dates as text; without the time of day if all are at midnight."""
    if all(isinstance(value, int) for value in known):
        return [period_label(kind, value) for value in known]
    if all(value.time() == time() and value.tzinfo is None for value in known):
        return [value.date().isoformat() for value in known]
    return [value.isoformat(" ") for value in known]


def monthly(known: Sequence[Any]) -> list[int] | None:
    """The steps in months, if all dates are the same day of the month, or its last day."""
    if isinstance(known[0], int) or len(known) < FEWEST or known[1] - known[0] < timedelta(28):
        return None
    same = len({(value.day, value.time()) for value in known}) == 1
    last = all(value.day == monthrange(value.year, value.month)[1] for value in known)
    if not (same or last):
        return None
    months = [12 * value.year + value.month for value in known]
    return [later - earlier for earlier, later in pairwise(months)]


def after(latest: Any, step: Any, known: Sequence[Any]) -> Any:
    """The round one step after the latest; None after the year 9999."""
    try:
        if isinstance(latest, int) or isinstance(step, timedelta):
            return latest + step
        month = latest.year * 12 + latest.month - 1 + step
        year, month = month // 12, month % 12 + 1
        same = len({value.day for value in known}) == 1 and latest.day <= 28
        return latest.replace(year=year, month=month, day=latest.day if same else monthrange(year, month)[1])
    except (OverflowError, ValueError):
        return None


def gap_notes(
    known: Sequence[Any], labels: Sequence[str], usual: Any, gaps: Sequence[int], kind: str = NUMBER
) -> list[str]:
    """Notes on rounds that are not evenly spaced."""
    if not gaps:
        return []
    first = gaps[0]
    many = f"{len(gaps):,} gaps" if len(gaps) > 1 else "a gap"
    where = f"{'the first ' if len(gaps) > 1 else ''}from {labels[first]} to {labels[first + 1]}"
    notes = [
        f"{many} between the rounds, {where}, where {step_in_words(usual, known, kind)} is usual: "
        "only the order of rounds matters, and a gap is not a round"
    ]
    if (
        kind == NUMBER
        and isinstance(known[0], int)
        and all(looks_like_a_date(value) for value in (known[0], known[-1]))
    ):
        notes.append(f"rounds such as {labels[0]} are read as numbers; dates must be written like {dashed(known[0])}")
    return notes


def step_in_words(step: Any, known: Sequence[Any], kind: str = NUMBER) -> str:
    if isinstance(known[0], int):
        return f"a step of {step}" if kind in (NUMBER, DATE) else f"{step} {kind}{'s' if step != 1 else ''}"
    if isinstance(step, timedelta):
        return f"{step.days} day{'s' if step.days != 1 else ''}" if not step.seconds else str(step)
    return f"{step} month{'s' if step != 1 else ''}"


def dashed(number: int) -> str:
    text = str(number)
    return f"{text[:4]}-{text[4:6]}-{text[6:]}"


def looks_like_a_date(number: int) -> bool:
    """Whether a whole number is a date without its dashes."""
    try:
        return len(str(number)) == 8 and 1900 <= datetime.fromisoformat(dashed(number)).year <= 2200
    except ValueError:
        return False

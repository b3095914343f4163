"""Rounds in their order: numbers or dates, what they are called, which is the next, where there are gaps."""

from calendar import monthrange
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spillover.history.cells import round_value
from spillover.types import IntArray

FEWEST = 3  # rounds that a rhythm can be told from


class Calendar(NamedTuple):
    """The order of the rounds."""

    rank: IntArray  # place in the order for each round as it was written; -1 where it cannot be read
    labels: tuple[str, ...]  # in their order
    following: str | None  # what the next round is called, if that can be told
    notes: tuple[str, ...]


def calendar(texts: Sequence[str]) -> Calendar:
    """Bring rounds into their order; those that are written in two ways (1 and 1.0) are one.

    >>> calendar(["3", "1", "2", "1.0"])[:3]
    (array([2, 0, 1, 0]), ('1', '2', '3'), '4')
    >>> calendar(["2026-01-31", "2026-02-28", "2026-03-31"]).following
    '2026-04-30'
    """
    values = [round_value(text) for text in texts]
    known: list[Any] = sorted({value for value in values if value is not None})
    place = {value: k for k, value in enumerate(known)}
    rank = np.array([place.get(value, -1) for value in values], np.int64)
    labels = tuple(named(known))
    if len(known) < 2:
        return Calendar(rank, labels, str(known[0] + 1) if known and isinstance(known[0], int) else None, ())
    steps: list[Any] = monthly(known) or [later - earlier for earlier, later in pairwise(known)]
    usual = Counter(steps).most_common(1)[0][0]
    gaps = [k for k, step in enumerate(steps) if step != usual]
    told = not gaps and (isinstance(known[0], int) or len(known) >= FEWEST)
    following = after(known[-1], usual, known) if told or isinstance(known[0], int) else None
    next_label = None if following is None else named([*known, following])[-1]
    return Calendar(rank, labels, next_label, tuple(gap_notes(known, labels, usual, gaps)))


def named(known: Sequence[Any]) -> list[str]:
    """Dates without the time of day if all begin at midnight."""
    if all(isinstance(value, int) for value in known):
        return [str(value) for value in known]
    if all(value.time() == time() and value.tzinfo is None for value in known):
        return [value.date().isoformat() for value in known]
    return [value.isoformat(" ") for value in known]


def monthly(known: Sequence[Any]) -> list[int] | None:
    """The steps in months, if that is what the dates go by: the same day of the month, or always its last."""
    if isinstance(known[0], int) or len(known) < FEWEST or known[1] - known[0] < timedelta(28):
        return None
    same = len({(value.day, value.time()) for value in known}) == 1
    last = all(value.day == monthrange(value.year, value.month)[1] for value in known)
    if not (same or last):
        return None
    months = [12 * value.year + value.month for value in known]
    return [later - earlier for earlier, later in pairwise(months)]


def after(latest: Any, step: Any, known: Sequence[Any]) -> Any:
    """The round one step after the latest; None where the years end, with 9999."""
    try:
        if isinstance(latest, int) or isinstance(step, timedelta):
            return latest + step
        month = latest.year * 12 + latest.month - 1 + step
        year, number = month // 12, month % 12 + 1
        same = len({value.day for value in known}) == 1 and latest.day <= 28
        return latest.replace(year=year, month=number, day=latest.day if same else monthrange(year, number)[1])
    except (OverflowError, ValueError):
        return None


def gap_notes(known: Sequence[Any], labels: Sequence[str], usual: Any, gaps: Sequence[int]) -> list[str]:
    """What is said of rounds that are not evenly apart."""
    if not gaps:
        return []
    first = gaps[0]
    many = f"{len(gaps):,} gaps" if len(gaps) > 1 else "a gap"
    where = f"{'the first ' if len(gaps) > 1 else ''}from {labels[first]} to {labels[first + 1]}"
    notes = [
        f"{many} between the rounds, {where}, where {apart(usual, known)} is usual: "
        "rounds count in their order, and a gap is no round"
    ]
    if isinstance(known[0], int) and all(looks_like_a_date(value) for value in (known[0], known[-1])):
        notes.append(f"rounds such as {labels[0]} are read as numbers: a date is written {dashed(known[0])}")
    return notes


def apart(step: Any, known: Sequence[Any]) -> str:
    if isinstance(known[0], int):
        return f"a step of {step}"
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

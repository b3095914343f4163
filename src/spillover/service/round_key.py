"""The key of a round: a number or a date, written in one way, and its place among others."""

from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from spillover.history.rounds import DATE, AskOrder, parse_rounds, round_labels
from spillover.service.errors import Invalid, require

ACCEPTED = (
    "a whole number, a date (2026-03-31), a time (2026-03-31 10:00:00), a month (2026-03), a quarter (2026Q1) "
    "or a week (2026-W05)"
)
LONGEST = 40


class RoundKey(NamedTuple):
    """A round as it is written (`label`), and as it is sorted."""

    label: str
    kind: str
    value: Any

    @property
    def family(self) -> tuple[str, bool]:
        """Rounds of one family can be compared with each other."""
        return self.kind, isinstance(self.value, datetime) and self.value.tzinfo is not None


def round_key(given: object) -> RoundKey:
    """The key of a round.

    >>> round_key(7).label, round_key("2026-10-12").label, round_key("2026-10-12T09:30").label
    ('7', '2026-10-12', '2026-10-12 09:30:00')
    """
    whole = isinstance(given, int) and not isinstance(given, bool)
    require(whole or (isinstance(given, str) and 0 < len(given) <= LONGEST), "round", given, ACCEPTED)
    found = read_key(str(given).strip())
    if found is None:
        raise Invalid(f"round = {given!r}: must be {ACCEPTED}", "round")
    return found


@lru_cache(maxsize=100_000)
def read_key(text: str) -> RoundKey | None:
    """The key that a text stands for; None if it stands for none, or for two."""
    try:
        kind, (value,) = parse_rounds([text])
        return None if value is None else RoundKey(round_labels([value], kind)[0], kind, value)
    except (AskOrder, OverflowError):
        return None


def require_family(key: RoundKey, other: RoundKey) -> None:
    """Refuse a key that cannot be compared with the others of its stream."""
    written = "times with a zone" if other.family == (DATE, True) else f"{other.kind}s like the others"
    require(key.family == other.family, "round", key.label, f"written as {other.label} is ({written})")

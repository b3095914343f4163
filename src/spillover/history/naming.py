"""Names of columns in messages."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

CLOSE = 0.6  # similarity, 0 to 1, from which on a name is suggested: rounds for round, not Datum for arm


def quote_names(names: Sequence[str]) -> str:
    """The first names in quotes, and how many more there are."""
    most = 12
    first = ", ".join(repr(name) for name in names[:most])
    return f"{first} and {len(names) - most} more" if len(names) > most else first or "none"


def did_you_mean(given: str, names: Sequence[str] | Mapping[str, str]) -> str:
    """A suggestion of the most similar name, if one is similar enough."""
    folded = {name.casefold(): name for name in names}
    close = get_close_matches(given.casefold(), list(folded), 1, CLOSE)
    return f"; did you mean {folded[close[0]]}?" if close else ""

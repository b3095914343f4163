"""How the cells of a table are written."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """How the cells of a table are written, where a cell alone does not tell."""

    point: str | None = None  # the decimal sign, if it was given
    dates: str | None = None  # "day-first" or "month-first", if it was given
    elsewhere: frozenset[str] = frozenset()  # the decimal signs that some cells of the table allow only


PLAIN_STYLE = Style()  # nothing given, nothing shown

"""The first line of a file: which separator, which column is which."""

import csv
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from spillover.history.problems import Problems

MEANINGS = {
    "round": "when: whole numbers or dates",
    "arm": "what could be chosen, by name",
    "chosen": "whether it was: 1 or 0, yes or no, true or false",
    "z": "what the arm itself gave, if it was chosen",
    "y": "what the arm had in all, its own and what spilled over to it",
}
NEEDED = ("round", "arm", "chosen", "z")  # without y no spill-over is learned
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
NONE = ""  # --columns y= says that there is none
CLOSE = 0.6  # from 0 to 1, how like another a name must be to be suggested: rounds for round, not Datum for arm


class Columns(NamedTuple):
    """Where each column stands, and what was not used."""

    places: dict[str, int]  # meaning -> position
    ignored: list[str]  # columns that nobody reads


def read_columns(text: str) -> dict[str, str]:
    """What `--columns round=day,arm=region` says: meaning -> name in the file.

    >>> read_columns("round=day, arm=region")
    {'round': 'day', 'arm': 'region'}
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        meaning, equals, name = (piece.strip() for piece in part.partition("="))
        accepted = f"pairs such as round=day,arm=region, of {', '.join(MEANINGS)}"
        good = equals and meaning in MEANINGS and meaning not in found and (name != NONE or meaning == "y")
        if not good:
            raise ValueError(f"columns = {text!r}: must be {accepted}{near(meaning, MEANINGS)}")
        found[meaning] = name
    return found


def separator_of(line: str, wanted: Sequence[str]) -> str:
    """The separator under which the line holds most of the wanted names, then most names; then a comma.

    >>> separator_of("Datum;Kanal;Wert", ["round", "arm", "chosen"])
    ';'
    """
    names = {name.casefold() for name in wanted}

    def fit(separator: str) -> tuple[int, int]:
        cells = cells_of(line, separator)
        return len(names & {cell.casefold() for cell in cells}), len(cells)

    return max(SEPARATORS, key=fit)  # the first of the best


def cells_of(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def match_columns(header: Sequence[str], renamed: Mapping[str, str], problems: Problems) -> Columns | None:
    """Which position holds which column, by name and without regard to case; None if that cannot be said."""
    before = problems.count
    plain = [name.casefold() for name in header]
    places: dict[str, int] = {}
    for meaning, about in MEANINGS.items():
        name = renamed.get(meaning, meaning)
        found = [k for k, cell in enumerate(plain) if cell == name.casefold()] if name != NONE else []
        if len(found) > 1:
            problems.say("columns", f"column {name!r} stands there {len(found)} times: must be there once")
        elif found:
            places[meaning] = found[0]
        elif meaning in NEEDED or (meaning in renamed and name != NONE):
            problems.say("columns", f"no column {name!r} ({about}); there are: {shown(header)}{near(name, header)}")
    used = set(places.values())
    ignored = [name for k, name in enumerate(header) if k not in used]
    if "y" not in places and "y" not in renamed and ignored and problems.count == before:
        problems.say(
            "columns",
            f"no column 'y' ({MEANINGS['y']}), and columns that nobody reads: {shown(ignored)}: must be told which "
            f"is y (--columns y={ignored[0]}) or that there is none (--columns y=)",
        )
    return Columns(places, ignored) if problems.count == before else None


def shown(names: Sequence[str]) -> str:
    """Some names, not too many."""
    most = 12
    listed = ", ".join(repr(name) for name in names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed or "none"


def near(given: str, names: Sequence[str] | Mapping[str, str]) -> str:
    """The nearest of some names, if one is near."""
    plain = {name.casefold(): name for name in names}
    close = get_close_matches(given.casefold(), list(plain), 1, CLOSE)
    return f"; did you mean {plain[close[0]]}?" if close else ""

"""The header of a file: its separator, and what each column means."""

import csv
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from spillover.history.problems import Problems

MEANINGS = {
    "round": "a whole number or a date",
    "arm": "the name of the arm",
    "chosen": "whether the arm was chosen: 1 or 0, yes or no, true or false",
    "z": "the arm's own reward, if it was chosen",
    "y": "the arm's total reward, including spill-over from other arms",
}
NEEDED = ("round", "arm", "chosen", "z")  # without y no spill-over is learned
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
NONE = ""  # --columns y= means that there is no y
CLOSE = 0.6  # similarity, 0 to 1, from which on a name is suggested: rounds for round, not Datum for arm


class Columns(NamedTuple):
    """The positions of the columns, and those that are not used."""

    places: dict[str, int]  # meaning -> position
    ignored: list[str]  # names of columns that are not used


def read_columns(text: str) -> dict[str, str]:
    """The value of `--columns round=day,arm=region`: meaning -> name in the file.

    >>> read_columns("round=day, arm=region")
    {'round': 'day', 'arm': 'region'}
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        meaning, equals, name = (piece.strip() for piece in part.partition("="))
        accepted = f"pairs such as round=day,arm=region, of {', '.join(MEANINGS)}"
        good = equals and meaning in MEANINGS and meaning not in found and (name != NONE or meaning == "y")
        if not good:
            raise ValueError(f"columns = {text!r}: must be {accepted}{did_you_mean(meaning, MEANINGS)}")
        found[meaning] = name
    check_distinct(found, text)
    return found


def check_distinct(renamed: Mapping[str, str], given: object) -> None:
    """Refuse names that give one column of the file two meanings, those that were not renamed included."""
    meanings: dict[str, list[str]] = {}
    for meaning in MEANINGS:
        name = renamed.get(meaning, meaning)
        if name != NONE:
            meanings.setdefault(name.casefold(), []).append(meaning)
    for name, several in meanings.items():
        if len(several) > 1:
            without = "; y= if there is no y" if "y" in several and "y" not in renamed else ""
            raise ValueError(
                f"columns = {given!r}: must use each column once, but {name!r} is {' and '.join(several)}{without}"
            )


def separator_of(line: str, wanted: Sequence[str]) -> str:
    """The separator that gives most of the wanted names, then most names; a comma if there is a tie.

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
    """The position of each column, by its name without regard to case; None, with problems, if that is not clear."""
    before = problems.count
    folded = [name.casefold() for name in header]
    places: dict[str, int] = {}
    for meaning, about in MEANINGS.items():
        name = renamed.get(meaning, meaning)
        found = [k for k, cell in enumerate(folded) if cell == name.casefold()] if name != NONE else []
        if len(found) > 1:
            problems.add_text("columns", f"column {name!r} appears {len(found)} times: must appear once")
        elif found:
            places[meaning] = found[0]
        elif meaning in NEEDED or (meaning in renamed and name != NONE):
            there = f"there are: {quote_names(header)}{did_you_mean(name, header)}"
            problems.add_text("columns", f"no column {name!r} ({about}); {there}")
    used = set(places.values())
    ignored = [name for k, name in enumerate(header) if k not in used]
    if "y" not in places and "y" not in renamed and ignored and problems.count == before:
        problems.add_text(
            "columns",
            f"no column 'y' ({MEANINGS['y']}), but columns that are not used: {quote_names(ignored)}: must be clear "
            f"which one is y (--columns y={ignored[0]}) or that there is none (--columns y=)",
        )
    return Columns(places, ignored) if problems.count == before else None


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

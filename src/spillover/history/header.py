"""The header of a file: its separator, and what each column means."""

import csv
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from spillover.history.columns_option import NONE, read_columns
from spillover.history.naming import did_you_mean, quote_names
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


class Columns(NamedTuple):
    """The positions of the columns, and those that are not used."""

    places: dict[str, int]  # meaning -> position
    ignored: list[str]  # names of columns that are not used


def separator_of(line: str, wanted: Sequence[str], rows: Sequence[str] = ()) -> str:
    """The separator that gives most of the wanted names, then rows that fit the header, then most names.

    rows: the lines below. A comma if there is a tie.

    >>> separator_of("Datum;Kanal;Wert", ["round", "arm", "chosen"])
    ';'
    >>> separator_of("a;b,c;d", [], ["1,2"])
    ','
    """
    names = {name.casefold() for name in wanted}

    def fit(separator: str) -> tuple[int, int, int, int]:
        cells = cells_of(line, separator)
        known = len(names & {cell.casefold() for cell in cells})
        fitting = sum(len(cells_of(row, separator)) == len(cells) > 1 for row in rows)
        return known if known > 1 else 0, fitting, known, len(cells)

    return max(SEPARATORS, key=fit)  # the first of the best


def cells_of(line: str, separator: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a cell of more than 128 KiB: a separator that the line does not have, or a quote without an end
        cells = line.split(separator)
    return [cell.strip() for cell in cells]


def match_columns(header: Sequence[str], renamed: Mapping[str, str], problems: Problems) -> Columns | None:
    """The position of each column, by its name without regard to case; None, with problems, if that is not clear."""
    before = problems.count
    folded = [name.casefold() for name in header]
    places: dict[str, int] = {}
    for meaning, about in MEANINGS.items():
        name = renamed.get(meaning, meaning)
        found = [k for k, cell in enumerate(folded) if cell == name.casefold()] if name != NONE else []
        if len(found) > 1:
            problems.add_text(f"columns {name}", f"column {name!r} appears {len(found)} times: must appear once")
        elif found and found[0] in places.values():
            first = next(other for other, place in places.items() if place == found[0])
            problems.add_text(f"columns {name}", f"column {name!r} is {first} and {meaning}: must be one of them")
        elif found:
            places[meaning] = found[0]
        elif meaning in NEEDED or (meaning in renamed and name != NONE):
            there = f"there are: {quote_names(header)}{did_you_mean(name, header)}"
            problems.add_text(f"columns {name}", f"no column {name!r} ({about}); {there}")
    used = set(places.values())
    ignored = [name for k, name in enumerate(header) if k not in used]
    if "y" not in places and "y" not in renamed and ignored and problems.count == before:
        problems.add_text(
            "columns",
            f"no column 'y' ({MEANINGS['y']}), but columns that are not used: {quote_names(ignored)}: must be clear "
            f"which one is y (--columns y={ignored[0]}) or that there is none (--columns y=)",
        )
    return Columns(places, ignored) if problems.count == before else None


__all__ = ["MEANINGS", "NEEDED", "Columns", "cells_of", "match_columns", "read_columns", "separator_of"]

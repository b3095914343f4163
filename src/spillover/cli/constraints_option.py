"""Constraints from the command line: a TOML file (--limits), and arms that are not available this time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spillover.constraints import Constraint, Unavailable, parse
from spillover.experiments.toml_file import dotted, line_of
from spillover.files import parse_toml, read_toml_text
from spillover.validate import suggestion

KEY = "limits"


def read_entries(path: Path) -> tuple[str, list[Any]]:
    """The text of a file of constraints and its entries, before the arms are known."""
    text = read_toml_text(path)
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise ValueError(f"{path}: must be TOML: {error}") from None
    for key in content:
        if key != KEY:
            hint = suggestion(key, [KEY])
            raise ValueError(f"{path}:{line_of(text, (key,))}: unknown key {dotted((key,))}: must be {KEY}{hint}")
    entries = content.get(KEY, [])
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{path}: no constraints: must have at least one table [[{KEY}]], each with a kind")
    return text, entries


def parse_entries(path: Path, text: str, entries: Sequence[Any], arms: Sequence[str]) -> tuple[Constraint, ...]:
    """The constraints; an error names the line of its entry."""
    found: list[Constraint] = []
    for place, entry in enumerate(entries):
        try:
            found += parse([entry], arms, by_name=True)
        except ValueError as error:
            message = str(error).removeprefix("constraint 1: ")
            raise ValueError(f"{path}:{line_of(text, (KEY, place))}: {message}") from None
    return tuple(found)


def parse_unavailable(texts: Sequence[str], arms: Sequence[str]) -> tuple[Constraint, ...]:
    """The arms given with --unavailable, separated by commas; a text that is itself the name of an arm is not split."""
    parts = [part for text in texts for part in ([text] if text.strip() in arms else text.split(","))]
    names = list(dict.fromkeys(name.strip() for name in parts if name.strip()))
    for name in names:
        if name not in arms:
            raise ValueError(f"unavailable = {name!r}: must be one of the arms of the file{suggestion(name, arms)}")
    return (Unavailable(names),) if names else ()

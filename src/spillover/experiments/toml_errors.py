"""Errors about a TOML file: the line of a key, and a suggestion for a misspelt name."""

import re
import tomllib
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn, TypeAlias

from spillover.registry import Registry
from spillover.validate import suggestion

Place: TypeAlias = tuple[str | int, ...]  # keys from the top; a number for an item of [[...]]

HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def keys_of(dotted: str) -> tuple[str, ...]:
    """The parts of a dotted key, as TOML reads them.

    >>> keys_of('worlds."a b"')
    ('worlds', 'a b')
    """
    found: list[str] = []
    inside = tomllib.loads(f"{dotted} = 0")
    while isinstance(inside, dict):
        key, inside = next(iter(inside.items()))
        found.append(key)
    return tuple(found)


def line_numbers(text: str) -> dict[Place, int]:
    """The line (from 1) of every table and key of a valid text; keys of inline tables have the line of their table."""
    found: dict[Place, int] = {}
    table: Place = ()
    depth, quoted = 0, False  # there are no keys inside of an array or string that spans several lines
    for number, line in enumerate(text.splitlines(), 1):
        if depth == 0 and not quoted:
            if header := HEADER.match(line):
                table = table_place(found, header[1] == "[[", keys_of(header[2]))
                found.setdefault(table, number)
                continue
            if key := KEY.match(line):
                found.setdefault((*table, *keys_of(key[1])), number)
        quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1
        bare = re.sub(r""""[^"]*"|'[^']*'|#.*""", "", line)
        depth += bare.count("[") - bare.count("]")
    return found


def table_place(found: dict[Place, int], array: bool, keys: tuple[str, ...]) -> Place:
    """The place of a table from its header; items of an array of tables are numbered from 0."""
    if not array:
        return keys
    items = [place for place in found if len(place) == len(keys) + 1 and place[:-1] == keys]
    return (*keys, len(items))


def line_of(text: str, place: Place) -> int:
    """The line of a key, or of the nearest table around it."""
    known = line_numbers(text)
    while place and place not in known:
        place = place[:-1]
    return known.get(place, 1)


class ExperimentError(ValueError):
    """An invalid experiment file; the message starts with the file and the line."""


class File(NamedTuple):
    """The name and the text of an experiment file."""

    name: str
    text: str

    def refuse(self, place: Place, message: str) -> NoReturn:
        raise ExperimentError(f"{self.name}:{line_of(self.text, place)}: {message}")

    def known(self, place: Place, what: str, given: Any, names: Iterable[str]) -> str:
        """The given name, if it is one of `names`; otherwise an error with a suggestion."""
        names = list(names)
        if isinstance(given, str) and given in names:
            return given
        accepted = f"must be one of {', '.join(names)}" if names else "there are none"
        self.refuse(place, f"{what} = {given!r}: {accepted}{suggestion(str(given), names)}")

    def find(self, place: Place, kind: Any, kinds: Registry[Any]) -> Any:
        """The part of that kind, or an error with the nearest of those there are."""
        try:
            return kinds.find(kind, "kind")
        except ValueError as error:
            self.refuse(place, str(error))

    def table(self, place: Place, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            self.refuse(place, f"{dotted(place)} = {given!r}: must be a table, [{dotted(place)}]")
        return given

    def keys(self, place: Place, given: Iterable[str], accepted: Iterable[str]) -> None:
        """Reject unknown keys."""
        accepted = list(accepted)
        for key in given:
            if key not in accepted:
                hint = suggestion(key, accepted)
                inside = f" in [{dotted(place)}]" if place else ""
                self.refuse((*place, key), f"unknown key {key}{inside}: must be one of {', '.join(accepted)}{hint}")


def dotted(place: Place) -> str:
    return ".".join(str(part) for part in place)

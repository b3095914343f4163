"""Errors about a TOML file: where a key stands in it, and what was probably meant."""

import re
import tomllib
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn, TypeAlias

from spillover.registry import Registry, suggestion

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


def places(text: str) -> dict[Place, int]:
    """The line (from 1) of every table and key of a valid text; what inline tables hold stands on their line."""
    found: dict[Place, int] = {}
    table: Place = ()
    depth, quoted = 0, False  # inside of an array or a string of several lines there are no keys
    for number, line in enumerate(text.splitlines(), 1):
        if depth == 0 and not quoted:
            if header := HEADER.match(line):
                table = opened(found, header[1] == "[[", keys_of(header[2]))
                found.setdefault(table, number)
                continue
            if key := KEY.match(line):
                found.setdefault((*table, *keys_of(key[1])), number)
        quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1
        bare = re.sub(r""""[^"]*"|'[^']*'|#.*""", "", line)
        depth += bare.count("[") - bare.count("]")
    return found


def opened(found: dict[Place, int], array: bool, keys: tuple[str, ...]) -> Place:
    """The place of a table from its header; items of an array of tables are numbered from 0."""
    if not array:
        return keys
    items = [place for place in found if len(place) == len(keys) + 1 and place[:-1] == keys]
    return (*keys, len(items))


def line_of(text: str, place: Place) -> int:
    """The line of a key, or of the nearest table around it that the text names."""
    known = places(text)
    while place and place not in known:
        place = place[:-1]
    return known.get(place, 1)


class ExperimentError(ValueError):
    """A file that is not an experiment; the message starts with the file and the line."""


class File(NamedTuple):
    """An experiment file as it is read."""

    name: str
    text: str

    def refuse(self, place: Place, message: str) -> NoReturn:
        raise ExperimentError(f"{self.name}:{line_of(self.text, place)}: {message}")

    def known(self, place: Place, what: str, given: Any, names: Iterable[str]) -> str:
        """A name that is one of those there are, or an error with the nearest of them."""
        names = list(names)
        if isinstance(given, str) and given in names:
            return given
        listed = f"must be one of {', '.join(names)}" if names else "there are none"
        self.refuse(place, f"{what} = {given!r}: {listed}{suggestion(str(given), names)}")

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
        """Refuse a key that nobody reads."""
        accepted = list(accepted)
        for key in given:
            if key not in accepted:
                hint = suggestion(key, accepted)
                inside = f" in [{dotted(place)}]" if place else ""
                self.refuse((*place, key), f"unknown key {key}{inside}: must be one of {', '.join(accepted)}{hint}")


def dotted(place: Place) -> str:
    return ".".join(str(part) for part in place)

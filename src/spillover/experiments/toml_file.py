"""Read tables of a TOML file, and build the objects they describe; errors name the line and the likely correction."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from spillover import validate
from spillover.environments import FixedSEM, Instance, SyntheticSEM
from spillover.registry import Registry, needed_for
from spillover.validate import suggestion

Place: TypeAlias = tuple[str | int, ...]  # keys from the top; a number for an item of [[...]]

HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def keys_of(dotted: str) -> tuple[str, ...]:
    """Split a dotted key, as TOML reads them.

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
    """Find the line (from 1) of every table and key of a valid text; keys of inline tables have that of their table."""
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
    """Find the place of a table from its header; items of an array of tables are numbered from 0."""
    if not array:
        return keys
    items = [place for place in found if len(place) == len(keys) + 1 and place[:-1] == keys]
    return (*keys, len(items))


def line_of(text: str, place: Place) -> int:
    """Find the line of a key, or of the nearest table around it."""
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
        """Return the given name, if it is one of `names`; otherwise an error with a suggestion."""
        names = list(names)
        if isinstance(given, str) and given in names:
            return given
        accepted = f"must be one of {', '.join(names)}" if names else "there are none"
        self.refuse(place, f"{what} = {given!r}: {accepted}{suggestion(str(given), names)}")

    def find(self, place: Place, kind: Any, kinds: Registry[Any]) -> Any:
        """Find the part of that kind, or an error with the nearest of those there are."""
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


def make(
    file: File, place: Place, given: Any, kinds: Registry[Any], extra: Iterable[str] = (), usual: Any = None
) -> Any:
    """Build the object described by a table with a `kind` (`usual` if it is left out) and parameters."""
    rest = dict(file.table(place, given))
    if "kind" not in rest and not kinds.is_name(usual):
        file.refuse(place, f"no kind in [{dotted(place)}]: must be one of {', '.join(kinds)}")
    found = file.find((*place, "kind"), rest.pop("kind", usual), kinds)
    return build(file, place, MAKERS.get(found, found), rest, ["kind", *extra], kinds)


def build(
    file: File,
    place: Place,
    maker: Any,
    given: dict[str, Any],
    extra: Iterable[str],
    parts: Registry[Any],
) -> Any:
    """Call a maker with parameters from a file; errors name the line of the file.

    parts: the kinds for parameters that are tables themselves, such as a delay inside of a delay.
    """
    values = parameters(file, place, maker, given, extra, parts)
    try:
        return maker(**values)
    except (ValueError, TypeError) as error:
        named = str(error).partition(" = ")[0].split(" ")[-1]  # "shape of means = ..." is about means
        file.refuse((*place, named) if named in given else place, str(error))


def parameters(
    file: File, place: Place, maker: Any, given: dict[str, Any], extra: Iterable[str], parts: Registry[Any]
) -> dict[str, Any]:
    """Read the parameters of a maker from a table; names are checked, and nested tables become objects."""
    if not has_parameters(maker):
        file.refuse(place, f"{origin_of(maker).__name__} in [{dotted(place)}]: must be a dataclass")
    accepted, needed = parameters_of(maker)
    file.keys(place, given, [*extra, *accepted])
    for key in needed:
        if key not in given:
            file.refuse(place, f"no {key} in [{dotted(place)}]: must be given")
    usual = usual_values(maker)
    return {
        key: make(file, (*place, key), value, parts, usual=usual.get(key))
        if isinstance(value, dict)
        else as_tuples(value)
        for key, value in given.items()
    }


def origin_of(maker: Any) -> Any:
    """Find the class or function behind a maker."""
    return maker.func if isinstance(maker, partial) else maker


def has_parameters(maker: Any) -> bool:
    """Whether the parameters of a maker can be read from it."""
    return is_dataclass(origin_of(maker)) or origin_of(maker) in PARAMETERS


def usual_values(maker: Any) -> dict[str, Any]:
    """List the defaults of a maker's parameters."""
    origin = origin_of(maker)
    return {} if origin in PARAMETERS else {f.name: f.default for f in fields(origin)}


def as_tuples(value: Any) -> Any:
    return tuple(as_tuples(item) for item in value) if isinstance(value, list) else value


def parameters_of(maker: Any) -> tuple[list[str], list[str]]:
    """List the names of a maker's parameters, and of those that are required."""
    fixed = maker.keywords if isinstance(maker, partial) else {}
    origin = origin_of(maker)
    if origin in PARAMETERS:
        return PARAMETERS[origin]
    taken = [f for f in fields(origin) if f.init and f.name not in fixed]
    return [f.name for f in taken], [f.name for f in taken if f.default is MISSING and f.default_factory is MISSING]


def make_instance(seed: int = 0, **parameters: Any) -> Instance:
    """Make an instance of the synthetic worlds with these parameters."""
    validate.whole("seed", seed, 0, 2**64 - 1)
    return Instance(seed=seed, of=SyntheticSEM(**parameters))


def make_fixed(adjacency: Any, arms: Any = None, **parameters: Any) -> FixedSEM:
    """Make a world with a given graph; `arms` are the names of the rows and columns."""
    if arms is not None:
        with needed_for("a data frame", "research"):
            import pandas as pd

        n = len(adjacency)
        valid = isinstance(arms, tuple) and len(arms) == n and all(isinstance(arm, str) for arm in arms)
        validate.require(valid, "arms", arms, f"{n} names, one for each row of adjacency")
        adjacency = pd.DataFrame(np.array(adjacency, float), index=list(arms), columns=list(arms))
    return FixedSEM(adjacency=adjacency, **parameters)


MAKERS: dict[Any, Any] = {Instance: make_instance, FixedSEM: make_fixed}
SYNTHETIC, FIXED = ([f.name for f in fields(kind)] for kind in (SyntheticSEM, FixedSEM))
PARAMETERS: dict[Any, tuple[list[str], list[str]]] = {  # of the makers that are not dataclasses
    make_instance: (["seed", *SYNTHETIC], []),
    make_fixed: ([*FIXED, "arms"], ["adjacency", "means", "budget"]),
}

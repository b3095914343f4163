"""Canonical descriptions of computations and their hashes, which identify stored results."""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from spillover.experiments.import_graph import PACKAGE, ROOT, imports, reachable, with_neighbours
from spillover.tabular import table_of


def describe(value: Any) -> Any:
    """A value for JSON: dataclasses become tables with the name of the class and all fields, defaults included.

    >>> from spillover import ConstantDelay
    >>> describe(ConstantDelay(50))
    {'class': 'ConstantDelay', 'rounds': 50}
    """
    named = named_fields(value)
    if named is not None:
        title = {"class": type(value).__name__} if is_dataclass(value) else {}
        return title | {name: describe(item) for name, item in named.items()}
    table = table_of("table", value)
    if table is not None:
        rows = list(range(len(table.columns[0]))) if table.labels is None else table.labels
        return describe({"columns": table.names, "index": rows, "values": table.matrix("table")})
    if isinstance(value, np.ndarray | np.generic):
        return describe(value.tolist())
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, dict):
        return {str(name): describe(item) for name, item in value.items()}
    return describe_scalar(value)


def describe_scalar(value: Any) -> Any:
    """A scalar for JSON, which has no infinities and no NaN; 1 and 1.0 are the same parameter."""
    if isinstance(value, float):
        if not np.isfinite(value):
            return repr(value)
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, str | bool | int):
        return value
    raise TypeError(f"parameter = {value!r}: must be a number, text, a list, a table or a dataclass of them")


def named_fields(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or of a NamedTuple by name; None for any other value."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    return None


def digest(value: Any) -> str:
    """sha256 of the canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def source_digest(*values: Any, modules: Iterable[str] = ()) -> str:
    """sha256 over the source code that results computed from some values can depend on.

    That is the source of every class inside of the values (a task holds a policy, an environment and a delay), of the
    given modules, and of everything that these import. Reports, figures and commands are not part of it.
    """
    classes = frozenset(base for value in values for found in classes_in(value) for base in found.__mro__)
    return digest_of_sources(classes, frozenset(modules))


@cache
def digest_of_sources(classes: frozenset[type], modules: frozenset[str]) -> str:
    """The digest for some classes and modules: most cells of an experiment share it."""
    return digest({name: file_digest(path) for name, path in source_files(classes, modules).items()})


def source_files(classes: Iterable[type], modules: Iterable[str] = (), root: Path = ROOT) -> dict[str, Path]:
    """Files by a name that is the same wherever the package is installed."""
    own = {c.__module__ for c in classes if c.__module__.split(".")[0] == PACKAGE}
    foreign = foreign_files(c for c in classes if c.__module__ not in own)
    used = {name for path in foreign.values() for name in imports(path, root)}
    inside = reachable(own | used | set(modules), root)
    return {path.relative_to(root).as_posix(): path for path in sorted(inside)} | foreign


def foreign_files(classes: Iterable[type]) -> dict[str, Path]:
    """The files of classes outside of the package, such as a user's policy, and of what they import, by module name.

    Imports count if they lie in the same folder or package.
    """
    found: dict[str, Path] = {}
    for each in classes:
        file = getattr(sys.modules.get(each.__module__), "__file__", None)  # None for a class from the prompt
        if file is not None and each.__module__.split(".")[0] not in sys.stdlib_module_names:
            found |= with_neighbours(each.__module__, Path(file))
    return found


def classes_in(value: Any) -> Iterator[type]:
    """The classes of a value and of everything that `describe` finds inside of it."""
    named = named_fields(value)
    if named is not None:
        yield type(value)
    inside = value if named is None else named
    items: Iterable[Any] = inside.values() if isinstance(inside, dict) else inside
    for item in items if isinstance(inside, dict | list | tuple) else ():
        yield from classes_in(item)


@cache
def file_digest(path: Path) -> str:
    """sha256 of a file, as it was on the first call in this process."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

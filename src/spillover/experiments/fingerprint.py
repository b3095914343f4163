"""Describe and hash computations: the hashes name stored results."""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from spillover.tabular import table_of

PACKAGE = Path(__file__).parents[1]
# Modules and folders that nothing here may import (`.importlinter`), so that no result depends on them. Whatever is not
# listed counts, a new folder too.
APART = {
    "__init__", "__main__", "assessment", "cli", "client", "dashboard", "evaluation", "figures", "history",
    "http", "interop", "recommendation", "report", "service", "studies", "study", "testing", "views",
}  # fmt: skip


def describe(value: Any) -> Any:
    """Describe a value for JSON: a dataclass becomes a table with the name of its class and all fields, also defaults.

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
    """Describe a scalar for JSON, which has no infinities and no NaN; 1 and 1.0 are the same parameter."""
    if isinstance(value, float):
        if not np.isfinite(value):
            return repr(value)
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, str | bool | int):
        return value
    raise TypeError(f"parameter = {value!r}: must be a number, text, a list, a table or a dataclass of them")


def named_fields(value: Any) -> dict[str, Any] | None:
    """List the fields of a dataclass or of a NamedTuple by name; None for any other value."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    return None


def digest(value: Any) -> str:
    """Hash the canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def source_digest(*values: Any, files: Iterable[Path] = ()) -> str:
    """Hash the source code that results computed from some values can depend on.

    That is everything in the package that computes, the given files, and the file of every other class inside of the
    values, such as a policy of your own, and of its base classes.
    """
    classes = {base for value in values for found in classes_in(value) for base in found.__mro__}
    own = {path for each in classes if (path := own_file(each)) is not None}
    return digest([package_digest(), *sorted(file_digest(path) for path in {*own, *files})])


@cache
def package_digest() -> str:
    """Hash the package's files that compute, as they were on the first call in this process."""
    return digest({path.relative_to(PACKAGE).as_posix(): file_digest(path) for path in computing_files()})


def computing_files(root: Path = PACKAGE) -> list[Path]:
    """List the package's files that results can depend on: all but those that show, serve or explain them."""
    return [path for path in sorted(root.rglob("*.py")) if computes(path, root)]


def computes(path: Path, root: Path = PACKAGE) -> bool:
    """Whether a file is one of the package's that results can depend on."""
    return path.is_relative_to(root) and Path(path.relative_to(root).parts[0]).stem not in APART


def own_file(kind: type) -> Path | None:
    """Find the file of a class that is neither Python's own nor among the files that count anyway."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)  # None for a class from the prompt
    if file is None or kind.__module__.split(".")[0] in sys.stdlib_module_names:
        return None
    return None if computes(Path(file)) else Path(file)


def classes_in(value: Any) -> Iterator[type]:
    """Yield the classes of a value and of everything that `describe` finds inside of it."""
    named = named_fields(value)
    if named is not None:
        yield type(value)
    inside = value if named is None else named
    items: Iterable[Any] = inside.values() if isinstance(inside, dict) else inside
    for item in items if isinstance(inside, dict | list | tuple) else ():
        yield from classes_in(item)


@cache
def file_digest(path: Path) -> str:
    """Hash a file, as it was on the first call in this process."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

"""One spelling for each computation, and hashes of it: what tells a result that is there from one that is missing."""

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


def describe(value: Any) -> Any:
    """A value as JSON has it: dataclasses by the name of their class and all their fields, defaults included.

    >>> from spillover import ConstantDelay
    >>> describe(ConstantDelay(50))
    {'class': 'ConstantDelay', 'rounds': 50}
    """
    if is_dataclass(value) and not isinstance(value, type):
        inside = {f.name: describe(getattr(value, f.name)) for f in fields(value)}
        return {"class": type(value).__name__, **inside}
    if hasattr(value, "_asdict"):
        return {name: describe(item) for name, item in value._asdict().items()}
    if hasattr(value, "columns"):  # a DataFrame: names and values
        names = {"columns": list(value.columns), "index": list(value.index)}
        return describe(names | {"values": value.to_numpy()})
    if isinstance(value, np.ndarray | np.generic):
        return describe(value.tolist())
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, dict):
        return {str(name): describe(item) for name, item in value.items()}
    return plain(value)


def plain(value: Any) -> Any:
    """1 and 1.0 are the same parameter; JSON has no infinities and no NaN."""
    if isinstance(value, float):
        if not np.isfinite(value):
            return repr(value)
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, str | bool | int):
        return value
    raise TypeError(f"parameter = {value!r}: must be a number, text, a list, a table or a dataclass of them")


def digest(value: Any) -> str:
    """sha256 of the canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def source_digest(*values: Any, modules: Iterable[str] = ()) -> str:
    """sha256 over the source that can decide what is computed from some values.

    That is the source of every class inside of the values (a task holds a policy, an environment and a delay), of the
    given modules, and of all that these import. Sentences, figures and commands are no part of it.
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
    """The files of classes that are not the package's, such as a policy of one's own, and of what they import.

    By the name of their module. Of imports those count that lie in the same folder or package.
    """
    found: dict[str, Path] = {}
    for each in classes:
        file = getattr(sys.modules.get(each.__module__), "__file__", None)  # none where it was typed in at a prompt
        if file is not None and each.__module__.split(".")[0] not in sys.stdlib_module_names:
            found |= with_neighbours(each.__module__, Path(file))
    return found


def classes_in(value: Any) -> Iterator[type]:
    """The classes of a value and of what `describe` finds inside of it."""
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value)
        inside: Iterable[Any] = [getattr(value, f.name) for f in fields(value)]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield type(value)
        inside = value
    elif isinstance(value, dict):
        inside = value.values()
    else:
        inside = value if isinstance(value, list | tuple) else ()
    for item in inside:
        yield from classes_in(item)


@cache
def file_digest(path: Path) -> str:
    """sha256 of a file, as it was when this process first asked."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

"""One spelling for each computation, and hashes of it: what tells a result that is there from one that is missing."""

import hashlib
import json
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

# What no simulated number depends on. All else counts, new modules included: better to compute once too often.
APART = frozenset({"__init__.py", "cli", "cli.py", "live.py", "report", "reproduce.py", "store", "testing", "theory"})
COMPUTES = "experiments/compute.py"  # the one file of this folder that numbers depend on


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


def sources(root: Path) -> list[Path]:
    """The source files that a simulated number can depend on."""
    found = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        computes = inside.parts[0] != "experiments" or inside.as_posix() == COMPUTES
        if computes and inside.parts[0] not in APART:
            found.append(path)
    return found


@cache
def source_digest() -> str:
    """sha256 over the names and contents of these files, as they were when this process first asked."""
    root = Path(__file__).parents[1]
    return digest({path.relative_to(root).as_posix(): path.read_bytes().hex() for path in sources(root)})

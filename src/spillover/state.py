"""What is learned, as arrays: copy a state, take one learner out of a batch, write it to disk and read it back."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.types import State

FORMAT = 1


def leaves(state: State, path: str = "") -> dict[str, NDArray[Any]]:
    """All arrays of a state by the dotted names of their fields."""
    found: dict[str, NDArray[Any]] = {}
    for name, value in zip(state._fields, state, strict=True):
        if hasattr(value, "_fields"):
            found |= leaves(value, f"{path}{name}.")
        else:
            found[path + name] = np.asarray(value)
    return found


def map_leaves(function: Any, state: State) -> State:
    """The same structure with `function` applied to every array."""
    return type(state)(*(map_leaves(function, v) if hasattr(v, "_fields") else function(v) for v in state))


def copy_state(state: State) -> State:
    """A state of its own: `update` consumes the one that it is given."""
    return map_leaves(np.array, state)


def take_learner(state: State, row: int | tuple[int, ...]) -> State:
    """One learner (or one slice of them) out of a batch, as a state of its own."""
    return map_leaves(lambda leaf: np.array(leaf[row]), state)


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file completely or not at all: a temporary one beside it, then an atomic rename."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def save_state(path: str | Path, state: State) -> None:
    """Write a state as JSON: names, types, shapes and exact values."""
    arrays = {
        name: {
            "dtype": leaf.dtype.str,
            "shape": leaf.shape,
            "values": [encode(v) for v in leaf.ravel().tolist()],
        }
        for name, leaf in leaves(state).items()
    }
    write_whole(path, json.dumps({"format": FORMAT, "arrays": arrays}, allow_nan=False).encode())


def encode(value: Any) -> Any:
    """JSON has no infinities and no NaN; Python's repr of a double is exact."""
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def load_state(path: str | Path, like: State) -> State:
    """Read a state back into the structure of `like`, a state of the same policy (a fresh `init` will do)."""
    content = json.loads(Path(path).read_text())
    if content.get("format") != FORMAT:
        raise ValueError(f"{path}: format = {content.get('format')!r}: must be {FORMAT}, this version's")
    stored, expected = content["arrays"], leaves(like)
    if stored.keys() != expected.keys():
        raise ValueError(f"{path}: fields = {sorted(stored)}: must be {sorted(expected)}, as this policy's state has")
    read = {}
    for name, leaf in expected.items():
        found = stored[name]
        if found["dtype"] != leaf.dtype.str or tuple(found["shape"]) != leaf.shape:
            raise ValueError(
                f"{path}: {name} = {found['dtype']} of shape {tuple(found['shape'])}: "
                f"must be {leaf.dtype.str} of shape {leaf.shape}, as this policy's state has"
            )
        values = [float(v) if isinstance(v, str) else v for v in found["values"]]
        read[name] = np.array(values, leaf.dtype).reshape(leaf.shape)
    return unflatten(like, read)


def unflatten(like: State, arrays: dict[str, NDArray[Any]], path: str = "") -> State:
    """The structure of `like`, filled with the arrays of the same dotted names."""
    return type(like)(
        *(
            unflatten(value, arrays, f"{path}{name}.") if hasattr(value, "_fields") else arrays[path + name]
            for name, value in zip(like._fields, like, strict=True)
        )
    )

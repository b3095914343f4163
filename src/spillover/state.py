"""The state of a policy as arrays: copy it, take one replication out of a batch, write it to disk and read it back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.files import write_atomically
from spillover.types import State

FORMAT = 2


def is_nested(value: object) -> bool:
    """Whether a field of a state is a NamedTuple of further arrays; the alternative is an array."""
    return isinstance(value, tuple)


def leaves(state: State, path: str = "") -> dict[str, NDArray[Any]]:
    """All arrays of a state by the dotted names of their fields."""
    found: dict[str, NDArray[Any]] = {}
    for name, value in zip(state._fields, state, strict=True):
        if is_nested(value):
            found |= leaves(value, f"{path}{name}.")
        else:
            found[path + name] = np.asarray(value)
    return found


def map_leaves(function: Any, state: State) -> State:
    """The same structure with `function` applied to every array."""
    return type(state)(*(map_leaves(function, v) if is_nested(v) else function(v) for v in state))


def copy_state(state: State) -> State:
    """A deep copy: `update` may rewrite the state that it is given."""
    return map_leaves(np.array, state)


def take_replication(state: State, row: int | tuple[int, ...]) -> State:
    """The state of one replication (or a slice of them) out of a batch, as a copy."""
    return map_leaves(lambda leaf: np.array(leaf[row]), state)


def repeat_in_place(leaf: NDArray[Any], times: int) -> NDArray[Any]:
    """A stack of `times` views of the same memory.

    A kernel that rewrites its arguments processes a stack in order. Given such a stack of its state, and one round
    after another, a single call does the same as one call for each round. The leaf must be C-contiguous.

    >>> total = np.zeros(1)
    >>> repeat_in_place(total, 3).shape
    (3, 1)
    """
    return np.ndarray((times, *leaf.shape), leaf.dtype, leaf, 0, (0, *leaf.strides))


def save_arrays(path: str | Path, arrays: dict[str, NDArray[Any]], about: dict[str, str] | None = None) -> None:
    """Write named arrays as JSON, with types, shapes and exact values; `about` describes what they belong to."""
    content = {
        name: {"dtype": leaf.dtype.str, "shape": leaf.shape, "values": [encode(v) for v in leaf.ravel().tolist()]}
        for name, leaf in arrays.items()
    }
    write_atomically(
        path, json.dumps({"format": FORMAT, "about": about or {}, "arrays": content}, allow_nan=False).encode()
    )


def encode(value: Any) -> Any:
    """A number for JSON, which has no infinities and no NaN; Python's repr of a double is exact."""
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def load_arrays(path: str | Path, about: dict[str, str] | None = None) -> dict[str, NDArray[Any]]:
    """Read arrays written by `save_arrays`; raises a ValueError if the file's `about` differs from the given one."""
    content = read_content(path)
    stored = content.get("about") or {}
    for name, wanted in (about or {}).items():
        if stored.get(name, wanted) != wanted:
            raise ValueError(f"{path}: {name} = {stored[name]}: must be {wanted}, as it is now")
    if not isinstance(content.get("arrays"), dict):
        raise ValueError(f"{path}: arrays = {content.get('arrays')!r}: must be a table of named arrays")
    return {name: decode(path, name, leaf) for name, leaf in content["arrays"].items()}


def load_about(path: str | Path) -> dict[str, str]:
    """The `about` of a file written by `save_arrays`."""
    about: dict[str, str] = read_content(path).get("about") or {}
    return about


def read_content(path: str | Path) -> dict[str, Any]:
    """The content of a file, if it has this version's format."""
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: must be a complete JSON file written by save_state or save: {error}") from None
    written = content.get("format") if isinstance(content, dict) else None
    if written != FORMAT:
        raise ValueError(f"{path}: format = {written!r}: must be {FORMAT}, this version's")
    found: dict[str, Any] = content
    return found


def decode(path: str | Path, name: str, leaf: Any) -> NDArray[Any]:
    """One array as `save_arrays` wrote it."""
    try:
        values = [float(v) if isinstance(v, str) else v for v in leaf["values"]]
        return np.array(values, leaf["dtype"]).reshape(leaf["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {name}: must have a dtype, a shape and values to match ({error})") from None


def save_state(path: str | Path, state: State) -> None:
    """Write a state as JSON."""
    save_arrays(path, leaves(state))


def load_state(path: str | Path, like: State) -> State:
    """Read a state back into the structure of `like`, a state of the same policy (for example a new `init`)."""
    return fill(path, load_arrays(path), like)


def fill(path: str | Path, stored: dict[str, NDArray[Any]], like: State) -> State:
    """The structure of `like` with stored arrays; raises a ValueError if names, types or shapes do not match."""
    expected = leaves(like)
    if stored.keys() != expected.keys():
        raise ValueError(f"{path}: fields = {sorted(stored)}: must be {sorted(expected)}, as this policy's state has")
    for name, leaf in expected.items():
        found = stored[name]
        if (found.dtype, found.shape) != (leaf.dtype, leaf.shape):
            raise ValueError(
                f"{path}: {name} = {found.dtype} of shape {found.shape}: "
                f"must be {leaf.dtype} of shape {leaf.shape}, as this policy's state has"
            )
    return unflatten(like, stored)


def unflatten(like: State, arrays: dict[str, NDArray[Any]], path: str = "") -> State:
    """The structure of `like`, filled with the arrays of the same dotted names."""
    return type(like)(
        *(
            unflatten(value, arrays, f"{path}{name}.") if is_nested(value) else arrays[path + name]
            for name, value in zip(like._fields, like, strict=True)
        )
    )

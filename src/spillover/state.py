"""The state of a policy as arrays: copy it, take one replication out of a batch, write it to disk and read it back."""

import copy
import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from spillover.files import read_regular, remove_leftovers, write_atomically
from spillover.types import State, Within
from spillover.validate import require, shown

FORMAT = 3
# A file starts with this and ends its first value with the hash of all other bytes of the file.
HEAD = f'{{"format": {FORMAT}, "sha256": "'.encode()
HASH_LENGTH = 64
ALIGNED = 16  # bytes, for the parts of a packed state
NUMBERS = "biuf"  # kinds of arrays that can be saved
SHOWN = 200  # characters of a description in a message


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
    """A deep copy: `update` may rewrite the state that it is given.

    >>> import spillover as sp
    >>> state = sp.NDCSEM().init(sp.Problem(n_arms=3, budget=2), sp.Rng(0))
    >>> kept = copy_state(state)
    >>> kept.averages.sums is state.averages.sums
    False
    """
    return map_leaves(copy_leaf, state)


class Packed(NamedTuple):
    """A state whose arrays are parts of one line of bytes, which is copied at once."""

    state: State
    content: NDArray[np.uint8]

    def holds(self, state: State) -> bool:
        """Take the values of another state; False if it has another form."""
        if state is self.state:
            return True
        own, given = arrays_of(self.state), arrays_of(state)
        if [(a.dtype, a.shape) for a in own] != [(np.asarray(b).dtype, np.shape(b)) for b in given]:
            return False
        for mine, value in zip(own, given, strict=True):
            mine[...] = value
        return True


def packed(state: State) -> Packed | None:
    """A copy of a state in one piece; None if it has objects of Python.

    >>> import spillover as sp
    >>> found = packed(sp.NDCSEM().init(sp.Problem(n_arms=3, budget=2), sp.Rng(0)))
    >>> found.content[:] = 0
    >>> found.state.budget.item()
    0
    """
    given = [np.asarray(leaf) for leaf in arrays_of(state)]
    if any(leaf.dtype.hasobject for leaf in given):
        return None
    places = np.cumsum([0, *(leaf.nbytes + -leaf.nbytes % ALIGNED for leaf in given)])
    content = np.zeros(places[-1], np.uint8)
    made = [
        content[place : place + leaf.nbytes].view(leaf.dtype).reshape(leaf.shape)
        for place, leaf in zip(places, given, strict=False)
    ]
    for mine, leaf in zip(made, given, strict=True):
        mine[...] = leaf
    parts = iter(made)
    return Packed(map_leaves(lambda leaf: next(parts), state), content)


def arrays_of(state: State) -> list[Any]:
    """All arrays of a state, in order."""
    found: list[Any] = []
    for value in state:
        if is_nested(value):
            found += arrays_of(value)
        else:
            found.append(value)
    return found


def copy_leaf(leaf: Any) -> NDArray[Any]:
    """A copy of an array; if it has objects of Python, a copy of each."""
    array = np.asarray(leaf)
    return copy.deepcopy(array) if array.dtype.hasobject else np.array(leaf)


def take_replication(state: State, row: int | tuple[int, ...]) -> State:
    """The state of one replication (or a slice of them) out of a batch, as a copy.

    >>> import spillover as sp
    >>> policy, problem = sp.NDCSEM(), sp.Problem(n_arms=3, budget=2)
    >>> state = policy.init(problem, sp.Rng(0, replication=range(5)), (5,))  # five replications
    >>> take_replication(state, 4).averages.sums.shape
    (3,)
    """
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
    """Write named arrays as JSON, with types, shapes, exact values and a hash; `about` says what they belong to."""
    require_numbers(arrays)
    content = {
        name: {"dtype": leaf.dtype.str, "shape": leaf.shape, "values": [encode(v) for v in leaf.ravel().tolist()]}
        for name, leaf in arrays.items()
    }
    body = json.dumps({"about": about or {}, "arrays": content}, allow_nan=False).encode()
    rest = b'", ' + body[1:]
    write_atomically(path, HEAD + digest(rest) + rest)
    remove_leftovers(path)


def require_numbers(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise a ValueError if some arrays cannot be saved."""
    for name, leaf in arrays.items():
        numbers = leaf.dtype.kind in NUMBERS
        require(numbers, f"type of {name}", str(leaf.dtype), "numbers or booleans: objects of Python cannot be saved")


def digest(rest: bytes) -> bytes:
    """The hash of a file, from what follows it."""
    return hashlib.sha256(HEAD + rest).hexdigest().encode()


def encode(value: Any) -> Any:
    """A number for JSON, which has no infinities and no NaN; Python's repr of a double is exact."""
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


class Saved:
    """A file written by `save_arrays`, with the right format and hash: its arrays, and what they belong to."""

    def __init__(self, path: str | Path) -> None:
        content = read_content(path)
        if not isinstance(content.get("arrays"), dict) or not isinstance(content.get("about"), dict):
            raise ValueError(f"{path}: must have a table of named arrays, and one of what they belong to")
        self.path = path
        self.about: dict[str, Any] = content["about"]
        self.arrays = {name: decode(path, name, leaf) for name, leaf in content["arrays"].items()}

    def require(self, about: dict[str, str]) -> None:
        """Raise a ValueError if the arrays belong to something else."""
        for name, wanted in about.items():
            found = self.about.get(name)
            if found != wanted:
                ours, theirs = around_difference(wanted, str(found))
                raise ValueError(f"{self.path}: {name} = {theirs}: must be {ours}, as it is now")


def around_difference(one: str, other: str) -> tuple[str, str]:
    """Two texts, or, if they are long, what they have around their first difference."""
    if max(len(one), len(other)) <= SHOWN:
        return one, other
    same = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - SHOWN // 4)
    return tuple(f"{'...' if start else ''}{text[start : start + SHOWN]}..." for text in (one, other))  # type: ignore[return-value]


def read_content(path: str | Path) -> dict[str, Any]:
    """The content of a file, if it has this version's format and has not changed since it was written."""
    raw = read_regular(path)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: must be a complete JSON file written by save_state or save: {error}") from None
    written = content.get("format") if isinstance(content, dict) else None
    if written != FORMAT:
        raise ValueError(
            f"{path}: format = {written!r}: must be {FORMAT}, this version's: files of formats before {FORMAT} have no "
            "hash, so damage would go unnoticed; learn from the history again"
        )
    found, rest = raw[len(HEAD) : len(HEAD) + HASH_LENGTH], raw[len(HEAD) + HASH_LENGTH :]
    if not raw.startswith(HEAD) or found != digest(rest):
        raise ValueError(
            f"{path}: sha256 = {content.get('sha256')!r}: must be the hash of the rest of the file, which "
            "is damaged or was changed"
        )
    sealed: dict[str, Any] = content
    return sealed


def decode(path: str | Path, name: str, leaf: Any) -> NDArray[Any]:
    """One array as `save_arrays` wrote it."""
    try:
        values = [float(v) if isinstance(v, str) else v for v in leaf["values"]]
        kind = np.dtype(leaf["dtype"])
        if kind.kind not in NUMBERS:
            raise ValueError(f"dtype {kind}")
        return np.array(values, kind).reshape(leaf["shape"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: {name}: must have a dtype, a shape and values to match ({error})") from None


def save_state(path: str | Path, state: State) -> None:
    """Write a state as JSON.

    >>> import spillover as sp
    >>> import tempfile
    >>> policy, problem = sp.NDCSEM(), sp.Problem(n_arms=3, budget=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/state.json", policy.init(problem, sp.Rng(0)))
    ...     again = load_state(f"{folder}/state.json", like=policy.init(problem, sp.Rng(0)))
    >>> again.rounds.item()
    0
    """
    save_arrays(path, leaves(state))


def load_state(path: str | Path, like: State) -> State:
    """Read a state back into the structure of `like`, a state of the same policy (for example a new `init`).

    >>> import spillover as sp
    >>> import tempfile
    >>> policy, problem = sp.NDCSEM(), sp.Problem(n_arms=3, budget=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/state.json", policy.init(problem, sp.Rng(0)))
    ...     load_state(f"{folder}/state.json", like=policy.init(problem, sp.Rng(0))).budget.item()
    2
    """
    state = fill(path, Saved(path).arrays, like)
    check_ranges(path, state)
    return state


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


def check_ranges(path: str | Path, state: State, start: State = None, rounds: Any = None, name: str = "") -> None:
    """Raise a ValueError if a value cannot occur in such a state, as the fields' types declare it (`types.Within`).

    start: the state before the first round, and rounds: the number played, if they are known; in a batch one for each.
    """
    for field, value in zip(state._fields, state, strict=True):
        full = f"{name}{field}"
        first = None if start is None else start[state._fields.index(field)]
        if is_nested(value):
            check_ranges(path, value, first, rounds, f"{full}.")
            continue
        for within in declared(type(state), field):
            each = rounds if np.ndim(rounds) == 0 else rounds.reshape(-1, *(1,) * (value.ndim - 1))
            problem = within.problem(value, first, each)
            if problem:
                raise ValueError(f"{path}: {full} = {shown(value)}: must be {problem}")


def declared(kind: type[Any], field: str) -> tuple[Within, ...]:
    """The rule that the type of a field declares for its values; a type without one allows all."""
    return tuple(note for note in get_args(kind.__annotations__.get(field)) if isinstance(note, Within))


__all__ = [
    "copy_state",
    "load_state",
    "save_state",
    "take_replication",
]

"""Show functions of one learner their `self`: the numbers and arrays that they name, and the functions themselves."""

import math
import types as python
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba.core.dispatcher import Dispatcher

from spillover.contracts import Policy
from spillover.contracts.hyperparameters import value_of, with_values
from spillover.core.record import record_class
from spillover.kernels.cache import is_foreign, names_in
from spillover.types import Batch

KINDS = {"b": np.bool_, "i": np.int64, "u": np.int64}  # of hyperparameters; others are float64
FUNCTIONS = ("decide", "learn_outcome", "note_play", "derive", "remember", "index", "prepare", "show")


def is_number(value: Any) -> bool:
    """Whether a field is a number; whether it may be a grid of them, `grids` says."""
    return isinstance(value, bool | int | float | np.number | np.bool_)


def is_array(value: Any) -> bool:
    """Whether a value is an array of numbers, or a tuple of them."""
    return isinstance(value, np.ndarray | tuple) and np.asarray(value).dtype.kind in "biuf"


def spread(value: Any, batch: Batch, axes: int) -> Any:
    """A number or an array of so many axes, or a grid of them, with one axis for the learners; it is read-only."""
    given: Any = np.asarray(value)
    given = np.ascontiguousarray(given, KINDS.get(given.dtype.kind, np.float64)).reshape(given.shape)
    inside = given.shape[given.ndim - axes :]
    if given.ndim == axes:  # the same for all
        return np.broadcast_to(given, (math.prod(batch), *inside))
    whole: Any = np.ascontiguousarray(np.broadcast_to(given, (*batch, *inside))).reshape(-1, *inside)
    whole.flags.writeable = False
    return whole


def methods_named(part: Any, names: Iterable[str]) -> tuple[tuple[str, Any, bool], ...]:
    """Functions of the class of a policy or graph learner, as they are now; see `record.Fields`."""
    kind = type(part)
    return tuple((name, getattr(kind, name), name == "prepare" or kind.allocates) for name in names)


# --- what functions name ------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def names_reached(function: Callable[..., Any]) -> frozenset[str]:
    """All names that a function uses, and the functions that it can call; but those of its class."""
    found: set[str] = set()
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        each = each.py_func if isinstance(each, Dispatcher) else each
        if not isinstance(each, python.FunctionType) or id(each) in seen or is_foreign(each.__module__):
            continue
        seen.add(id(each))
        names = names_in(each.__code__)
        found |= names
        waiting += (each.__globals__[name] for name in names & each.__globals__.keys())
        waiting += (cell.cell_contents for cell in each.__closure__ or ())
    return frozenset(found)


def used_names(kind: type, function: str) -> frozenset[str]:
    """All names that a function of a policy uses, and those of its class that it can call."""
    found: frozenset[str] = frozenset()
    waiting, seen = [function], set[str]()
    while waiting:
        name = waiting.pop()
        method = getattr(kind, name, None)
        if name in seen or not isinstance(method, python.FunctionType):
            continue
        seen.add(name)
        names = names_reached(method)
        found |= names
        waiting += (each for each in names if is_helper(kind, each) or each in FUNCTIONS)
    return found


def is_helper(kind: type, name: str) -> bool:
    """Whether the functions of one learner may call a function of this name: none of the contract over batches."""
    return isinstance(getattr(kind, name, None), python.FunctionType) and not hasattr(Policy, name)


class Named(NamedTuple):
    """What the functions of a class name: its own functions, and attributes that may be numbers or graph learners."""

    functions: tuple[str, ...]
    attributes: tuple[str, ...]
    by_play: frozenset[str]  # all names that `note_play` uses
    now: list[Any]  # the functions when they were looked at


NAMED: WeakKeyDictionary[type, Named] = WeakKeyDictionary()


def named_by(kind: type) -> Named:
    """What the functions of a class name: a subclass, a mixin or an assignment may have replaced them."""
    known = NAMED.get(kind)
    if known is None or known.now != [getattr(kind, name, None) for name in known.functions]:
        names = sorted(frozenset().union(*(used_names(kind, each) for each in FUNCTIONS)))
        functions = *FUNCTIONS, *(name for name in names if name not in FUNCTIONS and is_helper(kind, name))
        own = {each.name for each in fields(kind)}
        attributes = (name for name in names if name in own or (hasattr(kind, name) and not hasattr(Policy, name)))
        rest = tuple(name for name in attributes if name not in functions)
        now = [getattr(kind, name, None) for name in functions]
        known = NAMED[kind] = Named(functions, rest, used_names(kind, "note_play"), now)
    return known


def seen_of(policy: Any) -> tuple[list[str], list[str], list[str]]:
    """What the functions of a policy see of it: numbers and arrays, functions, and graph learners, by name."""
    kind, grids = type(policy), policy.grids
    known, learners = named_by(kind), []
    functions = [name for name in known.functions if getattr(kind, name, None) is not None]
    given = [each.name for each in fields(policy)]
    numbers = [name for name in given if is_number(getattr(policy, name)) or name in grids]
    for name in known.attributes:
        value = getattr(policy, name)
        if hasattr(value, "own_numbers"):
            learners.append(name)
        elif name not in numbers and (is_number(value) or is_array(value)):
            numbers.append(name)
    return numbers, functions, learners


def reached(policy: Any) -> tuple[tuple[type, str], ...]:
    """All that the drivers of a policy are made of, by class and name."""
    _, functions, learners = seen_of(policy)
    inside = (pair for name in learners for pair in getattr(policy, name).reached())
    return (*((type(policy), name) for name in ("traits", *FUNCTIONS, *functions)), *inside)


def own_numbers(policy: Any, batch: Batch) -> Any:
    """What functions see of their `self`, for each learner: a NamedTuple of arrays."""
    numbers, functions, learners = seen_of(policy)
    given = {name: np.asarray(value_of(policy, name)) for name in policy.grids}
    arrays = {name: value for name, value in given.items() if value.ndim}
    single = with_values(policy, {name: value.flat[0].item() for name, value in arrays.items()})
    kind = type(policy)
    methods = tuple((name, getattr(kind, name), makes_arrays(policy)) for name in functions)
    own = record_class((*numbers, *learners), methods)
    parts = (getattr(policy, name).own_numbers(batch) for name in learners)
    return own(*(spread(getattr(policy, name), batch, np.ndim(getattr(single, name))) for name in numbers), *parts)


def makes_arrays(policy: Any) -> bool:
    """Whether compiled functions may make arrays, besides those of `prepare`."""
    return bool(policy.compiled != "without arrays")

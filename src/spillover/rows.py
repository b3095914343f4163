"""Some rows of a batch: taken out of the state of a policy, worked on, and put back.

A policy treats the rows of a batch independently, so some of them are a batch of their own. Consecutive rows are taken
as views, without a copy.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.state import declared, is_nested, map_leaves
from spillover.types import IntArray, State

Part: TypeAlias = slice | IntArray  # an index into the first axis: a slice where the rows are consecutive


class Rows(NamedTuple):
    """Some rows of a batch, in the order in which they were named."""

    places: IntArray
    part: Part
    everything: bool  # all rows in their own order

    def __len__(self) -> int:  # type: ignore[override]
        return int(self.places.size)


def rows_of(who: Any, count: int, name: str = "who", *, repeated: bool = False) -> Rows:
    """The rows that `who` names: positions, a mask of all rows, or None for all of them."""
    if who is None:
        return consecutive(0, count, count)
    given = np.asarray(validate.unmasked(name, who))
    if given.dtype == np.bool_:
        validate.require(given.shape == (count,), f"shape of {name}", given.shape, f"({count},), one for each learner")
        given = np.flatnonzero(given)
    accepted = f"a list of positions from 0 to {count - 1}, or a mask"
    if given.size == 0:
        return consecutive(0, 0, count)
    validate.require(given.ndim == 1 and given.dtype.kind in "iu", name, who, accepted)
    outside = (given < 0) | (given >= count)
    if outside.any():
        validate.require(False, name, int(given[outside.argmax()]), accepted)
    places = given.astype(np.int64)
    first, last = int(places[0]), int(places[-1])
    if last - first == places.size - 1 and bool((np.diff(places) == 1).all()):
        return consecutive(first, last + 1, count)
    if not repeated:
        found, times = np.unique(places, return_counts=True)
        twice = found[times > 1]
        validate.require(not twice.size, name, f"{twice[:1]} more than once", "every learner at most once")
    return Rows(places, places, False)


def consecutive(start: int, stop: int, count: int) -> Rows:
    return Rows(np.arange(start, stop), slice(start, stop), (start, stop) == (0, count))


def taken(state: State, part: Part) -> State:
    """The state of some rows, for functions that do not change it: views if the rows are consecutive."""
    return map_leaves(lambda leaf: leaf[part], state)


def copied(state: State, rows: Rows) -> State:
    """The state of some rows, which may be rewritten."""
    if isinstance(rows.part, slice):
        return map_leaves(lambda leaf: np.array(leaf[rows.part]), state)
    return taken(state, rows.part)


def flat(state: State) -> Iterator[NDArray[Any]]:
    """All arrays of a state, in the order of its fields."""
    for value in state:
        if is_nested(value):
            yield from flat(value)
        else:
            yield value


def put_back(state: State, part: Part, before: State, after: State) -> None:
    """Write the arrays of some rows that a function returned instead of those that it was given."""
    for whole, old, new in zip(flat(state), flat(before), flat(after), strict=True):
        if new is not old:
            whole[part] = new


def put_all_back(state: State, part: Part, after: State, constant: tuple[bool, ...]) -> None:
    """Write all arrays of some rows that a function may have rewritten; constants stay as they are."""
    for whole, new, same in zip(flat(state), flat(after), constant, strict=True):
        if not same:
            whole[part] = new


def constants(state: State) -> tuple[bool, ...]:
    """Of each array of a state in the order of `flat`: whether its field is declared to be the same in all rounds."""
    found: list[bool] = []
    for field, value in zip(state._fields, state, strict=True):
        if is_nested(value):
            found.extend(constants(value))
        else:
            found.append(any(within.of_start for within in declared(type(state), field)))
    return tuple(found)

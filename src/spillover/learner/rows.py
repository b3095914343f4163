"""Some rows of a batch: taken out of the state of a policy, worked on, and put back.

A policy treats the rows of a batch independently, so some of them are a batch of their own. Consecutive rows are taken
as views, without a copy.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.state import declared, is_nested, map_leaves
from spillover.types import IntArray, State

Part: TypeAlias = slice | IntArray  # an index into the first axis: a slice where the rows are consecutive
ALL = slice(None)


class Rows(NamedTuple):
    """Some rows of a batch, in the order in which they were named."""

    places: IntArray
    part: Part
    everything: bool  # all rows in their own order
    distinct: bool  # none is named twice

    @property
    def size(self) -> int:
        return len(self.places)


def rows_of(who: Any, count: int, name: str = "who") -> Rows:
    """The rows that `who` names: positions, a mask of all rows, or None for all of them."""
    if who is None:
        return consecutive(0, count, count)
    given = np.asarray(validate.unmasked(name, who))
    if given.dtype == np.bool_:
        validate.require(given.shape == (count,), f"shape of {name}", given.shape, f"({count},), one for each learner")
        given = np.flatnonzero(given)
    if given.size == 0:
        return consecutive(0, 0, count)
    accepted = f"a list of positions from 0 to {count - 1}, or a mask"
    validate.require(given.ndim == 1 and given.dtype.kind in "iu", name, who, accepted)
    places = given.astype(np.int64)
    listed = places.tolist()
    least, largest = min(listed), max(listed)
    validate.require(least >= 0, name, least, accepted)
    validate.require(largest < count, name, largest, accepted)
    if listed == list(range(least, largest + 1)):
        return consecutive(least, largest + 1, count)
    return Rows(places, places, False, len(set(listed)) == len(listed))


def distinct_rows(who: Any, count: int, name: str = "who") -> Rows:
    """`rows_of`, if every row is named at most once."""
    rows = rows_of(who, count, name)
    if not rows.distinct:
        listed = rows.places.tolist()
        twice = next(place for k, place in enumerate(listed) if place in listed[:k])
        validate.require(False, name, twice, "a learner that is named once in a call")
    return rows


def consecutive(start: int, stop: int, count: int) -> Rows:
    return Rows(np.arange(start, stop), slice(start, stop), (start, stop) == (0, count), True)


def taken(state: State, part: Part) -> State:
    """The state of some rows, for functions that do not change it: views if the rows are consecutive."""
    return map_leaves(lambda leaf: leaf[part], state)


def copied(state: State, rows: Rows) -> State:
    """The state of some rows, which may be rewritten."""
    if isinstance(rows.part, slice):
        return map_leaves(lambda leaf: np.array(leaf[rows.part]), state)
    return taken(state, rows.part)


def flat(state: State) -> list[NDArray[Any]]:
    """All arrays of a state, in the order of its fields."""
    found: list[NDArray[Any]] = []
    for value in state:
        if is_nested(value):
            found.extend(flat(value))
        else:
            found.append(value)
    return found


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

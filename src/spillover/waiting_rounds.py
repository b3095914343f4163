"""The rounds of many learners whose outcomes are pending: decisions, and what is known of the outcomes.

A round has a place in a table with one column for each kind of value. Places of rounds that are over are used again.
Every change is prepared first (`room_for`, which changes nothing that is seen) and then made by assignments that may be
repeated, so that an interrupt cannot leave half of it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.types import IntArray

FIRST_PLACES = 64


class WaitingRounds:
    """A table of pending rounds. Optional columns are made when they are needed first; NaN stands for nothing there."""

    def __init__(self, learners: int) -> None:
        self.places: list[dict[int, int]] = [{} for _ in range(learners)]  # by learner and round, in order of play
        self.columns: dict[str, NDArray[Any]] = {}
        self.room: tuple[int, list[int]] = (0, [])  # number of places, and those that are free: they change at once

    def room_for(self, columns: dict[str, Any], count: int) -> tuple[int, IntArray]:
        """How many places are free, and the last of them, for so many rounds with these values; none is taken yet."""
        capacity, free = self.room
        if count > len(free):
            self.grow(capacity + max(count - len(free), capacity, FIRST_PLACES))
            capacity, free = self.room
        self.make(columns)
        return len(free), np.array(free[len(free) - count :], np.int64)

    def make(self, columns: dict[str, Any]) -> None:
        """Make columns for values like these that do not exist yet."""
        for name, values in columns.items():
            if values is not None and name not in self.columns:
                self.columns[name] = blank((self.room[0], *values.shape[1:]), values.dtype)

    def grow(self, capacity: int) -> None:
        for name, column in list(self.columns.items()):
            larger = blank((max(capacity, len(column)), *column.shape[1:]), column.dtype)
            larger[: len(column)] = column
            self.columns[name] = larger
        before, free = self.room
        self.room = (capacity, [*range(capacity - 1, before - 1, -1), *free])

    def add(self, free: int, places: IntArray, learners: IntArray, rounds: IntArray, columns: dict[str, Any]) -> None:
        """Take places that `room_for` returned."""
        self.write(places, {name: columns.get(name) for name in self.columns})
        for learner, played, place in zip(learners.tolist(), rounds.tolist(), places.tolist(), strict=True):
            self.places[learner][played] = place
        del self.room[1][free - len(places) :]

    def write(self, places: IntArray, columns: dict[str, Any]) -> None:
        """Values of rounds; None for nothing."""
        for name, values in columns.items():
            column = self.columns[name]
            column[places] = nothing(column.dtype) if values is None else values

    def remove(self, free: int, places: IntArray, learners: IntArray, rounds: IntArray) -> None:
        """The rounds at these places are over; so many places were free before."""
        for learner, played in zip(learners.tolist(), rounds.tolist(), strict=True):
            self.places[learner].pop(played, None)
        self.room[1][free:] = places.tolist()

    def find(self, learners: Sequence[int], rounds: Sequence[int]) -> list[int | None]:
        """The places of these rounds; None for those that are not pending."""
        return [self.places[learner].get(played) for learner, played in zip(learners, rounds, strict=True)]

    def take(self, name: str, places: IntArray) -> Any:
        """The values of a column at these places, as a copy; None if there is no such column."""
        return self.columns[name][places] if name in self.columns else None

    def everything(self) -> tuple[IntArray, IntArray, IntArray]:
        """Learners, rounds and places of all pending rounds, sorted by learner and round."""
        found = [(i, played, place) for i, rounds in enumerate(self.places) for played, place in rounds.items()]
        table = np.array(found, np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]


def nothing(kind: np.dtype[Any]) -> Any:
    return np.nan if kind.kind == "f" else 0


def blank(shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
    return np.full(shape, nothing(kind), kind)

"""The books of many learners, besides the states of their policies: rounds, contexts, delays and pending rounds.

A pending round has a place in a table with one column for each kind of value. Places of rounds that are over are used
again. Every change is prepared first (`room_for`, which changes nothing that is seen) and then made by assignments that
may be repeated, so that an interrupt cannot leave half of it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.learner.reports import Details, Rounds, has
from spillover.learner.rows import Rows
from spillover.types import Array, Choice, IntArray, Problem

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


class Book(NamedTuple):
    """All that a learner keeps besides the state of its policy."""

    rounds: int
    waiting: dict[int, Choice]
    details: dict[int, Details]
    delay_totals: tuple[int, int, int]
    unavailable: tuple[int, ...]
    context: Any


class Books:
    """The books of learners of one problem, a row of each array for each learner."""

    def __init__(self, count: int, problem: Problem) -> None:
        self.reward_range: Array = validate.spread("reward_range", problem.reward_range, (count, 2))
        self.rounds = np.zeros(count, np.int64)  # played
        self.absent = np.zeros((count, problem.n_arms), np.bool_)  # arms that are not available in the coming round
        self.context = np.full((count, problem.context), np.nan)  # of the coming round; NaN: it is not known
        self.delay_totals = np.zeros((count, 3), np.int64)  # number of reported rounds, sum and longest of their delays
        self.waiting = WaitingRounds(count)

    def coming(self, rows: Rows, choice: Choice) -> Rounds:
        """The coming rounds of some learners."""
        played = self.rounds[rows.part]
        return Rounds(rows.places, played + 1, played, choice, self.reward_range[rows.part])

    def advance(self, rows: Rows, numbers: IntArray) -> None:
        """Some learners have played the round of this number; context and availability were those of that round."""
        self.rounds[rows.part] = numbers
        self.absent[rows.part] = False
        self.context[rows.part] = np.nan

    def pending(self, rows: Rows, rounds: Any) -> tuple[Rounds, IntArray]:
        """Pending rounds of some learners, and their places in the table; others are refused with a ValueError."""
        numbers = np.asarray(validate.unmasked("rounds", rounds))
        good = numbers.shape == rows.places.shape and (numbers.dtype.kind in "iu" or not numbers.size)
        validate.require(good, "rounds", rounds, f"a whole number for each of {rows.size} learners")
        found = self.waiting.find(rows.places.tolist(), numbers.tolist())
        if None in found:
            row = found.index(None)
            accepted = f"a round that was played and not reported yet: {list(self.waiting.places[rows.places[row]])}"
            validate.require(False, f"learner {rows.places[row]}: round", int(numbers[row]), accepted)
        if not rows.distinct and len(set(found)) < len(found):
            row = next(k for k, place in enumerate(found) if place in found[:k])
            accepted = "a round that is named once in a call"
            validate.require(False, f"learner {rows.places[row]}: round", int(numbers[row]), accepted)
        places = np.array(found, np.int64)
        choice = Choice(*(self.waiting.take(name, places) for name in Choice._fields))
        played, ends = self.rounds[rows.part], self.reward_range[rows.part]
        return Rounds(rows.places, numbers.astype(np.int64), played, choice, ends, rows.distinct), places

    def details(self, places: IntArray) -> Details:
        """What is known of pending rounds at these places."""
        return Details(*(self.waiting.take(name, places) for name in Details._fields))

    def book(self, position: int) -> Book:
        """The book of one learner."""
        pending = self.waiting.places[position]
        places = np.array(list(pending.values()), np.int64)
        choices = [self.waiting.take(name, places) for name in Choice._fields]
        waiting, details = {}, {}
        for row, played in enumerate(pending):
            carried: list[Any] = [None if column is None else column[row].copy() for column in choices]
            choice = Choice(*carried)
            waiting[played] = choice._replace(memo=None) if is_nothing(choice.memo) else choice
            known = only_round(self.details(places[row : row + 1]))
            if any(part is not None for part in known):
                details[played] = known
        context = self.context[position]
        number, total, longest = self.delay_totals[position].tolist()
        return Book(
            int(self.rounds[position]),
            waiting,
            details,
            (number, total, longest),
            tuple(np.flatnonzero(self.absent[position]).tolist()),
            context.copy() if context.size and not np.isnan(context).any() else None,
        )


def is_nothing(memo: Any) -> bool:
    """Whether a round has no memo, though others have."""
    return memo is not None and bool(np.isnan(memo).all())


def books_of(book: Book, problem: Problem) -> Books:
    """The book of a learner as that of the only one of many."""
    books = Books(1, problem)
    books.rounds[:], books.delay_totals[:] = book.rounds, book.delay_totals
    books.absent[0, list(book.unavailable)] = True
    if book.context is not None:
        books.context[:] = book.context
    for played, choice in book.waiting.items():
        known = choice._asdict() | book.details.get(played, Details())._asdict()
        columns = {name: None if part is None else np.asarray(part)[None] for name, part in known.items()}
        free, places = books.waiting.room_for(columns, 1)
        books.waiting.add(free, places, np.zeros(1, np.int64), np.array([played]), columns)
    return books


def only_round(details: Details) -> Details:
    """The details of the only round in a table, with None where nothing is known."""
    context, dose, z, y = (None if part is None or not has(part)[0] else part[0].copy() for part in details)
    if y is not None and z is None:  # not observed
        z = np.full_like(y, np.nan)
    return Details(context, dose, z, y)

"""The records of many learners besides the states of their policies: rounds, contexts, delays, pending rounds."""

from typing import Any

import numpy as np

from spillover import validate
from spillover.learner_input import Details
from spillover.many_reports import Rounds, has
from spillover.rows import Rows
from spillover.saved import Book
from spillover.types import Array, Choice, IntArray, Problem
from spillover.waiting_rounds import WaitingRounds


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
            waiting[played] = Choice(*carried)
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


def only_round(details: Details) -> Details:
    """The details of the only round in a table, with None where nothing is known."""
    context, dose, z, y = (None if part is None or not has(part)[0] else part[0].copy() for part in details)
    if y is not None and z is None:  # not observed
        z = np.full_like(y, np.nan)
    return Details(context, dose, z, y)

"""Feedback under way: what was played is kept until it arrives, for each learner on its own."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.types import Batch, Choice, Feedback, IntArray, Outcome


class Mailbox:
    """Outcomes posted with a delay for each learner and delivered in the round they arrive.

    Rounds under way stand in a ring that grows with the longest delay; what is lost, or would arrive after the last
    round, is not kept. Several arrivals of one learner in one round come in the order in which they were played.
    """

    def __init__(self, horizon: int, batch: Batch) -> None:
        self.horizon = horizon
        self.batch = batch
        self.size = int(np.prod(batch, dtype=int))
        self.rings: dict[str, NDArray[Any]] = {}  # each (capacity, learners, ...)
        self.capacity = 0
        self.due: dict[int, list[int]] = {}  # round of arrival -> round of play * learners + learner
        self.under_way: dict[int, int] = {}  # round of play -> learners still waiting for it, oldest first

    def post(self, t: int, choice: Choice, outcome: Outcome, delay: IntArray) -> None:
        """Round t was played; its outcome is to arrive at the end of round t + delay."""
        late = delay.ravel()
        coming = np.flatnonzero(late <= self.horizon - t)
        if not coming.size:
            return
        self.store(t, {"x": choice.x, "z": outcome.z, "y": outcome.y, "memo": choice.memo})
        self.under_way[t] = len(coming)
        letters = t * self.size + coming
        if (late[coming] == late[coming[0]]).all():
            self.due.setdefault(t + int(late[coming[0]]), []).extend(letters.tolist())
            return
        for arrival, letter in zip((t + late[coming]).tolist(), letters.tolist(), strict=True):
            self.due.setdefault(arrival, []).append(letter)

    def store(self, t: int, arrays: dict[str, Any]) -> None:
        oldest = next(iter(self.under_way), t)
        if t - oldest >= self.capacity:
            self.grow(2 * (t - oldest + 1), oldest, t)
        for name, array in arrays.items():
            if array is not None:
                flat = np.asarray(array).reshape(self.size, *array.shape[len(self.batch) :])
                if name not in self.rings:
                    self.rings[name] = np.empty((self.capacity, *flat.shape), flat.dtype)
                self.rings[name][t % self.capacity] = flat

    def grow(self, capacity: int, oldest: int, t: int) -> None:
        held = np.arange(oldest, t)
        for name, ring in self.rings.items():
            larger = np.empty((capacity, *ring.shape[1:]), ring.dtype)
            larger[held % capacity] = ring[held % self.capacity]
            self.rings[name] = larger
        self.capacity = capacity

    def deliver(self, t: int) -> Iterator[tuple[Feedback, IntArray]]:
        """What arrives at the end of round t, with the rounds of play: at most one piece a learner at a time."""
        letters = np.array(self.due.pop(t, ()), np.int64)
        if not letters.size:
            return
        played, learner = np.divmod(letters, self.size)
        for round_of_play, count in zip(*np.unique(played, return_counts=True), strict=True):
            left = self.under_way[int(round_of_play)] - int(count)
            if left:
                self.under_way[int(round_of_play)] = left
            else:
                del self.under_way[int(round_of_play)]
        if len(letters) == self.size and played[0] == played[-1] == played.max():
            yield self.piece(t, played, learner)
            return
        order = np.lexsort((played, learner))
        played, learner = played[order], learner[order]
        starts = np.flatnonzero(np.r_[True, learner[1:] != learner[:-1]])
        turn = np.arange(len(learner)) - np.repeat(starts, np.diff(np.r_[starts, len(learner)]))
        for k in range(int(turn.max()) + 1):
            yield self.piece(t, played[turn == k], learner[turn == k])

    def piece(self, t: int, played: IntArray, learner: IntArray) -> tuple[Feedback, IntArray]:
        """One piece of feedback for each of these learners, nothing for the others."""
        everybody = len(learner) == self.size
        arrived, moment = np.zeros(self.size, np.bool_), np.zeros(self.size, np.int64)
        arrived[learner], moment[learner] = True, played
        found: dict[str, Any] = {"memo": None}
        for name, ring in self.rings.items():
            rows = ring[played % self.capacity, learner]
            if not everybody:
                rows, some = np.zeros(ring.shape[1:], ring.dtype), rows
                rows[learner] = some
            found[name] = rows.reshape(*self.batch, *ring.shape[2:])
        age = np.where(arrived, t - moment, 0).reshape(self.batch)
        return Feedback(**found, age=age, arrived=arrived.reshape(self.batch)), moment.reshape(self.batch)

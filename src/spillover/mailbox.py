"""Feedback in flight: the outcome of a round is kept until it arrives, for each learner on its own."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.contracts import Delay
from spillover.rng import Purpose, Rng
from spillover.types import Batch, Choice, Feedback, IntArray, Outcome


class ConstantMailbox:
    """The mailbox of a constant delay: a queue, in which every round waits for everybody equally long."""

    def __init__(self, delay: int, batch: Batch) -> None:
        self.delay = delay
        self.queue: deque[tuple[int, Choice, Outcome]] = deque()
        self.age, self.arrived = np.full(batch, delay, np.int64), np.ones(batch, np.bool_)
        for shared in (self.age, self.arrived):
            shared.flags.writeable = False  # every piece of feedback has the same

    def post(self, t: int, choice: Choice, outcome: Outcome) -> None:
        """Round t was played."""
        self.queue.append((t, choice, outcome))

    def deliver(self, t: int) -> Iterator[tuple[Feedback, int]]:
        """What arrives at the end of round t, with its round of play."""
        if self.queue and self.queue[0][0] + self.delay == t:
            played, choice, outcome = self.queue.popleft()
            yield (
                Feedback(choice.x, outcome.z, outcome.y, self.age, self.arrived, choice.probability, choice.memo),
                played,
            )


class Mailbox:
    """Outcomes posted with a delay for each learner and delivered in the round they arrive.

    Rounds under way stand in a ring that grows with the longest delay; what is lost, or would arrive after the last
    round, is not kept. Several arrivals of one learner in one round come in the order in which they were played.
    """

    def __init__(self, horizon: int, batch: Batch) -> None:
        self.horizon = horizon
        self.batch = batch
        self.size = int(np.prod(batch, dtype=int))
        self.everybody = np.arange(self.size)
        self.rings: dict[str, NDArray[Any]] = {}  # each (capacity, learners, ...)
        self.capacity = 0
        self.due: dict[int, list[tuple[int, IntArray]]] = {}  # round of arrival -> (round of play, learners)
        self.under_way: dict[int, int] = {}  # round of play -> learners still waiting for it, oldest first

    def post(self, t: int, choice: Choice, outcome: Outcome, delay: IntArray) -> None:
        """Round t was played; its outcome is to arrive at the end of round t + delay."""
        late = delay.ravel()
        latest = self.horizon - t
        if (late == late[0]).all():
            parts = [(int(late[0]), self.everybody)] if late[0] <= latest else []
        else:
            order = np.argsort(late, kind="stable")
            cuts = np.flatnonzero(np.diff(late[order])) + 1
            groups = ((int(late[rows[0]]), rows) for rows in np.split(order, cuts))
            parts = [(days, rows) for days, rows in groups if days <= latest]
        if not parts:
            return
        carried = {"probability": choice.probability, "memo": choice.memo}
        self.store(t, {"x": choice.x, "z": outcome.z, "y": outcome.y} | carried)
        self.under_way[t] = sum(len(rows) for _, rows in parts)
        for days, rows in parts:
            self.due.setdefault(t + days, []).append((t, rows))

    def store(self, t: int, arrays: dict[str, Any]) -> None:
        oldest = next(iter(self.under_way), t)
        if t - oldest >= self.capacity:
            self.grow(2 * (t - oldest + 1), oldest, t)
        for name, array in arrays.items():
            if array is not None:
                if name not in self.rings:
                    shape = (self.capacity, self.size, *array.shape[len(self.batch) :])
                    kind = np.result_type(array, float) if name in ("z", "y") else array.dtype
                    self.rings[name] = np.empty(shape, kind)
                self.rings[name][t % self.capacity] = array.reshape(self.rings[name].shape[1:])

    def grow(self, capacity: int, oldest: int, t: int) -> None:
        held = np.arange(oldest, t)
        for name, ring in self.rings.items():
            larger = np.empty((capacity, *ring.shape[1:]), ring.dtype)
            larger[held % capacity] = ring[held % self.capacity]
            self.rings[name] = larger
        self.capacity = capacity

    def deliver(self, t: int) -> Iterator[tuple[Feedback, IntArray]]:
        """What arrives at the end of round t, with the rounds of play: at most one piece a learner at a time."""
        letters = self.due.pop(t, [])  # in the order of play
        if all(rows is self.everybody for _, rows in letters):
            for played, _ in letters:
                yield self.whole(t, played)
        else:
            yield from self.in_turns(t, letters)
        for played, rows in letters:
            self.under_way[played] -= len(rows)
            if not self.under_way[played]:
                del self.under_way[played]

    def whole(self, t: int, played: int) -> tuple[Feedback, IntArray]:
        """The same round for everybody."""
        found: dict[str, Any] = {}
        for name, ring in self.rings.items():
            found[name] = ring[played % self.capacity].reshape(*self.batch, *ring.shape[2:]).copy()
        age, played_at = np.full(self.batch, t - played), np.full(self.batch, played)
        return Feedback(**found, age=age, arrived=np.ones(self.batch, np.bool_)), played_at

    def in_turns(self, t: int, letters: list[tuple[int, IntArray]]) -> Iterator[tuple[Feedback, IntArray]]:
        """Each learner's first arrival, then the second of those that have one, and so on."""
        learner = np.concatenate([rows for _, rows in letters])
        played = np.repeat([p for p, _ in letters], [len(rows) for _, rows in letters])
        order = np.argsort(learner, kind="stable")  # keeps the order of play
        played, learner = played[order], learner[order]
        starts = np.flatnonzero(np.r_[True, learner[1:] != learner[:-1]])
        turn = np.arange(len(learner)) - np.repeat(starts, np.diff(np.r_[starts, len(learner)]))
        for k in range(int(turn.max()) + 1):
            yield self.piece(t, played[turn == k], learner[turn == k])

    def piece(self, t: int, played: IntArray, learner: IntArray) -> tuple[Feedback, IntArray]:
        """One piece of feedback for each of these learners, nothing for the others."""
        arrived, played_at = np.zeros(self.size, np.bool_), np.zeros(self.size, np.int64)
        arrived[learner], played_at[learner] = True, played
        found: dict[str, Any] = {}
        for name, ring in self.rings.items():
            rows = np.zeros(ring.shape[1:], ring.dtype)
            rows[learner] = ring[played % self.capacity, learner]
            found[name] = rows.reshape(*self.batch, *ring.shape[2:])
        age = np.where(arrived, t - played_at, 0).reshape(self.batch)
        return Feedback(**found, age=age, arrived=arrived.reshape(self.batch)), played_at.reshape(self.batch)


class FeedbackQueue:
    """Takes the outcome of each round and returns what arrives at its end; one queue for any delay."""

    def __init__(self, delay: Delay, horizon: int, rng: Rng, batch: Batch) -> None:
        self.delay, self.rng, self.batch = delay, rng, batch
        self.same = None if delay.constant is None else ConstantMailbox(delay.constant, batch)
        self.mailbox = Mailbox(horizon, batch)

    def exchange(self, t: int, choice: Choice, outcome: Outcome) -> Iterator[tuple[Feedback, Any]]:
        """Post the outcome of round t; what arrives at its end, each with its rounds of play."""
        if self.same is not None:
            self.same.post(t, choice, outcome)
            return self.same.deliver(t)
        late = self.delay.draw(t, self.rng.at(Purpose.DELAY, t), self.batch)
        self.mailbox.post(t, choice, outcome, late)
        return self.mailbox.deliver(t)

"""Feedback in flight: the outcome of a round is kept until it arrives, separately for each replication."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.contracts import Delay
from spillover.delays import NEVER
from spillover.rng import Purpose, Rng
from spillover.types import Batch, BoolArray, Choice, Feedback, IntArray, Outcome


class Mailbox:
    """Outcomes posted with a delay for each replication and delivered in the round in which they arrive.

    Rounds in flight are stored in a ring buffer that grows with the longest delay. Outcomes that are lost, or would
    arrive after the last round, are not stored. If several arrive in one round of a replication, they are delivered in
    the order in which they were played.

    in_parts: whether the arms of a round have delays of their own. Then it is delivered whenever one of them reports,
    with all outcomes that are known by then; the others are NaN.
    """

    def __init__(self, horizon: int, batch: Batch, *, in_parts: bool = False) -> None:
        self.horizon, self.in_parts = horizon, in_parts
        self.batch = batch
        self.size = int(np.prod(batch, dtype=int))
        self.all_rows = np.arange(self.size)
        self.rings: dict[str, NDArray[Any]] = {}  # each (capacity, rows, ...); a row is a replication
        self.capacity = 0
        self.due: dict[int, list[tuple[int, IntArray]]] = {}  # round of arrival -> (round of play, rows)
        self.in_flight: dict[int, int] = {}  # round of play -> number of rows still waiting for it, oldest first

    def post(self, t: int, choice: Choice, outcome: Outcome, delay: IntArray) -> None:
        """Round t was played; its outcome arrives at the end of round t + delay."""
        validate.require(bool((delay >= 0).all()), f"delay of round {t}", delay, "0 or more rounds")
        latest = self.horizon - t
        parts = [(rounds, rows) for rounds, rows in self.arrivals(delay) if rounds <= latest]
        if not parts:
            return
        carried = {"probability": choice.probability, "memo": choice.memo, "context": outcome.context}
        if self.in_parts:  # the round in which each outcome arrives; NEVER if it is lost
            carried["arrival"] = np.where(delay > NEVER - t, NEVER, np.minimum(delay, NEVER - t) + t)
        self.store(t, {"x": choice.x, "z": outcome.z, "y": outcome.y} | carried)
        self.in_flight[t] = sum(len(rows) for _, rows in parts)
        for rounds, rows in parts:
            self.due.setdefault(t + rounds, []).append((t, rows))

    def arrivals(self, delay: IntArray) -> list[tuple[int, IntArray]]:
        """The rows in which something arrives after so many rounds, for each such number."""
        late = delay.reshape(self.size, -1)
        if (late == late[0]).all():
            return [(int(rounds), self.all_rows) for rounds in np.unique(late[0])]
        return [(int(rounds), np.flatnonzero((late == rounds).any(axis=-1))) for rounds in np.unique(late)]

    def feedback(self, t: int, found: dict[str, Any], age: IntArray, arrived: BoolArray) -> Feedback:
        """The stored arrays as feedback at the end of round t."""
        if not self.in_parts:
            return Feedback(**found, age=age, arrived=arrived)
        arrival, here = found.pop("arrival"), arrived[..., None]
        unknown = here & (arrival > t)
        for name in ("z", "y"):
            found[name][unknown] = np.nan
        outstanding = (arrival > t) & (arrival < NEVER)
        complete = arrived & ~outstanding.any(axis=-1)
        return Feedback(**found, age=age, arrived=arrived, fresh=here & (arrival == t), complete=complete)

    def store(self, t: int, arrays: dict[str, Any]) -> None:
        oldest = next(iter(self.in_flight), t)
        if t - oldest >= self.capacity:
            self.grow(2 * (t - oldest + 1), oldest, t)
        absent = {name for name, array in arrays.items() if array is None}
        if self.rings and absent != arrays.keys() - self.rings.keys():
            raise ValueError(f"context, probability and memo of round {t}: must be arrays in every round, or in none")
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
        """What arrives at the end of round t, with the rounds of play; each item has at most one outcome a row."""
        arrivals = self.due.pop(t, [])  # in the order of play
        if all(rows is self.all_rows for _, rows in arrivals):
            for played, _ in arrivals:
                yield self.for_all_rows(t, played)
        else:
            yield from self.in_turns(t, arrivals)
        for played, rows in arrivals:
            self.in_flight[played] -= len(rows)
            if not self.in_flight[played]:
                del self.in_flight[played]

    def for_all_rows(self, t: int, played: int) -> tuple[Feedback, IntArray]:
        """The feedback of one round for all rows."""
        found: dict[str, Any] = {}
        for name, ring in self.rings.items():
            found[name] = ring[played % self.capacity].reshape(*self.batch, *ring.shape[2:]).copy()
        age, played_at = np.full(self.batch, t - played), np.full(self.batch, played)
        return self.feedback(t, found, age, np.ones(self.batch, np.bool_)), played_at

    def in_turns(self, t: int, arrivals: list[tuple[int, IntArray]]) -> Iterator[tuple[Feedback, IntArray]]:
        """The first arrival of each row, then the second of those that have one, and so on."""
        row = np.concatenate([rows for _, rows in arrivals])
        played = np.repeat([p for p, _ in arrivals], [len(rows) for _, rows in arrivals])
        order = np.argsort(row, kind="stable")  # keeps the order of play
        played, row = played[order], row[order]
        starts = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
        turn = np.arange(len(row)) - np.repeat(starts, np.diff(np.r_[starts, len(row)]))
        for k in range(int(turn.max()) + 1):
            yield self.for_rows(t, played[turn == k], row[turn == k])

    def for_rows(self, t: int, played: IntArray, row: IntArray) -> tuple[Feedback, IntArray]:
        """The feedback of one round for each of these rows, and none for the others."""
        arrived, played_at = np.zeros(self.size, np.bool_), np.zeros(self.size, np.int64)
        arrived[row], played_at[row] = True, played
        found: dict[str, Any] = {}
        for name, ring in self.rings.items():
            values = np.zeros(ring.shape[1:], ring.dtype)
            values[row] = ring[played % self.capacity, row]
            found[name] = values.reshape(*self.batch, *ring.shape[2:])
        age = np.where(arrived, t - played_at, 0).reshape(self.batch)
        return self.feedback(t, found, age, arrived.reshape(self.batch)), played_at.reshape(self.batch)


class FeedbackQueue:
    """Takes the outcome of each round and returns what arrives at its end, for any delay.

    in_parts: whether the arms of a round may be delivered at different times; otherwise it arrives with the last one.
    """

    def __init__(self, delay: Delay, horizon: int, rng: Rng, batch: Batch, in_parts: bool = False) -> None:
        self.delay, self.rng, self.batch = delay, rng, batch
        self.mailbox = Mailbox(horizon, batch, in_parts=delay.per_arm and in_parts)

    def exchange(self, t: int, choice: Choice, outcome: Outcome) -> Iterator[tuple[Feedback, Any]]:
        """Post the outcome of round t; yields what arrives at its end, with the rounds of play."""
        self.mailbox.post(t, choice, outcome, self.late(t, choice, outcome))
        return self.mailbox.deliver(t)

    def late(self, t: int, choice: Choice, outcome: Outcome) -> IntArray:
        """The delay of the outcome, or of each arm's."""
        if self.delay.constant is not None:
            return np.full(self.batch, self.delay.constant)
        late = self.delay.draw_given(t, choice.x, outcome.z, self.rng.at(Purpose.DELAY, t), self.batch)
        if not self.delay.per_arm:
            return late
        validate.require(late.shape == choice.x.shape, "shape of delays", late.shape, f"{choice.x.shape}, as x has")
        return late if self.mailbox.in_parts else np.asarray(late.max(axis=-1))

"""Policies whose memory is a Python object for each replication, instead of arrays."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import Policy
from spillover.interop.exchange import Arrival, arrival_of
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Choice, Feedback, IntArray, Problem

LARGEST_SEED = 2**31 - 1  # of an agent: what most libraries accept


class Seat:
    """One replication: its agent, what has arrived since the last round, and its decision for the coming one.

    Seats are equal if the same was told to agents that began alike; then they decide alike.
    """

    def __init__(self, agent: Any, problem: Problem, seed: int) -> None:
        self.agent, self.problem = agent, problem
        self.arrivals: list[Arrival] = []
        self.arrived_by = 0  # the round after which they arrived
        self.told = blake2b(repr((seed, problem)).encode()).digest()
        self.decided: tuple[bytes, BoolArray] | None = None  # and what it was asked

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seat) and self.told == other.told

    def __hash__(self) -> int:
        return hash(self.told)

    def learn(self, arrival: Arrival, played: int) -> None:
        """Keep an outcome for the next observation."""
        if self.arrived_by != played:
            self.arrivals, self.arrived_by = [], played
        self.arrivals.append(arrival)
        content = b"".join(np.asarray(part).tobytes() for part in arrival.values())
        self.told = blake2b(self.told + content + str(played).encode()).digest()

    def since(self, played: int) -> list[Arrival]:
        """The outcomes that have arrived since the last of these rounds was played."""
        return self.arrivals if self.arrived_by == played else []

    def decide(self, played: int, context: Any, act: Callable[[], BoolArray]) -> BoolArray:
        """The decision for the coming round; an agent is asked once, however often we are."""
        asked = b"%d" % played + self.told + (b"" if context is None else np.asarray(context).tobytes())
        if self.decided is None or self.decided[0] != asked:
            self.decided = asked, act()
        return self.decided[1]


class SeatState(NamedTuple):
    """The seats, how many rounds were played, and the context of the coming one."""

    seats: Any  # (*batch,): an array of `Seat`
    rounds: IntArray  # (*batch,)
    context: Array  # (*batch, k)


class SeatedPolicy(Policy):
    """A policy that asks an object of Python in each replication.

    Runs are as reproducible as the objects are. A state is copied with all of its objects, and cannot be saved to a
    file, as nothing is known of what they hold. Batches work, one replication after another.
    """

    order_free = False  # nothing is promised
    uses_context = True
    needs_rewards = False  # it sees what there is
    needs_outcomes = False

    @abstractmethod
    def new_agent(self, problem: Problem, seed: int) -> Any:
        """The object of a replication; the seed is its own."""

    @abstractmethod
    def decide(self, seat: Seat, played: int, context: Any, rng: Rng) -> BoolArray:
        """The decision of a replication after so many rounds."""

    @abstractmethod
    def tell(self, seat: Seat, arrival: Arrival) -> None:
        """An outcome has arrived."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SeatState:
        seeds = np.floor(np.broadcast_to(rng.uniform(1)[..., 0], batch) * LARGEST_SEED).astype(np.int64)
        seats = np.empty(batch, object)
        for row in np.ndindex(batch):
            seed, own = int(seeds[row]), problem_of(problem, batch, row)
            seats[row] = Seat(self.new_agent(own, seed), own, seed)
        return SeatState(seats, np.zeros(batch, np.int64), np.zeros((*batch, problem.context)))

    def observe(self, state: SeatState, context: Array) -> SeatState:
        return state._replace(context=np.array(context, float))

    def select(self, state: SeatState, rng: Rng) -> Choice:
        rows = []
        for row, seat in seats_of(state):
            own = np.array(state.context[row]) if state.context.shape[-1] else None
            played = int(state.rounds[row])
            rows.append(seat.decide(played, own, self.asking(seat, played, own, rng_of(rng, row))))
        return Choice(np.array(rows).reshape(*state.rounds.shape, -1))

    def asking(self, seat: Seat, played: int, context: Any, rng: Rng) -> Callable[[], BoolArray]:
        return lambda: self.decide(seat, played, context, rng)

    def played(self, state: SeatState, x: BoolArray) -> SeatState:
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: SeatState, feedback: Feedback, rng: Rng) -> SeatState:
        for row, seat in seats_of(state):
            if feedback.arrived[row]:
                played = int(state.rounds[row])
                arrival = arrival_of(row_of(feedback, row), played - int(feedback.age[row]), seat.problem)
                seat.learn(arrival, played)
                self.tell(seat, arrival)
        return state


def seats_of(state: SeatState) -> Iterator[tuple[tuple[int, ...], Seat]]:
    for row in np.ndindex(state.rounds.shape):
        yield row, state.seats[row]


def problem_of(problem: Problem, batch: Batch, row: tuple[int, ...]) -> Problem:
    """The problem of one replication."""
    given = {name: getattr(problem, name) for name in ("reward_range", "overall_range", "weights")}
    shapes = {name: (*batch, np.shape(value)[-1]) for name, value in given.items() if value is not None}
    return problem._replace(**{name: np.broadcast_to(given[name], shape)[row] for name, shape in shapes.items()})


def rng_of(rng: Rng, row: tuple[int, ...]) -> Rng:
    """The streams of one replication."""
    return rng.take(row) if row else rng


def row_of(feedback: Feedback, row: tuple[int, ...]) -> Feedback:
    """The feedback of one replication."""
    parts: Any = (None if part is None else np.asarray(part)[row] for part in feedback)
    return Feedback(*parts)

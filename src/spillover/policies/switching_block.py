"""SwitchingSEM compiled as a whole, with all that a learner knows in one block: see `kernels/switching_block.py`.

Kernels play whole rounds on the block. What is rare and long they leave to Python, which goes on with the arrays of
the state: these are views of the block.
"""

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from spillover import kernels
from spillover.kernels.switching_block import AGE, FOUND, HEAD, REPORT, STOPPED, UNRECORDED, scratch_size
from spillover.policies.compiled_rounds import outcomes_for_kernels
from spillover.policies.dates import date_of
from spillover.rng import Purpose, Rng
from spillover.state import leaves, map_leaves
from spillover.types import Array, BoolArray, Choice, Feedback, IntArray, State, Stretch

if TYPE_CHECKING:
    from spillover.policies.switching import SwitchingSEM

REAL, WHOLE, FLAG = KINDS = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))
WORD = 8  # bytes of a real
STEPS_BETWEEN_COPIES = 16
Play: TypeAlias = tuple[int, BoolArray]  # the number of a round, and its decision
Step: TypeAlias = tuple[Callable[[Any], bool], Any]  # a function that changes the block, and its argument
MOST_ARMS = 64  # of a live learner in a block: with more, copies of the block cost more than short calls save


class Block:
    """The state of a batch of learners in a block, (*batch, numbers); `state` has views of it."""

    def __init__(self, state: State, axes: int, constants: Array) -> None:
        arrays = leaves(state)
        batch = next(iter(arrays.values())).shape[:axes]
        begins: list[int] = []
        places: dict[str, tuple[np.dtype[Any], int, int]] = {}
        end = HEAD + len(constants)  # in reals
        for kind in KINDS:
            at = end * WORD // kind.itemsize
            for name, leaf in arrays.items():
                if leaf.dtype == kind:
                    size = prod(leaf.shape[axes:])
                    places[name] = kind, at, at + size
                    begins.append(at)
                    at += size
            end = -(-at * kind.itemsize // WORD)
        self.known = end  # numbers that are known; the others are scratch memory
        _, hypotheses = state.belief.mass.shape[axes:]
        arms, kinds = state.in_flight.shape[-1], state.belief.mass.shape[-2]
        self.numbers: Array = np.empty((*batch, end + scratch_size(arms, hypotheses, kinds)))
        self.numbers.view(np.int64)[..., :HEAD] = (*begins, HEAD, len(constants), end)
        self.numbers[..., HEAD : HEAD + len(constants)] = constants
        views = []
        for name, leaf in arrays.items():
            kind, start, stop = places[name]
            views.append(self.numbers.view(kind)[..., start:stop].reshape(leaf.shape))
            views[-1][...] = leaf
        self.state = with_leaves(state, iter(views))

    def write(self, graph: State, rows: Any = ...) -> None:
        """Put the graph of some rows of the batch into the block."""
        for view, leaf in zip(leaves(self.state.graph).values(), leaves(graph).values(), strict=True):
            if view is not leaf:
                view[rows] = leaf


def with_leaves(state: State, replaced: Any) -> State:
    """The same structure with other arrays, in the order of `leaves`."""
    return map_leaves(lambda leaf: next(replaced), state)


def play_blocks(policy: "SwitchingSEM", state: State, stretch: Stretch, rng: Rng) -> State | None:
    """Play a stretch of rounds; None if an outcome is not valid."""
    batch, held = state.rounds.shape, Block(state, len(state.rounds.shape), policy.for_kernels)
    course = (*outcomes_for_kernels(stretch), *stretch.lateness, stretch.horizon)
    given = (held.numbers, rng.keys, *course, *stretch.flight, stretch.recorded, stretch.snapshots)
    start = after = np.zeros(batch, np.int64)
    while True:
        start, after, why, expected = kernels.play_switching(*given, start, after)
        if (why == kernels.FAULT).any():
            return None
        stopped = why != kernels.DONE
        if not stopped.any():
            return held.state
        rows = np.nonzero(stopped) if batch else ()
        finish(policy, held, rows, stretch, after, why == kernels.ALARM, expected)


def finish(
    policy: "SwitchingSEM",
    held: Block,
    rows: tuple[IntArray, ...],
    stretch: Stretch,
    after: IntArray,
    alarm: BoolArray,
    expected: Array,
) -> None:
    """Do what the kernel left to Python, in the rows in which it stopped; after: what had arrived, see `Flight`."""
    played = np.asarray(after)[rows] // stretch.flight.following.shape[-1]
    z, y = (ring[(*rows, played & (ring.shape[-2] - 1))] for ring in (stretch.flight.z, stretch.flight.y))
    graph = map_leaves(lambda leaf: np.array(leaf[rows]), held.state.graph)
    played_at = date_of(played, policy.assumed_delay, held.state.rounds[rows])
    held.write(policy.graph.finish(graph, z, y, played_at, expected[rows], np.asarray(alarm)[rows]), rows)


class CompactSwitching:
    """A live learner in a block.

    The block is copied once in a few steps, and the steps since then are remembered: to undo some, those before them
    are repeated from the copy. A play is recorded with the outcome that follows it, in one call.
    """

    def __init__(self, policy: "SwitchingSEM", state: State) -> None:
        self.policy, self.held = policy, Block(state, 0, policy.for_kernels)
        self.numbers, self.arms = self.held.numbers, state.in_flight.shape[-1]
        told = self.numbers[self.held.known :]
        self.report = told[:REPORT].view(np.int64).data  # whose items are read faster than those of an array
        self.recorded = self.held.state.rounds.reshape(1).data
        self.expected = told[REPORT : REPORT + self.arms]
        self.no_memo = np.zeros((3, self.arms))
        self.last: Play | None = None  # it may not be recorded yet
        self.copy: tuple[Array, list[Step]] | None = None  # one attribute, so that both change at once; None: no steps

    @property
    def state(self) -> State:
        self.record()
        return self.held.state

    def select(self, rng: Rng, round: int) -> Choice:
        if self.last is not None:
            self.record()
        x, memo = np.empty(self.arms, FLAG), np.empty(self.no_memo.shape)
        kernels.switching_choice(self.numbers, rng.keys, x, memo)
        return Choice(x, None, memo)

    def played(self, x: BoolArray) -> None:
        if self.last is not None:
            self.record()
        self.last = self.recorded[0] + 1, x

    def observe(self, context: Array) -> None:
        """It ignores the context."""

    def learn(self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int) -> bool:
        return self.apply(self.take_lesson, (self.last, choice, z, y, played - round, round))

    def take_lesson(self, lesson: Any) -> bool:
        """Record the last play, and learn the outcome of a round; False if something is wrong with that."""
        last, (x, _, memo), z, y, age, round = lesson
        report, playing = self.report, x
        report[AGE], report[UNRECORDED] = age, 0
        if last is not None and last[0] > self.recorded[0]:
            report[UNRECORDED], playing = last
        kernels.switching_lesson(self.numbers, playing, x, z, y, self.no_memo if memo is None else memo)
        self.last = None
        if report[STOPPED] != kernels.DONE:
            graph, alarm = map_leaves(np.array, self.held.state.graph), report[STOPPED] == kernels.ALARM
            played_at = date_of(np.asarray(round), self.policy.assumed_delay, self.held.state.rounds)
            self.held.write(self.policy.graph.finish(graph, z, y, played_at, self.expected, np.array(alarm)))
        return bool(report[FOUND] == kernels.FINE)

    def record(self) -> None:
        """Record the last play, unless it is."""
        last = self.last
        if last is not None and last[0] > self.recorded[0]:
            self.apply(self.take_play, last)
        self.last = None

    def take_play(self, last: Play) -> bool:
        number, x = last
        if number > self.recorded[0]:  # otherwise the step was interrupted, and begun again
            kernels.switching_play(self.numbers, x)
        return True

    def update(self, feedback: Feedback, rng: Rng, round: int) -> None:
        self.record()
        self.apply(self.take_part, (feedback, rng, round))

    def take_part(self, outcome: Any) -> bool:
        """Learn by the functions of the policy: outcomes in parts."""
        feedback, rng, round = outcome
        state = map_leaves(np.array, self.held.state)
        state = self.policy.update(state, feedback, rng.at(Purpose.LEARNING, round))
        for view, leaf in zip(leaves(self.held.state).values(), leaves(state).values(), strict=True):
            view[...] = leaf
        return True

    def apply(self, step: Callable[[Any], bool], argument: Any) -> bool:
        """Change the block. The step is remembered first: it may be interrupted when it is half done."""
        if self.copy is None:
            self.copy = (self.numbers[: self.held.known].copy(), [])
        self.copy[1].append((step, argument))
        return step(argument)

    def mark(self) -> tuple[int, Play | None]:
        """The present, for `back_to`."""
        steps = 0 if self.copy is None else len(self.copy[1])
        if steps >= STEPS_BETWEEN_COPIES:
            self.copy, steps = None, 0
        return steps, self.last

    mark_play = mark  # after a play, too

    def back_to(self, mark: tuple[int, Play | None]) -> None:
        """Undo all changes since a mark; it can be repeated if it is interrupted itself."""
        steps, last = mark
        if self.copy is not None and len(self.copy[1]) > steps:
            before, done = self.copy
            self.numbers[: self.held.known] = before
            for step, argument in done[:steps]:
                step(argument)
            del done[steps:]  # last: until then it can be repeated
        self.last = last

    def branch(self) -> "CompactSwitching":
        """The same learner, which goes on by itself."""
        return CompactSwitching(self.policy, self.state)

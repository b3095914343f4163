"""SwitchingSEM compiled as a whole, with all that a learner knows in three blocks: see `kernels/switching_block.py`.

Kernels play whole rounds on the blocks. What is rare and long they leave to Python, which goes on with the arrays of
the state: these are views of the blocks.
"""

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spillover import kernels
from spillover.rng import Purpose, Rng
from spillover.state import leaves, map_leaves
from spillover.types import Array, BoolArray, Choice, Feedback, IntArray, State, Stretch

if TYPE_CHECKING:
    from spillover.policies.switching import SwitchingSEM

KINDS = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))
MOST_ARMS = 64  # of a live learner in blocks: with more, copies of the blocks cost more than short calls save


class Blocks:
    """The state of a batch of learners in blocks, (*batch, numbers) each; `state` has views of them."""

    def __init__(self, state: State, axes: int) -> None:
        arrays = leaves(state)
        batch = next(iter(arrays.values())).shape[:axes]
        self.batch = batch
        self.blocks: list[NDArray[Any]] = []
        begins: list[int] = []
        views: dict[str, NDArray[Any]] = {}
        for kind in KINDS:
            own = {name: leaf for name, leaf in arrays.items() if leaf.dtype == kind}
            sizes = [int(np.prod(leaf.shape[axes:], dtype=int)) for leaf in own.values()]
            *starts, end = accumulate(sizes, initial=0)
            block = np.empty((*batch, end), kind)
            for (name, leaf), start, size in zip(own.items(), starts, sizes, strict=True):
                views[name] = block[..., start : start + size].reshape(leaf.shape)
                views[name][...] = leaf
            self.blocks.append(block)
            begins += starts
        self.starts: IntArray = np.array(begins)  # where each array begins in its block
        self.state = with_leaves(state, iter([views[name] for name in arrays]))

    def write(self, graph: State, rows: Any = ...) -> None:
        """Put the graph of some rows of the batch into the blocks."""
        for view, leaf in zip(leaves(self.state.graph).values(), leaves(graph).values(), strict=True):
            if view is not leaf:
                view[rows] = leaf


def with_leaves(state: State, replaced: Any) -> State:
    """The same structure with other arrays, in the order of `leaves`."""
    return map_leaves(lambda leaf: next(replaced), state)


def play_blocks(policy: "SwitchingSEM", state: State, stretch: Stretch, rng: Rng) -> State | None:
    """Play a stretch of rounds; None if an outcome is not valid."""
    batch, course, flight = state.rounds.shape, stretch.course, stretch.flight
    held, shape = Blocks(state, len(batch)), course.rewards.shape
    given = (
        *held.blocks,
        held.starts,
        policy.for_kernels,
        rng.keys,
        course.total,
        course.rewards,
        np.broadcast_to(course.noise, shape),
        np.broadcast_to(course.baseline, shape),
        stretch.lateness.delays,
        stretch.horizon,
        *flight,
        stretch.recorded,
        stretch.snapshots,
    )
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
    held: Blocks,
    rows: tuple[IntArray, ...],
    stretch: Stretch,
    after: IntArray,
    alarm: BoolArray,
    expected: Array,
) -> None:
    """Do what the kernel left to Python, in the rows in which it stopped."""
    played = np.asarray(after)[rows]
    z, y = (ring[(*rows, played & (ring.shape[-2] - 1))] for ring in (stretch.flight.z, stretch.flight.y))
    graph = map_leaves(lambda leaf: np.array(leaf[rows]), held.state.graph)
    held.write(policy.graph.finish(graph, z, y, played, expected[rows], np.asarray(alarm)[rows]), rows)


class CompactSwitching:
    """A live learner in blocks. They are copied before every change, so that it can be undone."""

    def __init__(self, policy: "SwitchingSEM", state: State) -> None:
        self.policy, self.held = policy, Blocks(state, 0)
        self.given = (*self.held.blocks, self.held.starts, policy.for_kernels)
        self.changed_by_play = (self.held.blocks[1], self.held.state.in_flight)  # whole numbers, and pulls in flight
        self.like = np.zeros((3, state.in_flight.shape[-1]))  # the shape of a memo, and none

    @property
    def state(self) -> State:
        return self.held.state

    def select(self, rng: Rng, round: int) -> Choice:
        x, memo = kernels.switching_choice(*self.given, rng.keys, self.like)
        return Choice(x, memo=memo)

    def played(self, x: BoolArray) -> None:
        kernels.switching_play(*self.given, x)

    def observe(self, context: Array) -> None:
        """It ignores the context."""

    def learn(self, feedback: Feedback, reward_range: Array, played: int, rng: Rng, round: int) -> bool:
        x, z, y, age, _, _, memo = feedback[:7]
        memo = self.like if memo is None else memo
        fault, why, expected = kernels.switching_lesson(*self.given, x, z, y, memo, age)
        if why != kernels.DONE:
            graph = map_leaves(np.array, self.state.graph)
            finished = self.policy.graph.finish(graph, z, y, np.asarray(round), expected, why == kernels.ALARM)
            self.held.write(finished)
        return bool(fault == kernels.FINE)

    def update(self, feedback: Feedback, rng: Rng, round: int) -> None:
        """By the functions of the policy: of outcomes in parts."""
        given = rng.at(Purpose.LEARNING, round)
        state = self.policy.update(map_leaves(np.array, self.state), feedback, given)
        for view, leaf in zip(leaves(self.state).values(), leaves(state).values(), strict=True):
            view[...] = leaf

    def mark(self) -> Any:
        """The present, for `back_to`."""
        return [(block, block.copy()) for block in self.held.blocks]

    def mark_play(self) -> Any:
        """The present, for `back_to` after a play, which changes few of the numbers."""
        return [(part, part.copy()) for part in self.changed_by_play]

    def back_to(self, mark: Any) -> None:
        """Undo all changes since a mark; it can be repeated if it is interrupted itself."""
        for part, before in mark:
            part[:] = before

    def branch(self) -> "CompactSwitching":
        """The same learner, which goes on by itself."""
        return CompactSwitching(self.policy, self.state)

"""One live learner of a compiled policy: the arrays of its state in one block of memory."""

from typing import TYPE_CHECKING, Any

import numpy as np

from spillover import validate
from spillover.core.driver import CHOICE, FIRST_CALL, LEARNING, Details
from spillover.core.use import Use
from spillover.kernels.world import FINE
from spillover.rng import Purpose, Rng
from spillover.state import map_leaves
from spillover.types import ARRIVED, Array, BoolArray, Choice, Feedback, State

if TYPE_CHECKING:
    from spillover.core.policy import CorePolicy

WORD = 8  # arrays begin at multiples of so many bytes


class LiveCore:
    """A policy and the state of one learner, as `journal.Running`; the block is copied before every change."""

    def __init__(self, policy: "CorePolicy", state: State) -> None:
        self.policy = policy
        sizes: list[int] = []
        map_leaves(lambda leaf: sizes.append(-(-np.asarray(leaf).nbytes // WORD) * WORD), state)
        self.block = np.zeros(sum(sizes), np.uint8)
        starts = iter(np.cumsum([0, *sizes]).tolist())
        self.state = map_leaves(lambda leaf: self.moved(np.asarray(leaf), next(starts)), state)
        self.use = use = Use(policy, self.state)
        self.room = use.own_room()  # as learners that one thread makes may be used by several
        self.given = use.own, use.state
        self.round = np.zeros(1, np.uint64)
        self.memo = np.zeros((1, policy.memos, use.n))
        self.whole = np.ones(1, np.bool_)
        ones, none = np.ones((1, use.n)), np.zeros((1, 0))
        details = Details(none, ones, ones > 0.0, self.whole, ~self.whole)
        self.whole_rounds = details if policy.detailed else None

    def moved(self, leaf: Any, start: int) -> Any:
        """A copy of an array in the block."""
        own = np.ndarray(leaf.shape, leaf.dtype, self.block, start)
        own[...] = leaf
        return own

    def select(self, rng: Rng, round: int) -> Choice:
        x, memo = np.empty((1, self.use.n), np.bool_), np.zeros_like(self.memo)
        self.round[0] = round
        keys = rng.keys.reshape(1, 2)
        self.use.drivers.decide(*self.given, keys, FIRST_CALL, self.round, CHOICE, *self.room, x, memo)
        return self.policy.choice_with(x[0], memo[0])

    def played(self, x: BoolArray) -> None:
        self.use.drivers.play(*self.given, x.reshape(1, -1))

    def observe(self, context: Array) -> None:
        if self.policy.uses_context:
            self.state.context[...] = context

    def learn(self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int) -> bool:
        if validate.faults_of(choice.x, z, y, reward_range, ARRIVED, np.array(played - round), played) != FINE:
            return False
        self.round[0] = round
        noted = self.policy.memo_with(choice, choice.x)
        memo = self.memo if noted is None else noted[None]
        self.use.drivers.learn(
            *(*self.given, rng.keys.reshape(1, 2), FIRST_CALL, self.round, LEARNING, *self.room),
            *(choice.x[None], z[None], y[None], np.array([round]), self.whole, memo, self.whole_rounds, True),
        )
        return True

    def update(self, feedback: Feedback, rng: Rng, round: int) -> None:
        self.policy.learn_with(self.use, self.state, feedback, rng.at(Purpose.LEARNING, round), deriving=True)

    def mark(self) -> Any:
        """The present, for `back_to`."""
        return self.block.copy()

    def mark_play(self) -> Any:
        """The present, for `back_to` after a play."""
        return self.mark()

    def back_to(self, mark: Any) -> None:
        """Undo all changes since a mark; it can be repeated if it is interrupted itself."""
        self.block[:] = mark

    def branch(self) -> "LiveCore":
        """The same learner, which goes on by itself."""
        return LiveCore(self.policy, self.state)

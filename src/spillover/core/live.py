"""One live learner of a compiled policy: the arrays of its state in one block of memory."""

from typing import TYPE_CHECKING, Any

import numpy as np

from spillover import validate
from spillover.core.driver import CHOICE, FIRST_CALL, LEARNING
from spillover.core.use import Use
from spillover.kernels.world import FINE
from spillover.rng import Purpose, Rng
from spillover.state import map_leaves
from spillover.types import ARRIVED, Array, BoolArray, Choice, Feedback, State

if TYPE_CHECKING:
    from spillover.core.policy import CorePolicy

WORD = 8  # arrays begin at multiples of so many bytes
SMALL = 1 << 16  # bytes of a block that is copied before every change
STEPS = 32  # and after so many changes, if it is larger


class LiveCore:
    """A policy and the state of one learner, as `journal.Running`.

    The block is copied before a change, or once in many, which are remembered: to undo some of them, those before them
    are repeated from the copy. They are functions of their arguments alone, so they give the same block again.
    """

    def __init__(self, policy: "CorePolicy", state: State) -> None:
        self.policy = policy
        sizes: list[int] = []
        map_leaves(lambda leaf: sizes.append(-(-np.asarray(leaf).nbytes // WORD) * WORD), state)
        self.block = np.zeros(sum(sizes), np.uint8)
        starts = iter(np.cumsum([0, *sizes]).tolist())
        self.state = map_leaves(lambda leaf: self.moved(np.asarray(leaf), next(starts)), state)
        self.most = 1 if len(self.block) <= SMALL else STEPS
        self.copy: tuple[Any, list[Any]] | None = None  # one attribute, so that both change at once; None: no steps
        self.use = use = Use(policy, self.state)
        self.room = use.own_room()  # as learners that one thread makes may be used by several
        self.given = use.own, use.state
        self.round = np.zeros(1, np.uint64)
        self.memo = np.zeros((1, policy.memos, use.n))
        self.whole, self.together = np.ones(1, np.bool_), np.zeros((1, 0), np.int64)

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
        self.apply(self.use.drivers.play, (*self.given, x.reshape(1, -1)))

    def observe(self, context: Array) -> None:
        """It ignores the context."""

    def learn(self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int) -> bool:
        if validate.faults_of(choice.x, z, y, reward_range, ARRIVED, np.array(played - round), played) != FINE:
            return False
        noted = self.policy.memo_with(choice, choice.x)
        memo = self.memo if noted is None else noted[None]
        turn = rng.keys.reshape(1, 2), FIRST_CALL, np.array([round], np.uint64), LEARNING, *self.room
        lesson = choice.x[None], z[None], y[None], np.array([round]), self.whole, memo, self.together
        self.apply(self.use.drivers.learn, (*self.given, *turn, *lesson, True))
        return True

    def update(self, feedback: Feedback, rng: Rng, round: int) -> None:
        self.apply(self.policy.update, (self.state, feedback, rng.at(Purpose.LEARNING, round)))

    def apply(self, step: Any, given: tuple[Any, ...]) -> None:
        """Change the block. The step is remembered first: it may be interrupted when it is half done."""
        if self.copy is None:
            self.copy = self.block.copy(), []
        self.copy[1].append((step, given))
        step(*given)

    def mark(self) -> Any:
        """The present, for `back_to`."""
        if self.copy is None:
            return 0
        if len(self.copy[1]) >= self.most:
            self.copy = None
            return 0
        return len(self.copy[1])

    mark_play = mark  # after a play, too

    def back_to(self, mark: Any) -> None:
        """Undo all changes since a mark; it can be repeated if it is interrupted itself."""
        if self.copy is not None and len(self.copy[1]) > mark:
            before, done = self.copy
            self.block[:] = before
            for step, given in done[:mark]:
                step(*given)
            del done[mark:]  # last: until then it can be repeated

    def branch(self) -> "LiveCore":
        """The same learner, which goes on by itself."""
        return LiveCore(self.policy, self.state)

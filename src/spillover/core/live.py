"""One live learner of a compiled policy."""

from collections.abc import Callable

import numpy as np

from spillover.core.batches import Batches
from spillover.core.compiled import entry
from spillover.core.driver import CHOICE, FIRST_CALL, LEARNING, Details
from spillover.core.use import Use, in_one_piece
from spillover.kernels.outcomes import is_plain
from spillover.rng import Purpose, Rng
from spillover.state import copy_state, leaves
from spillover.types import Array, BoolArray, Choice, Feedback, State

is_fine_outcome = entry(is_plain.py_func)


class LiveCore:
    """A policy and the state of one learner, which compiled code rewrites; see `running.Running`."""

    def __init__(self, batches: Batches, state: State) -> None:
        self.batches, policy = batches, batches.policy
        self.state = copy_state(state)
        self.use = use = Use(policy, self.state)
        self.room = use.own_room()  # as learners that one thread makes may be used by several
        self.given = use.own, use.state
        self.round = np.zeros(1, np.uint64)
        self.memo = np.zeros((1, policy.memos, use.n))
        self.played, self.unlearned = np.zeros(1, np.int64), np.zeros(1, np.bool_)
        self.together = np.zeros((1, 0), np.int64)  # all arms report in one round
        none = Details(np.zeros((1, 0)), np.ones((1, use.n)))
        self.details = none if use.detailed else None
        self.range = (float(state.reward_range[0]), float(state.reward_range[1]))

    def select(self, rng: Rng, round: int) -> Choice:
        x, memo = np.empty((1, self.use.n), np.bool_), self.memo.copy() if self.memo.size else self.memo
        self.round[0] = round
        keys = rng.keys.reshape(1, 2)
        self.use.drivers.decide(*self.given, keys, FIRST_CALL, self.round, CHOICE, *self.room, x, memo)
        return self.batches.choice(x[0], memo[0])

    def playing(self, x: BoolArray, round: int) -> Callable[[], None]:
        own = in_one_piece(x)[None]

        def write() -> None:
            if self.state.rounds < round:
                self.use.drivers.play(*self.given, own)

        return write

    def learning(
        self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int
    ) -> Callable[[], None] | None:
        x = choice.x
        if not is_fine_outcome(x, z, y, *self.range):
            return None
        noted = self.batches.memo(choice, x)
        memo = self.memo if noted is None else noted[None]
        self.round[0] = self.played[0] = round
        self.unlearned[0] = True  # until compiled code has learned it
        given = (
            *(*self.given, rng.keys.reshape(1, 2), FIRST_CALL, self.round, LEARNING, *self.room),
            *(x[None], z[None], y[None], self.played, self.unlearned, memo, self.together, self.details, True),
        )
        return lambda: self.use.drivers.learn(*given)

    def updating(self, feedback: Feedback, rng: Rng, round: int) -> Callable[[], None]:
        given = self.batches.lesson(self.use, feedback, rng.at(Purpose.LEARNING, round))
        return lambda: self.use.run("learn", *given, True)

    def becoming(self, state: State) -> Callable[[], None]:
        pairs = list(zip(leaves(self.state).values(), leaves(state).values(), strict=True))

        def write() -> None:
            for own, new in pairs:
                own[...] = new

        return write

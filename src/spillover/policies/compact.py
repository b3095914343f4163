"""One live learner of a policy on bounded means, in two blocks of numbers: see `kernels/compact.py`."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spillover import kernels
from spillover.rng import Rng
from spillover.types import Array, BoolArray, Choice, Feedback, State

if TYPE_CHECKING:
    from spillover.policies.bounded_means import BoundedMeans

MOST_ARMS = 64  # with more, copies of the blocks cost more than short calls save


class CompactMeans:
    """A policy and its state in use; the arrays of `state` are parts of the blocks.

    The blocks are copied before every change, so that it can be undone.
    """

    def __init__(self, policy: "BoundedMeans", state: State) -> None:
        n, parts = state.averages.sums.shape[-1], policy.graph.parts(state.graph)
        self.policy, self.plan = policy, np.array(state.plan)
        pulls = state.pulls if policy.bonus.pending else (np.zeros(n), np.zeros(n, np.int64))
        unit = 0.0 if policy.unit is None else policy.unit
        settings = (state.clock, parts.bound, *state.reward_range, policy.discount, policy.bonus.width, unit)
        lines = (state.averages.sums, state.averages.counts, pulls[0], parts.weights, parts.pressure)
        squares = (parts.gram, parts.residual, parts.adjacency, parts.penalty)
        self.reals: NDArray[np.float64] = np.concatenate([np.ravel(part) for part in (*lines, *squares, *settings)])
        counts = (state.rounds, state.budget, int(parts.acyclic), *policy.rules)
        self.whole: NDArray[np.int64] = np.concatenate(
            [np.ravel(part) for part in (state.averages.stamps, pulls[1], *counts)]
        )
        self.state = self.parts_of(state)

    def parts_of(self, state: State) -> State:
        """A state whose arrays are parts of the blocks."""
        n = state.averages.sums.shape[-1]
        lines, stamps = self.reals[: 5 * n].reshape(5, n), self.whole[: 2 * n].reshape(2, n)
        squares = self.reals[5 * n : 5 * n + 4 * n * n].reshape(4, n, n)
        end, count = 5 * n + 4 * n * n, 2 * n
        graph = state.graph
        if self.policy.graph.learns:
            held = ("gram", "residual", "adjacency", "penalty")
            own: dict[str, Any] = dict(zip(held, squares, strict=True)) | {"weights": lines[3], "pressure": lines[4]}
            graph = graph._replace(**own, bound=self.reals[end + 1 : end + 2].reshape(()))
        pulls = type(state.pulls)(lines[2], stamps[1]) if self.policy.bonus.pending else state.pulls
        return state._replace(
            rounds=self.whole[count : count + 1].reshape(()),
            clock=self.reals[end : end + 1].reshape(()),
            averages=type(state.averages)(lines[0], lines[1], stamps[0]),
            plan=self.plan,
            budget=self.whole[count + 1 : count + 2].reshape(()),
            reward_range=self.reals[end + 2 : end + 4],
            graph=graph,
            pulls=pulls,
        )

    def select(self, rng: Rng, round: int) -> Choice:
        return Choice(kernels.compact_choice(self.reals, self.whole, self.plan, rng.keys))

    def played(self, x: BoolArray) -> None:
        kernels.compact_play(self.reals, self.whole, x)

    def observe(self, context: Array) -> None:
        """It ignores the context."""

    def learn(self, choice: Choice, z: Array, y: Array, reward_range: Array, played: int, rng: Rng, round: int) -> bool:
        return bool(kernels.compact_lesson(self.reals, self.whole, choice.x, z, y, played - round) == kernels.FINE)

    def update(self, feedback: Feedback, rng: Rng, round: int) -> None:
        x, z, y, age = feedback[:4]
        kernels.compact_lesson(self.reals, self.whole, x, z, y, age)

    def mark(self) -> Any:
        """The present, for `back_to`."""
        return self.reals.copy(), self.whole.copy()

    def mark_play(self) -> Any:
        """The present, for `back_to` after a play."""
        return self.mark()

    def back_to(self, mark: Any) -> None:
        """Undo all changes since a mark; it can be repeated if it is interrupted itself."""
        self.reals[:], self.whole[:] = mark

    def branch(self) -> "CompactMeans":
        """The same learner, which goes on by itself."""
        return CompactMeans(self.policy, self.state)

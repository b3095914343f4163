"""CUCB on a sliding window (after Garivier and Moulines 2011)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.core import Lesson, Turn
from spillover.kernels.averages import amounts_above_low, grown_bounds
from spillover.kernels.averages import unit_or_one as unit_of
from spillover.policies.averages import mean_of
from spillover.policies.cucb import CAP, WIDTH
from spillover.policies.explanations import scaled_explanation
from spillover.policies.scale import Scale, ScaledCorePolicy, initial_scale, ranking_weights, unit_or_one
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Constant,
    Explanation,
    Finite,
    IntArray,
    Problem,
    Round,
    Rounds,
)


class Window(NamedTuple):
    """The rounds of play inside the window, in slots by round modulo its length."""

    rewards: Finite  # (*batch, window, n)
    chosen: BoolArray  # (*batch, window, n)
    holds: Round  # (*batch, window): the round in each slot, which has left the window if a later one is due there


class WindowState(NamedTuple):
    """What CUCB on a window has learned."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    sums: Finite  # (*batch, n): over the window
    counts: Amount  # (*batch, n)
    window: Window
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


@dataclass(frozen=True, kw_only=True)
class SlidingWindowCUCB(ScaledCorePolicy):
    """CUCB that uses only the outcomes of rounds played in the last `window` rounds.

    The window covers rounds of play, so it must be longer than the delay for the policy to learn at all.

    window: how many rounds count.
    knows_graph: see `spillover.policies.scale`.

    >>> SlidingWindowCUCB(window=0)
    Traceback (most recent call last):
    ValueError: window = 0: must be a whole number from 1 on
    """

    window: int = 500

    compiled = "without arrays"

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("window", self.window, 1)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> WindowState:
        validate.problem(problem)
        line, ring = (*batch, problem.n_arms), (*batch, self.window, problem.n_arms)
        return WindowState(
            rounds=np.zeros(batch, np.int64),
            n_arms=np.full(batch, problem.n_arms, np.int64),
            sums=np.zeros(line),
            counts=np.zeros(line),
            window=Window(
                rewards=np.zeros(ring),
                chosen=np.zeros(ring, np.bool_),
                holds=np.zeros(ring[:-1], np.int64),
            ),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        found[:] = 1.0  # the bonus does not grow
        clock, unit = float(min(s.rounds + 1, self.window)), unit_of(s.scale.unit)
        grown_bounds(s.sums, s.counts, clock, WIDTH, unit, CAP, 1.0, found)

    def note_play(self, s: Any, x: Any) -> None:
        """Forget the round that has left the window."""
        known, slot = s.window, s.rounds % self.window
        if known.holds[slot] == 0 or known.holds[slot] != s.rounds - self.window:
            return
        for i in range(x.shape[0]):
            if known.chosen[slot, i]:
                s.counts[i] -= 1.0
                s.sums[i] = s.sums[i] - known.rewards[slot, i] if s.counts[i] > 0.0 else 0.0

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        amounts, scale = turn.lines[0], s.scale
        observed = lesson.z if self.knows_graph else lesson.y
        scale.unit = amounts_above_low(observed, lesson.x, scale.low, scale.unit, scale.declared, amounts)
        if lesson.round <= s.rounds - self.window:
            return
        known, slot = s.window, lesson.round % self.window
        known.holds[slot] = lesson.round
        for i in range(lesson.x.shape[0]):
            known.chosen[slot, i] = lesson.x[i]
            known.rewards[slot, i] = amounts[i]
            if lesson.x[i]:
                s.sums[i] += amounts[i]
                s.counts[i] += 1.0

    def explain(self, state: WindowState, rng: Rng) -> Explanation:
        return scaled_explanation(
            state.scale,
            state.weights,
            self.knows_graph,
            mean=mean_of(state.sums, state.counts) / unit_or_one(state.scale)[..., None],
            count=state.counts.copy(),
            clock=np.minimum(state.rounds, self.window),
            index=self.indices(state, rng),
        )

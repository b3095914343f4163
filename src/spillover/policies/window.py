"""CUCB on a sliding window (after Garivier and Moulines 2011)."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.constraints.search import top_arms
from spillover.policies.averages import Averages, means, upper_index
from spillover.policies.cucb import WIDTH
from spillover.policies.explanations import scaled_explanation
from spillover.policies.scale import (
    Scale,
    ScaledPolicy,
    amounts_above_low,
    initial_scale,
    ranking,
    ranking_weights,
    unit_or_one,
)
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Choice,
    Constant,
    Explanation,
    Feedback,
    Finite,
    IntArray,
    Problem,
    Round,
    Rounds,
    Within,
)


class Window(NamedTuple):
    """The rounds of play inside the window, in slots by round modulo its length."""

    sums: Finite  # (*batch, n)
    counts: Amount  # (*batch, n)
    rewards: Finite  # (*batch, window, n)
    chosen: BoolArray  # (*batch, window, n)
    holds: Round  # (*batch, window): the round in each slot
    oldest: Annotated[IntArray, Within(1, of_rounds=True)]  # (*batch, 1): earlier rounds are not in sums and counts


class WindowState(NamedTuple):
    """What CUCB on a window has learned."""

    rounds: Rounds  # (*batch,)
    window: Window
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


@dataclass(frozen=True, kw_only=True)
class SlidingWindowCUCB(ScaledPolicy):
    """CUCB that uses only the outcomes of rounds played in the last `window` rounds.

    The window covers rounds of play, so it must be longer than the delay for the policy to learn at all.

    window: how many rounds count.
    knows_graph: see `spillover.policies.scale`.

    >>> SlidingWindowCUCB(window=0)
    Traceback (most recent call last):
    ValueError: window = 0: must be a whole number from 1 on
    """

    window: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("window", self.window, 1)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> WindowState:
        validate.problem(problem)
        line, ring = (*batch, problem.n_arms), (*batch, self.window, problem.n_arms)
        return WindowState(
            rounds=np.zeros(batch, np.int64),
            window=Window(
                sums=np.zeros(line),
                counts=np.zeros(line),
                rewards=np.zeros(ring),
                chosen=np.zeros(ring, np.bool_),
                holds=np.zeros(ring[:-1], np.int64),
                oldest=np.ones((*batch, 1), np.int64),
            ),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def known(self, state: WindowState) -> Averages:
        """Sums and counts over the window."""
        sums, counts = kernels.window_totals(*state.window, state.rounds)
        return Averages(sums, counts, np.zeros_like(counts, np.int64))

    def index(self, state: WindowState) -> Array:
        known = self.known(state)
        clock = np.minimum(state.rounds + 1, self.window).astype(float)
        return upper_index(known, state.rounds, clock, width=WIDTH, unit=unit_or_one(state.scale), cap=1.0)

    def select(self, state: WindowState, rng: Rng) -> Choice:
        scores = ranking(state.weights, state.scale, self.index(state), self.knows_graph)
        return Choice(top_arms(scores, state.budget, rng))

    def played(self, state: WindowState, x: BoolArray) -> WindowState:
        validate.decision("x", x, state.weights.shape)
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: WindowState, feedback: Feedback, rng: Rng) -> WindowState:
        feedback = validate.feedback(
            feedback, state.weights.shape, state.reward_range, state.rounds, rewards=self.needs_rewards
        )
        scale, reward = amounts_above_low(state.scale, feedback, self.knows_graph)
        played_at = state.rounds - feedback.age
        kernels.window_arrival(*state.window, feedback.x, reward, played_at, state.rounds, feedback.arrived)
        return state._replace(scale=scale)

    def explain(self, state: WindowState, rng: Rng) -> Explanation:
        known = self.known(state)
        return scaled_explanation(
            state.scale,
            state.weights,
            self.knows_graph,
            mean=means(known) / unit_or_one(state.scale)[..., None],
            count=known.counts,
            clock=np.minimum(state.rounds, self.window),
            index=self.index(state),
        )

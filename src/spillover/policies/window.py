"""CUCB on a sliding window (after Garivier and Moulines 2011)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.oracle import top_arms
from spillover.policies.averages import Averages, means, upper_index
from spillover.policies.cucb import WIDTH
from spillover.policies.plain import ranked_by, scaled_explanation
from spillover.policies.scale import Scale, amounts, divisor, open_scale, ranking, ranking_weights
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem


class Window(NamedTuple):
    """The rounds of play still in the window, in slots by round modulo its length."""

    sums: Array  # (*batch, n)
    counts: Array  # (*batch, n)
    rewards: Array  # (*batch, window, n)
    chosen: BoolArray  # (*batch, window, n)
    holds: IntArray  # (*batch, window): which round stands in a slot
    oldest: IntArray  # (*batch, 1): rounds before this one are no longer in sums and counts


class WindowState(NamedTuple):
    """What CUCB on a window has learned."""

    rounds: IntArray  # (*batch,)
    window: Window
    scale: Scale
    weights: Array  # (*batch, n): ones, or the true ones
    budget: IntArray  # (*batch,)
    limits: Array  # (*batch, 2): range of z


@dataclass(frozen=True, kw_only=True)
class SlidingWindowCUCB:
    """CUCB that remembers only what was played in the last `window` rounds.

    The window is over rounds of play, so it must be longer than the delay for anything to be learned.
    told_graph: see `spillover.policies.scale`.

    >>> SlidingWindowCUCB(window=0)
    Traceback (most recent call last):
    ValueError: window = 0: must be a whole number from 1 on
    """

    window: int = 500
    told_graph: bool = False

    order_free = True
    learns_graph = False

    def __post_init__(self) -> None:
        validate.whole("window", self.window, 1)

    @property
    def quantity(self) -> str:
        """What its scores are, in words."""
        return ranked_by(self.told_graph)

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
            scale=open_scale(problem, batch, self.told_graph),
            weights=ranking_weights(problem, batch, self.told_graph),
            budget=np.full(batch, problem.budget, np.int64),
            limits=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def known(self, state: WindowState) -> Averages:
        """Sums and counts of what is in the window."""
        sums, counts = kernels.window_totals(*state.window, state.rounds)
        return Averages(sums, counts, np.zeros_like(counts, np.int64))

    def index(self, state: WindowState) -> Array:
        known = self.known(state)
        clock = np.minimum(state.rounds + 1, self.window).astype(float)
        return upper_index(known, state.rounds, clock, width=WIDTH, unit=divisor(state.scale), cap=1.0)

    def ranking(self, state: WindowState) -> Array:
        return ranking(state.weights, state.scale, self.index(state), self.told_graph)

    def select(self, state: WindowState, rng: Rng) -> Choice:
        return Choice(top_arms(self.ranking(state), state.budget, rng))

    def played(self, state: WindowState, x: BoolArray) -> WindowState:
        validate.decision("x", x, state.weights.shape)
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: WindowState, feedback: Feedback, rng: Rng) -> WindowState:
        feedback = validate.feedback(feedback, state.weights.shape, state.limits, state.rounds)
        scale, reward = amounts(state.scale, feedback, self.told_graph)
        moment = state.rounds - feedback.age
        kernels.window_arrival(*state.window, feedback.x, reward, moment, state.rounds, feedback.arrived)
        return state._replace(scale=scale)

    def explain(self, state: WindowState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties."""
        known, ties = self.known(state), (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        return scaled_explanation(
            state.scale,
            state.weights,
            self.told_graph,
            mean=means(known) / divisor(state.scale)[..., None],
            count=known.counts,
            clock=np.minimum(state.rounds, self.window),
            index=self.index(state),
            chosen=self.select(state, ties).x,
        )

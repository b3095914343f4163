"""CUCB (Chen, Wang, Yuan and Wang 2016), and with a discount on the past."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.oracle import top_arms
from spillover.policies.averages import Averages, counts_now, learn, means, no_averages, upper_index
from spillover.policies.plain import ranked_by, scaled_explanation
from spillover.policies.scale import Scale, amounts, divisor, open_scale, ranking, ranking_weights
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem

WIDTH = 1.5  # of sqrt(3 ln t / (2 T_i))


class CUCBState(NamedTuple):
    """What CUCB has learned."""

    rounds: IntArray  # (*batch,)
    clock: Array  # (*batch,): their discounted number
    averages: Averages  # of amounts on the scale
    scale: Scale
    weights: Array  # (*batch, n): ones, or the true ones
    budget: IntArray  # (*batch,)
    limits: Array  # (*batch, 2): range of z


def start_cucb(problem: Problem, batch: Batch, told_graph: bool) -> CUCBState:
    validate.problem(problem)
    return CUCBState(
        rounds=np.zeros(batch, np.int64),
        clock=np.zeros(batch),
        averages=no_averages(problem.n_arms, batch),
        scale=open_scale(problem, batch, told_graph),
        weights=ranking_weights(problem, batch, told_graph),
        budget=np.full(batch, problem.budget, np.int64),
        limits=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
    )


def learn_cucb(state: CUCBState, feedback: Feedback, discount: Any, told_graph: bool) -> CUCBState:
    feedback = validate.feedback(feedback, state.weights.shape, state.limits, state.rounds)
    scale, reward = amounts(state.scale, feedback, told_graph)
    averages = learn(state.averages, feedback.x, reward, state.rounds - feedback.age, discount, feedback.arrived)
    return state._replace(averages=averages, scale=scale)


def explain_cucb(
    state: CUCBState,
    index: Array,
    told_graph: bool,
    chosen: BoolArray,
    *,
    discount: Any = 1.0,
    clock: Any = None,
    planned: Any = False,
) -> Explanation:
    """What is held as the next round is decided: of y in [0, 1]; of z as it is, when told the graph."""
    return scaled_explanation(
        state.scale,
        state.weights,
        told_graph,
        mean=means(state.averages) / divisor(state.scale)[..., None],
        count=counts_now(state.averages, state.rounds, discount),
        clock=state.clock if clock is None else clock,
        index=index,
        chosen=chosen,
        planned=planned,
    )


@dataclass(frozen=True, kw_only=True)
class CUCB:
    """min(1, mean + sqrt(3 ln t / (2 T_i))), 1 for an arm never seen; the best s, ties at random.

    Delay-agnostic: an outcome counts when it arrives. told_graph: see `spillover.policies.scale`.

    >>> import spillover as sp
    >>> state = CUCB().init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> int(CUCB().select(state, sp.Rng(0)).x.sum())
    2
    """

    told_graph: bool = False

    order_free = True
    learns_graph = False

    @property
    def quantity(self) -> str:
        """What its scores are, in words."""
        return ranked_by(self.told_graph)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CUCBState:
        return start_cucb(problem, batch, self.told_graph)

    def index(self, state: CUCBState) -> Array:
        unit = divisor(state.scale)
        return upper_index(state.averages, state.rounds, state.clock + 1.0, width=WIDTH, unit=unit, cap=1.0)

    def ranking(self, state: CUCBState) -> Array:
        return ranking(state.weights, state.scale, self.index(state), self.told_graph)

    def select(self, state: CUCBState, rng: Rng) -> Choice:
        return Choice(top_arms(self.ranking(state), state.budget, rng))

    def played(self, state: CUCBState, x: BoolArray) -> CUCBState:
        validate.decision("x", x, state.weights.shape)
        return state._replace(rounds=state.rounds + 1, clock=state.clock + 1.0)

    def update(self, state: CUCBState, feedback: Feedback, rng: Rng) -> CUCBState:
        return learn_cucb(state, feedback, 1.0, self.told_graph)

    def explain(self, state: CUCBState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties."""
        ties = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        return explain_cucb(state, self.index(state), self.told_graph, self.select(state, ties).x)


@dataclass(frozen=True, kw_only=True)
class DiscountedCUCB:
    """CUCB with discounted means, counts and time (after Garivier and Moulines 2011), by the time of the action.

    >>> DiscountedCUCB(discount=1.5)
    Traceback (most recent call last):
    ValueError: discount = 1.5: must be a number strictly between 0 and 1
    """

    discount: Any = 0.995
    told_graph: bool = False

    order_free = True
    learns_graph = False
    grids = ("discount",)

    def __post_init__(self) -> None:
        between = "a number strictly between 0 and 1"
        validate.number("discount", self.discount, between, low=0, high=1, open_ends=True)

    @property
    def quantity(self) -> str:
        """What its scores are, in words."""
        return ranked_by(self.told_graph)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CUCBState:
        validate.grid(self, batch)
        return start_cucb(problem, batch, self.told_graph)

    def index(self, state: CUCBState) -> Array:
        clock = self.discount * state.clock + 1.0
        shared = {"width": WIDTH, "discount": self.discount, "unit": divisor(state.scale), "cap": 1.0}
        return upper_index(state.averages, state.rounds, clock, **shared)

    def ranking(self, state: CUCBState) -> Array:
        return ranking(state.weights, state.scale, self.index(state), self.told_graph)

    def select(self, state: CUCBState, rng: Rng) -> Choice:
        return Choice(top_arms(self.ranking(state), state.budget, rng))

    def played(self, state: CUCBState, x: BoolArray) -> CUCBState:
        validate.decision("x", x, state.weights.shape)
        return state._replace(rounds=state.rounds + 1, clock=self.discount * state.clock + 1.0)

    def update(self, state: CUCBState, feedback: Feedback, rng: Rng) -> CUCBState:
        return learn_cucb(state, feedback, self.discount, self.told_graph)

    def explain(self, state: CUCBState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties."""
        ties = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        chosen = self.select(state, ties).x
        return explain_cucb(state, self.index(state), self.told_graph, chosen, discount=self.discount)

"""CUCB (Chen, Wang, Yuan and Wang 2016), with or without a discount."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.constraints.search import top_arms
from spillover.contracts import ROUND, CompiledRounds, methods_of, unchanged
from spillover.contracts.hyperparameters import check_grid
from spillover.policies.averages import Averages, counts_now, empty_averages, learn, means, upper_index
from spillover.policies.compiled_rounds import LAGS, course_for_kernels, played_by
from spillover.policies.explanations import scaled_explanation
from spillover.policies.scale import (
    Scale,
    ScaledPolicy,
    amounts_above_low,
    initial_scale,
    ranking,
    ranking_weights,
    scale_for_kernels,
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
    IntArray,
    Problem,
    Rounds,
    Stretch,
)

WIDTH = 1.5  # of sqrt(3 ln t / (2 T_i))


class CUCBState(NamedTuple):
    """What CUCB has learned."""

    rounds: Rounds  # (*batch,)
    clock: Amount  # (*batch,): the discounted number of rounds
    averages: Averages  # of amounts on the scale
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


def initial_cucb(problem: Problem, batch: Batch, knows_graph: bool) -> CUCBState:
    validate.problem(problem)
    return CUCBState(
        rounds=np.zeros(batch, np.int64),
        clock=np.zeros(batch),
        averages=empty_averages(problem.n_arms, batch),
        scale=initial_scale(problem, batch, knows_graph),
        weights=ranking_weights(problem, batch, knows_graph),
        budget=np.full(batch, problem.budget, np.int64),
        reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
    )


def learn_cucb(state: CUCBState, feedback: Feedback, discount: Any, knows_graph: bool) -> CUCBState:
    """Learn checked feedback; rewrites the averages in place."""
    scale, reward = amounts_above_low(state.scale, feedback, knows_graph)
    averages = learn(state.averages, feedback.x, reward, state.rounds - feedback.age, discount, feedback.arrived)
    return state._replace(averages=averages, scale=scale)


def explain_cucb(
    state: CUCBState, index: Array, knows_graph: bool, *, discount: Any = 1.0, clock: Any = None, plan: Any = ""
) -> Explanation:
    """The estimates behind the next decision: of y, or of z if the graph is known."""
    return scaled_explanation(
        state.scale,
        state.weights,
        knows_graph,
        mean=means(state.averages) / unit_or_one(state.scale)[..., None],
        count=counts_now(state.averages, state.rounds, discount),
        clock=state.clock if clock is None else clock,
        index=index,
        plan=plan,
    )


@dataclass(frozen=True, kw_only=True)
class CUCB(ScaledPolicy):
    """The s arms with the largest min(1, mean + sqrt(3 ln t / (2 T_i))), or 1 if never observed; ties at random.

    It ignores delays: an outcome counts when it arrives.

    knows_graph: see `spillover.policies.scale`.

    >>> import spillover as sp
    >>> state = CUCB().init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> int(CUCB().select(state, sp.Rng(0)).x.sum())
    2
    """

    discount = 1.0  # a field of DiscountedCUCB

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CUCBState:
        check_grid(self, batch)
        return initial_cucb(problem, batch, self.knows_graph)

    def index(self, state: CUCBState) -> Array:
        clock = self.discount * state.clock + 1.0
        shared: dict[str, Any] = {"discount": self.discount, "unit": unit_or_one(state.scale), "cap": 1.0}
        return upper_index(state.averages, state.rounds, clock, width=WIDTH, **shared)

    def select(self, state: CUCBState, rng: Rng) -> Choice:
        scores = ranking(state.weights, state.scale, self.index(state), self.knows_graph)
        return Choice(top_arms(scores, state.budget, rng))

    def played(self, state: CUCBState, x: BoolArray) -> CUCBState:
        validate.decision("x", x, state.weights.shape)
        return state._replace(rounds=state.rounds + 1, clock=self.discount * state.clock + 1.0)

    def update(self, state: CUCBState, feedback: Feedback, rng: Rng) -> CUCBState:
        feedback = validate.feedback(
            feedback, state.weights.shape, state.reward_range, state.rounds, rewards=self.needs_rewards
        )
        return learn_cucb(state, feedback, self.discount, self.knows_graph)

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        return CompiledRounds(self.play_stretch, draws_rewards=True) if unchanged(self, AS_COMPILED) else None

    def play_stretch(self, state: CUCBState, stretch: Stretch, rng: Rng) -> CUCBState | None:
        played = played_by(
            kernels.play_cucb,
            *(*state.averages, state.clock, self.discount, WIDTH),
            *kernels.discount_tables(self.discount, LAGS),
            *scale_for_kernels(state, state.weights, self.knows_graph, rng),
            *course_for_kernels(stretch),
        )
        if played is None:
            return None
        clock, unit = played
        rounds = state.rounds + len(stretch.recorded)
        return state._replace(rounds=rounds, clock=clock, scale=state.scale._replace(unit=unit))

    def explain(self, state: CUCBState, rng: Rng) -> Explanation:
        return explain_cucb(state, self.index(state), self.knows_graph, discount=self.discount)


AS_COMPILED = methods_of(CUCB, (*ROUND, "index"))


@dataclass(frozen=True, kw_only=True)
class DiscountedCUCB(CUCB):
    """CUCB with means, counts and time discounted from the round of the action (after Garivier and Moulines 2011).

    discount: gamma, in (0, 1): how fast the past fades.
    knows_graph: see `spillover.policies.scale`.

    >>> DiscountedCUCB(discount=1.5)
    Traceback (most recent call last):
    ValueError: discount = 1.5: must be a number strictly between 0 and 1
    """

    discount: Any = 0.995

    grids = ("discount",)

    def __post_init__(self) -> None:
        super().__post_init__()
        between = "a number strictly between 0 and 1"
        validate.number("discount", self.discount, between, low=0, high=1, open_ends=True)

"""CUCB (Chen, Wang, Yuan and Wang 2016), with or without a discount."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts.hyperparameters import check_grid
from spillover.core import Lesson, Turn
from spillover.kernels.averages import add_rewards, amounts_above_low, upper_bounds
from spillover.kernels.averages import unit_or_one as unit_of
from spillover.policies.averages import Averages, Discounted, counts_now, empty_averages, means
from spillover.policies.explanations import scaled_explanation
from spillover.policies.scale import (
    Scale,
    ScaledCorePolicy,
    initial_scale,
    ranking_weights,
    unit_or_one,
)
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    Constant,
    Explanation,
    IntArray,
    Problem,
    Rounds,
)

WIDTH = 1.5  # of sqrt(3 ln t / (2 T_i))
CAP = 1.0  # of the index


class CUCBState(NamedTuple):
    """What CUCB has learned."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    clock: Amount  # (*batch,): the discounted number of rounds
    averages: Averages  # of amounts on the scale
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


def explain_cucb(
    state: Any, index: Array, knows_graph: bool, *, discount: Any = 1.0, clock: Any = None, plan: Any = ""
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
class CUCB(Discounted, ScaledCorePolicy):
    """The s arms with the largest min(1, mean + sqrt(3 ln t / (2 T_i))), or 1 if never observed; ties at random.

    It ignores delays: an outcome counts when it arrives.

    knows_graph: see `spillover.policies.scale`.

    >>> import spillover as sp
    >>> state = CUCB().init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> int(CUCB().select(state, sp.Rng(0)).x.sum())
    2
    """

    discount = 1.0  # a field of DiscountedCUCB
    compiled = "without arrays"

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CUCBState:
        validate.problem(problem)
        check_grid(self, batch)
        return CUCBState(
            rounds=np.zeros(batch, np.int64),
            n_arms=np.full(batch, problem.n_arms, np.int64),
            clock=np.zeros(batch),
            averages=empty_averages(problem.n_arms, batch),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        known, clock = s.averages, self.discount * s.clock + 1.0
        upper_bounds(
            known.sums, known.counts, known.stamps, s.rounds, clock, self.log_discount, WIDTH, unit_of(s.scale.unit),
            CAP, 1.0, self.growths, found,
        )  # fmt: skip

    def note_play(self, s: Any, x: Any) -> None:
        s.clock = self.discount * s.clock + 1.0

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        amounts = turn.lines[0]
        observed = lesson.z if self.knows_graph else lesson.y
        s.scale.unit = amounts_above_low(observed, lesson.x, s.scale.low, s.scale.unit, s.scale.declared, amounts)
        known = s.averages
        add_rewards(
            known.sums, known.counts, known.stamps, lesson.x, amounts, lesson.round, self.log_discount, self.powers
        )

    def explain(self, state: CUCBState, rng: Rng) -> Explanation:
        return explain_cucb(state, self.indices(state, rng), self.knows_graph, discount=self.discount)


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

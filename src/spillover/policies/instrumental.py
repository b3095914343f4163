"""InstrumentalSEM: learns from decisions and overall outcomes, with baseline, context and hidden common causes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import CorePolicy, Lesson, Turn, choose_top
from spillover.core.batches import Batches
from spillover.core.policy import first_fields
from spillover.kernels.averages import weigh
from spillover.policies.graph_policy import scores
from spillover.policies.instrumental_effects import (
    edge_interval,
    interval,
    merged,
    reduced_effects,
    structural_effects,
)
from spillover.policies.instrumental_equations import is_due, learn_equations, solve_equations
from spillover.policies.instrumental_filter import Room, expect_outcomes, filter_outcome, take_in
from spillover.policies.instrumental_scores import (
    BASELINE,
    INDEX,
    OWN,
    SHIFT,
    WEIGHT,
    is_testable,
    judge_arms,
    learn_regression,
    lines_of,
    test_graph,
)
from spillover.policies.instrumental_shocks import expect_shocks, learn_shocks, solve_shocks
from spillover.policies.instrumental_state import (
    PRIOR_DEVIATION,
    InstrumentalState,
    empty_belief,
    empty_reduced,
    empty_shocks,
    empty_statistics,
    observations,
    prior_equations,
    rest_variance,
)
from spillover.policies.switching_state import note_pulls
from spillover.rng import Rng
from spillover.types import Array, Batch, Explanation, Feedback, IntArray, Problem

CONTEXT_ON = ("both", "baseline", "none")


@dataclass(frozen=True, kw_only=True)
class InstrumentalSEM(CorePolicy):
    """Learns from what was chosen and what came out; the arms' own rewards z are used where they are known.

    The outcome of an arm is a baseline, moved by context, plus spill-over from other arms, plus the arm's own effect if
    it is chosen, which may depend on context and switches now and then. Decisions are made before the errors of a
    round, so they serve as instruments: hidden common causes of several arms do not mislead the graph. Arms may report
    at different times, and outcomes may be missing. See docs/instrumental.md for the model.

    signed: whether edges may be negative. context_on: what the context may move, "both" (baselines and effects),
        "baseline", or "none".

    >>> import spillover as sp
    >>> problem = sp.Problem(n_arms=2, budget=1, observes="overall", baseline=True)
    >>> learner = sp.Learner(InstrumentalSEM(signed=True), problem, seed=0)
    >>> for x, y in [([1, 0], [5, 3]), ([0, 1], [3, 6]), ([0, 0], [3, 3])] * 5:
    ...     learner.report(learner.play(x), y=y)
    >>> learner.choose()  # arm 1 adds 3, arm 0 adds 2
    array([False,  True])
    """

    signed: bool = False
    context_on: str = "both"

    compiled = "without arrays"
    traits = Traits(
        needs_rewards=False,
        uses_context=True,
        accepts_missing=True,
        accepts_doses=True,
        order_free=False,
        fits_baseline=True,
        learns_graph=True,
        explains=True,
    )

    def __post_init__(self) -> None:
        validate.require(isinstance(self.signed, bool | np.bool_), "signed", self.signed, "True or False")
        validate.require(
            self.context_on in CONTEXT_ON, "context_on", self.context_on, f"one of {', '.join(CONTEXT_ON)}"
        )

    def sizes(self, context: int) -> tuple[int, int]:
        """The number of coefficients of the baseline, p, and of the effect, q."""
        moved = {"both": (1 + context, context), "baseline": (1 + context, 0), "none": (1, 0)}
        return moved[self.context_on]

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> InstrumentalState:
        first, n, (p, q) = first_fields(self, problem, batch), problem.n_arms, self.sizes(problem.context)
        low, high = first["reward_range"][..., 0], first["reward_range"][..., 1]
        prior = np.stack([0.5 * (low + high) / (high - low), np.full(batch, PRIOR_DEVIATION)], axis=-1)
        allowed = ~np.tri(n, dtype=np.bool_) if problem.acyclic else ~np.eye(n, dtype=np.bool_)
        return InstrumentalState(
            **first,
            last_pull=np.zeros((*batch, n), np.int64),
            in_flight=np.zeros((*batch, n)),
            longest_delay=np.zeros(batch),
            context=np.zeros((*batch, problem.context)),
            prior=prior,
            reference=np.broadcast_to([0.0, 0.0 if problem.baseline else 1.0], (*batch, n, 2)).copy(),
            allowed=np.broadcast_to(allowed, (*batch, n, n)).copy(),
            ordered=np.full(batch, bool(problem.acyclic)),
            solved=np.zeros(batch, np.int64),
            tested=np.zeros(batch, np.int64),
            belief=empty_belief(n, p + q, prior[..., 0]),
            equations=prior_equations(allowed, rest_variance(p, q), self.signed, batch),
            statistics=empty_statistics(n, p + q, batch),
            reduced=empty_reduced(n, p, q, batch),
            shocks=empty_shocks(n, batch),
            rejected=np.zeros((*batch, n), np.bool_),
        )

    @property
    def batches(self) -> Batches:
        return WholeTables(self)

    # --- one learner ------------------------------------------------------------------------------------------------

    def prepare(self, s: Any) -> Any:
        n = s.n_arms
        return Room(
            np.zeros((6, n)),
            np.zeros((2, n), np.bool_),
            np.ones(1 + s.context.shape[0]),
            np.zeros((n, s.belief.sums.shape[1])),
            np.zeros((lines_of(n), n)),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """See `instrumental_scores`; in units of the range."""
        judge_arms(s, found)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        found = turn.room.found
        judge_arms(s, found)
        weigh(found[WEIGHT], found[INDEX])
        choose_top(found[INDEX], s.budget, turn, x)

    def note_play(self, s: Any, x: Any) -> None:
        note_pulls(s, x, s.belief.latest > 0)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        x, dose, room = lesson.x, lesson.dose, turn.room
        closed = take_in(s, lesson, room)
        expect_shocks(s, x, room)
        expect_outcomes(s, x, dose, room)
        filter_outcome(s, x, dose, lesson.round, room)
        learn_regression(s, x, dose, room)
        learn_equations(s, x, dose, closed, room)
        learn_shocks(s, x, dose, room)
        for j in range(x.shape[0]):
            s.rejected[j] &= is_testable(s, j)  # after a change the regression starts again
        if is_due(s):
            solve_equations(s, self.signed)
            solve_shocks(s.shocks)

    def derive(self, s: Any, turn: Turn) -> None:
        if turn.round == 0 and s.statistics.learned > s.solved:  # after a history: with all that was learned
            solve_equations(s, self.signed)
            solve_shocks(s.shocks)
        if s.tested != s.solved or turn.round == 0:
            test_graph(s, turn.room.found)
            s.tested = s.solved

    def show(self, s: Any, adjacency: Any) -> None:
        for i in range(adjacency.shape[0]):
            for j in range(adjacency.shape[1]):
                adjacency[i, j] = s.equations.coefficients[i, j]

    # --- what it says -----------------------------------------------------------------------------------------------

    def adjacency(self, state: InstrumentalState) -> Array:
        n = state.in_flight.shape[-1]
        return np.array(state.equations.coefficients[..., :n])

    def signals(self, state: InstrumentalState) -> dict[str, Any]:
        return {
            "latest": state.belief.seen,
            "changes_seen": state.belief.detected[..., 0],
            "graph_rejected": state.rejected,
        }

    def explain(self, state: InstrumentalState, rng: Rng) -> Explanation:
        p, _ = self.sizes(state.context.shape[-1])
        n, unit = state.last_pull.shape[-1], state.reward_range[..., 1:] - state.reward_range[..., :1]
        lines = self.indices(state, rng, (lines_of(n), n))
        mean, index, shift = (unit * lines[..., line, :] for line in (OWN, INDEX, SHIFT))
        weights, any_rejected = lines[..., WEIGHT, :], state.rejected.any(axis=-1, keepdims=True)
        effects = structural_effects(state, lines[..., OWN, :], p, self.signed)
        levels = state.equations.coefficients[..., state.n_arms.flat[0] :][..., :p] @ full_context(state)[..., :p, None]
        baseline = (state.equations.total_effects @ levels)[..., 0]
        if state.rejected.any():
            effects = merged(effects, reduced_effects(lines), state.rejected)
            baseline = np.where(any_rejected, lines[..., BASELINE, :], baseline)
        direct = np.diagonal(effects.cells, axis1=-2, axis2=-1)
        direct_variance = np.diagonal(effects.cell_variance, axis1=-2, axis2=-1)
        seen = state.belief.seen > 0
        return Explanation(
            mean=np.where(seen, mean, np.nan),
            count=np.where(seen, observations(state.belief), 0.0),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=self.adjacency(state),
            gain=np.ones_like(weights),
            weights=weights,
            score=scores(weights, index),
            pending=np.array(state.in_flight),
            baseline=unit * (baseline + state.reference[..., 0]),
            context_effect=shift,
            direct_interval=unit[..., None] * interval(direct, direct_variance),
            spill_interval=unit[..., None] * interval(effects.spill, effects.spill_variance, effects.spill_beyond),
            total_interval=unit[..., None] * interval(effects.total, effects.total_variance),
            effects=unit[..., None] * effects.cells,
            effects_interval=unit[..., None, None]
            * interval(effects.cells, effects.cell_variance, effects.cell_beyond),
            edge_probability=np.array(state.equations.probability),
            edge_interval=edge_interval(state.equations, state.allowed, self.signed),
        )


class WholeTables(Batches):
    """InstrumentalSEM, for which what is missing in a table will not come."""

    def checked(
        self, given: Feedback, shape: tuple[int, ...], reward_range: Array, rounds: Any
    ) -> tuple[Feedback, IntArray]:
        if given.fresh is None and given.complete is None:
            given = given._replace(complete=np.ones(shape[:-1], np.bool_))
        return super().checked(given, shape, reward_range, rounds)


def full_context(state: InstrumentalState) -> Array:
    """1 and the context of the coming round."""
    return np.concatenate([np.ones((*state.rounds.shape, 1)), state.context], axis=-1)

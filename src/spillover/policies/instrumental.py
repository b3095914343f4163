"""InstrumentalSEM: learns from decisions and overall outcomes, with baseline, context and hidden common causes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.constraints.search import top_arms
from spillover.contracts import Policy, Traits, learn_rounds, methods_of, unchanged
from spillover.policies.graph_policy import scores
from spillover.policies.instrumental_effects import (
    edge_interval,
    interval,
    merged,
    reduced_baseline,
    reduced_effects,
    rejected_arms,
    structural_effects,
    testable_arms,
)
from spillover.policies.instrumental_feedback import Given, canonical, width, with_constant
from spillover.policies.instrumental_state import (
    PRIOR_DEVIATION,
    InstrumentalState,
    any_arrived,
    due,
    edge_prior,
    empty_belief,
    empty_reduced,
    empty_shocks,
    empty_statistics,
    growth,
    observations,
    prior_equations,
    repeated,
    rest_precision,
)
from spillover.policies.switching_state import HAZARD, IDLE_HAZARD, RECENT, SHARE_PRIOR, SHARES, fading
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem

HAZARDS = np.array([HAZARD, IDLE_HAZARD])
HORIZON = 50.0  # rounds over which a better arm pays off
LEAST_EFFECT = 1e-9  # an own effect in units of the range that spill-over can be related to
OTHER_SCALE = 0.2  # outcomes that vary less than this share of what was assumed so far
KEPT_ON_RESTART = -3  # parts of the belief that are about rounds, not about effects
CONTEXT_ON = ("both", "baseline", "none")


class Judged(NamedTuple):
    """What arms are ranked by: weights times index."""

    weights: Array
    mean: Array
    upper: Array
    context_effect: Array


KERNELS = (  # that it needs to learn and to decide, those that take longest to compile first
    *("solve_equations", "instrumental_arrival", "absorb_equations", "solve_shocks", "instrumental_index"),
    *("weigh_graph", "absorb_reduced", "absorb_shocks", "expected_shocks", "feedback_fault", "top_arms"),
)


@dataclass(frozen=True, kw_only=True)
class InstrumentalSEM(Policy):
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
    deferrable = True
    reuses_memo = False

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
        validate.problem(problem)
        n, (p, q) = problem.n_arms, self.sizes(problem.context)
        reward_range = validate.spread("reward_range", problem.reward_range, (*batch, 2))
        low, high = reward_range[..., 0], reward_range[..., 1]
        prior = np.stack([0.5 * (low + high) / (high - low), np.full(batch, PRIOR_DEVIATION)], axis=-1)
        allowed = ~np.tri(n, dtype=np.bool_) if problem.acyclic else ~np.eye(n, dtype=np.bool_)
        context = np.zeros((*batch, 1 + problem.context))
        context[..., 0] = 1.0
        return InstrumentalState(
            rounds=np.zeros(batch, np.int64),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=reward_range,
            last_pull=np.zeros((*batch, n), np.int64),
            in_flight=np.zeros((*batch, n)),
            longest_delay=np.zeros(batch),
            context=context,
            prior=prior,
            reference=np.broadcast_to([0.0, 0.0 if problem.baseline else 1.0], (*batch, n, 2)).copy(),
            allowed=np.broadcast_to(allowed, (*batch, n, n)).copy(),
            ordered=np.full(batch, bool(problem.acyclic)),
            solved=np.zeros((*batch, 1), np.int64),
            belief=empty_belief(n, p + q, prior[..., 0]),
            equations=prior_equations(allowed, rest_precision(p, q), self.signed, batch),
            statistics=empty_statistics(n, p + q, batch),
            reduced=empty_reduced(n, p, q, batch),
            shocks=empty_shocks(n, batch),
            rejected=np.zeros((*batch, n), np.bool_),
        )

    def observe(self, state: InstrumentalState, context: Array) -> InstrumentalState:
        return state._replace(context=with_constant(context, state.context.shape))

    def index_in_units(self, state: InstrumentalState) -> tuple[Array, Array, Array]:
        """Expected own effects, the same plus the value of information, and what the context adds."""
        belief, equations = state.belief, state.equations
        p, q = self.sizes(state.context.shape[-1] - 1)
        mean, index, shift = kernels.instrumental_index(
            belief.mass,
            belief.base_mean,
            belief.base_weight,
            belief.total,
            belief.total_at,
            belief.weight,
            belief.weight_at,
            belief.changed,
            equations.coefficients,
            equations.edge_variance,
            equations.slope,
            equations.rest_covariance,
            equations.noise,
            equations.pooled,
            equations.weights,
            equations.weight_variance,
            state.last_pull,
            state.in_flight,
            state.rounds,
            state.budget,
            state.context,
            state.prior,
            IDLE_HAZARD,
            HORIZON,
            p,
            q,
        )
        return np.asarray(mean), np.asarray(index), np.asarray(shift)

    def judged(self, state: InstrumentalState) -> Judged:
        """What arms are ranked by, in units of y; where the graph is rejected, the regression on decisions decides."""
        own, index, shift = self.index_in_units(state)
        weights, unit = np.array(state.equations.weights), width(state.reward_range)
        if state.rejected.any():
            own, index, weights = without_graph(state, own, index, weights, *self.sizes(state.context.shape[-1] - 1))
        return Judged(weights, unit * own, unit * index, unit * shift)

    def select(self, state: InstrumentalState, rng: Rng) -> Choice:
        weights, _, index, _ = self.judged(state)
        return Choice(top_arms(scores(weights, index), state.budget, rng))

    def played(self, state: InstrumentalState, x: BoolArray) -> InstrumentalState:
        x = validate.decision("x", x, state.in_flight.shape)
        rounds = state.rounds + 1
        return state._replace(
            rounds=rounds,
            last_pull=np.where(x, rounds[..., None], state.last_pull),
            in_flight=state.in_flight * fading(state.longest_delay, any_arrived(state))[..., None] + x,
        )

    def update(self, state: InstrumentalState, feedback: Feedback, rng: Rng) -> InstrumentalState:
        before = state.solved
        state = self.learn(state, feedback, rng)
        return self.tested(state, state.solved > before)

    def learn(self, state: InstrumentalState, feedback: Feedback, rng: Rng) -> InstrumentalState:
        shape = state.in_flight.shape
        checked = validate.partial_feedback(feedback, shape, state.reward_range, state.rounds)
        given, reference = canonical(checked, state.reward_range, state.context.shape).from_reference(state.reference)
        fade = fading(state.longest_delay, any_arrived(state))  # before the belief is rewritten
        missing = np.isnan(given.y) & np.isnan(given.z)
        news = given.fresh & ~missing
        heard = given.arrived & news.any(axis=-1)
        closed = False if feedback.complete is None else given.complete[..., None]  # what is missing never arrives
        ended = given.x & (news | (missing & closed))
        in_flight = kernels.end_pulls(state.in_flight, ended, fade, given.age, given.arrived)
        self.absorb(state, given, state.rounds - given.age)
        longest = np.where(heard, np.maximum(RECENT * state.longest_delay, given.age), state.longest_delay)
        state = state._replace(
            in_flight=np.asarray(in_flight),
            longest_delay=longest,
            reference=reference,
            rejected=state.rejected & testable_arms(state.reduced),  # after a change the regression starts again
        )
        return self.solve_rows(state, due(state))

    def absorb(self, state: InstrumentalState, given: Given, played_at: IntArray) -> None:
        """Update the belief and the statistics in place; one round of a batch, or rounds of one learner in order."""
        belief, equations, statistics = state.belief, state.equations, state.statistics
        p, q = self.sizes(state.context.shape[-1] - 1)
        shock = kernels.expected_shocks(
            *equations[:4],
            *state.shocks[2:],
            given.x,
            given.z,
            given.y,
            given.context,
            p,
            given.arrived,
        )
        yhat, effects, centre, count = kernels.instrumental_arrival(
            *belief,
            *equations[:7],
            given.x,
            given.dose,
            given.z,
            given.y,
            shock,
            given.fresh,
            given.context,
            played_at,
            state.prior,
            SHARES,
            SHARE_PRIOR,
            HAZARDS,
            p,
            q,
            given.arrived,
        )
        kernels.absorb_reduced(
            *state.reduced,
            belief.detected,
            given.x,
            given.dose,
            given.y,
            given.context,
            given.fresh,
            p,
            q,
            given.arrived,
        )
        kernels.absorb_equations(
            *statistics,
            *equations[:5],
            state.allowed,
            given.x,
            given.dose,
            given.z,
            given.y,
            shock,
            given.fresh,
            given.complete,
            given.context,
            equations.total_effects,
            effects,
            yhat,
            centre,
            count,
            p,
            q,
            given.arrived,
        )
        kernels.absorb_shocks(
            *state.shocks[:2],
            equations.coefficients,
            given.x,
            given.dose,
            given.z,
            given.y,
            given.fresh,
            given.context,
            centre,
            count,
            p,
            q,
            given.arrived,
        )

    def solve(self, state: InstrumentalState) -> InstrumentalState:
        """Estimate the equations, and test them against a regression without a graph."""
        state = self.solve_rows(state, state.statistics.learned > state.solved)
        return self.tested(state, np.ones_like(state.solved, np.bool_))

    def tested(self, state: InstrumentalState, rows: BoolArray) -> InstrumentalState:
        """Test the equations against a regression without a graph in the replications of a mask, (*batch, 1)."""
        if not (rows & testable_arms(state.reduced)).any():
            return state._replace(rejected=state.rejected & ~rows)
        p, q = self.sizes(state.context.shape[-1] - 1)
        rejected = rejected_arms(state, self.index_in_units(state)[0], p, q)
        return state._replace(rejected=np.where(rows, rejected, state.rejected))

    def solve_rows(self, state: InstrumentalState, rows: BoolArray) -> InstrumentalState:
        """Estimate the equations again in the replications of a mask, (*batch, 1)."""
        belief, equations, statistics = state.belief, state.equations, state.statistics
        n, unit = state.in_flight.shape[-1], equations.pooled[..., 1].copy()
        kernels.solve_equations(
            *equations[:6],
            *equations[9:],
            belief.base,
            belief.base_share,
            belief.base_mean,
            belief.base_weight,
            belief.total,
            belief.total_at,
            belief.sums,
            belief.sums_at,
            equations.total_effects,
            statistics.ff,
            statistics.qf,
            statistics.qq,
            statistics.fy,
            statistics.qy,
            statistics.yy,
            statistics.rounds,
            statistics.squares,
            statistics.freedom,
            statistics.moments,
            state.allowed,
            rest_precision(*self.sizes(state.context.shape[-1] - 1)),
            state.prior,
            edge_prior(n),
            state.ordered,
            self.signed,
            rows[..., 0],
        )
        kernels.weigh_graph(*equations[6:9], equations.coefficients, equations.covariance, rows[..., 0])
        kernels.solve_shocks(*state.shocks, rows[..., 0])
        misjudged = equations.pooled[..., 1] < OTHER_SCALE * unit
        if misjudged.any():
            self.restart(state, misjudged)
        return state._replace(solved=np.where(rows, statistics.learned, state.solved))

    def restart(self, state: InstrumentalState, rows: BoolArray) -> None:
        """Learn from now on only, where outcomes turn out to be on quite another scale than the reward range.

        This happens after a few rounds, in which effects were expected to be far larger than they are.
        """
        n, batch, (p, q) = state.in_flight.shape[-1], rows.shape, self.sizes(state.context.shape[-1] - 1)
        unit = state.equations.pooled[..., 1].copy()
        equations = prior_equations(state.allowed, rest_precision(p, q), self.signed, batch)
        variances = unit[..., None] ** 2
        equations = equations._replace(
            rest_covariance=equations.rest_covariance * variances[..., None, None],
            noise=equations.noise * variances[..., None],
            pooled=np.stack([equations.pooled[..., 0] * variances[..., 0], unit], axis=-1),
        )
        belief = empty_belief(n, p + q, state.prior[..., 0] * unit)
        parts = (
            (state.belief[:KEPT_ON_RESTART], belief[:KEPT_ON_RESTART]),
            (state.equations, equations),
            (state.statistics[:-3], empty_statistics(n, p + q, batch)[:-3]),
            (state.shocks, empty_shocks(n, batch)),
        )
        for leaves, fresh in parts:
            for leaf, new in zip(leaves, fresh, strict=True):
                leaf[rows] = new[rows]

    @property
    def learns_histories(self) -> bool:
        return unchanged(self, AS_LEARNED)

    def catch_up(self, state: InstrumentalState, rounds: Feedback, first: int, rng: Rng) -> InstrumentalState:
        count = len(rounds.x)
        in_parts = rounds.fresh is not None or rounds.complete is not None
        if count < 2 or in_parts or not unchanged(self, LEARNING):
            some: InstrumentalState = learn_rounds(self, state, rounds, first, rng, self.learn)
            return some
        played_at = state.rounds + np.arange(1, count + 1)
        checked = validate.partial_feedback(rounds, rounds.x.shape, state.reward_range, played_at)
        given = canonical(checked, state.reward_range, (count, state.context.shape[-1]))
        given, reference = given.from_first(state.reference)
        known = given.arrived[:, None] & ~(np.isnan(given.y) & np.isnan(given.z))
        heard, observed = known.any(axis=-1), (known & given.x).any(axis=-1)
        before: IntArray = np.cumsum(heard) - heard
        started = any_arrived(state) | (np.cumsum(observed) - observed > 0)
        done = 0
        while done < count:
            stop = min(done + until_due(state, given, done), count)
            here = given.between(done, stop)
            stacked = state._replace(
                belief=repeated(state.belief, stop - done),
                statistics=repeated(state.statistics, stop - done),
                reduced=repeated(state.reduced, stop - done),
                shocks=repeated(state.shocks, stop - done),
            )
            self.absorb(stacked, here, played_at[done:stop])
            state = self.solve_rows(state, due(state))
            done = stop
        fade = fading(state.longest_delay * RECENT**before, started)
        left = np.cumprod(fade[::-1])[::-1]  # what is left after the last round of a pull before each round
        pending = np.append(left[1:], 1.0) @ (given.x & ~known)
        latest = state.rounds + count - given.x[::-1].argmax(axis=0)
        return state._replace(
            rounds=state.rounds + count,
            last_pull=np.where(given.x.any(axis=0), latest, state.last_pull),
            in_flight=np.asarray(state.in_flight * left[0] + pending),
            longest_delay=np.asarray(state.longest_delay * RECENT ** heard.sum()),
            reference=reference,
            rejected=state.rejected & testable_arms(state.reduced),
            context=state.context if rounds.context is None else given.context[-1].copy(),
        )

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
        p, q = self.sizes(state.context.shape[-1] - 1)
        n, unit = state.in_flight.shape[-1], width(state.reward_range)
        weights, mean, index, shift = self.judged(state)
        effects = structural_effects(state, self.index_in_units(state)[0], p, self.signed)
        if state.rejected.any():
            effects = merged(effects, reduced_effects(state.reduced, state.context, p, q)[0], state.rejected)
        direct = np.diagonal(effects.cells, axis1=-2, axis2=-1)
        direct_variance = np.diagonal(effects.cell_variance, axis1=-2, axis2=-1)
        levels = state.equations.coefficients[..., n : n + p] @ state.context[..., :p, None]
        baseline = (state.equations.total_effects @ levels)[..., 0]
        if state.rejected.any():
            plain = reduced_baseline(state.reduced, state.context, p)
            baseline = np.where(state.rejected.any(axis=-1, keepdims=True), plain, baseline)
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


LEARNING = methods_of(InstrumentalSEM, ("played", "learn", "observe"))
AS_LEARNED = methods_of(InstrumentalSEM, ("update", "observe"))


def without_graph(
    state: InstrumentalState, own: Array, index: Array, weights: Array, p: int, q: int
) -> tuple[Array, Array, Array]:
    """Own effects, index and weights; those of arms whose graph is rejected come from the regression on decisions.

    Their bonus is one standard error, less while pulls are in flight.
    """
    plain = reduced_effects(state.reduced, state.context, p, q)[0]
    direct = np.diagonal(plain.cells, axis1=-2, axis2=-1)
    direct = np.where(np.abs(direct) < LEAST_EFFECT, LEAST_EFFECT, direct)
    weight = plain.total / direct
    bonus = np.sqrt(plain.total_variance) / (1.0 + state.in_flight) ** 2
    score = plain.total + bonus
    upper = np.divide(score, weight, out=direct.copy(), where=weight != 0.0)
    return (
        np.where(state.rejected, direct, own),
        np.where(state.rejected, upper, index),
        np.where(state.rejected, weight, weights),
    )


def until_due(state: InstrumentalState, given: Given, done: int) -> int:
    """The number of rounds from `done` on after which the equations are to be solved again."""
    counted = given.arrived[done:] & ~np.isnan(given.y[done:]).all(axis=-1)
    learned = int(state.statistics.learned[0]) + np.cumsum(counted)
    solved, more = int(state.solved[0]), 1.0 + growth(state.in_flight.shape[-1])
    reached = np.flatnonzero(counted & (learned > solved) & (learned >= more * solved))
    return int(reached[0]) + 1 if len(reached) else len(counted)

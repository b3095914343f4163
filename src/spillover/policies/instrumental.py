"""InstrumentalSEM: learns from decisions and overall outcomes alone, with baseline, context and hidden common causes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Policy
from spillover.policies.graph_policy import scores
from spillover.policies.switching import (
    HAZARD,
    HORIZON,
    HYPOTHESES,
    IDLE_HAZARD,
    RECENT,
    SHARE_PRIOR,
    SHARES,
    fading,
)
from spillover.rng import Rng
from spillover.set_search import top_arms
from spillover.state import repeat_in_place
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem

HAZARDS = np.array([HAZARD, IDLE_HAZARD])
PRIOR_DEVIATION = 1.0 / np.sqrt(12.0)  # of an own effect, in units of the range: as if uniform on the range
BASELINE_DEVIATION = 10.0  # prior of baselines, in units of the range
SLOPE_DEVIATION = 0.5  # prior of what a unit of context does to an effect, in units of the range
EDGE_SCALE = 0.5  # as in kernels.solve_equations.py
FIRST_NOISE = 0.02  # prior variance of an equation's error while its arm is not chosen
GROWTH = 0.0  # the graph is solved again when so many more rounds have been learned
LARGE = 20  # with more arms, rarer: the cost grows with the fourth power
RAREST = 0.25
CONTEXT_ON = ("both", "baseline", "none")


class Belief(NamedTuple):
    """The posterior over the hypotheses "the last change was at round r", with sums of what was observed.

    An observation is a vector of m = 2 n + p + q + 1 numbers: the regressors (outcomes of all arms, 1 and context,
    context again for the effects), the arm's own outcome, and the expected outcomes of all arms.
    """

    change_round: IntArray  # (*batch, k): r; 0 for the hypothesis that nothing has ever changed
    mass: Array  # (*batch, k, shares): joint probability of r and of the share of arms that changed at r
    base: Array  # (*batch, k, n, m): average observation before r
    base_share: Array  # (*batch, k, n): the share of the prior in what was known before r
    base_mean: Array  # (*batch, k, n): the own effect before r, under the present graph
    base_weight: Array  # (*batch, k, n): observations that this is worth
    sums: Array  # (*batch, n, m): of all observations of an arm
    sums_at: Array  # (*batch, k, n, m): the same at r
    total: Array  # (*batch, n): sum of the own effects, under the present graph
    total_at: Array  # (*batch, k, n)
    weight: Array  # (*batch, n): number of observations
    weight_at: Array  # (*batch, k, n)
    ratio: Array  # (*batch, k, n): likelihood ratio of the observations since r, changed against unchanged
    idle_prior: Array  # (*batch, k, n): prior probability of each arm, if the change was of one idle arm
    changed: Array  # (*batch, k, n): probability under r that the arm changed at r
    seen: IntArray  # (*batch, n): latest round of play with an observation of the arm
    latest: IntArray  # (*batch, 1): latest round of play of which an outcome has arrived
    detected: IntArray  # (*batch, 2): changes detected so far, and the likeliest round of the last one


class Equations(NamedTuple):
    """Estimates of the structural equations, with d = n + p + q coefficients each."""

    coefficients: Array  # (*batch, n, d): edges, baseline and what context does to it, what context does to the effect
    edge_variance: Array  # (*batch, n, n)
    slope: Array  # (*batch, n, p + q, n): by how much a larger edge lowers the other coefficients
    rest_covariance: Array  # (*batch, n, p + q, p + q): of the other coefficients, given the edges
    noise: Array  # (*batch, n, 2): variance of an equation's error, while its arm is not chosen and while it is
    pooled: Array  # (*batch, 1): variance of an observed effect, over all arms
    total_effects: Array  # (*batch, n, n): (I - A)^-1
    weights: Array  # (*batch, n): its column sums
    weight_variance: Array  # (*batch, n)
    probability: Array  # (*batch, n, n): of each edge
    trust: Array  # (*batch, n): between 0, two-stage least squares, and 1, least squares


class Statistics(NamedTuple):
    """Sums of products for each equation, for rounds in which its arm was not chosen and in which it was.

    f are the regressors, q the instruments (expected outcomes in place of outcomes), y the outcome.
    """

    ff: Array  # (*batch, n, 2, d, d)
    qf: Array
    qq: Array
    fy: Array  # (*batch, n, 2, d)
    qy: Array
    yy: Array  # (*batch, n, 2)
    rounds: Array  # (*batch, n, 2): their number
    squares: Array  # (*batch, n, 2): of the residuals
    freedom: Array  # (*batch, n, 2): their number, uncertain ones counted less
    learned: IntArray  # (*batch, 1): rounds learned


class InstrumentalState(NamedTuple):
    """What InstrumentalSEM has learned; outcomes are in units of the width of the reward range."""

    rounds: IntArray  # (*batch,): rounds played
    budget: IntArray  # (*batch,)
    reward_range: Array  # (*batch, 2): of z
    last_pull: IntArray  # (*batch, n): its round
    in_flight: Array  # (*batch, n): pulls whose outcome is still expected
    longest_delay: Array  # (*batch,): of recent arrivals; old extremes decay
    context: Array  # (*batch, 1 + k): 1 and the context of the coming round
    prior: Array  # (*batch, 2): mean and deviation of an own effect
    allowed: BoolArray  # (*batch, n, n): edges that may exist
    mixing: Array  # (*batch,): 0, two-stage least squares; -1, by the evidence for hidden common causes
    solved: IntArray  # (*batch, 1): rounds learned when the equations were last solved
    belief: Belief
    equations: Equations
    statistics: Statistics


@dataclass(frozen=True, kw_only=True)
class InstrumentalSEM(Policy):
    """Learns from what was chosen and what came out; the arms' own rewards z are used where they are known.

    The outcome of an arm is a baseline, moved by context, plus spill-over from other arms, plus the arm's own effect if
    it is chosen, which may depend on context and switches now and then. Decisions are made before the errors of a
    round, so they serve as instruments: hidden common causes of several arms do not mislead the graph. Arms may report
    at different times, and outcomes may be missing. See docs/instrumental.md for the model.

    signed: whether edges may be negative. context_on: what the context may move, "both" (baselines and effects),
        "baseline", or "none".
    """

    signed: bool = False
    context_on: str = "both"

    order_free = False
    explains = True
    learns_graph = True
    needs_rewards = False
    uses_context = True
    fits_baseline = True
    accepts_missing = True
    accepts_doses = True

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
            allowed=np.broadcast_to(allowed, (*batch, n, n)).copy(),
            mixing=np.full(batch, -1.0 if problem.acyclic else 0.0),
            solved=np.zeros((*batch, 1), np.int64),
            belief=empty_belief(n, p + q, prior[..., 0]),
            equations=prior_equations(allowed, rest_precision(p, q), self.signed, batch),
            statistics=empty_statistics(n, p + q, batch),
        )

    def observe(self, state: InstrumentalState, context: Array) -> InstrumentalState:
        return state._replace(context=with_constant(context, state.context.shape))

    def means_and_index(self, state: InstrumentalState) -> tuple[Array, Array, Array]:
        """Expected own effects, the same plus the value of information, and what the context adds; in units of y."""
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
        unit = width(state.reward_range)
        return unit * mean, unit * index, unit * shift

    def select(self, state: InstrumentalState, rng: Rng) -> Choice:
        index = self.means_and_index(state)[1]
        return Choice(top_arms(scores(state.equations.weights, index), state.budget, rng))

    def played(self, state: InstrumentalState, x: BoolArray) -> InstrumentalState:
        x = validate.decision("x", x, state.in_flight.shape)
        rounds = state.rounds + 1
        return state._replace(
            rounds=rounds,
            last_pull=np.where(x, rounds[..., None], state.last_pull),
            in_flight=state.in_flight * fading(state.longest_delay, any_arrived(state))[..., None] + x,
        )

    def update(self, state: InstrumentalState, feedback: Feedback, rng: Rng) -> InstrumentalState:
        return self.learn(state, feedback, rng)

    def learn(self, state: InstrumentalState, feedback: Feedback, rng: Rng) -> InstrumentalState:
        shape = state.in_flight.shape
        checked = validate.partial_feedback(feedback, shape, state.reward_range, state.rounds)
        given = canonical(checked, state.reward_range, state.context.shape)
        fade = fading(state.longest_delay, any_arrived(state))  # before the belief is rewritten
        news = given.fresh & ~(np.isnan(given.y) & np.isnan(given.z))
        heard = given.arrived & news.any(axis=-1)
        in_flight = kernels.end_pulls(state.in_flight, given.x & news, fade, given.age, given.arrived)
        self.absorb(state, given, state.rounds - given.age)
        longest = np.where(heard, np.maximum(RECENT * state.longest_delay, given.age), state.longest_delay)
        return self.solve_rows(state._replace(in_flight=np.asarray(in_flight), longest_delay=longest), due(state))

    def absorb(self, state: InstrumentalState, given: "Given", played_at: IntArray) -> None:
        """Update the belief and the statistics in place; one round of a batch, or rounds of one learner in order."""
        belief, equations, statistics = state.belief, state.equations, state.statistics
        p, q = self.sizes(state.context.shape[-1] - 1)
        yhat, centre, count = kernels.instrumental_arrival(
            *belief,
            *equations[:7],
            given.x,
            given.dose,
            given.z,
            given.y,
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
        kernels.absorb_equations(
            *statistics,
            *equations[:5],
            state.allowed,
            given.x,
            given.dose,
            given.z,
            given.y,
            given.fresh,
            given.complete,
            given.context,
            yhat,
            centre,
            count,
            p,
            q,
            given.arrived,
        )

    def solve(self, state: InstrumentalState) -> InstrumentalState:
        return self.solve_rows(state, state.statistics.learned > state.solved)

    def solve_rows(self, state: InstrumentalState, rows: BoolArray) -> InstrumentalState:
        """Estimate the equations again in the replications of a mask, (*batch, 1)."""
        belief, equations, statistics = state.belief, state.equations, state.statistics
        n = state.in_flight.shape[-1]
        kernels.solve_equations(
            *equations,
            belief.base,
            belief.base_share,
            belief.base_mean,
            belief.base_weight,
            belief.total,
            belief.total_at,
            belief.sums,
            belief.sums_at,
            statistics.ff,
            statistics.qf,
            statistics.qq,
            statistics.fy,
            statistics.qy,
            statistics.rounds,
            statistics.squares,
            statistics.freedom,
            state.allowed,
            rest_precision(*self.sizes(state.context.shape[-1] - 1)),
            state.prior,
            edge_prior(n),
            state.mixing,
            self.signed,
            rows[..., 0],
        )
        return state._replace(solved=np.where(rows, statistics.learned, state.solved))

    def catch_up(self, state: InstrumentalState, rounds: Feedback, first: int, rng: Rng) -> InstrumentalState:
        count = len(rounds.x)
        if count < 2 or rounds.fresh is not None or rounds.complete is not None:
            some: InstrumentalState = super().catch_up(state, rounds, first, rng)
            return some
        played_at = state.rounds + np.arange(1, count + 1)
        checked = validate.partial_feedback(rounds, rounds.x.shape, state.reward_range, played_at)
        given = canonical(checked, state.reward_range, (count, state.context.shape[-1]))
        heard = given.arrived & ~(np.isnan(given.y) & np.isnan(given.z)).all(axis=-1)
        before: IntArray = np.cumsum(heard) - heard
        started = any_arrived(state)
        done = 0
        while done < count:
            stop = min(done + until_due(state, given, done), count)
            here = Given(*(leaf[done:stop] for leaf in given))
            stacked = state._replace(
                belief=repeated(state.belief, stop - done), statistics=repeated(state.statistics, stop - done)
            )
            self.absorb(stacked, here, played_at[done:stop])
            state = self.solve_rows(state, due(state))
            done = stop
        fade = fading(state.longest_delay * RECENT**before, started | (before > 0))
        left = np.cumprod(fade[::-1])[::-1]  # what is left after the last round of a pull before each round
        unknown = given.x & ~(given.arrived[:, None] & ~(np.isnan(given.y) & np.isnan(given.z)))
        pending = np.append(left[1:], 1.0) @ unknown
        latest = state.rounds + count - given.x[::-1].argmax(axis=0)
        return state._replace(
            rounds=state.rounds + count,
            last_pull=np.where(given.x.any(axis=0), latest, state.last_pull),
            in_flight=np.asarray(state.in_flight * left[0] + pending),
            longest_delay=np.asarray(state.longest_delay * RECENT ** heard.sum()),
            context=state.context if rounds.context is None else given.context[-1].copy(),
        )

    def adjacency(self, state: InstrumentalState) -> Array:
        n = state.in_flight.shape[-1]
        return np.array(state.equations.coefficients[..., :n])

    def signals(self, state: InstrumentalState) -> dict[str, Any]:
        return {"latest": state.belief.seen, "changes_seen": state.belief.detected[..., 0]}

    def explain(self, state: InstrumentalState, rng: Rng) -> Explanation:
        mean, index, shift = self.means_and_index(state)
        weights, seen = np.array(state.equations.weights), state.belief.seen > 0
        return Explanation(
            mean=np.where(seen, mean, np.nan),
            count=observations(state.belief),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=self.adjacency(state),
            gain=np.ones_like(weights),
            weights=weights,
            score=scores(weights, index),
            pending=np.array(state.in_flight),
            context_effect=shift,
            edge_probability=np.array(state.equations.probability),
        )


class Given(NamedTuple):
    """Checked feedback in units of the range, without gaps in its form."""

    x: BoolArray
    dose: Array
    z: Array
    y: Array
    fresh: BoolArray
    complete: BoolArray
    context: Array
    age: IntArray
    arrived: BoolArray


def canonical(given: Feedback, reward_range: Array, context_shape: Batch) -> Given:
    shape, unit = given.x.shape, width(reward_range)
    validate.require(
        given.context is not None or context_shape[-1] == 1, "context", None, f"{context_shape[-1] - 1} numbers"
    )
    return Given(
        x=given.x,
        dose=np.ones(shape) if given.dose is None else checked_dose(given.dose, given.x),
        z=given.z / unit,
        y=given.y / unit,
        fresh=np.ones(shape, np.bool_) if given.fresh is None else np.asarray(given.fresh, np.bool_),
        complete=np.ones(shape[:-1], np.bool_) if given.complete is None else np.asarray(given.complete, np.bool_),
        context=with_constant(given.context, context_shape),
        age=given.age,
        arrived=given.arrived,
    )


def checked_dose(dose: Any, x: BoolArray) -> Array:
    """Doses, 1 where an arm is not chosen."""
    found = np.where(x, np.broadcast_to(validate.numbers("dose", dose, "numbers"), x.shape), 1.0)
    good = bool((np.isfinite(found) & (found > 0.0)).all())
    validate.require(good, "dose", dose, "positive numbers for the arms that are chosen")
    return found


def with_constant(context: Any, shape: Batch) -> Array:
    """1 and the context."""
    full = np.ones(shape)
    if shape[-1] > 1:
        given = validate.numbers("context", context, "numbers")
        wanted = (*shape[:-1], shape[-1] - 1)
        validate.require(given.shape == wanted, "shape of context", given.shape, f"{wanted}")
        validate.require(bool(np.isfinite(given).all()), "context", context, "finite numbers")
        full[..., 1:] = given
    return full


def width(reward_range: Array) -> Array:
    return np.asarray(reward_range[..., 1:] - reward_range[..., :1])


def rest_precision(p: int, q: int) -> Array:
    """The prior precision of baselines and of what context does."""
    return np.append(np.full(p, 1.0 / BASELINE_DEVIATION**2), np.full(q, 1.0 / SLOPE_DEVIATION**2))


def edge_prior(n_arms: int) -> float:
    """The prior probability of an edge: about one cause for each arm."""
    return min(1.0 / n_arms, 0.5)


def empty_belief(n: int, rest: int, prior_mean: Array) -> Belief:
    batch, m = prior_mean.shape, 2 * n + rest + 1
    by_arm = (*batch, HYPOTHESES, n)
    mass = np.zeros((*batch, HYPOTHESES, len(SHARES)))
    mass[..., 0, 0] = 1.0  # no change so far
    return Belief(
        change_round=np.zeros((*batch, HYPOTHESES), np.int64),
        mass=mass,
        base=np.zeros((*by_arm, m)),
        base_share=np.ones(by_arm),
        base_mean=np.broadcast_to(prior_mean[..., None, None], by_arm).copy(),
        base_weight=np.full(by_arm, 2.0),
        sums=np.zeros((*batch, n, m)),
        sums_at=np.zeros((*by_arm, m)),
        total=np.zeros((*batch, n)),
        total_at=np.zeros(by_arm),
        weight=np.zeros((*batch, n)),
        weight_at=np.zeros(by_arm),
        ratio=np.ones(by_arm),
        idle_prior=np.zeros(by_arm),
        changed=np.zeros(by_arm),
        seen=np.zeros((*batch, n), np.int64),
        latest=np.zeros((*batch, 1), np.int64),
        detected=np.zeros((*batch, 2), np.int64),
    )


def prior_equations(allowed: BoolArray, precision: Array, signed: bool, batch: Batch) -> Equations:
    """Before any outcome: each edge that may exist has its prior mean, unless it may be negative."""
    n, rest = len(allowed), len(precision)
    probability = np.where(allowed, edge_prior(n), 0.0)
    edges = probability * (0.0 if signed else EDGE_SCALE * np.sqrt(2.0 / np.pi))
    total_effects = np.linalg.inv(np.eye(n) - edges)
    weights = total_effects.sum(axis=0)
    variance = probability * EDGE_SCALE**2 - edges**2
    variance_of_weights = weights**2 @ (variance @ total_effects**2)
    observed = 2.0 * PRIOR_DEVIATION**2
    values = (
        np.hstack([edges, np.zeros((n, rest))]),
        variance,
        np.zeros((n, rest, n)),
        np.broadcast_to(np.diag(1.0 / precision), (n, rest, rest)),
        np.broadcast_to([FIRST_NOISE, observed], (n, 2)),
        np.array([observed]),
        total_effects,
        weights,
        variance_of_weights,
        probability,
        np.ones(n),
    )
    return Equations(*(np.broadcast_to(value, (*batch, *value.shape)).copy() for value in values))


def empty_statistics(n: int, rest: int, batch: Batch) -> Statistics:
    d = n + rest
    shapes = [(n, 2, d, d)] * 3 + [(n, 2, d)] * 2 + [(n, 2)] * 4
    return Statistics(*(np.zeros((*batch, *shape)) for shape in shapes), learned=np.zeros((*batch, 1), np.int64))


def any_arrived(state: InstrumentalState) -> BoolArray:
    """Whether anything has arrived yet."""
    return np.asarray(state.belief.latest[..., 0] > 0)


def growth(n_arms: int) -> float:
    return float(min(GROWTH * max(n_arms / LARGE, 1.0) ** 2, RAREST))


def due(state: InstrumentalState) -> BoolArray:
    """Whether so much was learned that the equations should be solved again, (*batch, 1)."""
    learned, more = state.statistics.learned, 1.0 + growth(state.in_flight.shape[-1])
    return np.asarray((learned > state.solved) & (learned >= more * state.solved))


def until_due(state: InstrumentalState, given: Given, done: int) -> int:
    """The number of rounds from `done` on after which the equations are to be solved again."""
    counted = given.arrived[done:] & ~np.isnan(given.y[done:]).all(axis=-1)
    learned = int(state.statistics.learned[0]) + np.cumsum(counted)
    solved, more = int(state.solved[0]), 1.0 + growth(state.in_flight.shape[-1])
    reached = np.flatnonzero(counted & (learned > solved) & (learned >= more * solved))
    return int(reached[0]) + 1 if len(reached) else len(counted)


def repeated(part: Any, times: int) -> Any:
    return type(part)(*(repeat_in_place(leaf, times) for leaf in part))


def observations(belief: Belief) -> Array:
    """The expected number of observations behind each own effect, over the hypotheses."""
    probability = belief.mass.sum(axis=-1)[..., None]
    since = belief.weight[..., None, :] - belief.weight_at
    unchanged = since + belief.base_weight * (1.0 - belief.base_share)
    return np.asarray((probability * (unchanged + belief.changed * (since - unchanged))).sum(axis=-2))

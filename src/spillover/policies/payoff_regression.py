"""PayoffRegression: the payoff on the decision, without a graph and without the outcomes of single arms."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.constraints.search import top_arms
from spillover.contracts import Policy
from spillover.policies.intervals import around
from spillover.policies.switching_model import HAZARD, IDLE_HAZARD, RECENT, fading
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
    Probability,
    Problem,
    Round,
    Rounds,
)

HYPOTHESES = 20  # about the time of the last change; a new one replaces the least probable
HORIZON = 50.0  # rounds over which a better arm pays off
PRIOR_ROUNDS = 1.0  # what is assumed of the noise counts as so many payoffs
SPREAD = 0.5  # prior variance of an effect, in squared widths of the range of rewards
CONTEXT_ON = ("both", "baseline")
BASELINE_SCALE = 100.0  # prior variance of the baseline and of what context adds to it, in the same units


class PayoffState(NamedTuple):
    """What PayoffRegression has learned; coefficients are of (x, x times each context column, 1, context)."""

    rounds: Rounds  # (*batch,): rounds played
    budget: Constant[IntArray]  # (*batch,)
    last_pull: Round  # (*batch, n): its round
    in_flight: Amount  # (*batch, n): pulls whose outcome is still expected
    longest_delay: Amount  # (*batch,)
    seen: Round  # (*batch, n): latest round of play of each arm whose outcome has arrived
    pulls: Amount  # (*batch, n): outcomes that have arrived of rounds with the arm
    context: Finite  # (*batch, k): of the coming round
    prior_mean: Finite  # (*batch, d)
    prior_variance: Amount  # (*batch, d)
    change_round: Round  # (*batch, hypotheses): of the last change; 0 if nothing has ever changed
    mass: Probability  # (*batch, hypotheses): probability
    mean: Finite  # (*batch, hypotheses, d)
    cover: Finite  # (*batch, hypotheses, d, d): covariance, in units of the noise variance
    noise: Amount  # (*batch, 2): sum of squared errors, and their number
    latest: Round  # (*batch, 1): latest round of play whose outcome has arrived
    detected: Round  # (*batch, 2): changes detected so far, and the likeliest round of the last one


@dataclass(frozen=True, kw_only=True)
class PayoffRegression(Policy):
    """Bayesian linear regression of the payoff on the decision; for data with one outcome, and as a graph-free rival.

    The payoff is a baseline plus the total effects of the chosen arms, each with a part that the context moves; amounts
    (doses) multiply an arm's effect. All effects are constant until they change: as in `SwitchingSEM`, the time of the
    last change is filtered, and an exploration bonus, the expected improvement, is added.

    context_on: what the context may move, "both" (the baseline and effects), or "baseline".
    noise: its variance as assumed before the first payoff, in units of budget / 4 squared widths of the range of
        rewards. The range of a table is often far wider than the noise.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=600, changes=())
    >>> runs = [sp.simulate(policy, world, 10, replications=10) for policy in (PayoffRegression(), sp.policies.CUCB())]
    >>> bool(runs[0].final_regret.mean() < runs[1].final_regret.mean())
    True
    """

    context_on: str = "both"
    noise: float = 1.0

    order_free = False
    explains = True
    needs_rewards = False
    needs_outcomes = False
    uses_context = True
    fits_baseline = True
    accepts_doses = True

    def __post_init__(self) -> None:
        validate.require(
            self.context_on in CONTEXT_ON, "context_on", self.context_on, f"one of {', '.join(CONTEXT_ON)}"
        )
        least, most = 1 / validate.LARGEST, validate.LARGEST
        validate.number("noise", self.noise, f"a positive number, from {least:g} to {most:g}", low=least, high=most)
        validate.require(np.ndim(self.noise) == 0, "noise", self.noise, "a single number")

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> PayoffState:
        validate.problem(problem)
        n, k = problem.n_arms, problem.context
        line, hypotheses, d = (*batch, n), (*batch, HYPOTHESES), n * (1 + k) + 1 + k
        low, high = np.moveaxis(validate.spread("reward_range", problem.reward_range, (*batch, 2)), -1, 0)
        unit, prior_mean = (high - low)[..., None] ** 2, np.zeros((*batch, d))
        prior_variance = np.broadcast_to(BASELINE_SCALE * unit, (*batch, d)).copy()
        prior_mean[..., :n] = ((low + high) / 2.0)[..., None]
        prior_variance[..., : n * (1 + k)] = SPREAD * unit
        if self.context_on == "baseline":
            prior_variance[..., n : n * (1 + k)] = 0.0
        if not problem.baseline:
            prior_variance[..., n * (1 + k)] = 0.0
        noise = self.noise * problem.budget * unit / 4.0
        cover = (prior_variance / noise)[..., None] * np.eye(d)
        mass = np.zeros(hypotheses)
        mass[..., 0] = 1.0
        return PayoffState(
            rounds=np.zeros(batch, np.int64),
            budget=np.full(batch, problem.budget, np.int64),
            last_pull=np.zeros(line, np.int64),
            in_flight=np.zeros(line),
            longest_delay=np.zeros(batch),
            seen=np.zeros(line, np.int64),
            pulls=np.zeros(line),
            context=np.zeros((*batch, k)),
            prior_mean=prior_mean,
            prior_variance=prior_variance,
            change_round=np.zeros(hypotheses, np.int64),
            mass=mass,
            mean=np.repeat(prior_mean[..., None, :], HYPOTHESES, axis=-2),
            cover=np.repeat(cover[..., None, :, :], HYPOTHESES, axis=-3),
            noise=np.concatenate([PRIOR_ROUNDS * noise, np.full((*batch, 1), PRIOR_ROUNDS)], axis=-1),
            latest=np.zeros((*batch, 1), np.int64),
            detected=np.zeros((*batch, 2), np.int64),
        )

    def observe(self, state: PayoffState, context: Array) -> PayoffState:
        return state._replace(context=np.broadcast_to(np.asarray(context, float), state.context.shape).copy())

    def effects(self, state: PayoffState) -> tuple[Array, Array, Array]:
        """The expected effects on the payoff, their deviations, and the effects plus the value of information."""
        effect, deviation, index = kernels.payoff_index(
            state.mass,
            state.mean,
            state.cover,
            state.noise,
            state.prior_mean,
            state.prior_variance,
            state.context,
            state.last_pull,
            state.in_flight,
            state.rounds,
            state.budget,
            IDLE_HAZARD,
            HORIZON,
        )
        return np.asarray(effect), np.asarray(deviation), np.asarray(index)

    def select(self, state: PayoffState, rng: Rng) -> Choice:
        return Choice(top_arms(self.effects(state)[2], state.budget, rng))

    def played(self, state: PayoffState, x: BoolArray) -> PayoffState:
        x = validate.decision("x", x, state.in_flight.shape)
        rounds, fade = state.rounds + 1, fading(state.longest_delay, state.latest[..., 0] > 0)
        return state._replace(
            rounds=rounds,
            last_pull=np.where(x, rounds[..., None], state.last_pull),
            in_flight=state.in_flight * fade[..., None] + x,
        )

    def update(self, state: PayoffState, feedback: Feedback, rng: Rng) -> PayoffState:
        anything = np.array([-np.inf, np.inf])  # z is not used
        feedback = validate.partial_feedback(feedback, state.in_flight.shape, anything, state.rounds)
        x, age, arrived = feedback.x, feedback.age, feedback.arrived
        payoff = feedback.y.sum(axis=-1)
        state = self.around_first(state, payoff, arrived)
        played_at = state.rounds - age
        fade = fading(state.longest_delay, state.latest[..., 0] > 0)
        features = design(x, feedback.dose, feedback.context, state.context)
        kernels.payoff_arrival(
            state.change_round,
            state.mass,
            state.mean,
            state.cover,
            state.noise,
            state.latest,
            state.detected,
            features,
            x,
            payoff,
            played_at,
            state.prior_mean,
            state.prior_variance,
            HAZARD,
            arrived,
        )
        learned = x & arrived[..., None]
        return state._replace(
            in_flight=np.asarray(kernels.end_pulls(state.in_flight, x, fade, age, arrived)),
            longest_delay=np.where(arrived, np.maximum(RECENT * state.longest_delay, age), state.longest_delay),
            seen=np.where(learned, np.maximum(state.seen, played_at[..., None]), state.seen),
            pulls=state.pulls + learned,
        )

    def around_first(self, state: PayoffState, payoff: Array, arrived: BoolArray) -> PayoffState:
        """Expect the baseline around the first payoff: adding a constant to all payoffs then changes nothing else."""
        n, k = state.in_flight.shape[-1], state.context.shape[-1]
        baseline = n * (1 + k)
        first = arrived & (state.latest[..., 0] == 0) & (state.prior_variance[..., baseline] > 0.0)
        if not np.any(first):
            return state
        prior_mean, mean = state.prior_mean.copy(), state.mean.copy()
        prior_mean[..., baseline] = np.where(first, payoff, prior_mean[..., baseline])
        mean[..., baseline] = np.where(first[..., None], payoff[..., None], mean[..., baseline])
        return state._replace(prior_mean=prior_mean, mean=mean)

    def signals(self, state: PayoffState) -> dict[str, Any]:
        return {"latest": state.seen, "changes_seen": state.detected[..., 0]}

    def explain(self, state: PayoffState, rng: Rng) -> Explanation:
        effect, deviation, index = self.effects(state)
        seen, n = state.seen > 0, effect.shape[-1]
        usual = self.effects(state._replace(context=np.zeros_like(state.context)))[0]
        return Explanation(
            mean=np.where(seen, effect, np.nan),
            count=np.array(state.pulls),
            clock=np.asarray(state.rounds, float),
            index=index,
            adjacency=np.full((*effect.shape, n), np.nan),
            gain=np.ones_like(effect),
            weights=np.ones_like(effect),
            score=index,
            pending=np.array(state.in_flight),
            context_effect=effect - usual if state.context.shape[-1] else None,
            total_interval=around(effect, deviation**2),
        )


def design(x: BoolArray, dose: Any, context: Any, like: Array) -> Array:
    """The regressors: the amounts of the chosen arms, the same times each context column, 1 and the context."""
    amount = x.astype(float) if dose is None else np.where(x, dose, 0.0)
    given: Array = np.zeros(like.shape) if context is None else np.broadcast_to(np.asarray(context, float), like.shape)
    moved = [amount * given[..., k : k + 1] for k in range(given.shape[-1])]
    return np.concatenate([amount, *moved, np.ones((*given.shape[:-1], 1)), given], axis=-1)

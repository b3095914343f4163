"""FTRL: follow the regularised leader on sets of s arms, with the hybrid regulariser of Zimmert, Luo and Wei (2019)."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import ROUND, CompiledRounds, methods_of, unchanged
from spillover.policies.compiled_rounds import course_for_kernels, played_by
from spillover.policies.explanations import graph_free_explanation
from spillover.policies.scale import (
    Scale,
    ScaledPolicy,
    amounts_above_low,
    initial_scale,
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
    Finite,
    IntArray,
    Problem,
    Rounds,
    Stretch,
)


class FTRLState(NamedTuple):
    """What FTRL has learned."""

    rounds: Rounds  # (*batch,): rounds played
    losses: Finite  # (*batch, n): L, the estimated losses sum 2 (1 - r) / p, on the current scale
    inverse: Amount  # (*batch, n): sum 2 / p: the losses if every reward were 0
    scale: Scale
    share: Constant[Array]  # (*batch, n): weight of an arm relative to the largest one
    mixture: Constant[Array]  # (*batch,): weight of the regulariser's entropy
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


@dataclass(frozen=True, kw_only=True)
class FTRL(ScaledPolicy):
    """A benchmark that is nearly optimal for both stochastic and adversarial rewards.

    The probabilities of the arms minimise <p, L> + sqrt(t) sum(-sqrt(p) + g (1 - p) log(1 - p)) over sum(p) = s, where
    L are the importance-weighted losses so far; a set of exactly s arms is then drawn with these marginals. g is 1 for
    s <= n / 2 and min(1, 1 / sqrt(log(n / (n - s)))) above. There is nothing to tune.

    It ignores delays: t is the round to be decided (as in the authors' code), and feedback counts when it arrives,
    divided by the probability with which the arm was drawn (`Choice.probability`). The state is a sum over feedback, so
    the order of arrival does not matter. A decision made by someone else is treated as a draw with the probabilities of
    that round, which biases what FTRL learns from it.

    It learns from the overall rewards y of the arms it plays, on one scale for all: r = (y - low) / (high - low),
    clipped to [0, 1], with the problem's overall_range. Without one the scale goes from 0 to the largest y of a played
    arm so far, and earlier losses are rescaled.

    knows_graph: learn from w_i z_i / max(w) instead, with z on the scale of the problem's reward_range and w the
        problem's weights, the true total effects.

    >>> import spillover as sp
    >>> policy = FTRL()
    >>> state = policy.init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> choice = policy.select(state, sp.Rng(0))
    >>> int(choice.x.sum()), choice.probability.round(6)
    (2, array([0.4, 0.4, 0.4, 0.4, 0.4]))
    """

    quantity = "probability of being drawn"
    scores_have_units = False
    randomised = True

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> FTRLState:
        validate.problem(problem)
        n, line = problem.n_arms, (*batch, problem.n_arms)
        weights = ranking_weights(problem, batch, self.knows_graph)
        return FTRLState(
            rounds=np.zeros(batch, np.int64),
            losses=np.zeros(line),
            inverse=np.zeros(line),
            scale=initial_scale(problem, batch, self.knows_graph),
            share=shares(weights),
            mixture=np.full(batch, entropy_weight(n, problem.budget)),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def marginals(self, state: FTRLState) -> Array:
        """The probability of each arm in the next round, (*batch, n)."""
        rate = 1.0 / np.sqrt(state.rounds + 1.0)
        return np.asarray(kernels.hybrid_marginals(state.losses, rate, state.budget, state.mixture)[0])

    def select(self, state: FTRLState, rng: Rng) -> Choice:
        p = self.marginals(state)
        return Choice(np.asarray(kernels.systematic_sample(p, state.budget, *rng.address())), probability=p)

    def played(self, state: FTRLState, x: BoolArray) -> FTRLState:
        validate.decision("x", x, state.losses.shape)
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: FTRLState, feedback: Feedback, rng: Rng) -> FTRLState:
        feedback = validate.feedback(
            feedback, state.losses.shape, state.reward_range, state.rounds, rewards=self.needs_rewards
        )
        seen = feedback.x & feedback.arrived[..., None]
        weight = np.where(seen, 2.0 / probabilities(feedback.probability, seen), 0.0)
        scale, amount = amounts_above_low(state.scale, feedback, self.knows_graph)
        unit = unit_or_one(scale)
        reward = np.where(seen, amount / unit[..., None], 0.0)
        if self.knows_graph:
            # w z / max(w) on one scale for all arms, from its lowest to its highest possible value
            low, floor = scale.low[..., None], np.minimum(scale.low, 0.0)[..., None]
            reward = (state.share * (low + amount) - floor) / (low + unit[..., None] - floor)
        reward = np.where(seen, np.clip(reward, 0.0, 1.0), 0.0)
        # sum 2 (1 - y / c) / p for the new unit c, without a difference of large sums
        kept = np.where(scale.unit > 0, state.scale.unit / unit, 1.0)[..., None]
        losses = kept * state.losses + (1.0 - kept) * state.inverse + weight * (1.0 - reward)
        return state._replace(losses=losses, inverse=state.inverse + weight, scale=scale)

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        return CompiledRounds(self.play_stretch, memos=1, draws_rewards=True) if unchanged(self, AS_COMPILED) else None

    def play_stretch(self, state: FTRLState, stretch: Stretch, rng: Rng) -> FTRLState | None:
        played = played_by(
            kernels.play_ftrl,
            *(state.losses, state.inverse, state.mixture, stretch.flight.memo),
            *scale_for_kernels(state, state.share, self.knows_graph, rng),
            *course_for_kernels(stretch),
        )
        if played is None:
            return None
        rounds = state.rounds + len(stretch.recorded)
        return state._replace(rounds=rounds, scale=state.scale._replace(unit=played[0]))

    def explain(self, state: FTRLState, rng: Rng) -> Explanation:
        """Index and score are the probabilities of being drawn.

        The mean is the same probability without the regulariser: 1 for the s arms with the least estimated loss. The
        difference is due to the regulariser. The count is the importance-weighted number of observations, sum 1 / p.
        """
        p, seen = self.marginals(state), state.inverse > 0
        return graph_free_explanation(
            mean=np.where(seen, leaders(state.losses, state.budget), np.nan),
            count=state.inverse / 2.0,
            clock=state.rounds,
            index=p,
        )


AS_COMPILED = methods_of(FTRL, (*ROUND, "marginals"))


def entropy_weight(n: int, budget: int) -> float:
    """g, the weight of the entropy: smaller if few arms are left out."""
    if 2 * budget <= n or budget == n:
        return 1.0
    return min(1.0, 1.0 / math.sqrt(math.log(n / (n - budget))))


def leaders(losses: Array, budget: IntArray) -> Array:
    """1 for the `budget` arms with the least loss, 0 for the others; arms that tie for the last places share them."""
    last = np.take_along_axis(np.sort(losses, axis=-1), (budget - 1)[..., None], axis=-1)
    ahead, level = losses < last, losses == last
    places = (budget - ahead.sum(axis=-1))[..., None]
    return np.where(ahead, 1.0, np.where(level, places / level.sum(axis=-1, keepdims=True), 0.0))


def shares(weights: Array) -> Array:
    """w / max(w)."""
    largest = weights.max(axis=-1, keepdims=True)
    validate.require(bool((largest > 0).all()), "weights", weights, "above 0 for at least one arm")
    return np.asarray(weights / largest)


def probabilities(given: Any, seen: BoolArray) -> Array:
    """The probabilities of the arms that were played, from the choice of that round; 1 for the others."""
    if given is None and not seen.any():
        return np.ones(seen.shape)
    accepted = "the probabilities that select() returned, above 0 and at most 1 for every arm that was played"
    validate.require(np.shape(given) == seen.shape, "probability", given, f"{accepted}, of shape {seen.shape}")
    p = np.where(seen, given, 1.0)
    validate.require(bool(((p > 0) & (p <= 1)).all()), "probability", given, accepted)
    return np.maximum(p, kernels.LEAST_PROBABILITY)

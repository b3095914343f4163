"""Policies without a graph that draw at random: CTS (Hüyük and Tekin 2019) and FTRL (Zimmert, Luo and Wei 2019)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import Lesson, Turn, inner, uniform
from spillover.core.policy import first_fields
from spillover.kernels.averages import amounts_above_low, unit_or_one
from spillover.kernels.decorators import EIGHT
from spillover.kernels.drawing import take_sample
from spillover.kernels.ftrl import ROWS, blocks, marginals_into
from spillover.kernels.laws import fill_betas
from spillover.policies.scale import (
    Scale,
    ScaledCorePolicy,
    graph_free_explanation,
    initial_scale,
    ranking_weights,
    scaled_explanation,
)
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    Constant,
    Explanation,
    Finite,
    IntArray,
    Problem,
    Rounds,
    Within,
)


class CTSState(NamedTuple):
    """Beta posteriors of the arms."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    successes: Annotated[Array, Within(1)]  # (*batch, n): 1 + draws that came out as 1
    failures: Annotated[Array, Within(1)]  # (*batch, n): 1 + draws that came out as 0
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


@dataclass(frozen=True, kw_only=True)
class CTS(ScaledCorePolicy):
    """Thompson sampling with Beta(1, 1) priors; a reward in [0, 1] becomes a Bernoulli draw when it arrives.

    It needs a declared range (`Problem.overall_range`), because past draws cannot be rescaled. It ignores delays: an
    outcome counts when it arrives. The Bernoulli draw depends on the round of play, so the order of arrival does not
    matter.

    knows_graph: see `spillover.policies.scale`.

    >>> import spillover as sp
    >>> CTS().init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    Traceback (most recent call last):
    ValueError: overall_range = None in the problem: must be (low, high) for CTS, as past draws cannot be rescaled
    """

    compiled = "without arrays"
    draws_index = True

    @property
    def traits(self) -> Traits:
        return super().traits._replace(needs_overall_range=not self.knows_graph)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CTSState:
        first = first_fields(self, problem, batch)
        if problem.overall_range is None and self.traits.needs_overall_range:
            raise ValueError(
                "overall_range = None in the problem: must be (low, high) for CTS, as past draws cannot be rescaled"
            )
        line = (*batch, problem.n_arms)
        return CTSState(
            **first,
            successes=np.ones(line),
            failures=np.ones(line),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        fill_betas(s.successes, s.failures, turn.key, turn.call, turn.round, turn.purpose, found)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        rewards, observed = turn.lines[0], lesson.z if self.knows_graph else lesson.y
        scale = s.scale
        scale.unit = amounts_above_low(observed, lesson.x, scale.low, scale.unit, scale.declared, rewards)
        for i in range(lesson.x.shape[0]):
            if lesson.x[i]:
                success = uniform(turn, i) < rewards[i] / unit_or_one(scale.unit)
                s.successes[i] += success
                s.failures[i] += not success

    def explain(self, state: CTSState, rng: Rng) -> Explanation:
        """The index is the draw."""
        count = state.successes + state.failures - 2.0
        return scaled_explanation(
            state.scale,
            state.weights,
            self.knows_graph,
            mean=np.where(count > 0, state.successes / (state.successes + state.failures), np.nan),
            count=count,
            clock=state.rounds,
            index=self.indices(state, rng),
        )


LEAST_PROBABILITY = 1e-100  # sums of inverses must stay finite, even for decisions made by someone else


class FTRLState(NamedTuple):
    """What FTRL has learned."""

    rounds: Rounds  # (*batch,): rounds played
    n_arms: Constant[IntArray]  # (*batch,)
    losses: Finite  # (*batch, n): L, the estimated losses sum 2 (1 - r) / p, on the current scale
    inverse: Amount  # (*batch, n): sum 2 / p: the losses if every reward were 0
    scale: Scale
    share: Constant[Array]  # (*batch, n): weight of an arm relative to the largest one
    mixture: Constant[Array]  # (*batch,): weight of the regulariser's entropy
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


@dataclass(frozen=True, kw_only=True)
class FTRL(ScaledCorePolicy):
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

    compiled = "without arrays"
    memos = 1  # the probabilities of the arms

    @property
    def traits(self) -> Traits:
        return super().traits._replace(quantity="probability of being drawn", scores_have_units=False, randomised=True)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> FTRLState:
        first = first_fields(self, problem, batch)
        n, line = problem.n_arms, (*batch, problem.n_arms)
        weights = ranking_weights(problem, batch, self.knows_graph)
        return FTRLState(
            **first,
            losses=np.zeros(line),
            inverse=np.zeros(line),
            scale=initial_scale(problem, batch, self.knows_graph),
            share=shares(weights),
            mixture=np.full(batch, entropy_weight(n, problem.budget)),
        )

    def prepare(self, s: Any) -> Any:
        return np.empty((blocks(s.n_arms), ROWS, EIGHT)), np.empty(s.n_arms, np.int64)

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        fill_marginals(s, turn, found)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        fill_marginals(s, turn, turn.lines[0])
        take_sample(turn.lines[0], s.budget, turn.key, turn.call, turn.round, turn.purpose, turn.room[1], x)

    def remember(self, s: Any, turn: Turn, memo: Any) -> None:
        for i in range(memo.shape[1]):
            memo[0, i] = turn.lines[0, i]

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        amounts, scale, before = turn.lines[0], s.scale, s.scale.unit
        observed = lesson.z if self.knows_graph else lesson.y
        scale.unit = amounts_above_low(observed, lesson.x, scale.low, scale.unit, scale.declared, amounts)
        unit = unit_or_one(scale.unit)
        kept = before / unit if scale.unit > 0.0 else 1.0
        if kept != 1.0:  # sum 2 (1 - y / c) / p for the new unit c, without a difference of large sums
            for i in range(lesson.x.shape[0]):
                s.losses[i] = kept * s.losses[i] + (1.0 - kept) * s.inverse[i]
        for i in range(lesson.x.shape[0]):
            if lesson.x[i]:
                weight = 2.0 / max(lesson.memo[0, i], LEAST_PROBABILITY)
                reward = share_of_scale(amounts[i], s.share[i], scale.low, unit, self.knows_graph)
                s.losses[i] += weight * (1.0 - reward)
                s.inverse[i] += weight

    def explain(self, state: FTRLState, rng: Rng) -> Explanation:
        """Index and score are the probabilities of being drawn.

        The mean is the same probability without the regulariser: 1 for the s arms with the least estimated loss. The
        difference is due to the regulariser. The count is the importance-weighted number of observations, sum 1 / p.
        """
        p, seen = self.indices(state, rng), state.inverse > 0
        return graph_free_explanation(
            mean=np.where(seen, leaders(state.losses, state.budget), np.nan),
            count=state.inverse / 2.0,
            clock=state.rounds,
            index=p,
        )


@inner
def fill_marginals(s: Any, turn: Turn, found: Any) -> None:
    """The probability of each arm in the next round."""
    marginals_into(s.losses, 1.0 / math.sqrt(s.rounds + 1.0), s.budget, s.mixture, found, turn.room[0])


@inner
def share_of_scale(amount: Any, share: Any, low: Any, unit: Any, knows_graph: Any) -> Any:
    """The reward in [0, 1]; with a known graph that of w z / max(w), from its lowest to its highest possible value."""
    reward = amount / unit
    if knows_graph:
        floor = min(low, 0.0)
        reward = (share * (low + amount) - floor) / (low + unit - floor)
    return min(max(reward, 0.0), 1.0)


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

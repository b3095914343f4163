"""CTS, combinatorial Thompson sampling (Hüyük and Tekin 2019)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spillover import validate
from spillover.oracle import top_arms
from spillover.policies.plain import ranked_by, scaled_explanation
from spillover.policies.scale import Scale, amounts, divisor, open_scale, ranking, ranking_weights
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem


class CTSState(NamedTuple):
    """Beta posteriors of the arms."""

    rounds: IntArray  # (*batch,)
    successes: Array  # (*batch, n): 1 + draws that came out as 1
    failures: Array  # (*batch, n): 1 + draws that came out as 0
    scale: Scale
    weights: Array  # (*batch, n): ones, or the true ones
    budget: IntArray  # (*batch,)
    limits: Array  # (*batch, 2): range of z


@dataclass(frozen=True, kw_only=True)
class CTS:
    """Beta(1, 1) priors, one draw an arm, the best s; an outcome in [0, 1] becomes a Bernoulli draw on arrival.

    It needs a declared range (`Problem.overall_range`): past draws cannot be rescaled. Delay-agnostic. The draw of an
    outcome belongs to its round of play, so the order of arrival does not matter. told_graph: see
    `spillover.policies.scale`.

    >>> import spillover as sp
    >>> CTS().init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    Traceback (most recent call last):
    ValueError: overall_range = None in the problem: must be (low, high) for CTS, as past draws cannot be rescaled
    """

    told_graph: bool = False

    order_free = True
    learns_graph = False

    @property
    def quantity(self) -> str:
        """What its scores are, in words."""
        return ranked_by(self.told_graph)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CTSState:
        validate.problem(problem)
        if problem.overall_range is None and not self.told_graph:
            raise ValueError(
                "overall_range = None in the problem: must be (low, high) for CTS, as past draws cannot be rescaled"
            )
        line = (*batch, problem.n_arms)
        return CTSState(
            rounds=np.zeros(batch, np.int64),
            successes=np.ones(line),
            failures=np.ones(line),
            scale=open_scale(problem, batch, self.told_graph),
            weights=ranking_weights(problem, batch, self.told_graph),
            budget=np.full(batch, problem.budget, np.int64),
            limits=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def select(self, state: CTSState, rng: Rng) -> Choice:
        draws = rng.beta(state.successes, state.failures)
        return Choice(top_arms(ranking(state.weights, state.scale, draws, self.told_graph), state.budget, rng))

    def played(self, state: CTSState, x: BoolArray) -> CTSState:
        validate.decision("x", x, state.weights.shape)
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: CTSState, feedback: Feedback, rng: Rng) -> CTSState:
        feedback = validate.feedback(feedback, state.weights.shape, state.limits, state.rounds)
        scale, amount = amounts(state.scale, feedback, self.told_graph)
        reward = amount / divisor(scale)[..., None]
        seen = feedback.x & feedback.arrived[..., None]
        success = seen & (rng.uniform(reward.shape[-1]) < reward)
        return state._replace(
            successes=state.successes + success, failures=state.failures + (seen & ~success), scale=scale
        )

    def explain(self, state: CTSState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round: posterior means, and the draws that `rng` gives."""
        streams = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        draws = streams.beta(state.successes, state.failures)
        scores = ranking(state.weights, state.scale, draws, self.told_graph)
        count = state.successes + state.failures - 2.0
        return scaled_explanation(
            state.scale,
            state.weights,
            self.told_graph,
            mean=np.where(count > 0, state.successes / (state.successes + state.failures), np.nan),
            count=count,
            clock=state.rounds,
            index=draws,
            chosen=top_arms(scores, state.budget, streams),
        )

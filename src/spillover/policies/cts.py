"""CTS, combinatorial Thompson sampling (Hüyük and Tekin 2019)."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.constraints.search import top_arms
from spillover.contracts import ROUND, CompiledRounds, methods_of, unchanged
from spillover.policies.compiled_rounds import course_for_kernels, played_by
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
    Within,
)


class CTSState(NamedTuple):
    """Beta posteriors of the arms."""

    rounds: Rounds  # (*batch,)
    successes: Annotated[Array, Within(1)]  # (*batch, n): 1 + draws that came out as 1
    failures: Annotated[Array, Within(1)]  # (*batch, n): 1 + draws that came out as 0
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


@dataclass(frozen=True, kw_only=True)
class CTS(ScaledPolicy):
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

    @property
    def needs_overall_range(self) -> bool:
        return not self.knows_graph

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CTSState:
        validate.problem(problem)
        if problem.overall_range is None and self.needs_overall_range:
            raise ValueError(
                "overall_range = None in the problem: must be (low, high) for CTS, as past draws cannot be rescaled"
            )
        line = (*batch, problem.n_arms)
        return CTSState(
            rounds=np.zeros(batch, np.int64),
            successes=np.ones(line),
            failures=np.ones(line),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def select(self, state: CTSState, rng: Rng) -> Choice:
        draws = rng.beta(state.successes, state.failures)
        return Choice(top_arms(ranking(state.weights, state.scale, draws, self.knows_graph), state.budget, rng))

    def played(self, state: CTSState, x: BoolArray) -> CTSState:
        validate.decision("x", x, state.weights.shape)
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: CTSState, feedback: Feedback, rng: Rng) -> CTSState:
        feedback = validate.feedback(
            feedback, state.weights.shape, state.reward_range, state.rounds, rewards=self.needs_rewards
        )
        scale, amount = amounts_above_low(state.scale, feedback, self.knows_graph)
        reward = amount / unit_or_one(scale)[..., None]
        seen = feedback.x & feedback.arrived[..., None]
        success = seen & (rng.uniform(reward.shape[-1]) < reward)
        return state._replace(
            successes=state.successes + success, failures=state.failures + (seen & ~success), scale=scale
        )

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        return CompiledRounds(self.play_stretch, draws_rewards=True) if unchanged(self, AS_COMPILED) else None

    def play_stretch(self, state: CTSState, stretch: Stretch, rng: Rng) -> CTSState | None:
        scale = scale_for_kernels(state, state.weights, self.knows_graph, rng)
        counts = state.successes, state.failures
        played = played_by(kernels.play_cts, *counts, *scale, *course_for_kernels(stretch))
        if played is None:
            return None
        rounds = state.rounds + len(stretch.recorded)
        return state._replace(rounds=rounds, scale=state.scale._replace(unit=played[0]))

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
            index=rng.beta(state.successes, state.failures),
        )


AS_COMPILED = methods_of(CTS, ROUND)

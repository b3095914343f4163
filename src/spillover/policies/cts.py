"""CTS, combinatorial Thompson sampling (Hüyük and Tekin 2019)."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import Lesson, Turn, uniform
from spillover.kernels.averages import amounts_above_low, unit_or_one
from spillover.kernels.laws import fill_betas
from spillover.policies.explanations import scaled_explanation
from spillover.policies.scale import Scale, ScaledCorePolicy, initial_scale, ranking_weights
from spillover.rng import Rng
from spillover.types import (
    Array,
    Batch,
    Constant,
    Explanation,
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
        validate.problem(problem)
        if problem.overall_range is None and self.traits.needs_overall_range:
            raise ValueError(
                "overall_range = None in the problem: must be (low, high) for CTS, as past draws cannot be rescaled"
            )
        line = (*batch, problem.n_arms)
        return CTSState(
            rounds=np.zeros(batch, np.int64),
            n_arms=np.full(batch, problem.n_arms, np.int64),
            successes=np.ones(line),
            failures=np.ones(line),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
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

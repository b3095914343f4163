"""ExamplePolicy, a policy to start from: the mean reward of each arm plus an exploration bonus."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Policy
from spillover.rng import Rng
from spillover.set_search import top_arms
from spillover.types import Array, Batch, BoolArray, Choice, Feedback, IntArray, Problem


class ExamplePolicyState(NamedTuple):
    """All that is learned: arrays whose first axes are those of the batch."""

    rounds: IntArray  # (*batch,): rounds played
    sums: Array  # (*batch, n): sum of the rewards of each arm
    counts: Array  # (*batch, n): number of observations of each arm
    budget: IntArray  # (*batch,): how many arms may be chosen
    reward_range: Array  # (*batch, 2): range of the rewards z


@dataclass(frozen=True, kw_only=True)
class ExamplePolicy(Policy):
    """Plays the arms with the highest mean plus sqrt(exploration * log(t) / count), ties at random.

    exploration: size of the exploration bonus, >= 0; an array makes a grid.

    >>> import spillover as sp
    >>> state = ExamplePolicy().init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> int(ExamplePolicy().select(state, sp.Rng(0)).x.sum())
    2
    """

    exploration: Any = 0.5

    grids = ("exploration",)  # hyperparameters that may be arrays, which broadcast over the batch

    def __post_init__(self) -> None:
        validate.number("exploration", self.exploration, "a finite number >= 0", low=0, high=np.inf)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> ExamplePolicyState:
        validate.problem(problem)
        return ExamplePolicyState(
            rounds=np.zeros(batch, np.int64),
            sums=np.zeros((*batch, problem.n_arms)),
            counts=np.zeros((*batch, problem.n_arms)),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def select(self, state: ExamplePolicyState, rng: Rng) -> Choice:
        """What it would play next; changes nothing."""
        count = np.maximum(state.counts, 1.0)
        width = np.asarray(self.exploration)[..., None] * np.log(state.rounds + 1.0)[..., None]
        index = np.where(state.counts > 0, state.sums / count + np.sqrt(width / count), np.inf)
        return Choice(top_arms(index, state.budget, rng))

    def played(self, state: ExamplePolicyState, x: BoolArray) -> ExamplePolicyState:
        """Record what was played, which may differ from what was selected."""
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: ExamplePolicyState, feedback: Feedback, rng: Rng) -> ExamplePolicyState:
        """Learn the outcome of a round played `feedback.age` rounds ago, in the replications where it has arrived."""
        feedback = validate.feedback(feedback, state.sums.shape, state.reward_range, state.rounds)
        observed = feedback.x & feedback.arrived[..., None]
        return state._replace(
            sums=state.sums + np.where(observed, feedback.z, 0.0),
            counts=state.counts + observed,
        )

"""ExamplePolicy, a policy to start from: epsilon-greedy on a learned graph."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spillover import validate
from spillover.policies import MeansOnGraph, MeansState
from spillover.policies.averages import means
from spillover.rng import Rng
from spillover.types import Array, BoolArray, Choice, Explanation

AT_RANDOM = "a random set is tried now and then, so that no arm is forgotten"


@dataclass(frozen=True, kw_only=True)
class ExamplePolicy(MeansOnGraph):
    """Plays the arms with the highest weight times mean reward, and now and then a random set.

    epsilon: probability of a random set, from 0 to 1; an array makes a grid.
    graph: how the graph is learned, as in `NDCSEM`.

    >>> import spillover as sp
    >>> run = sp.simulate(ExamplePolicy(), sp.SyntheticSEM(horizon=300, changes=()), 10, replications=2)
    >>> bool((run.final_regret < sp.simulate(sp.Uniform(), run.environment, 10, replications=2).final_regret).all())
    True
    """

    epsilon: Any = 0.05

    own_grids = ("epsilon",)  # hyperparameters that may be arrays, over the batch

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.number("epsilon", self.epsilon, "a probability, from 0 to 1", low=0, high=1)

    def index(self, state: MeansState) -> Array:
        """The mean reward of each arm; an arm without any outcome comes first."""
        found = means(state.averages)
        return np.where(np.isnan(found), np.inf, found)

    def explores(self, state: MeansState, rng: Rng) -> BoolArray:
        """Whether a random set is played; first of all draws, so that `select` and `explain` agree."""
        started = state.rounds >= state.plan.shape[-1]
        return np.asarray(started & (rng.uniform(1)[..., 0] < self.epsilon))

    def select(self, state: MeansState, rng: Rng) -> Choice:
        explores = self.explores(state, rng)
        at_random = rng.permutation(state.plan.shape[-1]) < state.budget[..., None]
        greedy = super().select(state, rng)
        return greedy._replace(x=np.where(explores[..., None], at_random, greedy.x))

    def explain(self, state: MeansState, rng: Rng) -> Explanation:
        found = super().explain(state, rng)
        return replace(found, plan=np.where(self.explores(state, rng), AT_RANDOM, found.plan))

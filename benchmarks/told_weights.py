"""SwitchingSEM that is told the weights of the arms, and learns their means as always."""

from copy import copy

import numpy as np

import spillover as sp
from spillover.contracts import ScoredWorld
from spillover.policies.switching_state import SwitchingState
from spillover.rng import Rng
from spillover.types import Array, Batch, Problem


class ToldWeights(sp.SwitchingSEM):
    """Told before the first round, so nothing is lost to weights that are not known yet."""

    told: Array

    def __init__(self) -> None:
        super().__init__(graph="none")

    def for_problem(self, problem: Problem, world: ScoredWorld | None = None) -> "ToldWeights":
        if world is None:
            return self
        own = copy(self)
        own.__dict__["told"] = np.array(world.weights(1))  # it is frozen
        return own

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SwitchingState:
        state = super().init(problem, rng, batch)
        weights = np.broadcast_to(self.told, state.prior.shape).copy()
        return state._replace(prior=weights, graph=state.graph._replace(weights=weights))

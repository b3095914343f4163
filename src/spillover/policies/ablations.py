"""NDC-SEM with parts taken out, to see what each of them brings."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spillover import validate
from spillover.graph import GraphLearner, NoGraph, graph_learner
from spillover.policies.ndcsem import NDCSEM
from spillover.policies.sem import SEMState, take_in
from spillover.rng import Rng
from spillover.types import Batch, Feedback, Problem


@dataclass(frozen=True, kw_only=True)
class AblatedNDCSEM(NDCSEM):
    """NDC-SEM without what is switched off; with everything on it is NDC-SEM itself.

    graph: learn the graph; else every weight is 1.
    discount: gamma in (0, 1], 1 for no discount.
    delay_aware: weight feedback by the time of its action; else by its arrival, as if it were new.
    designed_start: begin with the initialisation matrix H; else with random sets.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=200, changes=())
    >>> whole = sp.simulate(AblatedNDCSEM(), world, 20, replications=2)
    >>> bool((whole.regret == sp.simulate(sp.NDCSEM(), world, 20, replications=2).regret).all())
    True
    """

    graph: bool = True
    delay_aware: bool = True
    designed_start: bool = True

    def __post_init__(self) -> None:
        number = "a number above 0, at most 1"
        validate.number("discount", self.discount, number, low=np.finfo(float).tiny, high=1)
        self.check_exploration_and_graph()
        by_action = "False where feedback is weighted by its arrival: what is in flight is known by the time of action"
        validate.require(self.delay_aware or not self.pending, "pending", self.pending, by_action)

    @property
    def order_free(self) -> bool:
        return self.delay_aware

    @cached_property
    def learner(self) -> GraphLearner:
        if not self.graph:
            return NoGraph()
        return graph_learner(self.sparsity, self.row_bound, self.required, self.forbidden, signed=self.signed)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SEMState:
        state = super().init(problem, rng, batch)
        if self.designed_start:
            return state
        n = problem.n_arms
        draws = np.stack([np.broadcast_to(rng.permutation(n), (*batch, n)) for _ in range(n)], axis=-2)
        return state._replace(plan=draws < problem.budget)

    def update(self, state: SEMState, feedback: Feedback, rng: Rng) -> SEMState:
        return take_in(state, feedback, self.learner, self.discount, by_arrival=not self.delay_aware)

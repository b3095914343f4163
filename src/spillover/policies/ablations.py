"""NDC-SEM with parts removed, to measure what each of them contributes."""

from dataclasses import dataclass

import numpy as np

from spillover import validate
from spillover.policies.graph_policy import MeansState
from spillover.policies.ndcsem import NDCSEM
from spillover.rng import Rng
from spillover.types import Batch, Problem


@dataclass(frozen=True, kw_only=True)
class AblatedNDCSEM(NDCSEM):
    """NDC-SEM with some parts switched off; the defaults are NDC-SEM itself. `graph="none"` removes the graph.

    discount: gamma in (0, 1], 1 for no discount.
    delay_aware: discount feedback from the round of its action; otherwise from its arrival, as if it were new.
    designed_start: begin with the initialisation matrix H; otherwise with random sets.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=200, changes=())
    >>> whole = sp.simulate(AblatedNDCSEM(), world, 20, replications=2)
    >>> bool((whole.regret == sp.simulate(sp.NDCSEM(), world, 20, replications=2).regret).all())
    True
    """

    delay_aware: bool = True
    designed_start: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("delay_aware", self.delay_aware), ("designed_start", self.designed_start)):
            validate.require(isinstance(value, bool | np.bool_), name, value, "True or False")
        by_action = "False if delay_aware=False: pulls in flight are discounted from the round of their action"
        validate.require(self.delay_aware or not self.pending, "pending", self.pending, by_action)

    def check_discount(self) -> None:
        number = "a number above 0, at most 1"
        validate.number("discount", self.discount, number, low=np.finfo(float).tiny, high=1)

    @property
    def assumed_delay(self) -> int | None:
        return None if self.delay_aware else 0

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> MeansState:
        state = super().init(problem, rng, batch)
        if self.designed_start:
            return state
        n = problem.n_arms
        draws = np.stack([np.broadcast_to(rng.permutation(n), (*batch, n)) for _ in range(n)], axis=-2)
        return state._replace(plan=draws < problem.budget)

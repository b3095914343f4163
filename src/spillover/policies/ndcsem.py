"""NDC-SEM (Algorithm 1): discounted upper confidence bounds on a causal graph learned from delayed feedback."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from spillover import validate
from spillover.policies.averages import upper_index
from spillover.policies.graph_policy import MeansOnGraph, MeansState, advance_round
from spillover.policies.pending import count_pulls, empty_pulls, in_flight, pending_index
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Explanation, Feedback, Problem


@dataclass(frozen=True, kw_only=True)
class NDCSEM(MeansOnGraph):
    """The policy of the paper. Feedback is discounted from the round of its action, not from its arrival.

    discount: gamma, in (0, 1): how fast the past fades. The bonus of an arm not played for k rounds grows as
        gamma^(-k/2), so discount and exploration together set how often idle arms are tried again.
    exploration: xi >= 0: size of the exploration bonus 2 sqrt(xi (s+1) log(m) / M), in units of `unit`.
    pending: count pulls in flight too: M becomes the discounted number of all pulls, arrived or in flight, so that an
        arm is not tried over and over until its first outcome arrives. The mean of an arm in flight that was never
        observed is the top of the reward range. Pulls whose feedback never arrives fade like all others, so they hold
        an arm back only for a while.
    unit: the reward that counts as 1, see `MeansOnGraph`: by default the width of the problem's reward_range.
    graph: how the graph is learned: a name ("sparse", "self-tuned", "payoff", "instrument", "adaptive", "none") or a
        graph learner with its parameters, such as SparseGraph(sparsity=0.01, signed=True); see docs/graph.md.

    discount, exploration and the graph's sparsity may be arrays that broadcast over the batch: a grid in one run.

    >>> import spillover as sp
    >>> policy = NDCSEM(discount=0.985, exploration=1e-10)
    >>> state = policy.init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> policy.select(state, sp.Rng(0)).x.astype(int)  # the first column of the initialisation matrix
    array([1, 0, 0, 0, 0])
    """

    discount: Any = 0.985
    exploration: Any = 1e-10
    pending: bool = False

    own_grids: ClassVar[tuple[str, ...]] = ("discount", "exploration")

    def __post_init__(self) -> None:
        self.check_discount()
        validate.require(isinstance(self.pending, bool), "pending", self.pending, "True or False")
        validate.number("exploration", self.exploration, "a finite number >= 0", low=0, high=np.inf)
        super().__post_init__()

    def check_discount(self) -> None:
        between = "a number strictly between 0 and 1"
        validate.number("discount", self.discount, between, low=0, high=1, open_ends=True)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> MeansState:
        state = super().init(problem, rng, batch)
        return state._replace(pulls=empty_pulls(problem.n_arms, batch)) if self.pending else state

    def index(self, state: MeansState) -> Array:
        """E (eq. UCB): the discounted mean plus the bonus; +inf for arms never observed (`pending`: played)."""
        known, unit = state.averages, self.reward_unit(state)
        width = 4.0 * self.exploration * (state.budget + 1)
        shared: dict[str, Any] = {"width": width, "discount": self.discount, "unit": unit}
        if self.pending:
            shared["reward_range"] = state.reward_range
            return pending_index(known, state.pulls, state.rounds, state.clock, **shared)
        shared["reward_range"] = state.reward_range / unit[..., None]
        return upper_index(known, state.rounds, state.clock, **shared) * unit[..., None]

    def played(self, state: MeansState, x: BoolArray) -> MeansState:
        state = advance_round(state, x, self.discount)
        if not self.pending:
            return state
        pulls = count_pulls(state.pulls, np.asarray(x, np.bool_), state.rounds, self.discount)
        return state._replace(pulls=pulls)

    def catch_up(self, state: MeansState, rounds: Feedback, first: int, rng: Rng) -> MeansState:
        if not self.pending or len(rounds.x) == 1:
            return super().catch_up(state, rounds, first, rng)
        pulls = state.pulls
        for played_at, x in enumerate(rounds.x, int(state.rounds) + 1):
            pulls = count_pulls(pulls, x, np.array(played_at), self.discount)
        return super().catch_up(state, rounds, first, rng)._replace(pulls=pulls)

    def explain(self, state: MeansState, rng: Rng) -> Explanation:
        found = super().explain(state, rng)
        if not self.pending:
            return found
        return replace(found, pending=in_flight(state.averages, state.pulls, state.rounds, self.discount))

"""NDC-SEM (Algorithm 1): discounted upper confidence bounds on a causal graph learned from delayed feedback."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover import validate
from spillover.graph import ROW_BOUND
from spillover.policies.averages import upper_index
from spillover.policies.pending import Pulls, count_pulls, no_pulls, pending_index
from spillover.policies.sem import (
    LearnsGraph,
    SEMState,
    catch_up,
    choose,
    decide,
    explanation,
    learns_in_any_order,
    pass_round,
    start,
    take_in,
)
from spillover.policies.signals import sem_signals
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, Problem


@dataclass(frozen=True, kw_only=True)
class NDCSEM(LearnsGraph):
    """The policy of the paper. Feedback weighs by the time of its action, in whatever order it arrives.

    discount: gamma, in (0, 1): how fast the past fades. An arm not played for k rounds has its bonus grow as
        gamma^(-k/2), so discount and exploration together set how often idle arms are tried again.
    exploration: xi >= 0: size of the bonus 2 sqrt(xi (s+1) log(m) / M).
    sparsity: lambda >= 0 of the graph problem, or "auto" (chosen online by held-out prediction error).
    pending: count pulls in flight too: M becomes the discounted number of all pulls, not only of those heard of, so
        that an arm tried again is not repeated blindly until its first outcome comes. An arm in flight that was never
        heard of stands at the top of the reward range plus its bonus. Feedback that never comes fades with all the
        rest, so it holds an arm back for a while and never for good.
    row_bound: for graphs without a known order: most that a row of the adjacency may sum to.
    required, forbidden: (n, n) masks of edges known to exist and known to be impossible.
    graph: how the graph is learned: "sparse" (the paper's way), "payoff", "instrument", "adaptive" (whichever foretells
        the payoff best, with a watch for changes), "none", or a learner itself; see docs/graph.md.
    signed: spill-over may hurt.

    discount, exploration and sparsity may be arrays that broadcast over the batch: a grid in one run.

    >>> import spillover as sp
    >>> policy = NDCSEM(discount=0.985, exploration=1e-10)
    >>> state = policy.init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> policy.select(state, sp.Rng(0)).x.astype(int)  # the first column of the initialisation matrix
    array([1, 0, 0, 0, 0])
    """

    discount: Any = 0.985
    exploration: Any = 1e-10
    sparsity: Any = 1e-3
    pending: bool = False
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    graph: Any = "sparse"
    signed: Any = False

    grids = ("discount", "exploration", "sparsity")

    def __post_init__(self) -> None:
        between = "a number strictly between 0 and 1"
        validate.number("discount", self.discount, between, low=0, high=1, open_ends=True)
        self.check_exploration_and_graph()

    def check_exploration_and_graph(self) -> None:
        validate.require(isinstance(self.pending, bool), "pending", self.pending, "True or False")
        validate.number("exploration", self.exploration, "a finite number >= 0", low=0, high=np.inf)
        _ = self.learner  # refuses what it cannot take

    @property
    def order_free(self) -> bool:
        return learns_in_any_order(self.learner)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SEMState:
        validate.grid(self, batch)
        state = start(self.learner, problem, rng, batch)
        return state._replace(pulls=no_pulls(problem.n_arms, batch)) if self.pending else state

    def index(self, state: SEMState) -> Array:
        """E (eq. UCB): the discounted mean plus the bonus; +inf for arms never observed (with `pending`: played)."""
        known = state.averages
        shared = {"width": 4.0 * self.exploration * (state.budget + 1), "discount": self.discount}
        if isinstance(state.pulls, Pulls):
            top = state.limits[..., 1]
            return pending_index(known, state.pulls, state.rounds, state.clock, top=top, **shared)
        return upper_index(known, state.rounds, state.clock, **shared)

    def select(self, state: SEMState, rng: Rng) -> Choice:
        return decide(state, self.index(state), self.learner, rng)

    def played(self, state: SEMState, x: BoolArray) -> SEMState:
        state = pass_round(state, x, self.discount)
        if not isinstance(state.pulls, Pulls):
            return state
        pulls = count_pulls(state.pulls, np.asarray(x, np.bool_), state.rounds, self.discount)
        return state._replace(pulls=pulls)

    def update(self, state: SEMState, feedback: Feedback, rng: Rng) -> SEMState:
        return take_in(state, feedback, self.learner, self.discount)

    def catch_up(self, state: SEMState, rounds: Feedback) -> SEMState:
        """Many rounds at once; see `spillover.policies.sem.catch_up`."""
        pulls = state.pulls
        if isinstance(pulls, Pulls):
            for moment, x in enumerate(rounds.x, int(state.rounds) + 1):
                pulls = count_pulls(pulls, x, np.array(moment), self.discount)
        return catch_up(state, rounds, self.learner, self.discount)._replace(pulls=pulls)

    def explain(self, state: SEMState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties."""
        index = self.index(state)
        ties = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        return explanation(state, index, self.discount, choose(state, index, ties))

    def signals(self, state: SEMState) -> dict[str, Any]:
        """How far it remembers, and what the graph was learned from; see `spillover.policies.signals`."""
        return sem_signals(state, self.discount)

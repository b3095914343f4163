"""NDC-SEM (Algorithm 1): discounted upper confidence bounds on a causal graph learned from delayed feedback."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.graph import ROW_BOUND, GraphLearner, graph_learner
from spillover.oracle import top_arms
from spillover.policies.initialisation import initialisation
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem


class NDCSEMState(NamedTuple):
    """What NDC-SEM has learned."""

    rounds: IntArray  # (*batch,): t, rounds played
    clock: Array  # (*batch,): m_t, their discounted number
    sums: Array  # (*batch, n): discounted rewards of each arm, as of its stamp
    counts: Array  # (*batch, n): discounted observations, as of its stamp; 0 only for an arm never observed
    stamps: IntArray  # (*batch, n): the latest round of each arm that has arrived
    plan: BoolArray  # (*batch, n, n): H; plan[t] is the decision of round t + 1
    budget: IntArray  # (*batch,)
    limits: Array  # (*batch, 2): range of z
    graph: Any


@dataclass(frozen=True, kw_only=True)
class NDCSEM:
    """The policy of the paper. Feedback weighs by the time of its action, in whatever order it arrives.

    discount: gamma, in (0, 1): how fast the past fades. An arm not played for k rounds has its bonus grow as
        gamma^(-k/2), so discount and exploration together set how often idle arms are tried again.
    exploration: xi >= 0: size of the bonus 2 sqrt(xi (s+1) log(m) / M).
    sparsity: lambda >= 0 of the graph problem, or "auto" (chosen online by held-out prediction error).
    row_bound: for graphs without a known order: most that a row of the adjacency may sum to.
    required, forbidden: (n, n) masks of edges known to exist and known to be impossible.

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
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None

    order_free = True
    grids = ("discount", "exploration", "sparsity")

    def __post_init__(self) -> None:
        between = "a number strictly between 0 and 1"
        validate.number("discount", self.discount, between, low=0, high=1, open_ends=True)
        validate.number("exploration", self.exploration, "a finite number >= 0", low=0, high=np.inf)
        _ = self.learner  # refuses what it cannot take

    @cached_property
    def learner(self) -> GraphLearner:
        return graph_learner(self.sparsity, self.row_bound, self.required, self.forbidden)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> NDCSEMState:
        validate.problem(problem)
        line = (*batch, problem.n_arms)
        return NDCSEMState(
            rounds=np.zeros(batch, np.int64),
            clock=np.zeros(batch),
            sums=np.zeros(line),
            counts=np.zeros(line),
            stamps=np.zeros(line, np.int64),
            plan=initialisation(problem.n_arms, problem.budget, rng, batch),
            budget=np.full(batch, problem.budget, np.int64),
            limits=np.broadcast_to(np.asarray(problem.reward_range, float), (*batch, 2)).copy(),
            graph=self.learner.init(problem, batch),
        )

    def index(self, state: NDCSEMState) -> Array:
        """E (eq. UCB): the discounted mean plus the bonus; +inf for arms never observed."""
        learned = state.sums, state.counts, state.stamps, state.rounds, state.clock
        return np.asarray(kernels.upper_index(*learned, self.discount, self.exploration, state.budget))

    def select(self, state: NDCSEMState, rng: Rng) -> Choice:
        x = top_arms(state.graph.weights * self.index(state), state.budget, rng)
        return Choice(follow_plan(state.plan, state.rounds, x))

    def played(self, state: NDCSEMState, x: BoolArray) -> NDCSEMState:
        return state._replace(rounds=state.rounds + 1, clock=self.discount * state.clock + 1.0)

    def update(self, state: NDCSEMState, feedback: Feedback, rng: Rng) -> NDCSEMState:
        x, z, y, age, arrived, _ = feedback
        validate.feedback(x, z, y, state.limits, arrived)
        moment = state.rounds - age
        kernels.discounted_arrival(state.sums, state.counts, state.stamps, x, z, moment, self.discount, arrived)
        graph = self.learner.absorb(state.graph, z, y, arrived, moment)
        return state._replace(graph=self.learner.solve(graph))

    def explain(self, state: NDCSEMState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` settles ties."""
        index = self.index(state)
        seen = state.counts > 0
        decay = np.asarray(self.discount)[..., None] ** (state.rounds[..., None] - state.stamps)
        source = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        return Explanation(
            mean=np.divide(state.sums, state.counts, out=np.full_like(state.sums, np.nan), where=seen),
            count=state.counts * decay,
            clock=np.array(state.clock),
            index=index,
            adjacency=np.array(state.graph.adjacency),
            weights=np.array(state.graph.weights),
            score=state.graph.weights * index,
            chosen=self.select(state, source).x,
        )


def follow_plan(plan: BoolArray, rounds: IntArray, x: BoolArray) -> BoolArray:
    """The decision of the initialisation matrix for learners still in their first n rounds, x for the others."""
    n = x.shape[-1]
    starting = rounds < n
    if not starting.any():
        return x
    row = np.minimum(rounds, n - 1)[..., None, None]
    planned = np.take_along_axis(plan, row, axis=-2)[..., 0, :]
    return np.where(starting[..., None], planned, x)

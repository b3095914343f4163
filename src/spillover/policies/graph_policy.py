"""The base of the policies that learn a graph.

`GraphPolicy` composes a policy with a graph learner. `MeansOnGraph` has everything that NDC-SEM and SEM-UCB share:
discounted averages of z, the initialisation, the choice by weights times index. A subclass defines the `index`.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Policy, ScoredWorld, Traits
from spillover.core import CorePolicy, Lesson, Turn, choose_top
from spillover.core.batches import Batches
from spillover.core.policy import first_fields
from spillover.graph import GraphLearner, as_graph_learner
from spillover.graph.core import is_core
from spillover.graph.edges import refuse_infinite_weights
from spillover.graph.learner import explained
from spillover.graph.outside import Outside, outside
from spillover.kernels.averages import add_rewards, date_of, weigh
from spillover.policies.averages import (
    START,
    STARTS,
    Averages,
    Discounted,
    NoPulls,
    counts_now,
    empty_averages,
    follows_plan,
    means,
    start_plan,
    starting,
)
from spillover.policies.averages import for_kernels as delay_for_kernels
from spillover.rng import Rng
from spillover.types import (
    Amount,
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
    State,
)


@dataclass(frozen=True, kw_only=True)
class GraphPolicy(Policy):
    """A policy that learns the graph, by a graph learner.

    graph: how the graph is learned: a name ("sparse", "self-tuned", "payoff", "instrument", "adaptive", "none") or a
        graph learner with its parameters, such as SparseGraph(sparsity=0.01, signed=True); see docs/graph.md.

    >>> import spillover as sp
    >>> sp.NDCSEM(graph="payoff").graph  # NDC-SEM is one of them
    PayoffWeights(signed=False, unit_gain=False)
    """

    graph: Any = "sparse"  # a GraphLearner, once the policy is made

    own_grids: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", as_graph_learner(self.graph))

    @property
    def traits(self) -> Traits:
        return Traits(order_free=bool(self.graph.traits.order_free), learns_graph=True, explains=True)

    @property
    def grids(self) -> tuple[str, ...]:
        return (*self.own_grids, *(f"graph.{name}" for name in self.graph.grids))

    def for_problem(self, problem: Problem, world: ScoredWorld | None = None) -> Policy:
        learner = self.graph.for_problem(problem)
        return self if learner is self.graph else replace(self, graph=learner)

    def adjacency(self, state: State) -> Array:
        return np.array(state.graph.adjacency)


@dataclass(frozen=True, kw_only=True)
class OnGraph(GraphPolicy, CorePolicy):
    """A policy written for one learner that takes the functions of its graph learner: `self.graph` and `s.graph`.

    A graph learner without such functions keeps its graph outside of what the compiled functions know, which see the
    weights alone, and learns in Python what they hand on (`graph.outside`).
    """

    compiled = "without arrays"

    @property
    def memos(self) -> int:
        return self.graph.memos if is_core(self.graph) else 0

    @property
    def batches(self) -> Batches:
        return GraphBatches(self) if self.compiled and is_core(self.graph) else OutsideBatches(self)

    @cached_property
    def beside(self) -> Any:
        """The same policy on a graph that is kept outside."""
        return replace(self, graph=Outside())

    def remember(self, s: Any, turn: Turn, memo: Any) -> None:
        self.graph.note(s.graph, memo)

    def derive(self, s: Any, turn: Turn) -> None:
        self.graph.derive(s.graph, turn.room.graph)

    def show(self, s: Any, adjacency: Any) -> None:
        """Fill in the estimated graph, (n, n)."""
        self.graph.show(s.graph, adjacency)


class GraphBatches(Batches):
    """A policy on a graph learner whose functions are compiled together with its own."""

    @property
    def graph(self) -> Any:
        """The graph learner."""
        return self.policy.graph  # type: ignore[attr-defined]

    @property
    def deferrable(self) -> bool:
        return bool(self.graph.traits.deferrable)

    @property
    def reuses_memo(self) -> bool:
        return bool(self.graph.traits.judges)

    @property
    def runs_alone(self) -> bool:
        # compiled functions do not look whether weights exist
        return super().runs_alone and self.graph.traits.bounded

    @property
    def plays_stretches(self) -> bool:
        return self.runs_alone and self.graph.show is not None

    def select(self, state: Any, rng: Rng) -> Choice:
        check_weights(state, self.graph)
        return super().select(state, rng)


class OutsideBatches(GraphBatches):
    """A policy on a graph learner that is written for batches."""

    runs_alone = False
    plays_stretches = False

    @property
    def inside(self) -> Batches:
        """The policy that sees the weights alone."""
        return Batches(self.policy.beside)  # type: ignore[attr-defined]

    def shell(self, state: Any) -> Any:
        """Its state."""
        return state._replace(graph=outside(state.graph.weights))

    def select(self, state: Any, rng: Rng) -> Choice:
        check_weights(state, self.graph)
        return self.inside.select(self.shell(state), rng)._replace(memo=self.graph.remember(state.graph))

    def played(self, state: Any, x: BoolArray) -> Any:
        return self.inside.played(self.shell(state), x)._replace(graph=state.graph)

    def learn(self, state: Any, feedback: Feedback, rng: Rng, *, deriving: bool = False) -> Any:
        learned = self.inside.learn(self.shell(state), feedback._replace(memo=None), rng)
        told, own = learned.graph, self.graph
        graph = own.absorb(state.graph, told.z, told.y, told.weight, told.round, told.expected, feedback.memo)
        return learned._replace(graph=own.solve(graph) if deriving else graph)

    def solve(self, state: Any) -> Any:
        return state._replace(graph=self.graph.solve(state.graph))

    def indices(self, state: Any, rng: Rng, shape: tuple[int, ...] | None = None) -> Array:
        return self.inside.indices(self.shell(state), rng, shape)

    def takes_history(self, state: Any, rounds: Feedback) -> bool:
        return False


class MeansState(NamedTuple):
    """What has been learned about the arms and the graph.

    >>> import spillover as sp
    >>> sp.NDCSEM().init(sp.Problem(n_arms=3, budget=2), sp.Rng(0)).rounds.item()
    0
    """

    rounds: Rounds  # (*batch,): t, rounds played
    n_arms: Constant[IntArray]  # (*batch,)
    clock: Amount  # (*batch,): m_t, their discounted number
    averages: Averages  # of z
    plan: Constant[Any]  # (*batch, n, n): H; plan[t] is the decision of round t + 1. A sweep: (*batch, n)
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z
    graph: Any
    pulls: Any = NoPulls()  # of all rounds played, if the policy counts pulls in flight


@dataclass(frozen=True, kw_only=True)
class MeansOnGraph(Discounted, OnGraph):
    """Ranks arms by the weights of a learned graph times an index of discounted means; a subclass defines `index`.

    The first rounds follow a plan (`initialisation`). Feedback is weighted by the time of its action.

    unit: the reward that counts as 1 in the exploration bonus and in the graph's sparsity. By default it is the width
        of the problem's reward_range, so that decisions do not depend on the units of the rewards. The paper has 1.
    initialisation: "paper": the first n rounds follow the initialisation matrix H of the paper. "sweep": each arm is
        played once, in ceil(n / s) rounds. "auto": the paper's, unless there are more than 500 arms.

    >>> import spillover as sp
    >>> class Greedy(MeansOnGraph):  # the mean alone, without a bonus; arms without data first
    ...     def index(self, s, turn, found):
    ...         for i in range(found.shape[0]):
    ...             found[i] = s.averages.sums[i] / s.averages.counts[i] if s.averages.counts[i] > 0 else np.inf
    >>> sp.Learner(Greedy(), sp.Problem(n_arms=3, budget=2), seed=0).choose()
    array([ True, False, False])
    """

    unit: float | None = None
    initialisation: str = "auto"

    discount = 1.0  # gamma; policies with a discount make it a field

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit is not None:
            validate.require(np.ndim(self.unit) == 0, "unit", self.unit, "a single number, or None")
            least, most = 1 / validate.LARGEST, validate.LARGEST
            accepted = f"a finite number > 0, from {least:g} to {most:g}, or None"
            validate.number("unit", self.unit, accepted, low=least, high=most)
        validate.require(
            self.initialisation in STARTS, "initialisation", self.initialisation, f"one of {', '.join(STARTS)}"
        )

    @abstractmethod
    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """Fill in the mean of each arm's own reward plus an exploration bonus, (n,)."""

    def prepare(self, s: Any) -> Any:
        return MeansRoom(self.graph.prepare(s.graph))

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        if follows_plan(s.plan, s.rounds, s.budget, x):
            return
        scores = turn.lines[0]
        self.index(s, turn, scores)
        weigh(s.graph.weights, scores)
        choose_top(scores, s.budget, turn, x)

    def note_play(self, s: Any, x: Any) -> None:
        s.clock = self.discount * s.clock + 1.0

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        known, dated = s.averages, date_of(lesson.round, s.rounds, self.dating)
        add_rewards(known.sums, known.counts, known.stamps, lesson.x, lesson.z, dated, self.log_discount, self.powers)
        self.graph.absorb_outcome(s.graph, lesson, lesson.z, 1.0, turn.room.graph)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> MeansState:
        first, n = first_fields(self, problem, batch), problem.n_arms
        own = problem if self.unit is None else problem._replace(reward_range=(0.0, self.unit))
        return MeansState(
            **first,
            clock=np.zeros(batch),
            averages=empty_averages(n, batch),
            plan=start_plan(self.initialisation, n, problem.budget, rng, batch),
            graph=self.graph.init(own, batch),
        )

    @property
    def assumed_delay(self) -> int | None:
        """The delay that all outcomes are taken to have; None: each counts from its own round."""
        return None

    @property
    def dating(self) -> int:
        return delay_for_kernels(self.assumed_delay)

    @property
    def traits(self) -> Traits:
        return super().traits._replace(order_free=self.assumed_delay is None and bool(self.graph.traits.order_free))

    def explain(self, state: MeansState, rng: Rng) -> Explanation:
        return explanation(state, self.indices(state, rng), self.graph, self.discount)

    def signals(self, state: MeansState) -> dict[str, Any]:
        return graph_signals(self.graph, state.graph, state.averages.stamps, self.discount)


class MeansRoom(NamedTuple):
    """Room to work in."""

    graph: Any


def scores(weights: Array, index: Array) -> Array:
    """Weights times index, which arms are ranked by; an arm of weight 0 scores 0 even if its index is infinite."""
    if weights.all():
        return weights * index
    return np.multiply(weights, index, out=np.zeros_like(weights), where=weights != 0.0)


def check_weights(state: Any, learner: GraphLearner) -> None:
    """Raise a ValueError if the next decision depends on weights that do not exist; that of the plan does not."""
    if not learner.traits.bounded:
        needed = ~starting(state.plan, state.rounds) if hasattr(state, "plan") else True
        refuse_infinite_weights(state.graph, needed)


def explanation(
    state: MeansState, index: Array, learner: GraphLearner, discount: Any, *, plan: Any = "", pending: Any = None
) -> Explanation:
    """The estimates behind the next decision; `plan`: the reason if a plan other than the initialisation decides."""
    weights = np.array(state.graph.weights)
    return Explanation(
        mean=means(state.averages),
        count=counts_now(state.averages, state.rounds, discount),
        clock=np.array(state.clock),
        index=index,
        adjacency=explained(state.graph),
        gain=np.array(learner.gain(state.graph)),
        weights=weights,
        score=scores(weights, index),
        plan=np.where(starting(state.plan, state.rounds), START, plan),
        pending=pending,
    )


def graph_signals(learner: GraphLearner, graph: Any, latest: IntArray, discount: Any = 1.0) -> dict[str, Any]:
    """The signals of a policy that learns a graph."""
    rate = 1.0 - np.asarray(discount, float)
    memory = np.divide(1.0, rate, out=np.full(rate.shape, np.inf), where=rate > 0)
    return {"latest": latest, "memory": memory} | learner.signals(graph)

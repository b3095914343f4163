"""The base of the policies that learn a graph.

`GraphPolicy` composes a policy with a graph learner. `MeansOnGraph` has everything that NDC-SEM and SEM-UCB share:
discounted averages of z, the initialisation, the choice by weights times index. A subclass defines the `index`.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from spillover import kernels, validate
from spillover.constraints.search import top_arms
from spillover.contracts import HISTORY, Policy, methods_of, unchanged
from spillover.contracts.hyperparameters import check_grid
from spillover.graph import GraphLearner, as_graph_learner
from spillover.graph.edges import refuse_infinite_weights
from spillover.policies.averages import Averages, counts_now, empty_averages, learn, means
from spillover.policies.initialisation import START, STARTS, follow_plan, start_plan, starting
from spillover.policies.pending import NoPulls
from spillover.policies.signals import graph_signals
from spillover.rng import Rng
from spillover.state import repeat_in_place
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
    """A policy that learns the graph; subclasses implement `learn`, and `update` follows from it.

    graph: how the graph is learned: a name ("sparse", "self-tuned", "payoff", "instrument", "adaptive", "none") or a
        graph learner with its parameters, such as SparseGraph(sparsity=0.01, signed=True); see docs/graph.md.

    >>> import spillover as sp
    >>> sp.NDCSEM(graph="payoff").graph  # NDC-SEM is one of them
    PayoffWeights(signed=False, unit_gain=False)
    """

    graph: Any = "sparse"  # a GraphLearner, once the policy is made

    explains = True
    learns_graph = True
    own_grids: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.update is not GraphPolicy.update:
            raise TypeError(f"{cls.__name__}.update: must not be overridden, as a history calls `learn`: override that")

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", as_graph_learner(self.graph))

    @property
    def order_free(self) -> bool:
        return bool(self.graph.order_free)

    @property
    def grids(self) -> tuple[str, ...]:
        return (*self.own_grids, *(f"graph.{name}" for name in self.graph.grids))

    @property
    def deferrable(self) -> bool:
        return bool(self.graph.deferrable)

    @property
    def reuses_memo(self) -> bool:
        return bool(self.graph.judges)

    def for_problem(self, problem: Problem) -> Policy:
        learner = self.graph.for_problem(problem)
        return self if learner is self.graph else replace(self, graph=learner)

    def solve(self, state: State) -> State:
        return state._replace(graph=self.graph.solve(state.graph))

    def solve_briefly(self, state: State) -> State:
        if not unchanged(self, SOLVING):
            return super().solve_briefly(state)
        return state._replace(graph=self.graph.solve_briefly(state.graph))

    def adjacency(self, state: State) -> Array:
        return np.array(state.graph.adjacency)

    def edges(self, state: State) -> Any:
        return self.graph.edges(state.graph)

    @abstractmethod
    def learn(self, state: State, feedback: Feedback, rng: Rng) -> State:
        """Learn an outcome, without solving for the graph; see `absorb`."""

    @final
    def update(self, state: State, feedback: Feedback, rng: Rng) -> State:
        return self.solve(self.learn(state, feedback, rng))

    def absorb(self, graph: Any, feedback: Feedback, played_at: IntArray, expected: Array | None = None) -> Any:
        """Add an outcome to the statistics of the graph, without solving for it yet.

        expected: what the policy expected of z, if it knows; see `GraphLearner.absorb_expected`.
        """
        z, y, arrived = feedback.z, feedback.y, feedback.arrived
        if feedback.memo is not None:
            graph = self.graph.judge(graph, z, y, arrived, feedback.memo)
        if expected is None:
            return self.graph.absorb(graph, z, y, arrived, played_at)
        return self.graph.absorb_expected(graph, z, y, arrived, played_at, expected)

    def absorb_rounds(self, graph: Any, rounds: Feedback, played_at: IntArray, expected: Array | None = None) -> Any:
        """`absorb` for many rounds of one history, along the first axis."""
        z, y, arrived = rounds.z, rounds.y, rounds.arrived
        graph = self.graph.judge_rounds(graph, z, y, arrived, rounds.memo)
        if expected is None:
            return self.graph.absorb_rounds(graph, z, y, arrived, played_at)
        return self.graph.absorb_expected_rounds(graph, z, y, arrived, played_at, expected)


SOLVING = methods_of(GraphPolicy, ("solve",))


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
class MeansOnGraph(GraphPolicy):
    """Ranks arms by the weights of a learned graph times an index of discounted means; a subclass defines `index`.

    The first rounds follow a plan (`start`). Feedback is weighted by the time of its action.

    unit: the reward that counts as 1 in the exploration bonus and in the graph's sparsity. By default it is the width
        of the problem's reward_range, so that decisions do not depend on the units of the rewards. The paper has 1.
    start: "paper": the first n rounds follow the initialisation matrix H of the paper. "sweep": each arm is played
        once, in ceil(n / s) rounds. "auto": the paper's, unless there are more than 500 arms.

    >>> import spillover as sp
    >>> class Greedy(MeansOnGraph):  # the mean alone, without a bonus; arms without data first
    ...     def index(self, state):
    ...         sums, counts, _ = state.averages
    ...         return np.where(counts > 0, sums / np.maximum(counts, 1e-9), np.inf)
    >>> sp.Learner(Greedy(), sp.Problem(n_arms=3, budget=2), seed=0).choose()
    array([ True, False, False])
    """

    unit: float | None = None
    start: str = "auto"

    discount = 1.0  # gamma; policies with a discount make it a field

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit is not None:
            validate.require(np.ndim(self.unit) == 0, "unit", self.unit, "a single number, or None")
            least, most = 1 / validate.LARGEST, validate.LARGEST
            accepted = f"a finite number > 0, from {least:g} to {most:g}, or None"
            validate.number("unit", self.unit, accepted, low=least, high=most)
        validate.require(self.start in STARTS, "start", self.start, f"one of {', '.join(STARTS)}")

    @abstractmethod
    def index(self, state: MeansState) -> Array:
        """The mean of each arm's own reward plus an exploration bonus, (*batch, n)."""

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> MeansState:
        check_grid(self, batch)
        state = initial_state(self.graph, problem, rng, batch, self.start)
        if self.unit is None:
            return state
        return state._replace(graph=self.graph.init(problem._replace(reward_range=(0.0, self.unit)), batch))

    def reward_unit(self, state: MeansState) -> Array:
        """What counts as a reward of 1, (*batch,)."""
        return range_width(state.reward_range) if self.unit is None else np.full(state.rounds.shape, float(self.unit))

    def select(self, state: MeansState, rng: Rng) -> Choice:
        return choose_by_scores(state, self.index(state), self.graph, rng)

    def played(self, state: MeansState, x: BoolArray) -> MeansState:
        return advance_round(state, x, self.discount)

    def learn(self, state: MeansState, feedback: Feedback, rng: Rng) -> MeansState:
        feedback = validate.feedback(feedback, state.averages.sums.shape, state.reward_range, state.rounds)
        played_at = state.rounds - feedback.age
        learn(state.averages, feedback.x, feedback.z, played_at, self.discount, feedback.arrived)
        return state._replace(graph=self.absorb(state.graph, feedback, played_at))

    def catch_up(self, state: MeansState, rounds: Feedback, first: int, rng: Rng) -> MeansState:
        if len(rounds.x) > 1 and unchanged(self, LEARNING):
            return self.learn_rounds(state, rounds)
        one_by_one: MeansState = Policy.catch_up(self, state, rounds, first, rng)
        return one_by_one

    @final
    def learn_rounds(self, state: MeansState, rounds: Feedback) -> MeansState:
        """`played` and `learn` of this class for many rounds at once."""
        count = len(rounds.x)
        played_at = state.rounds + np.arange(1, count + 1)
        rounds = validate.feedback(rounds, rounds.x.shape, state.reward_range, played_at)
        averages = (repeat_in_place(leaf, count) for leaf in state.averages)
        kernels.discounted_arrival(*averages, rounds.x, rounds.z, played_at, self.discount, rounds.arrived)
        past = self.discount ** np.arange(count)
        return state._replace(
            rounds=np.asarray(state.rounds + count),
            clock=np.asarray(self.discount**count * state.clock + past.sum()),
            graph=self.absorb_rounds(state.graph, rounds, played_at),
        )

    def explain(self, state: MeansState, rng: Rng) -> Explanation:
        return explanation(state, self.index(state), self.graph, self.discount)

    def signals(self, state: MeansState) -> dict[str, Any]:
        return graph_signals(self.graph, state.graph, state.averages.stamps, self.discount)


LEARNING = methods_of(MeansOnGraph, (*HISTORY, "absorb"))


def initial_state(learner: GraphLearner, problem: Problem, rng: Rng, batch: Batch, start: str = "auto") -> MeansState:
    """The state before the first round, with the plan of the first decisions."""
    validate.problem(problem)
    return MeansState(
        rounds=np.zeros(batch, np.int64),
        n_arms=np.full(batch, problem.n_arms, np.int64),
        clock=np.zeros(batch),
        averages=empty_averages(problem.n_arms, batch),
        plan=start_plan(start, problem.n_arms, problem.budget, rng, batch),
        budget=np.full(batch, problem.budget, np.int64),
        reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        graph=learner.init(problem, batch),
    )


def range_width(reward_range: Array) -> Array:
    """(*batch,)"""
    return np.asarray(reward_range[..., 1] - reward_range[..., 0])


def scores(weights: Array, index: Array) -> Array:
    """Weights times index, which arms are ranked by; an arm of weight 0 scores 0 even if its index is infinite."""
    if weights.all():
        return weights * index
    return np.multiply(weights, index, out=np.zeros_like(weights), where=weights != 0.0)


def check_weights(state: MeansState, learner: GraphLearner) -> None:
    """Raise a ValueError if the next decision depends on weights that do not exist; that of the plan does not."""
    if not learner.bounded:
        refuse_infinite_weights(state.graph, ~starting(state.plan, state.rounds))


def choose_by_scores(state: MeansState, index: Array, learner: GraphLearner, rng: Rng) -> Choice:
    """The arms with the highest weights times index (Eq. 12), after the initialisation."""
    check_weights(state, learner)
    best = top_arms(scores(state.graph.weights, index), state.budget, rng)
    return Choice(follow_plan(state.plan, state.rounds, best), memo=learner.remember(state.graph))


def advance_round(state: MeansState, x: BoolArray, discount: Any) -> MeansState:
    validate.decision("x", x, state.averages.sums.shape)
    return state._replace(rounds=state.rounds + 1, clock=discount * state.clock + 1.0)


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
        adjacency=learner.explained(state.graph),
        gain=np.array(learner.gain(state.graph)),
        weights=weights,
        score=scores(weights, index),
        plan=np.where(starting(state.plan, state.rounds), START, plan),
        pending=pending,
    )

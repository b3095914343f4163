"""What the policies that learn a graph share: averages of z, the graph, the initialisation, the choice."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.graph import GraphLearner, absorb_rounds, graph_learner
from spillover.oracle import top_arms
from spillover.policies.averages import Averages, counts_now, learn, means, no_averages
from spillover.policies.initialisation import follow_plan, initialisation
from spillover.policies.pending import NoPulls, Pulls, in_flight
from spillover.rng import Rng
from spillover.state import in_turn
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem


class LearnsGraph:
    """The learner that a policy's parameters of the graph ask for; refused at once if it cannot take them."""

    sparsity: Any
    row_bound: float
    required: Any
    forbidden: Any
    graph: Any
    signed: Any

    def __post_init__(self) -> None:
        _ = self.learner

    @cached_property
    def learner(self) -> GraphLearner:
        shared = {"graph": self.graph, "signed": self.signed}
        return graph_learner(self.sparsity, self.row_bound, self.required, self.forbidden, **shared)


class SEMState(NamedTuple):
    """What has been learned of arms and graph."""

    rounds: IntArray  # (*batch,): t, rounds played
    clock: Array  # (*batch,): m_t, their discounted number
    averages: Averages  # of z
    plan: BoolArray  # (*batch, n, n): H; plan[t] is the decision of round t + 1
    budget: IntArray  # (*batch,)
    limits: Array  # (*batch, 2): range of z
    graph: Any
    pulls: Pulls | NoPulls = NoPulls()  # all that were played, where the policy looks at those in flight


def start(learner: GraphLearner, problem: Problem, rng: Rng, batch: Batch) -> SEMState:
    """Nothing known yet; the first n decisions are drawn."""
    validate.problem(problem)
    return SEMState(
        rounds=np.zeros(batch, np.int64),
        clock=np.zeros(batch),
        averages=no_averages(problem.n_arms, batch),
        plan=initialisation(problem.n_arms, problem.budget, rng, batch),
        budget=np.full(batch, problem.budget, np.int64),
        limits=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        graph=learner.init(problem, batch),
    )


def scores(weights: Array, index: Array) -> Array:
    """What arms are ranked by; an arm of weight 0 is worth nothing however little is known of it."""
    if weights.all():
        return weights * index
    return np.multiply(weights, index, out=np.zeros_like(weights), where=weights != 0.0)


def choose(state: SEMState, index: Array, rng: Rng) -> BoolArray:
    """The arms with the highest weights times index (eq. Optimization-x), once the initialisation is over."""
    best = top_arms(scores(state.graph.weights, index), state.budget, rng)
    return follow_plan(state.plan, state.rounds, best)


def decide(state: SEMState, index: Array, learner: GraphLearner, rng: Rng) -> Choice:
    """The choice, with what the learner of the graph wants to be reminded of."""
    remember = getattr(learner, "remember", None)
    return Choice(choose(state, index, rng), None if remember is None else remember(state.graph))


def learns_in_any_order(learner: GraphLearner) -> bool:
    return bool(getattr(learner, "order_free", True))


def pass_round(state: SEMState, x: BoolArray, discount: Any) -> SEMState:
    validate.decision("x", x, state.averages.sums.shape)
    return state._replace(rounds=state.rounds + 1, clock=discount * state.clock + 1.0)


def take_in(
    state: SEMState, feedback: Feedback, learner: GraphLearner, discount: Any, *, by_arrival: bool = False
) -> SEMState:
    """Learn from an outcome, weighted by the time of its action; rewrites the arrays of the state.

    by_arrival: weight the means by the time of arrival instead, as if the outcome were new.
    """
    shape = state.averages.sums.shape
    x, z, y, age, arrived, memo = validate.feedback(feedback, shape, state.limits, state.rounds)
    moment = state.rounds - age
    averages = learn(state.averages, x, z, state.rounds if by_arrival else moment, discount, arrived)
    judge = getattr(learner, "judge", None)
    graph = state.graph if judge is None else judge(state.graph, z, y, arrived, memo)
    graph = learner.solve(learner.absorb(graph, z, y, arrived, moment))
    return state._replace(averages=averages, graph=graph)


def catch_up(state: SEMState, rounds: Feedback, learner: GraphLearner, discount: Any) -> SEMState:
    """Many rounds of one learner at once, the first axis, in their order; outcomes came at the end of each.

    As `pass_round` and `take_in` for each of them, but that no graph is solved for.
    """
    count, shape = len(rounds.x), rounds.x.shape
    moment = state.rounds + np.arange(1, count + 1)
    x, z, y, _, arrived, memo = validate.feedback(rounds, shape, state.limits, moment)
    kernels.discounted_arrival(*(in_turn(leaf, count) for leaf in state.averages), x, z, moment, discount, arrived)
    graph = judge_rounds(learner, state.graph, z, y, arrived, memo)
    return state._replace(
        rounds=state.rounds + count,
        clock=np.asarray(discount**count * state.clock + (discount ** np.arange(count)).sum()),
        graph=absorb_rounds(learner, graph, z, y, arrived, moment),
    )


def judge_rounds(learner: Any, graph: Any, z: Array, y: Array, arrived: BoolArray, memo: Any) -> Any:
    """Let a learner of the graph judge what it foretold of many rounds, all by the same memo."""
    judge = getattr(learner, "judge", None)
    if judge is not None and memo is not None:
        for row in np.flatnonzero(arrived):
            graph = judge(graph, z[row], y[row], arrived[row], memo)
    return graph


def explanation(
    state: SEMState, index: Array, discount: Any, chosen: BoolArray, *, planned: Any = False
) -> Explanation:
    """What is held as the next round is decided; `planned` where something else than the initialisation set it."""
    starting = state.rounds < state.averages.sums.shape[-1]
    weights, pulls = np.array(state.graph.weights), state.pulls
    return Explanation(
        mean=means(state.averages),
        count=counts_now(state.averages, state.rounds, discount),
        clock=np.array(state.clock),
        index=index,
        adjacency=np.array(state.graph.adjacency),
        gain=np.array(getattr(state.graph, "gain", np.ones_like(weights))),
        weights=weights,
        score=scores(weights, index),
        chosen=chosen,
        planned=starting | np.asarray(planned),
        pending=in_flight(state.averages, pulls, state.rounds, discount) if isinstance(pulls, Pulls) else None,
    )

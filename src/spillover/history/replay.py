"""Tell a policy a whole history: what was played, and what came of it where that is known."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from spillover.graph import GraphLearner, NoGraph, SelfTunedGraph, SparseGraph
from spillover.history.record import History
from spillover.live import Learner
from spillover.rng import Purpose
from spillover.types import Choice, Feedback, Policy, Problem

SOLVED_FROM_SUMS = (SparseGraph, SelfTunedGraph, NoGraph)
# What candidates for the graph foretold is forgotten at 1% a round: before the last 1,000 it weighs less than 1e-4.
JUDGED = 1_000
PACE = 10  # rounds between two solutions in them, so that candidates are judged by what they knew that long ago at most
EVERY = 1_000  # rounds between two words on progress


def tell(
    policy: Policy,
    history: History,
    *,
    budget: int,
    reward_range: tuple[float, float] = (0.0, 1.0),
    overall_range: tuple[float, float] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda rounds: None,
    **given: Any,
) -> Learner:
    """A learner that has lived through the history; rounds without outcomes are pending.

    Every outcome is told at the end of its own round, whenever it was written down: a file in which late outcomes were
    filled in is the same as one that had them from the start. The order of the arms' graph is not known.
    """
    problem = Problem(
        n_arms=len(history.arms),
        budget=budget,
        acyclic=False,
        reward_range=reward_range,
        overall_range=overall_range,
    )
    learner = Learner(policy, problem, seed=seed, **given)
    rng, state, quick = learner.rng, learner.state, deferred(policy)
    judged, pace = solutions(policy, len(history.rounds))
    remembers = policy.select(state, rng.at(Purpose.CHOICE, 1)).memo is not None
    now, there, memo = np.array(0), np.array(True), None
    last = int(np.flatnonzero(history.arrived)[-1]) + 1 if history.arrived.any() else 0
    rounds = zip(history.x, history.z, history.y, history.arrived.tolist(), strict=True)
    for t, (x, z, y, arrived) in enumerate(rounds, 1):
        if remembers and t > judged and (pace == 1 or t % pace == 1):
            memo = policy.select(state, rng.at(Purpose.CHOICE, t)).memo
        state = policy.played(state, x)
        if arrived:
            told = policy if t == last or (t > judged - pace and t % pace == 0) else quick
            state = told.update(state, Feedback(x, z, y, now, there, memo), rng.at(Purpose.LEARNING, t))
        else:
            learner.waiting[t] = Choice(x, memo)
        if t % EVERY == 0:
            progress(t)
    learner.state = state
    learner.rounds = len(history.rounds)
    return learner


class Deferred:
    """A graph learner that takes rounds in and solves nothing."""

    def __init__(self, learner: GraphLearner) -> None:
        self.learner = learner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    def solve(self, graph: Any) -> Any:
        return graph


def deferred(policy: Any) -> Any:
    """The policy without the work of solving for a graph, for rounds whose decision is known already."""
    learner: Any = getattr(policy, "learner", None)
    if not isinstance(learner, SOLVED_FROM_SUMS) and not hasattr(learner, "remember"):
        return policy
    quick = copy.copy(policy)
    vars(quick)["learner"] = Deferred(learner)  # where the policy's cached_property keeps it
    return quick


def solutions(policy: Any, rounds: int) -> tuple[int, int]:
    """(after which round, how often) a graph is solved for on the way; after the last outcome it is in any case.

    Graphs that are functions of sums over the rounds need no solution on the way: the one after the last round is what
    solving in every round ends with (wherever the minimiser is unique, see docs/graph.md). A learner that judges its
    candidates by what they foretold needs some: they are then judged by what was known up to a pace before. Shorter
    histories, and policies that need it, are solved in every round.
    """
    learner = getattr(policy, "learner", None)
    if isinstance(learner, SOLVED_FROM_SUMS):
        return rounds, 1
    if hasattr(learner, "remember") and rounds > JUDGED:
        return rounds - JUDGED, PACE
    return 0, 1

"""Tell a policy a whole history: what was played, and what came of it where that is known."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from spillover import validate
from spillover.graph import GraphLearner, NoGraph, SelfTunedGraph, SparseGraph
from spillover.history.record import History
from spillover.live import Learner
from spillover.rng import Purpose, Rng
from spillover.types import BoolArray, Choice, Feedback, Policy, Problem

SOLVED_FROM_SUMS = (SparseGraph, SelfTunedGraph, NoGraph)
# What candidates for the graph foretold is forgotten at 1% an outcome: before the last 1,000 it weighs less than 1e-4.
JUDGED = 1_000
PACE = 100  # solutions in a whole history: candidates are judged by what they knew up to 1% of all rounds before
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
    accepted = "one that learns from any decision, not only from those that it drew itself with known probabilities"
    validate.require(learns_from_others(policy), "policy", policy, accepted)
    problem = Problem(
        n_arms=len(history.arms),
        budget=budget,
        acyclic=False,
        reward_range=reward_range,
        overall_range=overall_range,
    )
    learner = Learner(policy, problem, seed=seed, **given)
    state, rng, quick = learner.state, learner.rng, deferred(policy)
    at_once = quick is not policy and takes_many(policy)
    remembers = policy.select(state, rng.at(Purpose.CHOICE, 1)).memo is not None
    count, limits = len(history.x), np.asarray(problem.reward_range, float)
    age, moment = np.zeros(count, np.int64), np.arange(1, count + 1)
    whole = Feedback(history.x, history.z, history.y, age, history.arrived)
    x, z, y, age, arrived, _ = validate.feedback(whole, whole.x.shape, limits, moment)
    done = 0
    for stop, judged, solved in stretches(policy, remembers, arrived):
        memo = policy.select(state, rng.at(Purpose.CHOICE, done + 1)).memo if judged else None
        rows = slice(done, stop)
        stretch = Feedback(x[rows], z[rows], y[rows], age[rows], arrived[rows], memo)
        if at_once and stop - done > 1:
            state = cast(Any, policy).catch_up(state, stretch)
            state = state._replace(graph=cast(Any, policy).learner.solve(state.graph)) if solved else state
        else:
            state = one_by_one(state, stretch, policy, quick, rng, solved)
        for row in np.flatnonzero(~stretch.arrived):
            learner.waiting[done + 1 + int(row)] = Choice(stretch.x[row], memo)
        if stop // EVERY > done // EVERY:
            progress(stop)
        done = stop
    learner.state = state
    learner.rounds = done
    return learner


def learns_from_others(policy: Any) -> bool:
    """Whether it can learn from what somebody else decided.

    Not one that weighs outcomes by the probabilities with which it drew the arms itself: an arm that it would hardly
    have drawn counts a thousandfold then, and a handful of outcomes decide.
    """
    return not getattr(policy, "randomised", False)


class Stretch(NamedTuple):
    """Rounds up to one, to be told at once."""

    stop: int
    judged: bool  # whether the policy is to be reminded of what it held at their beginning
    solved: bool  # whether the graph is solved for at their end


def stretches(policy: Any, remembers: bool, arrived: BoolArray) -> Iterator[Stretch]:
    """A way through all rounds.

    Graphs that are functions of sums over the rounds need no solution on the way: the one after the last outcome is
    what solving in every round ends with (wherever the minimiser is unique, see docs/graph.md). A learner that judges
    its candidates by what they foretold needs some: they are then judged by what was known up to a pace before. In
    short histories, and for policies of which nothing is known, every round is.
    """
    rounds, outcomes = len(arrived), np.flatnonzero(arrived)
    heard = int(outcomes[-1]) + 1 if len(outcomes) else 0
    plain, pace, after = heard, 1, EVERY  # the first are not judged; after the last outcome nothing is learned
    if remembers and hasattr(getattr(policy, "learner", None), "remember"):
        plain = int(outcomes[-JUDGED - 1]) + 1 if len(outcomes) > JUDGED else 0
        pace = max(heard // PACE, 1)
    elif remembers:
        plain, after = 0, 1
    for stop in range(EVERY, plain, EVERY):
        yield Stretch(stop, False, False)
    if plain:
        yield Stretch(plain, False, True)
    for start in range(plain, heard, pace):
        yield Stretch(min(start + pace, heard), True, True)
    for start in range(heard, rounds, after):
        yield Stretch(min(start + after, rounds), remembers, False)


def takes_many(policy: Any) -> bool:
    """Whether it can take in many rounds at once; not where a subclass has its own way to take in one."""
    for kind in type(policy).__mro__:
        if "update" in vars(kind) or "played" in vars(kind):
            return "catch_up" in vars(kind)
    return False


def one_by_one(state: Any, rounds: Feedback, policy: Policy, quick: Policy, rng: Rng, solved: bool) -> Any:
    """Each round as it was played and told; if the graph is to be solved for, with the last outcome."""
    heard = np.flatnonzero(rounds.arrived)
    last, there = heard[-1] if solved and len(heard) else -1, np.array(True)
    for row, (x, z, y, age) in enumerate(zip(*rounds[:4], strict=True)):
        state = policy.played(state, x)
        if rounds.arrived[row]:
            told = policy if row == last else quick
            feedback = Feedback(x, z, y, np.array(age), there, rounds.memo)
            state = told.update(state, feedback, rng.at(Purpose.LEARNING, int(state.rounds)))
    return state


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

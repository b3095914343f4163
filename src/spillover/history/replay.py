"""Replay a whole history to a policy: the decisions, and the outcomes that have arrived."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import AnyPolicy, Policy, as_policy
from spillover.history.record import History
from spillover.live import Learner
from spillover.rng import Purpose
from spillover.types import BoolArray, Choice, Feedback, Problem

# Evidence for a graph candidate is discounted by 1% with every outcome: older than 1,000, it weighs less than 1e-4.
JUDGED = 1_000
SOLUTIONS = 100  # of the graph over a long history, where candidates are scored by their predictions
EVERY = 1_000  # rounds between two updates of the progress


def replay_history(
    policy: AnyPolicy,
    history: History,
    *,
    budget: int,
    reward_range: tuple[float, float] = (0.0, 1.0),
    overall_range: tuple[float, float] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda rounds: None,
    **given: Any,
) -> Learner:
    """A learner that has learned from the history; rounds without outcomes are pending.

    Each outcome is learned as if it had arrived in its own round: a file in which late outcomes were filled in gives
    the same learner as one that had them from the start. The graph may have cycles.
    """
    given_policy = as_policy(policy)
    accepted = "one that learns from any decision, not only from its own draws with known probabilities"
    validate.require(not given_policy.randomised, "policy", given_policy, accepted)
    problem = Problem(
        n_arms=len(history.arms),
        budget=budget,
        acyclic=False,
        reward_range=reward_range,
        overall_range=overall_range,
    )
    learner = Learner(policy, problem, seed=seed, **given)
    player, state, rng = learner.policy, learner.state, learner.rng
    rounds = checked_rounds(history, problem)
    memo = player.select(state, rng.at(Purpose.CHOICE, 1)).memo
    done = 0
    for stop, judged, solved in batches(player, memo is not None, rounds.arrived):
        memo = player.select(state, rng.at(Purpose.CHOICE, done + 1)).memo if judged else None
        batch = between(rounds, done, stop, memo)
        state = player.catch_up(state, batch, done + 1, rng)
        state = player.solve(state) if solved and batch.arrived.any() else state
        for row in np.flatnonzero(~batch.arrived):
            learner.waiting[done + 1 + int(row)] = Choice(batch.x[row], memo=memo)
        if stop // EVERY > done // EVERY:
            progress(stop)
        done = stop
    learner.state = state
    learner.rounds = done
    return learner


def checked_rounds(history: History, problem: Problem) -> Feedback:
    """All rounds of the history as feedback, the first axis, each outcome in its own round."""
    count, reward_range = len(history.x), np.asarray(problem.reward_range, float)
    rounds = Feedback(history.x, history.z, history.y, np.zeros(count, np.int64), history.arrived)
    checked: Feedback = validate.feedback(rounds, rounds.x.shape, reward_range, np.arange(1, count + 1))
    return checked


def between(rounds: Feedback, start: int, stop: int, memo: Any) -> Feedback:
    """The rounds from `start` to `stop`, with the memo that they share."""
    here = slice(start, stop)
    parts: Any = (None if values is None else values[here] for values in rounds._replace(probability=None, memo=None))
    return Feedback(*parts)._replace(memo=memo)


class RoundBatch(NamedTuple):
    """The rounds up to `stop`, to be learned in one call."""

    stop: int
    judged: bool  # whether the policy gets the memo that it had before the first of them
    solved: bool  # whether the policy solves for the graph after them


def batches(policy: Policy, has_memo: bool, arrived: BoolArray) -> Iterator[RoundBatch]:
    """The history in batches.

    A graph that is a function of sums over the rounds is solved for once, after the last outcome: solving in every
    round gives the same result (wherever the minimiser is unique, see docs/graph.md). A policy that scores candidates
    by their predictions solves about a hundred times. One whose memo belongs to its own round, or whose graph must be
    solved for after each outcome, learns round by round.
    """
    rounds, outcomes = len(arrived), np.flatnonzero(arrived)
    learned = int(outcomes[-1]) + 1 if len(outcomes) else 0  # after the last outcome nothing is learned
    unjudged, pace, after = learned, 1, EVERY
    if policy.reuses_memo:
        unjudged = int(outcomes[-JUDGED - 1]) + 1 if len(outcomes) > JUDGED else 0
        pace = max(learned // SOLUTIONS, 1)
    elif has_memo or not policy.deferrable:
        unjudged, after = 0, 1 if has_memo else EVERY
    for stop in range(EVERY, unjudged, EVERY):
        yield RoundBatch(stop, False, False)
    if unjudged:
        yield RoundBatch(unjudged, False, True)
    for start in range(unjudged, learned, pace):
        yield RoundBatch(min(start + pace, learned), has_memo, True)
    for start in range(learned, rounds, after):
        yield RoundBatch(min(start + after, rounds), has_memo, False)

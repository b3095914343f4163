"""Replay a whole history to a policy: the decisions, and the outcomes that have arrived."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import AnyPolicy, Policy, as_policy
from spillover.history import ranges
from spillover.history.record import History
from spillover.history.standard import StandardContext, standard_context
from spillover.live import Learner
from spillover.reports import Details
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
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda rounds: None,
    **given: Any,
) -> Learner:
    """A learner that has learned from the history; rounds without outcomes are pending.

    Each outcome is learned as if it had arrived in its own round: a file in which late outcomes were filled in gives
    the same learner as one that had them from the start. The graph may have cycles.

    The policy is specialised to what the table has (`Policy.for_problem`). Context is standardised; the learner knows
    that of the coming round. A policy that does not accept missing outcomes learns from the rounds that have all.
    reward_range: declared range of own effects; it matters where it is narrower than what the data show (`ranges`).
    """
    given_policy = as_policy(policy)
    accepted = "one that learns from any decision, not only from its own draws with known probabilities"
    validate.require(not given_policy.randomised, "policy", given_policy, accepted)
    context = standard_context(history)
    problem = problem_of(history, budget, reward_range, overall_range, context)
    learner = Learner(policy, problem, seed=seed, **given)
    player, state, rng = learner.policy, learner.state, learner.rng
    accepted = "one that learns from amounts, as the table has doses"
    validate.require(history.dose is None or player.accepts_doses, "policy", player, accepted)
    rounds = checked_rounds(history, problem, context, player.accepts_missing)
    if context is not None:
        state = player.observe(state, context.values[0])
    memo = player.select(state, rng.at(Purpose.CHOICE, 1)).memo
    done = 0
    for stop, judged, solved in batches(player, memo is not None, rounds.arrived):
        memo = player.select(state, rng.at(Purpose.CHOICE, done + 1)).memo if judged else None
        batch = between(rounds, done, stop, memo)
        state = player.catch_up(state, batch, done + 1, rng)
        state = player.solve(state) if solved and batch.arrived.any() else state
        for row in np.flatnonzero(~batch.arrived):
            learner.waiting[done + 1 + int(row)] = Choice(batch.x[row], memo=memo)
            if batch.context is not None or batch.dose is not None:
                learner.details[done + 1 + int(row)] = details_of(batch, int(row))
        if stop // EVERY > done // EVERY:
            progress(stop)
        done = stop
    learner.state = state
    learner.rounds = done
    if context is not None:
        learner.observe(context.following)
    return learner


def problem_of(
    history: History,
    budget: int,
    declared: tuple[float, float] | None,
    overall_range: tuple[float, float] | None,
    context: StandardContext | None,
) -> Problem:
    """The problem that a history is about; a table in the plain form has rewards from 0 to 1 unless declared."""
    plain = history.observes == "both" and not history.has_baseline and history.context is None and history.dose is None
    flipped = (-1.0, 0.0) if history.minimise else (0.0, 1.0)
    return Problem(
        n_arms=len(history.arms),
        budget=budget,
        acyclic=False,
        reward_range=flipped if plain and declared is None else ranges.reward_range(history, declared),
        overall_range=ranges.flipped(overall_range) if history.minimise and overall_range else overall_range,
        observes=history.observes,
        context=0 if context is None else len(context.names),
        baseline=history.has_baseline,
    )


def checked_rounds(
    history: History, problem: Problem, context: StandardContext | None, accepts_missing: bool
) -> Feedback:
    """All rounds of the history as feedback, the first axis, each outcome in its own round."""
    count, reward_range = len(history.x), np.asarray(problem.reward_range, float)
    z = np.full(history.x.shape, np.nan) if history.z is None else history.z
    y, arrived = history.y, history.arrived
    partly = np.isnan(y).any(axis=1) | (np.isnan(z).any(axis=1) & (history.observes == "both"))
    if not accepts_missing and partly.any():
        arrived = arrived & ~partly
        y = np.where(arrived[:, None], y, 0.0)
        z = np.where(arrived[:, None] | (history.z is None), z, 0.0)
    rounds = Feedback(
        history.x,
        z,
        y,
        np.zeros(count, np.int64),
        arrived,
        context=None if context is None else context.values,
        dose=history.dose,
    )
    missing = history.z is None or partly.any() or history.dose is not None
    check = validate.partial_feedback if missing else validate.feedback
    checked: Feedback = check(rounds, rounds.x.shape, reward_range, np.arange(1, count + 1))
    return checked


def between(rounds: Feedback, start: int, stop: int, memo: Any) -> Feedback:
    """The rounds from `start` to `stop`, with the memo that they share."""
    here = slice(start, stop)
    parts: Any = (None if values is None else values[here] for values in rounds._replace(probability=None, memo=None))
    return Feedback(*parts)._replace(memo=memo)


def details_of(rounds: Feedback, row: int) -> Details:
    """What is known of a pending round besides its decision."""
    context, dose = rounds.context, rounds.dose
    return Details(None if context is None else context[row].copy(), None if dose is None else dose[row].copy())


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

"""Replay a whole history to a policy: the decisions, and the outcomes that have arrived."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spillover import validate
from spillover.contracts import AnyPolicy, as_policy
from spillover.history import ranges
from spillover.history.checkpoints import Checkpoint, Checkpoints
from spillover.history.record import History
from spillover.history.schedule import EVERY, schedule_of
from spillover.history.standard import StandardContext, standard_context
from spillover.live import Learner
from spillover.reports import Details
from spillover.rng import Purpose
from spillover.types import BoolArray, Checked, Choice, Feedback, Problem


def replay_history(
    policy: AnyPolicy,
    history: History,
    *,
    budget: int,
    reward_range: tuple[float, float] | None = None,
    overall_range: tuple[float, float] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda rounds: None,
    checkpoints: Checkpoints | None = None,
    **given: Any,
) -> Learner:
    """A learner that has learned from the history; rounds without outcomes are pending.

    Each outcome is learned as if it had arrived in its own round: a file in which late outcomes were filled in gives
    the same learner as one that had them from the start. The graph may have cycles.

    The policy is specialised to what the table has (`Policy.for_problem`). Context is standardised; the learner knows
    that of the coming round. A policy that does not accept missing outcomes learns from the rounds that have all.
    reward_range: declared range of own effects; it matters where it is narrower than what the data show (`ranges`).
    checkpoints: of a shorter form of the same history, to go on from; new ones are kept there. The result is the same.

    >>> import spillover as sp
    >>> from spillover.history import read_history
    >>> table = {"week": [1, 2, 3], "promo_a": [1, 0, 1], "promo_b": [0, 1, 1]}
    >>> table |= {"sales_a": [9, 5, None], "sales_b": [3, 4, None]}
    >>> learner = replay_history(sp.InstrumentalSEM(signed=True), read_history(table), budget=1)
    >>> learner.pending  # the third round has no outcome yet
    [3]
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
    arrived = learnable_rounds(history, player.accepts_missing)
    if context is not None:
        state = player.observe(state, context.values[0])
    memo = player.select(state, rng.at(Purpose.CHOICE, 1)).memo
    schedule = schedule_of(player, memo is not None, arrived)
    done, wanted, setting = 0, set[int](), (player, problem.in_full(), seed)
    if checkpoints is not None and context is None and history.dose is None:  # both are scaled by all rounds
        if (known := checkpoints.latest(setting, schedule)) is not None:
            done, state, learner.waiting, learner.details = known.done, known.state, known.waiting, known.details
        wanted = checkpoints.wanted(schedule, done)
    first, accepts = done, player.accepts_missing
    rounds = checked_rounds(history, problem, context, arrived, first, accepts_missing=accepts)
    for stop, judged, solved, brief in schedule.batches(done):
        memo = player.select(state, rng.at(Purpose.CHOICE, done + 1)).memo if judged else None
        batch = between(rounds, done - first, stop - first, memo)
        state = player.catch_up(state, batch, done + 1, rng)
        if solved and (batch.arrived.any() or stop == schedule.unjudged):
            state = player.solve_briefly(state) if brief else player.solve(state)
        for row in np.flatnonzero(~batch.arrived):
            learner.waiting[done + 1 + int(row)] = Choice(batch.x[row], memo=memo)
            if batch.context is not None or batch.dose is not None:
                learner.details[done + 1 + int(row)] = details_of(batch, int(row))
        if stop // EVERY > done // EVERY:
            progress(stop)
        done = stop
        if checkpoints is not None and stop in wanted and (way := schedule.way_to(stop)) is not None:
            checkpoints.keep(Checkpoint(setting, way, stop, state, learner.waiting, learner.details))
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
    """The problem that a history is about."""
    return Problem(
        n_arms=len(history.arms),
        budget=budget,
        acyclic=False,
        reward_range=ranges.reward_range(history, declared),
        overall_range=ranges.flipped(overall_range) if history.minimise and overall_range else overall_range,
        observes=history.observes,
        context=0 if context is None else len(context.names),
        baseline=history.has_baseline,
    )


def learnable_rounds(history: History, accepts_missing: bool) -> BoolArray:
    """Which rounds are learned: those that have arrived, without gaps if the policy does not accept them."""
    return history.arrived if accepts_missing else history.arrived & ~with_gaps(history)


def with_gaps(history: History, first: int = 0) -> BoolArray:
    """Which rounds, from a given one on, have outcomes that are missing."""
    found = np.isnan(history.y[first:]).any(axis=1)
    if history.z is not None and history.observes == "both":
        found |= np.isnan(history.z[first:]).any(axis=1)
    return np.asarray(found)


def checked_rounds(
    history: History,
    problem: Problem,
    context: StandardContext | None,
    arrived: BoolArray,
    first: int,
    *,
    accepts_missing: bool,
) -> Feedback:
    """The rounds of the history as feedback, each outcome in its own round, along the first axis.

    arrived: which rounds are learned. first: the rounds before it were checked and learned already.
    """
    x, y, here = history.x[first:], history.y[first:], arrived[first:]
    z = np.full(x.shape, np.nan) if history.z is None else history.z[first:]
    gaps = with_gaps(history, first)
    if not accepts_missing and gaps.any():  # what there is of these rounds counts for nothing
        y = np.where(here[:, None], y, 0.0)
        z = np.where(here[:, None] | (history.z is None), z, 0.0)
    rounds = Feedback(
        x,
        z,
        y,
        np.zeros(len(x), np.int64),
        here,
        context=None if context is None else context.values[first:],
        dose=None if history.dose is None else history.dose[first:],
    )
    missing = history.z is None or gaps.any() or history.dose is not None
    check = validate.partial_feedback if missing else validate.feedback
    played_at = np.arange(first + 1, first + len(x) + 1)
    checked: Feedback = check(rounds, x.shape, np.asarray(problem.reward_range, float), played_at)
    return checked


def between(rounds: Feedback, start: int, stop: int, memo: Any) -> Feedback:
    """The rounds from `start` to `stop`, with the memo that they share."""
    here = slice(start, stop)
    parts: Any = (None if values is None else values[here] for values in rounds._replace(probability=None, memo=None))
    return Checked(*parts)._replace(memo=memo)


def details_of(rounds: Feedback, row: int) -> Details:
    """What is known of a pending round besides its decision."""
    context, dose = rounds.context, rounds.dose
    return Details(None if context is None else context[row].copy(), None if dose is None else dose[row].copy())

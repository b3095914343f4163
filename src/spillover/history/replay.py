"""Replay a whole history to a policy: the decisions, and the outcomes that have arrived."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.constraints import Constraint
from spillover.constraints.search import EFFORT
from spillover.contracts import AnyPolicy, Policy, as_policy
from spillover.core.ahead import compiled_beside
from spillover.core.batches import LearnsHistories, learns_histories
from spillover.history.record import History, StandardContext, flipped, reward_range_of, standard_context
from spillover.learner.one import Learner
from spillover.learner.reports import Details
from spillover.reasons import Reasons
from spillover.reasons.health import Pending
from spillover.rng import Purpose
from spillover.state import Packed, copy_state, packed
from spillover.types import BoolArray, Checked, Choice, Feedback, Problem, State

# Evidence for a graph candidate is discounted by 1% with every outcome: older than 1,000, it weighs less than 1e-4.
JUDGED = 1_000
SOLUTIONS = 100  # of the graph over a long history, at most, where candidates are scored by their predictions
EVERY = 1_000  # rounds between two updates of the progress
MOST_CHECKPOINTS = 6  # kept for one history


class RoundBatch(NamedTuple):
    """The rounds up to `stop`, to be learned in one call."""

    stop: int
    judged: bool  # whether the policy gets the memo that it had before the first of them
    solved: bool  # whether the policy solves for the graph after them


class Schedule(NamedTuple):
    """The batches of a history: up to `unjudged`, then up to `learned`, then rounds whose outcomes are pending.

    Batches of a longer history begin with those of a shorter one. So a state on the way through a history is one on the
    way through its continuations, and need not be computed again.
    """

    rounds: int
    learned: int  # after the last outcome nothing is learned
    unjudged: int
    pace: int  # rounds in a batch between `unjudged` and `learned`
    after: int  # rounds in a batch after `learned`
    has_memo: bool

    def batches(self, done: int = 0) -> Iterator[RoundBatch]:
        """The batches after the first `done` rounds, which must end with a batch."""
        for stop in range((done // EVERY + 1) * EVERY, self.unjudged, EVERY):
            yield RoundBatch(stop, False, False)
        if done < self.unjudged:
            yield RoundBatch(self.unjudged, False, True)
        for start in range(max(done, self.unjudged), self.learned, self.pace):
            stop = start + self.pace
            yield RoundBatch(min(stop, self.learned), self.has_memo, True)
        for start in range(max(done, self.learned), self.rounds, self.after):
            yield RoundBatch(min(start + self.after, self.rounds), self.has_memo, False)

    def way_to(self, stop: int) -> tuple[int, ...] | None:
        """Identify the state after `stop` rounds by all else it depends on; None if no full batch ends there.

        Schedules with the same way to a round have the same batches up to it.
        """
        if 0 < stop < self.unjudged and stop % EVERY == 0:
            return ()
        if self.unjudged <= stop <= self.learned and stop > 0 and (stop - self.unjudged) % self.pace == 0:
            return (self.unjudged, self.pace)
        return None


def schedule_of(policy: LearnsHistories, has_memo: bool, arrived: BoolArray) -> Schedule:
    """The batches in which a policy learns a history.

    A graph that is a function of sums over the rounds is solved for once, after the last outcome: solving in every
    round gives the same result (wherever the minimiser is unique, see docs/graph.md). A policy that scores candidates
    by their predictions solves 50 to 100 times in a long history, and scores them by the last outcomes: at least 1,000
    of them, from a full thousand of rounds on. One whose memo belongs to its own round, or whose graph must be solved
    for after each outcome, learns round by round.
    """
    outcomes = np.flatnonzero(arrived)
    learned = int(outcomes[-1]) + 1 if len(outcomes) else 0
    unjudged, pace, after = learned, 1, EVERY
    if policy.reuses_memo:
        first = int(outcomes[-JUDGED - 1]) + 1 if len(outcomes) > JUDGED else 0
        unjudged, pace = first // EVERY * EVERY, power_of_two(learned // SOLUTIONS)
    elif has_memo or not policy.deferrable:
        unjudged, after = 0, 1 if has_memo else EVERY
    return Schedule(len(arrived), learned, unjudged, pace, after, has_memo)


def power_of_two(least: int) -> int:
    """The smallest power of two from `least` on: it changes only when a history has doubled.

    >>> [power_of_two(number) for number in (0, 1, 2, 3, 100)]
    [1, 1, 2, 4, 128]
    """
    return 1 << max(least - 1, 0).bit_length()


class Checkpoint(NamedTuple):
    """The state of a replay after the first `done` rounds."""

    asked: Any  # see `Start`
    way: tuple[int, ...]  # see `Schedule.way_to`
    done: int
    content: NDArray[np.uint8]  # of the state; see `Packed`
    waiting: dict[int, Choice]
    details: dict[int, Details]


class Start(NamedTuple):
    """A learner before the first round; it is not to be updated."""

    asked: Any  # policy, problem, seed and further options
    learner: Learner
    has_memo: bool  # whether its choices do


@dataclass
class Checkpoints:
    """The checkpoints of one history that grows; whoever changes a round of it calls `forget`.

    The learners of all replays have one state, in the same arrays: a replay takes it from the learner before it.
    """

    kept: list[Checkpoint] = field(default_factory=list)
    start: Start | None = None  # of the last replay
    work: Packed | None = None  # the state of its learner

    def forget(self, first: int = 0) -> None:
        """Round number `first` (from 0 on) or a later one has changed."""
        self.kept = [checkpoint for checkpoint in self.kept if checkpoint.done <= first]

    def begin(self, start: Start) -> None:
        """Begin a replay from another start than the last one."""
        self.start, self.work = start, None

    def latest(self, start: Start, schedule: Schedule) -> tuple[int, State, dict[int, Choice], dict[int, Details]]:
        """Where a replay by this schedule goes on: the rounds that are done, and what is known after them."""
        fitting = [c for c in self.kept if c.asked == start.asked and schedule.way_to(c.done) == c.way]
        if self.work is None:
            self.work = packed(start.learner.state)
        if self.work is None:
            return 0, copy_state(start.learner.state), {}, {}
        if not fitting:
            self.work.holds(start.learner.state)
            return 0, self.work.state, {}, {}
        found = max(fitting, key=lambda checkpoint: checkpoint.done)
        self.work.content[:] = found.content
        return found.done, self.work.state, dict(found.waiting), dict(found.details)

    def wanted(self, schedule: Schedule, done: int) -> set[int]:
        """After which rounds to keep a checkpoint: close to the last outcome, and further and further before it."""
        found: set[int] = set()
        distance = 0
        while len(found) < MOST_CHECKPOINTS and schedule.learned - distance > done:
            stop = last_stop(schedule, schedule.learned - distance)
            if stop <= done:
                break
            found.add(stop)
            distance = 4 * max(schedule.learned - stop, schedule.pace)
        return found

    def keep(
        self, way: tuple[int, ...], done: int, state: State, waiting: dict[int, Choice], details: dict[int, Details]
    ) -> None:
        """Add a checkpoint; of too many, those that are closest to a later one go, and other settings before them."""
        if self.start is None or self.work is None or not self.work.holds(state):
            return
        own = Checkpoint(self.start.asked, way, done, self.work.content.copy(), dict(waiting), dict(details))
        same = [c for c in self.kept if c.asked == own.asked and (c.done, c.way) != (own.done, own.way)]
        others = [c for c in self.kept if c.asked != own.asked]
        self.kept = [*others[-1:], *thinned(sorted([*same, own], key=lambda c: c.done))]

    @property
    def bytes(self) -> int:
        return sum(checkpoint.content.nbytes for checkpoint in self.kept)


def last_stop(schedule: Schedule, at_most: int) -> int:
    """The last round of a full batch, up to a round; 0 if there is none."""
    if at_most >= schedule.unjudged > 0 or (schedule.unjudged == 0 and at_most > 0):
        stop = schedule.unjudged + (at_most - schedule.unjudged) // schedule.pace * schedule.pace
        return stop if schedule.way_to(stop) is not None else 0
    return min(at_most, schedule.unjudged - 1) // EVERY * EVERY


def thinned(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """At most MOST_CHECKPOINTS of them, the last one included: dense at the end, sparse before."""
    kept = list(checkpoints)
    while len(kept) > MOST_CHECKPOINTS:
        last = kept[-1].done
        ratios = [(last - before.done) / max(last - here.done, 1) for before, here in pairwise(kept[:-1])]
        closest = min(range(len(ratios)), key=ratios.__getitem__)
        del kept[closest + 1]
    return kept


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
    reward_range: declared range of own effects; it matters where it is narrower than what the data show (see
    `reward_range_of`).
    checkpoints: of a shorter form of the same history, to go on from; new ones are kept there. The result is the same,
        but the learner of the last replay with them must not be used any more.

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
    validate.require(not given_policy.traits.randomised, "policy", given_policy, accepted)
    context = standard_context(history)
    problem = problem_of(history, budget, reward_range, overall_range, context)
    if context is not None or history.dose is not None:  # both are scaled by all rounds
        checkpoints = None
    start = started(given_policy, problem, seed, given, context, checkpoints)
    player, rng = start.learner.policy, start.learner.rng
    accepted = "one that learns from amounts, as the table has doses"
    validate.require(history.dose is None or player.traits.accepts_doses, "policy", player, accepted)
    past = learns_histories(player)
    arrived = learnable_rounds(history, player.traits.accepts_missing)
    schedule = schedule_of(past, start.has_memo, arrived)
    done, state, learner, wanted = 0, start.learner.state, start.learner.at({}, {}), set[int]()
    if checkpoints is not None:
        done, state, waiting, details = checkpoints.latest(start, schedule)
        learner, wanted = start.learner.at(waiting, details), checkpoints.wanted(schedule, done)
    first, accepts = done, player.traits.accepts_missing
    rounds = checked_rounds(history, problem, context, arrived, first, accepts_missing=accepts)
    with compiled_beside(player) if not done else nullcontext():
        for stop, judged, solved in schedule.batches(done):
            memo = player.select(state, rng.at(Purpose.CHOICE, done + 1)).memo if judged else None
            batch = between(rounds, done - first, stop - first, memo)
            state = past.catch_up(state, batch, done + 1, rng)
            if solved and (batch.arrived.any() or stop == schedule.unjudged):
                state = past.solve(state)
            for row in np.flatnonzero(~batch.arrived):
                learner.waiting[done + 1 + int(row)] = Choice(batch.x[row], memo=memo)
                if batch.context is not None or batch.dose is not None:
                    learner.details[done + 1 + int(row)] = details_of(batch, int(row))
            if stop // EVERY > done // EVERY:
                progress(stop)
            done = stop
            if checkpoints is not None and stop in wanted and (way := schedule.way_to(stop)) is not None:
                checkpoints.keep(way, stop, state, learner.waiting, learner.details)
    learner.state = state
    learner.rounds = done
    if context is not None:
        learner.observe(context.following)
    return learner


def started(
    policy: Policy,
    problem: Problem,
    seed: int,
    given: dict[str, Any],
    context: StandardContext | None,
    checkpoints: Checkpoints | None,
) -> Start:
    """A learner before the first round: that of the replay before, if the same was asked for."""
    asked = (policy, problem.in_full(), seed, given)
    if checkpoints is not None and checkpoints.start is not None and checkpoints.start.asked == asked:
        return checkpoints.start
    learner = Learner(policy, problem, seed=seed, **given)
    if context is not None:
        learner.state = learner.policy.observe(learner.state, context.values[0])
    choice = learner.policy.select(learner.state, learner.rng.at(Purpose.CHOICE, 1))
    found = Start(asked, learner, choice.memo is not None)
    if checkpoints is not None:
        checkpoints.begin(found)
    return found


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
        reward_range=reward_range_of(history, declared),
        overall_range=flipped(overall_range) if history.minimise and overall_range else overall_range,
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
    """The context and doses of a pending round."""
    context, dose = rounds.context, rounds.dose
    return Details(None if context is None else context[row].copy(), None if dose is None else dose[row].copy())


def next_reasons(
    learner: Learner,
    history: History,
    constraints: Sequence[Constraint] = (),
    effort: int = EFFORT,
    **options: Any,
) -> Reasons:
    """The reasons for the next decision; the constraints apply to this decision only.

    effort: steps after which the search for the best set under constraints stops with the best one found so far.
    options: further ones of `spillover.reasons.reasons`.
    """
    waiting = {played: choice.x for played, choice in learner.waiting.items()}
    # a file does not say when outcomes arrived
    pending = Pending(learner.rounds, waiting, timed=False, observed=history.observed, labels=history.rounds)
    bound = learner.under(constraints, arms=history.arms, effort=effort) if constraints else learner
    given = {"pending": pending, "signals": known_signals(learner, history)}
    return bound.reasons(history.arms, **given | options)


def known_signals(learner: Learner, history: History) -> dict[str, Any]:
    """The policy's signals; none about what identifies the graph where that is not a sum of y y'.

    That is so if the table has no y (z stood in for it) or a baseline, and if no arm was observed.
    """
    signals = learner.policy.signals(learner.state)
    if history.has_overall and not history.has_baseline and not history.nothing_chosen:
        return signals
    return {name: value for name, value in signals.items() if name != "gram"}

"""Many policies in live use, one for each of many streams: any of them decide and learn in one call."""

import copy
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.arm_names import check_names, missing_arms, same_names
from spillover.constraints import Constraint, check_constraints
from spillover.contracts import AnyPolicy, Policy, suited
from spillover.hyperparameters import check_grid, value_of, with_values
from spillover.journal import to_the_end
from spillover.live import Learner, under_rules
from spillover.many_reports import (
    Known,
    Rounds,
    check_feedback,
    has,
    known_after,
    lessons,
    own_context,
    own_doses,
    table,
)
from spillover.reports import Details
from spillover.rng import Purpose, Rng
from spillover.rows import Rows, constants, copied, put_all_back, put_back, rows_of, taken
from spillover.saved import Book
from spillover.set_search import EFFORT, check_effort
from spillover.state import copy_state, take_replication
from spillover.types import Array, BoolArray, Choice, IntArray, Problem, State
from spillover.waiting_rounds import WaitingRounds


class Decided(NamedTuple):
    """What was chosen last, so that `play` need not choose again."""

    rows: Rows
    state: State  # of these rows
    choice: Choice


NO_CHOICE = Choice(np.zeros((0, 0), np.bool_))


class Learners:
    """Learners of one policy for many streams with the same arms, each with its own seed, rounds and pending outcomes.

    >>> import spillover as sp
    >>> learners = Learners(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2), seeds=range(1000))
    >>> learners.choose([7, 12]).astype(int)  # two of them decide
    array([[1, 0, 0],
           [1, 0, 0]])
    >>> learners.play([7, 12])  # the number of the round, for each
    array([1, 1])
    >>> learners.report([12], [1], z=[[0.5, 0, 0]], y=[[0.5, 0, 0]])
    >>> learners.pending
    (array([7]), array([1]))
    >>> learners.learner(12).explain().mean
    array([0.5, nan, nan])

    Each decides and learns as a `Learner` with its seed does, bit for bit. `who` names learners by their positions or
    by a mask; None stands for all. Arguments and results have a row for each of them, in the order of `who`. A call
    that fails or is interrupted changes nothing, for none of them. Threads may share the learners (`lock`).

    Hyperparameters of `policy.grids` may be arrays with an entry for each learner, as may the ranges and weights of the
    problem. constraints, arms, effort: as for a `Learner`, the same for all.
    """

    def __init__(
        self,
        policy: AnyPolicy,
        problem: Problem,
        seeds: Sequence[int] | IntArray,
        *,
        constraints: Sequence[Constraint] = (),
        arms: Sequence[str] | None = None,
        effort: int | None = None,
    ) -> None:
        validate.problem(problem)
        given = suited(policy, problem)
        self.lock = threading.RLock()
        self.policy = given.unconstrained
        self.constraints: tuple[Constraint, ...] = (*given.constraints, *check_constraints(constraints))
        self.arms = same_names(given.arms, arms)
        check_names(self.arms, problem.n_arms)
        self.effort = effort if effort is not None else given.effort or EFFORT
        check_effort(self.effort)
        self.problem = copy.deepcopy(problem)
        self.rng = streams(seeds)
        count, n = len(self.rng.keys), problem.n_arms
        check_grid(self.policy, (count,))
        self.reward_range = validate.spread("reward_range", problem.reward_range, (count, 2))
        self.rounds = np.zeros(count, np.int64)  # played, by each
        self.state = copy_state(self.player(rows_of(None, count)).init(self.problem, self.rng.at(Purpose.START), (count,)))
        self.constant = constants(self.state)
        self.absent = np.zeros((count, n), np.bool_)  # arms that are not available in the coming round
        self.context = np.full((count, problem.context), np.nan)  # of the coming round, NaN if it is not known
        self.delay_totals = np.zeros((count, 3), np.int64)  # as of a Learner
        self.waiting = WaitingRounds(count)
        self.decided: Decided | None = None

    def __len__(self) -> int:
        return len(self.rounds)

    @property
    def seeds(self) -> Any:
        """The seed of each learner."""
        return self.rng.keys[:, 0].copy()

    @property
    def pending(self) -> tuple[IntArray, IntArray]:
        """Learners and rounds whose outcomes have not been reported, sorted; `report` and `close` take them so."""
        with self.lock:
            learners, rounds, _ = self.waiting.everything()
            return learners, rounds

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, which cannot have the lock."""
        with self.lock:
            return {**self.__dict__, "lock": None, "decided": None}

    def __setstate__(self, content: dict[str, Any]) -> None:
        self.__dict__.update(content)
        self.lock = threading.RLock()

    # --- decisions ---------------------------------------------------------------------------------------------------

    def choose(self, who: Any = None, *, available: Any = None, context: Any = None) -> BoolArray:
        """The decisions for the next round of each, (k, n_arms), as masks; repeated calls give the same ones.

        available: the arms that can be played in this round: a mask (k, n_arms), or for all of them the same arms, as
        `Learner.choose` takes them. context: (k, columns), of this round, if the problem has context.
        """
        with self.lock:
            rows = rows_of(who, len(self))
            absent = self.missing(available, len(rows))
            before = taken(self.state, rows.part)
            after, known = self.observed(rows, before, context)
            choice = self.decide(rows, after, absent, known)

            def commit() -> None:
                self.decided = None
                self.put(rows, before, after)
                self.absent[rows.part], self.context[rows.part] = absent, known
                self.decided = Decided(rows, after, choice)

            to_the_end(commit)
            return choice.x.copy()

    def missing(self, available: Any, count: int) -> BoolArray:
        """The arms that are not available, (count, n)."""
        shape = (count, self.problem.n_arms)
        if np.ndim(available) == 2:
            mask = np.asarray(validate.unmasked("available", available))
            validate.require(mask.dtype == np.bool_, "available", available, f"True or False, of shape {shape}")
            validate.require(mask.shape == shape, "shape of available", mask.shape, f"{shape}")
            return ~mask
        absent = np.zeros(shape, np.bool_)
        absent[:, list(missing_arms(available, self.problem.n_arms, self.arms))] = True
        return absent

    def observed(self, rows: Rows, state: State, context: Any) -> tuple[State, Array]:
        """The state of some learners that know the context of their coming round, and this context."""
        if context is None:
            return state, self.context[rows.part]
        known = own_context(self.coming_rounds(rows), context, self.problem.context)
        return self.player(rows).observe(state, known), known

    def coming_rounds(self, rows: Rows, choice: Choice = NO_CHOICE) -> Rounds:
        played = self.rounds[rows.part]
        return Rounds(rows.places, played + 1, played, choice, self.reward_range[rows.part])

    def decide(self, rows: Rows, state: State, absent: BoolArray, context: Array) -> Choice:
        """The decisions of some learners, whose state is given."""
        unknown = np.isnan(context).any(axis=-1)
        if unknown.any():
            accepted = f"the {self.problem.context} context values of the coming round, as in choose(context=...)"
            name = self.coming_rounds(rows).name(int(unknown.argmax()))
            validate.require(False, f"{name}: context", None, accepted)
        rng = self.rng.take(rows.part).at(Purpose.CHOICE, self.rounds[rows.part] + 1)
        if not absent.any():
            return self.player(rows).select(state, rng)
        patterns, pattern_of = np.unique(absent, axis=0, return_inverse=True)
        groups = [np.flatnonzero(pattern_of.reshape(-1) == k) for k in range(len(patterns))]
        choices = []
        for pattern, here in zip(patterns, groups, strict=True):
            player = self.player(rows_of(rows.places[here], len(self)), tuple(np.flatnonzero(pattern).tolist()))
            choices.append(player.select(taken(state, here), rng.take(here)))
        order = np.argsort(np.concatenate(groups))
        return Choice(*(None if parts[0] is None else np.concatenate(parts)[order] for parts in zip(*choices, strict=True)))

    def player(self, rows: Rows, unavailable: tuple[int, ...] = ()) -> Policy:
        """The policy of some learners under the constraints and this round's availability."""
        policy: Any = self.policy
        if not rows.everything:
            each = {name: value_of(policy, name) for name in policy.grids}
            some = {name: np.broadcast_to(v, len(self))[rows.part] for name, v in each.items() if np.ndim(v)}
            policy = with_values(policy, some)
        return under_rules(policy, self.constraints, unavailable, self.arms, self.effort)

    def play(self, who: Any = None, x: Any = None, *, context: Any = None, dose: Any = None) -> IntArray:
        """Record the decisions of a round: the policy's own, or x instead, (k, n_arms). Returns the round of each.

        context, dose: as for a `Learner`, a row for each.
        """
        with self.lock:
            rows = rows_of(who, len(self))
            last = self.decided
            if context is None and last is not None and np.array_equal(last.rows.places, rows.places):
                before, choice, known = last.state, last.choice, self.context[rows.part]
                state = before
            else:
                before = taken(self.state, rows.part)
                state, known = self.observed(rows, before, context)
                choice = self.decide(rows, state, self.absent[rows.part], known)
            if x is not None:
                own = table("x", x, (len(rows), self.problem.n_arms))
                check = self.coming_rounds(rows).check
                choice = choice._replace(x=np.array(check(lambda one: validate.decision("x", one, one.shape), own)))
            coming = self.coming_rounds(rows, choice)
            amounts = own_doses(coming, dose, self.policy.accepts_doses)
            after = self.player(rows).played(state, choice.x)
            columns = choice._asdict() | {"context": known if self.problem.context else None, "dose": amounts}
            free, places = self.waiting.room_for(columns, len(rows))

            def commit() -> None:
                self.decided = None
                self.put(rows, before, after)
                self.rounds[rows.part], self.absent[rows.part], self.context[rows.part] = coming.numbers, False, np.nan
                self.waiting.add(free, places, rows.places, coming.numbers, columns)

            to_the_end(commit)
            return coming.numbers

    def put(self, rows: Rows, before: State, after: State) -> None:
        """The state of some learners after a function that rewrites nothing."""
        if after is before:
            return
        if rows.everything:
            self.state = after
        else:
            put_back(self.state, rows.part, before, after)

    # --- outcomes ----------------------------------------------------------------------------------------------------

    def report(
        self, who: Any, rounds: Any, z: Any = None, y: Any = None, context: Any = None, *, dose: Any = None
    ) -> None:
        """Report outcomes of rounds: row k is about round `rounds[k]` of learner `who[k]`.

        A learner may be named several times, for different rounds, which it learns in this order. Values as in
        `Learner.report`, a row for each; NaN in y for outcomes that are not known yet. If only payoffs are observed, y
        may be a number for each.
        """
        with self.lock:
            given, places = self.find(who, rounds)
            before, reported = self.details(places), Details(context, dose, z, y)
            known = known_after(self.problem, given, before, reported, self.policy.accepts_doses)
            check_feedback(self.problem, given, known, closed=False)
            takes_parts = np.full(len(places), self.policy.accepts_missing)
            learned, in_parts = known.complete | takes_parts, ~known.in_one & takes_parts
            self.learn(given, places, known, learned, in_parts, timed=True)

    def close(self, who: Any, rounds: Any) -> None:
        """Say that nothing more of these rounds will arrive; see `Learner.close`."""
        with self.lock:
            given, places = self.find(who, rounds)
            shape, known = given.choice.x.shape, self.details(places)
            z, y = (np.full(shape, np.nan) if part is None else part for part in (known.z, known.y))
            all_rows, nothing = np.ones(len(places), np.bool_), np.zeros(shape, np.bool_)
            last = Known(known._replace(z=z, y=y), nothing, ~all_rows, all_rows)
            check_feedback(self.problem, given, last, closed=True)
            self.learn(given, places, last, all_rows & self.policy.accepts_missing, all_rows, timed=False)

    def find(self, who: Any, rounds: Any) -> tuple[Rounds, IntArray]:
        """Pending rounds and their places in the table; raises a ValueError for a round that is not pending."""
        learners = rows_of(who, len(self), repeated=True).places
        numbers = np.asarray(validate.unmasked("rounds", rounds))
        good = numbers.shape == learners.shape and (numbers.dtype.kind in "iu" or not numbers.size)
        validate.require(good, "rounds", rounds, f"a whole number for each of {len(learners)} learners")
        found = self.waiting.find(learners.tolist(), numbers.tolist())
        if None in found:
            row = found.index(None)
            pending = list(self.waiting.places[int(learners[row])])
            accepted = f"a round that was played and not reported yet: {pending}"
            validate.require(False, f"learner {learners[row]}: round", int(numbers[row]), accepted)
        if len(set(found)) < len(found):
            row = next(k for k, place in enumerate(found) if place in found[:k])
            accepted = "a round that is named once in a call"
            validate.require(False, f"learner {learners[row]}: round", int(numbers[row]), accepted)
        places = np.array(found, np.int64)
        choice = Choice(*(self.waiting.take(name, places) for name in Choice._fields))
        played, ends = self.rounds[learners], self.reward_range[learners]
        return Rounds(learners, numbers.astype(np.int64), played, choice, ends), places

    def details(self, places: IntArray) -> Details:
        return Details(*(self.waiting.take(name, places) for name in Details._fields))

    def learn(
        self,
        rounds: Rounds,
        places: IntArray,
        known: Known,
        learned: BoolArray,
        in_parts: BoolArray,
        *,
        timed: bool,
    ) -> None:
        """Learn what is known of some rounds; the complete ones are over, and with `timed` their delays count."""
        several, position = np.unique(rounds.learners, return_inverse=True)
        rows = rows_of(several, len(self))
        state = copied(self.state, rows) if learned.any() else None
        for lesson in lessons(rounds, known, learned, in_parts):
            state = self.learn_lesson(state, position[lesson.rows], rounds.some(lesson.rows), lesson.feedback(rounds, known))
        over, parts = np.flatnonzero(known.complete), np.flatnonzero(~known.complete)
        totals = self.delay_totals[rows.part]
        if timed:
            totals = totals.copy()
            age = (rounds.played - rounds.numbers)[over]
            np.add.at(totals[:, 0], position[over], 1)
            np.add.at(totals[:, 1], position[over], age)
            np.maximum.at(totals[:, 2], position[over], age)
        columns = {name: None if part is None else part[parts] for name, part in known.details._asdict().items()}
        self.waiting.make(columns)
        free = len(self.waiting.room[1])

        def commit() -> None:
            self.decided = None
            if state is not None and rows.everything:
                self.state = state
            elif state is not None:
                put_all_back(self.state, rows.part, state, self.constant)
            self.delay_totals[rows.part] = totals
            self.waiting.write(places[parts], {name: part for name, part in columns.items() if part is not None})
            self.waiting.remove(free, places[over], rounds.learners[over], rounds.numbers[over])

        to_the_end(commit)

    def learn_lesson(self, state: State, position: IntArray, rounds: Rounds, feedback: Any) -> State:
        """The state of some learners after those at these positions have learned an outcome each."""
        some = rows_of(rounds.learners, len(self))
        policy, rng = self.player(some).unconstrained, self.rng.take(some.part).at(Purpose.LEARNING, rounds.numbers)
        if np.array_equal(position, np.arange(len(state[0]))):
            return policy.update(state, feedback, rng)
        after = policy.update(taken(state, position), feedback, rng)
        put_all_back(state, position, after, self.constant)
        return state

    # --- one of them -------------------------------------------------------------------------------------------------

    def learner(self, position: int) -> Learner:
        """A `Learner` that goes on from where this one is, by itself: to explain a decision, for example."""
        validate.whole("position", position, 0, len(self) - 1)
        with self.lock:
            policy: Any = self.policy
            each = {name: value_of(policy, name) for name in policy.grids}
            own = {name: np.broadcast_to(v, len(self))[position].item() for name, v in each.items() if np.ndim(v)}
            learner = Learner(
                with_values(policy, own),
                self.own_problem(position),
                seed=int(self.rng.keys[position, 0]),
                constraints=self.constraints,
                arms=self.arms,
                effort=self.effort,
            )
            learner.continue_from(self.book(position), take_replication(self.state, position))
            return learner

    def own_problem(self, position: int) -> Problem:
        """The problem of one learner."""
        problem, shapes = self.problem, {"reward_range": 2, "overall_range": 2, "weights": self.problem.n_arms}
        given = {name: getattr(problem, name) for name in shapes}
        spread = {n: np.broadcast_to(v, (len(self), shapes[n]))[position] for n, v in given.items() if np.ndim(v) == 2}
        return copy.deepcopy(problem._replace(**spread))

    def book(self, position: int) -> Book:
        """All that one learner keeps besides the state of its policy."""
        pending = self.waiting.places[position]
        places = np.array(list(pending.values()), np.int64)
        choices = [self.waiting.take(name, places) for name in Choice._fields]
        waiting, details = {}, {}
        for row, played in enumerate(pending):
            waiting[played] = Choice(*(None if column is None else column[row].copy() for column in choices))
            known = one_of(self.details(places[row : row + 1]))
            if any(part is not None for part in known):
                details[played] = known
        context = self.context[position].copy() if self.problem.context else None
        known_context = None if context is None or np.isnan(context).any() else context
        totals = tuple(self.delay_totals[position].tolist())
        absent = tuple(np.flatnonzero(self.absent[position]).tolist())
        return Book(int(self.rounds[position]), waiting, details, totals, absent, known_context)  # type: ignore[arg-type]


def one_of(details: Details) -> Details:
    """The details of the only round in a table, with None where nothing is known."""
    context, dose, z, y = (None if part is None or not has(part)[0] else part[0].copy() for part in details)
    if y is not None and z is None:  # not observed
        z = np.full_like(y, np.nan)
    return Details(context, dose, z, y)


def streams(seeds: Any) -> Rng:
    """The random streams of learners with these seeds."""
    given = np.asarray(seeds if isinstance(seeds, np.ndarray) else list(seeds))
    good = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iu" and bool((given >= 0).all())
    validate.require(good, "seeds", seeds, "whole numbers from 0 to 2^64 - 1, one for each learner, at least one")
    rng = Rng(0, np.zeros(given.size, np.int64))
    rng.keys[:, 0] = given
    return rng

"""Many policies in live use, one for each of many streams: any of them decide and learn in one call."""

import copy
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, to_entries
from spillover.contracts import AnyPolicy, Policy, as_policy, setting_of
from spillover.contracts.hyperparameters import check_grid, value_of, with_values
from spillover.formatting import Shown
from spillover.learner.books import Books
from spillover.learner.one import Learner
from spillover.learner.reports import (
    Details,
    KnownRows,
    Rounds,
    check_feedback,
    known_after,
    lessons,
    missing_arms,
    own_context,
    own_doses,
    part_of,
    table,
)
from spillover.learner.rows import (
    ALL,
    Part,
    Rows,
    constants,
    copied,
    distinct_rows,
    put_all_back,
    put_back,
    rows_of,
    taken,
)
from spillover.learner.running import checked_setting, first_choice, player_of, to_the_end
from spillover.learner.saved import (
    ArrayFile,
    ManyReader,
    about_learner,
    arrays_of_many,
    check_seeds,
    save_array_file,
    saved_setting,
    seeds_of,
)
from spillover.rng import Purpose, Rng
from spillover.state import copy_state, take_replication
from spillover.tabular import in_columns
from spillover.types import Array, BoolArray, Choice, Feedback, IntArray, Problem, State


class Decided(NamedTuple):
    """What was chosen last, so that `play` need not choose again."""

    rows: Rows
    state: State  # of these rows
    choice: Choice


NO_CHOICE = Choice(np.zeros((0, 0), np.bool_))


class Learners(Shown):
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

    view = "spillover.views:LearnersView"

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
        self.lock = threading.RLock()
        self.setting = checked_setting(policy, problem, constraints, arms, effort)
        self.policy = self.setting.policy
        self.problem = copy.deepcopy(problem)
        self.rng = Rng.of_seeds(seeds)
        count = len(self.rng.keys)
        check_grid(self.policy, (count,))
        given = {name: value_of(self.policy, name) for name in self.policy.grids}
        self.values = {name: np.broadcast_to(value, count) for name, value in given.items() if np.ndim(value)}
        self.books = Books(count, problem)
        start = self.player(rows_of(None, count)).init(self.problem, self.rng.at(Purpose.START), (count,))
        self.state = copy_state(start)
        self.constant = constants(self.state)
        self.decided: Decided | None = None

    def __len__(self) -> int:
        return len(self.rng.keys)

    @property
    def rounds(self) -> IntArray:
        """How many rounds each has played."""
        return self.books.rounds.copy()

    @property
    def seeds(self) -> Any:
        """The seed of each learner."""
        return self.rng.keys[:, 0].copy()

    @property
    def pending(self) -> tuple[IntArray, IntArray]:
        """Learners and rounds whose outcomes have not been reported, sorted; `report` and `close` take them so."""
        with self.lock:
            learners, rounds, _ = self.books.waiting.everything()
            return learners, rounds

    def __copy__(self) -> "Learners":
        """Learners that go on by themselves: updates rewrite arrays, which must not be shared."""
        return copy.deepcopy(self)

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
            rows = distinct_rows(who, len(self))
            absent = self.missing(self.by_arm("available", available), rows.size)
            before = taken(self.state, rows.part)
            after, known = self.observed(rows, before, context)
            choice = self.decide(rows, after, absent, known)

            def commit() -> None:
                self.decided = None
                self.put(rows, before, after)
                self.books.absent[rows.part], self.books.context[rows.part] = absent, known
                self.decided = Decided(rows, after, choice)

            to_the_end(commit)
            return choice.x.copy()

    def by_arm(self, name: str, value: Any) -> Any:
        """A table with its columns in the order of the arms, if their names are known; anything else as it is."""
        return value if self.setting.arms is None else in_columns(name, value, self.setting.arms)

    def missing(self, available: Any, count: int) -> BoolArray:
        """The arms that are not available, (count, n)."""
        shape = (count, self.problem.n_arms)
        if np.ndim(available) == 2:
            mask = np.asarray(validate.unmasked("available", available))
            validate.require(mask.dtype == np.bool_, "available", available, f"True or False, of shape {shape}")
            validate.require(mask.shape == shape, "shape of available", mask.shape, f"{shape}")
            return ~mask
        absent = np.zeros(shape, np.bool_)
        absent[:, list(missing_arms(available, self.problem.n_arms, self.setting.arms))] = True
        return absent

    def observed(self, rows: Rows, state: State, context: Any) -> tuple[State, Array]:
        """The state of some learners that know the context of their coming round, and this context."""
        if context is None:
            return state, self.books.context[rows.part].copy()
        known = own_context(self.books.coming(rows, NO_CHOICE), context, self.problem.context)
        return self.player(rows).observe(state, known), known

    def decide(self, rows: Rows, state: State, absent: BoolArray, context: Array) -> Choice:
        """The decisions of some learners, whose state is given."""
        if not rows.size:
            return Choice(np.zeros(absent.shape, np.bool_))
        unknown = np.isnan(context).any(axis=-1)
        if unknown.any():
            accepted = f"the {self.problem.context} context values of the coming round, as in choose(context=...)"
            name = self.books.coming(rows, NO_CHOICE).name(int(unknown.argmax()))
            validate.require(False, f"{name}: context", None, accepted)
        rng = self.rng.take(rows.part).at(Purpose.CHOICE, self.books.rounds[rows.part] + 1)
        if not absent.any():
            choice = self.player(rows).select(state, rng)
            validate.own_decision(self.policy, choice.x, absent.shape, self.problem.budget)
            return choice
        patterns, pattern_of = np.unique(absent, axis=0, return_inverse=True)
        groups = [np.flatnonzero(pattern_of.reshape(-1) == k) for k in range(len(patterns))]
        choices: list[Any] = []
        for pattern, here in zip(patterns, groups, strict=True):
            player = self.player(rows_of(rows.places[here], len(self)), tuple(np.flatnonzero(pattern).tolist()))
            choices.append(player.select(taken(state, here), rng.take(here)))
        order = np.argsort(np.concatenate(groups))
        fields: list[Any] = [None if f[0] is None else np.concatenate(f)[order] for f in zip(*choices, strict=True)]
        return Choice(*fields)

    def player(self, rows: Rows, unavailable: tuple[int, ...] = ()) -> Policy:
        """The policy of some learners under the constraints and this round's availability."""
        setting = self.setting
        if self.values and not rows.everything:
            own = {name: values[rows.part] for name, values in self.values.items()}
            setting = setting._replace(policy=with_values(self.policy, own))
        return player_of(setting, unavailable)

    def play(self, who: Any = None, x: Any = None, *, context: Any = None, dose: Any = None) -> IntArray:
        """Record the decisions of a round: the policy's own, or x instead, (k, n_arms). Returns the round of each.

        context, dose: as for a `Learner`, a row for each.
        """
        with self.lock:
            rows = distinct_rows(who, len(self))
            x, dose = self.by_arm("x", x), self.by_arm("dose", dose)
            last = self.decided
            if context is None and last is not None and np.array_equal(last.rows.places, rows.places):
                before, choice, known = last.state, last.choice, self.books.context[rows.part].copy()
                state = before
            else:
                before = taken(self.state, rows.part)
                state, known = self.observed(rows, before, context)
                choice = self.decide(rows, state, self.books.absent[rows.part], known)
            if x is not None:
                own = table("x", x, (rows.size, self.problem.n_arms))
                check = self.books.coming(rows, NO_CHOICE).check
                choice = choice._replace(x=np.array(check(lambda one: validate.decision("x", one, one.shape), own)))
            coming = self.books.coming(rows, choice)
            amounts = own_doses(coming, dose, self.policy.traits.accepts_doses)
            after = self.player(rows).played(state, choice.x) if rows.size else state
            columns = choice._asdict() | {"context": known if self.problem.context else None, "dose": amounts}
            free, places = self.books.waiting.room_for(columns, rows.size)

            def commit() -> None:
                self.decided = None
                self.put(rows, before, after)
                self.books.advance(rows, coming.numbers)
                self.books.waiting.add(free, places, rows.places, coming.numbers, columns)

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
            rows = rows_of(who, len(self))
            given, places = self.books.pending(rows, rounds)
            by_arm = (self.by_arm(name, value) for name, value in (("dose", dose), ("z", z), ("y", y)))
            before, reported = self.books.details(places), Details(context, *by_arm)
            known = known_after(self.problem, given, before, reported, self.policy.traits.accepts_doses)
            check_feedback(self.problem, given, known, closed=False)
            takes_parts = np.full(len(places), self.policy.traits.accepts_missing)
            learned, in_parts = known.complete | takes_parts, ~known.in_one & takes_parts
            self.learn(rows, given, places, known, learned, in_parts, timed=True)

    def close(self, who: Any, rounds: Any) -> None:
        """Say that nothing more of these rounds will arrive; see `Learner.close`."""
        with self.lock:
            rows = rows_of(who, len(self))
            given, places = self.books.pending(rows, rounds)
            shape, known = given.choice.x.shape, self.books.details(places)
            z, y = (np.full(shape, np.nan) if part is None else part for part in (known.z, known.y))
            all_rows, nothing = np.ones(len(places), np.bool_), np.zeros(shape, np.bool_)
            last = KnownRows(known._replace(z=z, y=y), nothing, ~all_rows, all_rows)
            check_feedback(self.problem, given, last, closed=True)
            self.learn(rows, given, places, last, all_rows & self.policy.traits.accepts_missing, all_rows, timed=False)

    def learn(
        self,
        rows: Rows,
        rounds: Rounds,
        places: IntArray,
        known: KnownRows,
        learned: BoolArray,
        in_parts: BoolArray,
        *,
        timed: bool,
    ) -> None:
        """Learn what is known of some rounds; the complete ones are over, and with `timed` their delays count."""
        position = np.arange(rows.size)
        if not rows.distinct:
            several, position = np.unique(rows.places, return_inverse=True)
            rows = rows_of(several, len(self))
        state = copied(self.state, rows) if learned.any() else None
        for lesson in lessons(rounds, known, learned, in_parts):
            at = ALL if lesson.rows is ALL else position[lesson.rows]
            state = self.learn_lesson(state, at, rounds.some(lesson.rows), lesson.feedback(rounds, known))
        over, parts = np.flatnonzero(known.complete), np.flatnonzero(~known.complete)
        totals = self.books.delay_totals[rows.part].copy()
        if timed:
            age = (rounds.played - rounds.numbers)[over]
            np.add.at(totals[:, 0], position[over], 1)
            np.add.at(totals[:, 1], position[over], age)
            np.maximum.at(totals[:, 2], position[over], age)
        columns = part_of(known.details, parts)._asdict() if parts.size else {}
        self.books.waiting.make(columns)
        free = len(self.books.waiting.room[1])

        def commit() -> None:
            self.decided = None
            if state is not None and rows.everything:
                self.state = state
            elif state is not None:
                put_all_back(self.state, rows.part, state, self.constant)
            self.books.delay_totals[rows.part] = totals
            self.books.waiting.write(places[parts], {name: part for name, part in columns.items() if part is not None})
            self.books.waiting.remove(free, places[over], rounds.learners[over], rounds.numbers[over])

        to_the_end(commit)

    def learn_lesson(self, state: State, at: Part, rounds: Rounds, feedback: Feedback) -> State:
        """The state of some learners after those at these places of it have learned an outcome each."""
        some = rows_of(rounds.learners, len(self))
        policy = setting_of(self.player(some)).policy
        rng = self.rng.take(some.part).at(Purpose.LEARNING, rounds.numbers)
        if at is ALL:
            return policy.update(state, feedback, rng)
        put_all_back(state, at, policy.update(taken(state, at), feedback, rng), self.constant)
        return state

    # --- one of them -------------------------------------------------------------------------------------------------

    def learner(self, position: int) -> Learner:
        """A `Learner` that goes on from where this one is, by itself: to explain a decision, for example."""
        validate.whole("position", position, 0, len(self) - 1)
        with self.lock:
            _, constraints, arms, effort = self.setting
            policy = with_values(self.policy, {name: values[position].item() for name, values in self.values.items()})
            problem, seed = self.own_problem(position), int(self.rng.keys[position, 0])
            learner = Learner(policy, problem, seed=seed, constraints=constraints, arms=arms, effort=effort)
            learner.continue_from(self.books.book(position), take_replication(self.state, position))
            return learner

    def own_problem(self, position: int) -> Problem:
        """The problem of one learner."""
        problem, shapes = self.problem, {"reward_range": 2, "overall_range": 2, "weights": self.problem.n_arms}
        given = {name: getattr(problem, name) for name in shapes}
        spread = {n: np.broadcast_to(v, (len(self), shapes[n]))[position] for n, v in given.items() if np.ndim(v) == 2}
        if np.ndim(problem.structure) == 3:
            spread["structure"] = problem.structure[position]
        return copy.deepcopy(problem._replace(**spread))

    # --- on disk -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write all learners with their pending rounds to one file, atomically."""
        with self.lock:
            about = about_learner(self.policy, self.problem) | {
                "constraints": json.dumps(to_entries(self.setting.constraints))
            }
            save_array_file(path, {"seeds": self.seeds} | arrays_of_many(self.books, self.state), about)

    @classmethod
    def load(
        cls,
        path: str | Path,
        policy: AnyPolicy,
        problem: Problem,
        seeds: Sequence[int] | IntArray | None = None,
        *,
        constraints: Sequence[Constraint] | None = None,
        arms: Sequence[str] | None = None,
        effort: int | None = None,
    ) -> "Learners":
        """Continue where `save` left off, with the same policy and problem.

        seeds: to be compared with those of the file. constraints: from now on; the saved ones by default.
        """
        saved = ArrayFile(path)
        found = seeds_of(saved)
        if seeds is not None:
            check_seeds(path, found, Rng.of_seeds(seeds).keys[:, 0])
        given, constraints, effort = saved_setting(saved, as_policy(policy), problem, constraints, arms, effort)
        learners = cls(given, problem, found, constraints=constraints, arms=arms, effort=effort)
        saved.require(about_learner(learners.policy, problem))
        like = first_choice(learners.policy, problem, learners.state, learners.rng)
        learners.books, learners.state = ManyReader(saved, len(found), problem, learners.state).read(like)
        return learners

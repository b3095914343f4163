"""A policy in live use: choose arms, record what was played, report outcomes whenever they arrive."""

import copy
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, check_constraints
from spillover.constraints.search import check_effort
from spillover.contracts import AnyPolicy, Policy, as_policy, require_explains
from spillover.formatting import Shown
from spillover.journal import AllOrNothing, Running, put_back, running, with_entry
from spillover.learner_input import Details, Known, dose_of, feedback_of, is_line, missing_arms, same_names, with_report
from spillover.policies.constrained import Constrained
from spillover.reasons import Pending, Reasons, reasons
from spillover.rng import Purpose, Rng
from spillover.saved import Book, about_learner, read_learner, save_learner, saved_setting
from spillover.setting import Setting, first_choice, player_of, setting_of
from spillover.state import Saved
from spillover.types import Array, BoolArray, Choice, Explanation, Feedback, Problem, State

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNKNOWN = Details()  # of a round of which only the decision is known


class Learner(Shown):
    """A policy in use. It keeps track of the rounds whose outcomes are still pending.

    >>> import spillover as sp
    >>> learner = Learner(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2), seed=1)
    >>> learner.choose().astype(int)
    array([1, 0, 0])
    >>> learner.play(), learner.play([0, 1, 1])  # its own choice; and an override
    (1, 2)
    >>> learner.report(2, z=[0, 1, 0.5], y=[0.5, 1, 0.5])  # outcomes in any order
    >>> learner.pending
    [1]
    >>> learner.explain().mean
    array([nan, 1. , 0.5])

    If the problem has context, `choose` (or `play`) takes that of the coming round. Outcomes may be reported in parts.

    A call that fails or is interrupted changes nothing. Threads may share a learner; to play what was chosen, hold its
    `lock` around both calls: `with learner.lock: x = learner.choose(); learner.play()`.

    constraints: on its decisions, besides the budget (`spillover.constraints`). They may change when a saved learner is
    loaded: the state does not depend on them. arms: the names of the arms, if constraints use them; a pandas Series is
    then matched by its labels.
    effort: limit on the steps of the search for the best set under constraints; `reasons` says so if the best set
    found is not proved to be optimal.
    """

    view = "spillover.views:LearnerView"

    def __init__(
        self,
        policy: AnyPolicy,
        problem: Problem,
        *,
        seed: int = 0,
        constraints: Sequence[Constraint] = (),
        arms: Sequence[str] | None = None,
        effort: int | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.policy, self.constraints, self.arms, self.effort = setting_of(policy, problem, constraints, arms, effort)
        self.problem = copy.deepcopy(problem)  # its arrays may be the caller's
        self.reward_range = np.asarray(self.problem.reward_range, float)
        self.line = (self.problem.n_arms,)  # the shape of decisions and outcomes
        self.rng = Rng(seed)
        self.unavailable: tuple[int, ...] = ()  # this round
        self.constrained: tuple[Any, Policy] = (None, self.policy)  # what was asked of a search last, and the policy
        start = self.policy_this_round().init(self.problem, self.rng.at(Purpose.START))
        self.idle: State = start  # until it is used
        self.rounds = 0
        self.waiting: dict[int, Choice] = {}
        self.details: dict[int, Details] = {}  # of pending rounds that have any
        self.context: Any = None  # of the coming round
        self.delay_totals = (0, 0, 0)  # number of reported rounds, sum of their delays, longest delay
        self.decided: Choice | None = None  # for the coming round, if it was asked for

    @cached_property
    def running(self) -> Running:
        """The policy and its state in use; made at the first use, as a learner may only be asked for reasons."""
        return running(self.policy, self.idle)

    @property
    def state(self) -> State:
        """The state of the policy."""
        with self.lock:  # the last play may have to be recorded first
            return self.running.state if "running" in vars(self) else self.idle

    @state.setter
    def state(self, state: State) -> None:
        self.idle, self.decided = state, None
        vars(self).pop("running", None)

    @property
    def pending(self) -> list[int]:
        """Rounds played whose outcomes have not been reported."""
        return list(self.waiting)

    # --- all or nothing ----------------------------------------------------------------------------------------------

    def mark(self, round: int) -> tuple[Any, ...]:
        """All that a call may change, which is about one round; `restore` puts it back."""
        known = (round, self.waiting.get(round), self.details.get(round))
        now = self.running.mark_play() if round > self.rounds else self.running.mark()
        return (now, known, self.rounds, self.context, self.unavailable, self.delay_totals)

    def restore(self, mark: tuple[Any, ...]) -> None:
        """Undo a call that failed or was interrupted."""
        before, (round, choice, details), *rest = mark
        self.rounds, self.context, self.unavailable, self.delay_totals = rest
        self.decided = None
        self.waiting = with_entry(self.waiting, round, choice)
        self.details = with_entry(self.details, round, details)
        self.running.back_to(before)

    def __copy__(self) -> "Learner":
        """A learner that goes on by itself: updates rewrite arrays, which must not be shared."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, which cannot have the lock."""
        with self.lock:
            content = {**self.__dict__, "lock": None, "idle": self.state, "decided": None}
            content.pop("running", None)
            return content

    def __setstate__(self, content: dict[str, Any]) -> None:
        self.__dict__.update(content)
        self.lock = threading.RLock()

    # --- decisions ---------------------------------------------------------------------------------------------------

    def observe(self, context: Any) -> None:
        """Take in the context of the coming round, k numbers; another call replaces it."""
        with self.lock:
            known = self.own_context(context)
            with AllOrNothing(self):
                self.decided = None
                if known is not None:
                    self.running.observe(known)
                self.context = known

    def own_context(self, context: Any) -> Any:
        """Checked context, in an array of our own."""
        columns = self.problem.context
        given = validate.in_order("context", context, columns, None, "columns of the context")
        return copy.copy(validate.context(given, columns))

    def choose(self, available: Any = None, context: Any = None) -> BoolArray:
        """The decision for the next round, as a mask; repeated calls give the same one.

        available: the arms that can be played in this round, as a mask, positions or names; all by default. `play` and
        `explain` refer to the last call. context: of this round, if the problem has context; see `observe`.
        """
        with self.lock:
            if available is None and context is None and not self.unavailable:
                return self.decide().x.copy()  # nothing to change
            with AllOrNothing(self):
                self.decided = None
                self.unavailable = missing_arms(available, self.problem.n_arms, self.arms)
                if context is not None:
                    self.observe(context)
                return self.decide().x.copy()

    def decide(self) -> Choice:
        """The decision for the next round, made once: `play` plays what `choose` chose."""
        if self.decided is None:
            self.require_context()
            if self.constraints or self.unavailable:
                rng = self.rng.at(Purpose.CHOICE, self.rounds + 1)
                decided = self.policy_this_round().select(self.state, rng)
            else:
                decided = self.running.select(self.rng, self.rounds + 1)
            validate.own_decision(self.policy, decided.x, self.line, self.problem.budget)
            self.decided = decided
        return self.decided

    def require_context(self) -> None:
        """Raise a ValueError if the context of the coming round must be known, and is not."""
        if self.problem.context and self.context is None:
            accepted = f"the {self.problem.context} context values of the coming round, as in choose(context=...)"
            validate.require(False, "context", None, accepted)

    def policy_this_round(self) -> Policy:
        """The policy under its constraints and this round's availability."""
        if not self.constraints and not self.unavailable:
            return self.policy
        asked = (id(self.constraints), self.unavailable, self.arms, self.effort)
        if self.constrained[0] != asked:
            setting = Setting(self.policy, self.constraints, self.arms, self.effort)
            self.constrained = asked, player_of(setting, self.unavailable)
        return self.constrained[1]

    def under(
        self, constraints: Sequence[Constraint], *, arms: Sequence[str] | None = None, effort: int | None = None
    ) -> "Learner":
        """A learner with further constraints, to ask for a decision; it must not be updated: both share one state."""
        with self.lock:
            other = object.__new__(type(self))
            other.__dict__.update(self.__dict__)  # the lock too, as both share arrays
            if "running" in vars(self):
                other.running = self.running.branch()
            other.waiting, other.details = dict(self.waiting), dict(self.details)
        other.decided = None
        other.constraints = (*self.constraints, *check_constraints(constraints))
        other.arms = same_names(self.arms, arms)
        other.effort = self.effort if effort is None else effort
        check_effort(other.effort)
        if other.constraints:
            Constrained(policy=self.policy, constraints=other.constraints, arms=other.arms).check(self.problem)
        return other

    def at(self, waiting: dict[int, Choice], details: dict[int, Details]) -> "Learner":
        """A learner of the same setting with other pending rounds; to be given a state and a number of rounds."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.lock, other.waiting, other.details = threading.RLock(), waiting, details
        return other

    def play(self, x: Any = None, *, context: Any = None, dose: Any = None) -> int:
        """Record the decision of a round: the policy's own, or x instead (any set). Returns the number of the round.

        context: as in `choose`. dose: amounts for the chosen arms, relative to each arm's reference dose, if they are
        not all 1 (only for policies that accept doses); `report` takes them too.
        """
        with self.lock:
            if x is not None:
                x = np.array(validate.decision("x", self.in_order("x", x), (self.problem.n_arms,)))
            mark = self.mark(self.rounds + 1)
            try:  # as AllOrNothing does, which takes longer: a round of a small learner takes 15 microseconds
                if context is not None:
                    self.observe(context)
                choice = self.decide()
                if x is not None:
                    choice = choice._replace(x=x)
                self.record(choice, dose if dose is None else self.in_order("dose", dose))
                return self.rounds
            except BaseException:
                put_back(self, mark)
                raise

    def record(self, choice: Choice, dose: Any) -> None:
        """The next round was played."""
        amounts = None if dose is None else dose_of(dose, choice.x, self.policy.accepts_doses)
        context = self.context
        self.decided = None
        self.running.played(choice.x)
        self.rounds += 1
        self.unavailable, self.context = (), None
        self.waiting[self.rounds] = choice
        if amounts is not None or context is not None:
            self.details[self.rounds] = Details(context, amounts)

    def report(self, round: int, z: Any = None, y: Any = None, context: Any = None, *, dose: Any = None) -> None:
        """Report the outcome of a round: instantaneous rewards of the played arms, overall rewards of all arms.

        z: not given if the problem does not observe it. y: NaN for outcomes that are not known yet, which later reports
        of the same round add; a policy that does not accept missing outcomes learns the round when it is complete. If
        only the payoff is observed, y may be a single number. context, dose: if `play` was not given them.
        """
        with self.lock:
            self.require_pending(round)
            mark = self.mark(round)
            try:
                if not self.learned_at_once(int(round), z, y, context, dose):
                    self.learn(int(round), *self.known_after(round, z, y, context, dose))
            except BaseException:
                put_back(self, mark)
                raise

    def close(self, round: int) -> None:
        """Say that nothing more of a round will arrive, such as the conversions of an arm that had none.

        A policy that accepts missing outcomes may learn from that; for others the round is lost.
        """
        with self.lock:
            self.require_pending(round)
            with AllOrNothing(self, round):
                if self.policy.accepts_missing:
                    now, unknown = self.details.get(round, UNKNOWN), np.full(self.problem.n_arms, np.nan)
                    z, y = (unknown if part is None else part for part in (now.z, now.y))
                    last = Known(z, y, np.zeros(self.problem.n_arms, np.bool_), True)
                    self.update(round, self.checked(int(round), now, last, closed=True))
                self.end(round, timed=False)

    def require_pending(self, round: Any) -> None:
        if type(round) is not int:
            validate.whole("round", round, 1)
        if round not in self.waiting:
            accepted = f"a round that was played and not reported yet: {self.pending}"
            validate.require(False, "round", round, accepted)

    def learn(self, round: int, now: Details, known: Known) -> None:
        """Take in what is known of a round after a report."""
        feedback = self.checked(round, now, known)
        if known.complete or self.policy.accepts_missing:
            self.update(round, feedback)
        if known.complete:
            self.end(round, timed=True)
        else:
            self.details[round] = now

    def learned_at_once(self, round: int, z: Any, y: Any, context: Any, dose: Any) -> bool:
        """Learn a report of the usual kind, all outcomes of a round as arrays; False if it is of another kind.

        A report that is not right is of another kind too: what is wrong is found there.
        """
        if context is not None or dose is not None or round in self.details or self.problem.observes != "both":
            return False
        if not (is_line(z, self.line) and is_line(y, self.line)):
            return False
        self.decided = None
        given = self.waiting[round], z.copy(), y.copy()
        fine = self.running.learn(*given, self.reward_range, self.rounds, self.rng, round)
        if fine:
            self.end(round, timed=True)
        return fine

    def update(self, round: int, feedback: Feedback) -> None:
        self.decided = None
        self.running.update(feedback, self.rng, round)

    def end(self, round: int, *, timed: bool) -> None:
        """Nothing more will arrive of a round; with `timed` its delay counts."""
        if timed:
            age, (number, total, longest) = self.rounds - round, self.delay_totals
            self.delay_totals = (number + 1, total + age, longest if longest > age else age)
        del self.waiting[round]
        if round in self.details:
            del self.details[round]

    def known_after(self, round: int, z: Any, y: Any, context: Any, dose: Any) -> tuple[Details, Known]:
        """What is known of a round after a report."""
        given = Details(
            None if context is None else self.own_context(context),
            self.in_order("dose", dose),
            None if z is None else self.own("z", z),
            self.own("y", y),
        )
        before = self.details.get(round, UNKNOWN)
        return with_report(self.problem, self.waiting[round].x, before, given, self.policy.accepts_doses)

    def own(self, name: str, value: Any) -> Array:
        """Values of the arms as numbers, in an array of our own: the caller may go on to use his."""
        if type(value) is np.ndarray and value.dtype == np.float64:
            return value.copy()
        accepted = "numbers, NaN for outcomes that are not known yet"
        return np.array(validate.numbers(name, self.in_order(name, value), accepted))

    def in_order(self, name: str, value: Any) -> Any:
        """Values of the arms in the order of the arms."""
        return validate.in_order(name, value, self.problem.n_arms, self.arms, "arms")

    def checked(self, round: int, now: Details, known: Known, closed: bool = False) -> Feedback:
        """The feedback after a report; outcomes that are not known are NaN."""
        parts = known.fresh is not None and self.policy.accepts_missing
        given = feedback_of(self.waiting[round], now, known, self.rounds - round, in_parts=parts)
        strict = not closed and known.complete and self.problem.observes == "both" and now.dose is None
        check = validate.feedback if strict else validate.partial_feedback
        feedback: Feedback = check(given, (self.problem.n_arms,), self.reward_range, self.rounds)
        return feedback

    def explain(self, known: Explanation | None = None) -> Explanation:
        """The next decision and the estimates behind it.

        known: the estimates, if a learner with the same state and other constraints was asked for them already.
        """
        require_explains(self.policy, "to give reasons")
        with self.lock:
            self.require_context()
            policy, rng = self.policy_this_round(), self.rng.at(Purpose.CHOICE, self.rounds + 1)
            more = () if known is None else (known,)
            decision = policy.explain_choice(self.state, rng, *more)
            validate.own_decision(self.policy, decision.chosen, self.line, self.problem.budget)
            return decision

    def outline(self) -> Explanation:
        """`explain` without fields that take long and decide nothing, such as intervals."""
        require_explains(self.policy, "to give reasons")
        with self.lock:
            self.require_context()
            rng = self.rng.at(Purpose.CHOICE, self.rounds + 1)
            return self.explain(self.policy.outline(self.state, rng))

    def reasons(
        self, arms: Sequence[str] | None = None, *, explanation: Explanation | None = None, **options: Any
    ) -> Reasons:
        """The reasons for the next decision: how each score comes about, what a swap would change, and warnings.

        arms: their names, if the learner does not have them. explanation: that of another decision (default: that of
        the next one, see `explain`). options: passed on to `spillover.reasons.reasons`.
        """
        with self.lock:
            waiting = {played: choice.x for played, choice in self.waiting.items()}
            given: dict[str, Any] = {
                "budget": self.problem.budget,
                "pending": Pending(self.rounds, waiting, *self.delay_totals),
                "constraints": self.policy_this_round().constraints,
                "signals": self.policy.signals(self.state),
                "quantity": self.policy.quantity,
            }
            decision = self.explain() if explanation is None else explanation
            return reasons(decision, arms=self.arms if arms is None else arms, **given | options)

    def plot(self, arms: Sequence[str] | None = None, **options: Any) -> "Figure":
        """The next decision as a figure: the graph, and the parts of every score; arguments as for `reasons`.

        >>> import spillover as sp
        >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2))
        >>> learner.plot(["north", "south", "west"]).axes[1].get_title()
        'the parts of each score'
        """
        return self.reasons(arms, **options).plot()

    def save(self, path: str | Path) -> None:
        """Write the state and the pending rounds to a file, atomically."""
        with self.lock:
            book = Book(self.rounds, self.waiting, self.details, self.delay_totals, self.unavailable, self.context)
            save_learner(path, book, self.state, self.problem, self.about(), self.constraints)

    def about(self) -> dict[str, str]:
        """The policy, problem and seed that a saved file must match."""
        return about_learner(self.policy, self.problem) | {"seed": str(int(self.rng.keys[0]))}

    @classmethod
    def load(
        cls,
        path: str | Path,
        policy: AnyPolicy,
        problem: Problem,
        *,
        seed: int = 0,
        constraints: Sequence[Constraint] | None = None,
        arms: Sequence[str] | None = None,
        effort: int | None = None,
    ) -> "Learner":
        """Continue where `save` left off, with the same policy, problem and seed.

        constraints: from now on; the saved ones by default.
        """
        saved = Saved(path)
        given, constraints, effort = saved_setting(saved, as_policy(policy), problem, constraints, arms, effort)
        learner = cls(given, problem, seed=seed, constraints=constraints, arms=arms, effort=effort)
        saved.require(learner.about())
        like = first_choice(learner.policy, problem, learner.state, learner.rng)
        learner.continue_from(*read_learner(saved, problem, learner.state, like))
        return learner

    def continue_from(self, book: Book, state: State) -> None:
        """Go on from what another learner of the same policy, problem and seed has kept."""
        self.state = state
        self.rounds, self.waiting, self.details = book.rounds, book.waiting, book.details
        self.delay_totals, self.unavailable, self.context = book.delay_totals, book.unavailable, book.context

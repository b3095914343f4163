"""A policy in live use: choose arms, record what was played, report outcomes whenever they arrive."""

import copy
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, check_constraints
from spillover.constraints.search import check_effort
from spillover.contracts import AnyPolicy, Policy, Setting, as_policy, require_explains, setting_of
from spillover.formatting import Shown
from spillover.learner.books import Book
from spillover.learner.reports import (
    Details,
    Known,
    dose_of,
    feedback_of,
    is_line,
    missing_arms,
    same_names,
    with_report,
)
from spillover.learner.running import (
    Running,
    checked_setting,
    first_choice,
    nothing,
    player_of,
    running,
    to_the_end,
)
from spillover.learner.saved import about_learner, read_learner, save_learner, saved_setting
from spillover.policies.constrained import Constrained
from spillover.reasons import Pending, Reasons, reasons
from spillover.rng import Purpose, Rng
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
        setting = checked_setting(policy, problem, constraints, arms, effort)
        self.policy, self.constraints, self.arms, self.effort = setting
        self.problem = copy.deepcopy(problem)  # its arrays may be the caller's
        self.reward_range = np.asarray(self.problem.reward_range, float)
        self.line = (self.problem.n_arms,)  # the shape of decisions and outcomes
        self.rng = Rng(seed)
        self.unavailable: tuple[int, ...] = ()  # this round
        self.constrained: tuple[Any, Policy] = (None, self.policy)  # what was asked of a search last, and the policy
        start = self.policy_this_round(()).init(self.problem, self.rng.at(Purpose.START))
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
        with self.lock:
            return self.running.state if "running" in vars(self) else self.idle

    @state.setter
    def state(self, state: State) -> None:
        self.idle, self.decided = state, None
        vars(self).pop("running", None)

    @property
    def pending(self) -> list[int]:
        """Rounds played whose outcomes have not been reported."""
        return list(self.waiting)

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
            used, known = self.observed(context)
            to_the_end(lambda: self.decide_from(used, known, None))

    def observed(self, context: Any) -> tuple[Running, Any]:
        """What knows the context of the coming round, and this context."""
        known = self.own_context(context)
        state = self.state
        after = state if known is None else self.policy.observe(state, known)
        return self.running if after is state else running(self.policy, after), known

    def decide_from(self, used: Running, context: Any, decided: Choice | None) -> None:
        """Go on from a policy and its state, in this context; decided: what was chosen."""
        self.running, self.context, self.decided = used, context, decided

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
            absent = missing_arms(available, self.problem.n_arms, self.arms)
            if context is None and absent == self.unavailable and self.decided is not None:
                return self.decided.x.copy()  # nothing to change
            used, known = (self.running, self.context) if context is None else self.observed(context)
            choice = self.decide(used, known, absent)

            def commit() -> None:
                self.unavailable = absent
                self.decide_from(used, known, choice)

            to_the_end(commit)
            return choice.x.copy()

    def decide(self, used: Running, context: Any, absent: tuple[int, ...]) -> Choice:
        """The decision for the next round."""
        self.require_context(context)
        if self.constraints or absent:
            rng = self.rng.at(Purpose.CHOICE, self.rounds + 1)
            decided = self.policy_this_round(absent).select(used.state, rng)
        else:
            decided = used.select(self.rng, self.rounds + 1)
        validate.own_decision(self.policy, decided.x, self.line, self.problem.budget)
        return decided

    def require_context(self, context: Any) -> None:
        """Raise a ValueError if the context of the coming round must be known, and is not."""
        if self.problem.context and context is None:
            accepted = f"the {self.problem.context} context values of the coming round, as in choose(context=...)"
            validate.require(False, "context", None, accepted)

    def policy_this_round(self, absent: tuple[int, ...] | None = None) -> Policy:
        """The policy under its constraints, without these arms; by default without those left out of `choose`."""
        absent = self.unavailable if absent is None else absent
        if not self.constraints and not absent:
            return self.policy
        asked = (id(self.constraints), absent, self.arms, self.effort)
        if self.constrained[0] != asked:
            setting = Setting(self.policy, self.constraints, self.arms, self.effort)
            self.constrained = asked, player_of(setting, absent)
        return self.constrained[1]

    def under(
        self, constraints: Sequence[Constraint], *, arms: Sequence[str] | None = None, effort: int | None = None
    ) -> "Learner":
        """A learner with further constraints, to ask for a decision; it must not be updated: both share one state."""
        with self.lock:
            other = object.__new__(type(self))
            other.__dict__.update(self.__dict__)  # the lock too, as both share arrays
            other.waiting, other.details = dict(self.waiting), dict(self.details)
        other.decided = None
        other.constraints = (*self.constraints, *check_constraints(constraints))
        other.arms = same_names(self.arms, arms)
        other.effort = self.effort if effort is None else effort
        if effort is not None:
            check_effort(effort)
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
            if context is None and self.decided is not None:
                used, known, choice = self.running, self.context, self.decided
            else:
                used, known = (self.running, self.context) if context is None else self.observed(context)
                choice = self.decide(used, known, self.unavailable)
            if x is not None:
                choice = choice._replace(x=x)
            amounts = None
            if dose is not None:
                amounts = dose_of(self.in_order("dose", dose), choice.x, self.policy.traits.accepts_doses)
            round, told = self.rounds + 1, amounts is not None or known is not None
            write = used.playing(choice.x, round)

            def commit() -> None:
                write()
                self.decide_from(used, None, None)
                self.waiting[round] = choice
                if told:
                    self.details[round] = Details(known, amounts)
                self.rounds, self.unavailable = round, ()

            to_the_end(commit)
            return round

    def report(self, round: int, z: Any = None, y: Any = None, context: Any = None, *, dose: Any = None) -> None:
        """Report the outcome of a round: instantaneous rewards of the played arms, overall rewards of all arms.

        z: not given if the problem does not observe it. y: NaN for outcomes that are not known yet, which later reports
        of the same round add; a policy that does not accept missing outcomes learns the round when it is complete. If
        only the payoff is observed, y may be a single number. context, dose: if `play` was not given them.
        """
        with self.lock:
            self.require_pending(round)
            if not self.learned_at_once(int(round), z, y, context, dose):
                self.learn(int(round), *self.known_after(round, z, y, context, dose))

    def close(self, round: int) -> None:
        """Say that nothing more of a round will arrive, such as the conversions of an arm that had none.

        A policy that accepts missing outcomes may learn from that; for others the round is lost.
        """
        with self.lock:
            self.require_pending(round)
            write = nothing
            if self.policy.traits.accepts_missing:
                now, unknown = self.details.get(round, UNKNOWN), np.full(self.problem.n_arms, np.nan)
                z, y = (unknown if part is None else part for part in (now.z, now.y))
                last = Known(z, y, np.zeros(self.problem.n_arms, np.bool_), True)
                write = self.updating(round, self.checked(int(round), now, last, closed=True))
            self.end(round, write, timed=False)

    def require_pending(self, round: Any) -> None:
        if type(round) is not int:
            validate.whole("round", round, 1)
        if round not in self.waiting:
            accepted = f"a round that was played and not reported yet: {self.pending}"
            validate.require(False, "round", round, accepted)

    def learn(self, round: int, now: Details, known: Known) -> None:
        """Take in what is known of a round after a report."""
        feedback, write = self.checked(round, now, known), nothing
        if known.complete or self.policy.traits.accepts_missing:
            write = self.updating(round, feedback)
        if known.complete:
            self.end(round, write, timed=True)
            return

        def commit() -> None:
            write()
            self.decided = None
            self.details[round] = now

        to_the_end(commit)

    def learned_at_once(self, round: int, z: Any, y: Any, context: Any, dose: Any) -> bool:
        """Learn a report of the usual kind, all outcomes of a round as arrays; False if it is of another kind.

        A report that is not right is of another kind too: what is wrong is found there.
        """
        if context is not None or dose is not None or round in self.details or self.problem.observes != "both":
            return False
        if not (is_line(z, self.line) and is_line(y, self.line)):
            return False
        given = self.waiting[round], z.copy(), y.copy()
        write = self.running.learning(*given, self.reward_range, self.rounds, self.rng, round)
        if write is None:
            return False
        self.end(round, write, timed=True)
        return True

    def updating(self, round: int, feedback: Feedback) -> Callable[[], None]:
        """What makes the state the one after an outcome."""
        return self.running.updating(feedback, self.rng, round)

    def end(self, round: int, write: Callable[[], None], *, timed: bool) -> None:
        """Learn by `write` what is the last of a round; with `timed` its delay counts."""
        age, (number, total, longest) = self.rounds - round, self.delay_totals
        totals = (number + 1, total + age, longest if longest > age else age) if timed else self.delay_totals

        def commit() -> None:
            write()
            self.decided, self.delay_totals = None, totals
            self.waiting.pop(round, None)
            self.details.pop(round, None)

        to_the_end(commit)

    def known_after(self, round: int, z: Any, y: Any, context: Any, dose: Any) -> tuple[Details, Known]:
        """What is known of a round after a report."""
        given = Details(
            None if context is None else self.own_context(context),
            self.in_order("dose", dose),
            None if z is None else self.own("z", z),
            self.own("y", y),
        )
        before = self.details.get(round, UNKNOWN)
        return with_report(self.problem, self.waiting[round].x, before, given, self.policy.traits.accepts_doses)

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
        parts = known.fresh is not None and self.policy.traits.accepts_missing
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
            self.require_context(self.context)
            policy, rng = self.policy_this_round(self.unavailable), self.rng.at(Purpose.CHOICE, self.rounds + 1)
            more = () if known is None else (known,)
            decision = policy.explain_choice(self.state, rng, *more)
            validate.own_decision(self.policy, decision.chosen, self.line, self.problem.budget)
            return decision

    def outline(self) -> Explanation:
        """`explain` without fields that take long and decide nothing, such as intervals."""
        require_explains(self.policy, "to give reasons")
        with self.lock:
            self.require_context(self.context)
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
                "constraints": setting_of(self.policy_this_round(self.unavailable)).constraints,
                "signals": self.policy.signals(self.state),
                "quantity": self.policy.traits.quantity,
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
            save_learner(path, book, self.state, self.about(), self.constraints, self.problem)

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

"""A policy in live use: choose arms, record what was played, report outcomes whenever they arrive."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, Unavailable, check_constraints, finder, parse, to_entries
from spillover.contracts import AnyPolicy, Policy, as_policy, require_explains, suited
from spillover.policies.constrained import Constrained
from spillover.reasons import Pending, Reasons, reasons
from spillover.reports import Details, Known, dose_of, from_arrays, is_whole, merged, reported, same_or_new, to_arrays
from spillover.rng import Purpose, Rng
from spillover.set_search import EFFORT, check_effort
from spillover.state import fill, leaves, load_about, load_arrays, save_arrays
from spillover.types import BoolArray, Choice, Explanation, Feedback, Problem

UNKNOWN = Details()  # of a round of which only the decision is known
CARRIED = ("probability", "memo")  # what a choice may carry until its outcome arrives
SAVED = {"context": "context", "dose": "dose", "z": "reported_z", "y": "reported_y"}  # details of pending rounds


class Learner:
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

    constraints: on its decisions, besides the budget (`spillover.constraints`). They may change when a saved learner is
    loaded: the state does not depend on them. arms: the names of the arms, if constraints use them.
    effort: limit on the steps of the search for the best set under constraints; `reasons` says so if the best set
    found is not proved to be optimal.
    """

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
        validate.problem(problem)
        given = suited(policy, problem)
        self.policy = given.unconstrained
        self.constraints: tuple[Constraint, ...] = (*given.constraints, *check_constraints(constraints))
        self.arms = same_names(given.arms, arms)
        self.effort = effort if effort is not None else given.effort or EFFORT
        check_effort(self.effort)
        self.problem = problem
        self.rng = Rng(seed)
        self.unavailable: tuple[int, ...] = ()  # this round
        self.constrained: tuple[Any, Policy] = (None, self.policy)  # what was asked of a search last, and the policy
        self.state = self.policy_this_round().init(problem, self.rng.at(Purpose.START))
        self.rounds = 0
        self.waiting: dict[int, Choice] = {}
        self.details: dict[int, Details] = {}  # of pending rounds that have any
        self.context: Any = None  # of the coming round
        self.delay_totals = np.zeros(3, np.int64)  # number of reported rounds, sum of their delays, longest delay

    @property
    def pending(self) -> list[int]:
        """Rounds played whose outcomes have not been reported."""
        return list(self.waiting)

    def observe(self, context: Any) -> None:
        """Take in the context of the coming round, k numbers; another call replaces it."""
        known = validate.context(context, self.problem.context)
        if known is not None:
            self.state = self.policy.observe(self.state, known)
        self.context = known

    def choose(self, available: Any = None, context: Any = None) -> BoolArray:
        """The decision for the next round, as a mask; repeated calls give the same one.

        available: the arms that can be played in this round, as a mask, positions or names; all by default. `play` and
        `explain` refer to the last call. context: of this round, if the problem has context; see `observe`.
        """
        if context is not None:
            self.observe(context)
        before = self.unavailable
        self.unavailable = missing_arms(available, self.problem.n_arms, self.arms)
        try:
            return self.decide().x
        except Exception:
            self.unavailable = before
            raise

    def decide(self) -> Choice:
        self.require_context()
        return self.policy_this_round().select(self.state, self.rng.at(Purpose.CHOICE, self.rounds + 1))

    def require_context(self) -> None:
        """Raise a ValueError if the context of the coming round is not known."""
        if self.problem.context and self.context is None:
            accepted = f"the {self.problem.context} context values of the coming round, as in choose(context=...)"
            validate.require(False, "context", None, accepted)

    def policy_this_round(self) -> Policy:
        """The policy under its constraints and this round's availability."""
        if not self.constraints and not self.unavailable:
            return self.policy
        asked = (id(self.constraints), self.unavailable, self.arms, self.effort)
        if self.constrained[0] != asked:
            today = (Unavailable(self.unavailable, label="this round"),) if self.unavailable else ()
            kept = (*self.constraints, *today)
            policy = Constrained(policy=self.policy, constraints=kept, arms=self.arms, effort=self.effort)
            self.constrained = asked, policy
        return self.constrained[1]

    def under(
        self, constraints: Sequence[Constraint], *, arms: Sequence[str] | None = None, effort: int | None = None
    ) -> "Learner":
        """A learner with further constraints, to ask for a decision; it must not be updated: both share one state."""
        other = copy.copy(self)
        other.waiting, other.details = dict(self.waiting), dict(self.details)
        other.constraints = (*self.constraints, *check_constraints(constraints))
        other.arms = same_names(self.arms, arms)
        other.effort = self.effort if effort is None else effort
        check_effort(other.effort)
        if other.constraints:
            Constrained(policy=self.policy, constraints=other.constraints, arms=other.arms).check(self.problem)
        return other

    def play(self, x: Any = None, *, context: Any = None, dose: Any = None) -> int:
        """Record the decision of a round: the policy's own, or x instead (any set). Returns the number of the round.

        context: as in `choose`. dose: amounts for the chosen arms, relative to each arm's reference dose, if they are
        not all 1 (only for policies that accept doses); `report` takes them too.
        """
        if context is not None:
            self.observe(context)
        choice = self.decide()
        if x is not None:
            choice = choice._replace(x=validate.decision("x", x, (self.problem.n_arms,)))
        details = Details(self.context, dose_of(dose, choice.x, self.policy.accepts_doses))
        self.state = self.policy.played(self.state, choice.x)
        self.rounds += 1
        self.unavailable, self.context = (), None
        self.waiting[self.rounds] = choice
        if any(part is not None for part in details):
            self.details[self.rounds] = details
        return self.rounds

    def report(self, round: int, z: Any = None, y: Any = None, context: Any = None, *, dose: Any = None) -> None:
        """Report the outcome of a round: instantaneous rewards of the played arms, overall rewards of all arms.

        z: not given if the problem does not observe it. y: NaN for outcomes that are not known yet, which later reports
        of the same round add; a policy that does not accept missing outcomes learns the round when it is complete. If
        only the payoff is observed, y may be a single number. context, dose: if `play` was not given them.
        """
        if round not in self.waiting:
            accepted = f"a round that was played and not reported yet: {self.pending}"
            validate.require(False, "round", round, accepted)
        now, known = self.known_after(round, z, y, context, dose)
        feedback = self.checked(round, now, known)
        if known.complete or self.policy.accepts_missing:
            self.state = self.policy.update(self.state, feedback, self.rng.at(Purpose.LEARNING, round))
        if not known.complete:
            self.details[round] = now
            return
        del self.waiting[round]
        self.details.pop(round, None)
        age = self.rounds - round
        number, total, longest = self.delay_totals
        self.delay_totals = np.array([number + 1, total + age, max(longest, age)])

    def known_after(self, round: int, z: Any, y: Any, context: Any, dose: Any) -> tuple[Details, Known]:
        """What is known of a round after a report."""
        before = self.details.get(round, UNKNOWN)
        plain = before is UNKNOWN and context is None and dose is None and self.problem.observes == "both"
        if plain and z is not None and is_whole(y):
            return UNKNOWN, Known(z, y, None, True)
        amounts = same_or_new("dose", before.dose, dose_of(dose, self.waiting[round].x, self.policy.accepts_doses))
        given = before if context is None else self.with_context(before, context)
        rewards, outcomes = reported(self.problem, z, y)
        whole = before.y is None and is_whole(outcomes)
        known = Known(rewards, outcomes, None, True) if whole else merged(before, rewards, outcomes, self.problem)
        return given._replace(dose=amounts, z=known.z, y=known.y), known

    def with_context(self, before: Details, context: Any) -> Details:
        checked = validate.context(context, self.problem.context)
        return before._replace(context=same_or_new("context", before.context, checked))

    def checked(self, round: int, now: Details, known: Known) -> Feedback:
        """The feedback after a report; outcomes that are not known are NaN."""
        x, probability, memo = self.waiting[round]
        in_parts = known.fresh is not None and self.policy.accepts_missing
        fresh, complete = (known.fresh, np.array(known.complete)) if in_parts else (None, None)
        age, arrived = np.array(self.rounds - round), np.array(True)
        carried = (probability, memo, now.context, fresh, complete, now.dose)
        given = Feedback(x, known.z, known.y, age, arrived, *carried)
        strict = known.complete and self.problem.observes == "both" and now.dose is None
        check = validate.feedback if strict else validate.partial_feedback
        reward_range = np.asarray(self.problem.reward_range, float)
        feedback: Feedback = check(given, (self.problem.n_arms,), reward_range, self.rounds)
        return feedback

    def explain(self) -> Explanation:
        """The next decision and the estimates behind it."""
        require_explains(self.policy, "to give reasons")
        self.require_context()
        return self.policy_this_round().explain_choice(self.state, self.rng.at(Purpose.CHOICE, self.rounds + 1))

    def reasons(
        self, arms: Sequence[str] | None = None, *, explanation: Explanation | None = None, **options: Any
    ) -> Reasons:
        """The reasons for the next decision: how each score comes about, what a swap would change, and warnings.

        arms: their names, if the learner does not have them. explanation: that of another decision (default: that of
        the next one, see `explain`). options: passed on to `spillover.reasons.reasons`.
        """
        waiting = {played: choice.x for played, choice in self.waiting.items()}
        reported, total, longest = self.delay_totals.tolist()
        given: dict[str, Any] = {
            "budget": self.problem.budget,
            "pending": Pending(self.rounds, waiting, reported, total, longest),
            "constraints": self.policy_this_round().constraints,
            "signals": self.policy.signals(self.state),
            "quantity": self.policy.quantity,
        }
        decision = self.explain() if explanation is None else explanation
        return reasons(decision, arms=self.arms if arms is None else arms, **given | options)

    def save(self, path: str | Path) -> None:
        """Write the state and the pending rounds to a file, atomically."""
        choices = list(self.waiting.values())
        arrays = {f"state.{name}": leaf for name, leaf in leaves(self.state).items()}
        arrays["rounds"] = np.array(self.rounds)
        arrays["delay_totals"] = self.delay_totals
        arrays["pending"] = np.array(self.pending, np.int64)
        arrays["x"] = np.array([c.x for c in choices], np.bool_).reshape(-1, self.problem.n_arms)
        arrays |= to_arrays(self.carried())
        if self.context is not None:
            arrays["coming_context"] = self.context
        if self.unavailable:
            arrays["unavailable"] = np.array(self.unavailable, np.int64)
        save_arrays(path, arrays, self.about() | {"constraints": json.dumps(to_entries(self.constraints))})

    def carried(self) -> dict[str, dict[int, Any]]:
        """What pending rounds have besides their decisions, by name and round: not all of a history need to."""
        held: dict[str, dict[int, Any]] = {}
        for name in CARRIED:
            held[name] = {played: getattr(choice, name) for played, choice in self.waiting.items()}
        for name, saved in SAVED.items():
            held[saved] = {played: getattr(details, name) for played, details in self.details.items()}
        return {name: {t: value for t, value in values.items() if value is not None} for name, values in held.items()}

    def about(self) -> dict[str, str]:
        """The policy, problem and seed that a saved file must match."""
        return {"policy": repr(self.policy), "problem": described(self.problem), "seed": str(int(self.rng.keys[0]))}

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
        given = as_policy(policy)
        names = same_names(given.arms, arms)
        if constraints is None:  # those of the policy are among the saved ones
            constraints = saved_constraints(path, problem.n_arms if names is None else names)
            given, effort = given.unconstrained, given.effort if effort is None else effort
        learner = cls(given, problem, seed=seed, constraints=constraints, arms=names, effort=effort)
        arrays = load_arrays(path, learner.about())
        missing = {"rounds", "pending", "x"} - arrays.keys()
        validate.require(
            not missing, f"{path}: fields", sorted(arrays), f"those of a saved learner; no {sorted(missing)}"
        )
        stored = {name.removeprefix("state."): leaf for name, leaf in arrays.items() if name.startswith("state.")}
        learner.state = fill(path, stored, learner.state)
        learner.rounds = int(arrays["rounds"])
        learner.delay_totals = arrays.get("delay_totals", learner.delay_totals)
        learner.unavailable = tuple(arrays.get("unavailable", np.zeros(0, np.int64)).tolist())
        choices = zip(arrays["pending"].tolist(), arrays["x"], strict=True)
        learner.waiting = {played: Choice(x) for played, x in choices}
        for name in CARRIED:
            for played, value in from_arrays(arrays, name).items():
                learner.waiting[played] = learner.waiting[played]._replace(**{name: value})
        for name, saved in SAVED.items():
            for played, value in from_arrays(arrays, saved).items():
                before = learner.details.get(played, UNKNOWN)
                learner.details[played] = before._replace(**{name: value})
        learner.context = arrays.get("coming_context")
        return learner


def described(problem: Problem) -> str:
    """The problem as text; fields that older files do not have are left out where they have their defaults."""
    added = ("observes", "context", "baseline")
    plain = all(getattr(problem, name) == Problem._field_defaults[name] for name in added)
    return repr(problem).partition(f", {added[0]}=")[0] + ")" if plain else repr(problem)


def same_names(known: tuple[str, ...] | None, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of the arms; names that are known already must not be contradicted."""
    if given is None:
        return known
    accepted = f"the names that the constraints use, {known}"
    validate.require(known is None or tuple(given) == known, "arms", tuple(given), accepted)
    return tuple(given)


def missing_arms(available: Any, n: int, arms: tuple[str, ...] | None) -> tuple[int, ...]:
    """The positions of the arms that are not available; `available` is a mask, positions or names."""
    if available is None:
        return ()
    given = np.asarray(available)
    accepted = f"a mask of {n} values True or False, or a list of arms"
    if given.dtype == np.bool_:
        validate.require(given.shape == (n,), "shape of available", given.shape, f"({n},)")
        return tuple(np.flatnonzero(~given).tolist())
    is_list = given.ndim == 1 and (given.dtype.kind in "iuU" or given.size == 0)
    validate.require(is_list, "available", available, accepted)
    find = finder(n, arms)
    present = {find("available", arm) for arm in given.tolist()}
    return tuple(position for position in range(n) if position not in present)


def saved_constraints(path: str | Path, arms: Sequence[str] | int) -> tuple[Constraint, ...]:
    """The constraints of a saved learner."""
    entries = json.loads(load_about(path).get("constraints", "[]"))
    try:
        return parse(entries, arms)
    except ValueError as error:
        raise ValueError(f"{path}: {error} (constraints by name need the names: load(..., arms=...))") from None

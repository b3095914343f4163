"""One live learner: ask which arms, say what was done, report outcomes whenever they come."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spillover import validate
from spillover.constraints import Constraint, Unavailable, finder, parse, to_entries
from spillover.exact import EFFORT
from spillover.oracle import check_effort
from spillover.policies.constrained import Constrained
from spillover.reasons import EXPECTED, Pending, Reasons, reasons
from spillover.rng import Purpose, Rng
from spillover.state import fill, leaves, load_about, load_arrays, save_arrays
from spillover.types import BoolArray, Choice, Explains, Explanation, Feedback, Policy, Problem


class Learner:
    """A policy in use. It remembers the rounds whose outcomes are still to come.

    >>> import spillover as sp
    >>> learner = Learner(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2), seed=1)
    >>> learner.choose().astype(int)
    array([1, 0, 0])
    >>> learner.play(), learner.play([0, 1, 1])  # as it chose; and as somebody decided instead
    (1, 2)
    >>> learner.report(2, z=[0, 1, 0.5], y=[0.5, 1, 0.5])  # outcomes in any order
    >>> learner.pending
    [1]
    >>> learner.explain().mean
    array([nan, 1. , 0.5])

    constraints: what its decisions keep besides the budget (`spillover.constraints`). They may be others when a saved
    learner is loaded: what was learned does not depend on them. arms: the names of the arms, if constraints use them.
    effort: steps after which the search for the best set under constraints ends with the best one so far; `reasons`
    says so when that set is not proved to be the best.
    """

    def __init__(
        self,
        policy: Policy,
        problem: Problem,
        *,
        seed: int = 0,
        constraints: Sequence[Constraint] = (),
        arms: Sequence[str] | None = None,
        effort: int = EFFORT,
    ) -> None:
        check_effort(effort)
        self.effort = effort
        self.policy = policy
        if len(constraints):
            self.policy = Constrained(policy=policy, constraints=constraints, arms=arms, effort=effort)
        self.problem = problem
        self.arms = None if arms is None else tuple(arms)
        self.rng = Rng(seed)
        self.state = self.policy.init(problem, self.rng.at(Purpose.START))
        self.rounds = 0
        self.waiting: dict[int, Choice] = {}
        self.late = np.zeros(3, np.int64)  # rounds reported, the sum of their delays, the longest of them
        self.unavailable: tuple[int, ...] = ()  # this round

    @property
    def pending(self) -> list[int]:
        """Rounds played whose outcomes have not been reported."""
        return list(self.waiting)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What its decisions keep besides the budget, round for round."""
        return tuple(getattr(self.policy, "constraints", ()))

    def choose(self, available: Any = None) -> BoolArray:
        """The decision for the next round, as a mask; asking again gives the same.

        available: the arms that can be played in this round, as a mask, positions or names; all when not given. The
        answer to the last question is what `play` plays and `explain` explains.
        """
        before = self.unavailable
        self.unavailable = missing_arms(available, self.problem.n_arms, self.arms)
        try:
            return self.decide().x
        except ValueError:
            self.unavailable = before
            raise

    def decide(self) -> Choice:
        return self.today().select(self.state, self.rng.at(Purpose.CHOICE, self.rounds + 1))

    def today(self) -> Policy:
        """The policy as it decides this round: with what is not available, if anything is not."""
        if not self.unavailable:
            return self.policy
        kept = (*self.constraints, Unavailable(self.unavailable, label="this round"))
        if isinstance(self.policy, Constrained):
            arms = self.policy.arms if self.arms is None else self.arms
            return replace(self.policy, constraints=kept, arms=arms)
        return Constrained(policy=self.policy, constraints=kept, arms=self.arms, effort=self.effort)

    def play(self, x: Any = None) -> int:
        """Say what was played: its own choice, or x instead (any set). Returns the number of the round."""
        choice = self.decide()
        if x is not None:
            choice = choice._replace(x=validate.decision("x", x, (self.problem.n_arms,)))
        self.state = self.policy.played(self.state, choice.x)
        self.rounds += 1
        self.unavailable = ()
        self.waiting[self.rounds] = choice
        return self.rounds

    def report(self, round: int, z: Any, y: Any) -> None:
        """Report what came of a round: instantaneous rewards of the arms played, overall rewards of all arms."""
        if round not in self.waiting:
            accepted = f"a round that was played and not reported yet: {self.pending}"
            validate.require(False, "round", round, accepted)
        x, memo = self.waiting[round]
        given = Feedback(x, z, y, np.array(self.rounds - round), np.array(True), memo)
        limits = np.asarray(self.problem.reward_range, float)
        feedback = validate.feedback(given, (self.problem.n_arms,), limits, self.rounds)
        self.state = self.policy.update(self.state, feedback, self.rng.at(Purpose.LEARNING, round))
        del self.waiting[round]
        age = self.rounds - round
        self.late = np.array([self.late[0] + 1, self.late[1] + age, max(self.late[2], age)])

    def explain(self) -> Explanation:
        """Why: what the policy holds as it decides the next round."""
        if not isinstance(self.policy, Explains):
            raise TypeError(f"policy = {self.policy!r}: must have an explain(state) to say why")
        today: Any = self.today()
        told: Explanation = today.explain(self.state, self.rng)
        return told

    def reasons(self, arms: Sequence[str] | None = None, **options: Any) -> Reasons:
        """Why, taken apart: what each arm's score is made of, what a swap would change, and what is amiss.

        arms: their names, if the learner was not given them. options: further ones of `spillover.reasons.reasons`.
        """
        signals: Any = getattr(self.policy, "signals", lambda state: {})
        waiting = {played: choice.x for played, choice in self.waiting.items()}
        reported, total, longest = self.late.tolist()
        given: dict[str, Any] = {
            "budget": self.problem.budget,
            "pending": Pending(self.rounds, waiting, reported, total, longest),
            "constraints": tuple(getattr(self.today(), "constraints", ())),
            "signals": signals(self.state),
            "quantity": getattr(self.policy, "quantity", None) or EXPECTED,
        }
        return reasons(self.explain(), arms=self.arms if arms is None else arms, **given | options)

    def save(self, path: str | Path) -> None:
        """Write all that was learned and what is pending, whole or not at all."""
        choices = list(self.waiting.values())
        arrays = {f"state.{name}": leaf for name, leaf in leaves(self.state).items()}
        arrays["rounds"] = np.array(self.rounds)
        arrays["late"] = self.late
        arrays["pending"] = np.array(self.pending, np.int64)
        arrays["x"] = np.array([c.x for c in choices], np.bool_).reshape(-1, self.problem.n_arms)
        if choices and choices[0].memo is not None:
            arrays["memo"] = np.array([c.memo for c in choices])
        if self.unavailable:
            arrays["unavailable"] = np.array(self.unavailable, np.int64)
        save_arrays(path, arrays, self.about() | {"constraints": json.dumps(to_entries(self.constraints))})

    def about(self) -> dict[str, str]:
        """What a saved learner belongs to."""
        inner = self.policy.policy if isinstance(self.policy, Constrained) else self.policy
        return {"policy": repr(inner), "problem": repr(self.problem), "seed": str(int(self.rng.keys[0]))}

    @classmethod
    def load(
        cls,
        path: str | Path,
        policy: Policy,
        problem: Problem,
        *,
        seed: int = 0,
        constraints: Sequence[Constraint] | None = None,
        arms: Sequence[str] | None = None,
        effort: int = EFFORT,
    ) -> "Learner":
        """Go on from where `save` left off, with the same policy, problem and seed.

        constraints: others from now on; those that were saved when not given (a file without any has none).
        """
        if constraints is None:
            constraints = saved_constraints(path, problem.n_arms if arms is None else arms)
        learner = cls(policy, problem, seed=seed, constraints=constraints, arms=arms, effort=effort)
        arrays = load_arrays(path, learner.about())
        missing = {"rounds", "pending", "x"} - arrays.keys()
        validate.require(
            not missing, f"{path}: fields", sorted(arrays), f"those of a saved learner; no {sorted(missing)}"
        )
        stored = {name.removeprefix("state."): leaf for name, leaf in arrays.items() if name.startswith("state.")}
        learner.state = fill(path, stored, learner.state)
        learner.rounds = int(arrays["rounds"])
        learner.late = arrays.get("late", learner.late)  # files from before it was kept have none
        learner.unavailable = tuple(arrays.get("unavailable", np.zeros(0, np.int64)).tolist())
        memos = arrays.get("memo", [None] * len(arrays["pending"]))
        entries = zip(arrays["pending"].tolist(), arrays["x"], memos, strict=True)
        learner.waiting = {played: Choice(x, memo) for played, x, memo in entries}
        return learner


def missing_arms(available: Any, n: int, arms: tuple[str, ...] | None) -> tuple[int, ...]:
    """The arms that are not among the available ones: a mask, positions or names."""
    if available is None:
        return ()
    given = np.asarray(available)
    accepted = f"a mask of {n} values True or False, or a list of arms"
    if given.dtype == np.bool_:
        validate.require(given.shape == (n,), "shape of available", given.shape, f"({n},)")
        return tuple(np.flatnonzero(~given).tolist())
    listed = given.ndim == 1 and (given.dtype.kind in "iuU" or given.size == 0)
    validate.require(listed, "available", available, accepted)
    find = finder(n, arms)
    there = {find("available", arm) for arm in given.tolist()}
    return tuple(place for place in range(n) if place not in there)


def saved_constraints(path: str | Path, arms: Sequence[str] | int) -> tuple[Constraint, ...]:
    """The constraints of a saved learner."""
    entries = json.loads(load_about(path).get("constraints", "[]"))
    try:
        return parse(entries, arms)
    except ValueError as error:
        raise ValueError(f"{path}: {error} (constraints by name need the names: load(..., arms=...))") from None

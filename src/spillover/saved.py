"""The file of a learner: what it holds, and whether that can be true.

A hash tells damage (`state.Saved`). It does not tell a file that somebody wrote on purpose, so every value is checked.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels
from spillover.constraints import Constraint, parse, to_entries
from spillover.contracts import Policy
from spillover.learner_input import Details, same_names
from spillover.state import Saved, check_ranges, fill, leaves, save_arrays
from spillover.types import Choice, Problem, State
from spillover.validate import require, shown

CHOICE = ("probability", "memo")  # what a choice may carry until its outcome arrives
DETAILS = {"context": "context", "dose": "dose", "z": "reported_z", "y": "reported_y"}  # of pending rounds, in a file
STATE = "state."


class Book(NamedTuple):
    """All that a learner keeps besides the state of its policy."""

    rounds: int
    waiting: dict[int, Choice]
    details: dict[int, Details]
    delay_totals: tuple[int, int, int]
    unavailable: tuple[int, ...]
    context: Any


def to_arrays(book: Book, n_arms: int) -> dict[str, Any]:
    """A book as named arrays."""
    arrays = {
        "rounds": np.array(book.rounds, np.int64),
        "delay_totals": np.array(book.delay_totals, np.int64),
        "pending": np.array(list(book.waiting), np.int64),
        "x": np.array([choice.x for choice in book.waiting.values()], np.bool_).reshape(-1, n_arms),
        "unavailable": np.array(book.unavailable, np.int64),
    }
    held = {name: {t: getattr(choice, name) for t, choice in book.waiting.items()} for name in CHOICE}
    held |= {saved: {t: getattr(one, name) for t, one in book.details.items()} for name, saved in DETAILS.items()}
    for name, values in held.items():
        given = {t: values[t] for t in sorted(values) if values[t] is not None}
        if given:
            arrays[f"{name}_rounds"] = np.array(list(given), np.int64)
            arrays[name] = np.array(list(given.values()))
    return arrays if book.context is None else arrays | {"coming_context": book.context}


class Reader:
    """Takes a book out of the arrays of a file; every error names the file and the field."""

    def __init__(self, path: str | Path, arrays: Mapping[str, Any], problem: Problem) -> None:
        self.path, self.problem = path, problem
        self.arrays = {name: value for name, value in arrays.items() if not name.startswith(STATE)}

    def book(self, like: Choice) -> Book:
        """The book of a learner whose choices are like the given one."""
        rounds = int(self.take("rounds", np.int64, ()))
        self.require(rounds >= 0, "rounds", rounds, "a number of rounds")
        pending = self.round_list("pending", range(1, rounds + 1))
        n = self.problem.n_arms
        x = self.take("x", np.bool_, (len(pending), n))
        waiting = {played: Choice(np.array(row)) for played, row in zip(pending, x, strict=True)}
        for played, value in self.carried("probability", pending, float, (n,), low=0.0, high=1.0).items():
            good = bool((value[waiting[played].x] > 0).all())
            self.require(good, "probability", value, f"> 0 for the arms that were drawn in round {played}")
            waiting[played] = waiting[played]._replace(probability=value)
        memo = np.zeros(0) if like.memo is None else np.asarray(like.memo)
        for played, value in self.carried("memo", pending, memo.dtype, memo.shape).items():
            waiting[played] = waiting[played]._replace(memo=value)
        book = Book(rounds, waiting, self.details(pending), self.totals(rounds, pending), self.absent(), self.coming())
        self.require(not self.arrays, "fields", sorted(self.arrays), "those of a saved learner only")
        return book

    def details(self, pending: list[int]) -> dict[int, Details]:
        n, columns, largest = self.problem.n_arms, self.problem.context, kernels.LARGEST_OUTCOME
        found: dict[int, Details] = {}
        outcome: dict[str, Any] = {"low": -largest, "high": largest, "nan": True}
        fields: tuple[tuple[str, int, dict[str, Any]], ...] = (
            ("context", columns, {}),
            ("dose", n, {"low": 0.0}),
            ("z", n, outcome),
            ("y", n, outcome),
        )
        for field, length, limits in fields:
            for played, value in self.carried(DETAILS[field], pending, float, (length,), **limits).items():
                found[played] = found.get(played, Details())._replace(**{field: value})
        return found

    def totals(self, rounds: int, pending: list[int]) -> tuple[int, int, int]:
        number, total, longest = self.take("delay_totals", np.int64, (3,)).tolist()
        good = 0 <= number <= rounds - len(pending) and 0 <= longest <= total <= number * longest and longest <= rounds
        accepted = f"number, sum and largest of the delays of at most {rounds - len(pending)} rounds"
        self.require(good, "delay_totals", [number, total, longest], accepted)
        return number, total, longest

    def absent(self) -> tuple[int, ...]:
        return tuple(self.round_list("unavailable", range(self.problem.n_arms)))

    def coming(self) -> Any:
        if "coming_context" not in self.arrays:
            return None
        shape = (self.problem.context,)
        self.require(self.problem.context > 0, "coming_context", "given", "absent, as the problem has no context")
        value = self.take("coming_context", float, shape)
        self.require(bool(np.isfinite(value).all()), "coming_context", value, "finite numbers")
        return value

    def carried(
        self,
        name: str,
        pending: list[int],
        kind: Any,
        shape: tuple[int, ...],
        *,
        low: float = -np.inf,
        high: float = np.inf,
        nan: bool = False,
    ) -> dict[int, Any]:
        """What some pending rounds have besides their decision, by round."""
        if name not in self.arrays and f"{name}_rounds" not in self.arrays:
            return {}
        rounds = self.round_list(f"{name}_rounds", pending)
        values = self.take(name, kind, (len(rounds), *shape))
        inside = np.isfinite(values) & (values >= low) & (values <= high)
        good = bool((inside | np.isnan(values) if nan else inside).all())
        self.require(good, name, values, f"numbers from {low:g} to {high:g}")
        return dict(zip(rounds, np.array(values), strict=True))

    def round_list(self, name: str, possible: Any) -> list[int]:
        """Different numbers in rising order, out of the possible ones."""
        given: list[int] = self.take(name, np.int64, None).tolist()
        rising = all(one < other for one, other in pairwise(given))
        known = possible if isinstance(possible, range) else set(possible)
        self.require(rising and all(k in known for k in given), name, given, f"in rising order, out of {possible}")
        return given

    def take(self, name: str, kind: Any, shape: tuple[int, ...] | None) -> Any:
        """An array of the file, of the right type and shape; None: any length."""
        self.require(name in self.arrays, "fields", sorted(self.arrays), f"those of a saved learner; no {name}")
        value = self.arrays.pop(name)
        wanted = (value.size,) if shape is None else shape
        described = f"{value.dtype} of shape {value.shape}"
        self.require(
            (value.dtype, value.shape) == (np.dtype(kind), wanted), name, described, f"{np.dtype(kind)} of {wanted}"
        )
        return value

    def require(self, ok: bool, name: str, value: object, accepted: str) -> None:
        if not ok:
            text = shown(value) if isinstance(value, np.ndarray) else value
            raise ValueError(f"{self.path}: {name} = {text}: must be {accepted}")


def described(problem: Problem) -> str:
    """The problem as text: equal numbers give equal text, whatever kind of numbers or array they come in."""
    changed: dict[str, Any] = {name: int(getattr(problem, name)) for name in ("n_arms", "budget", "context")}
    changed |= {name: bool(getattr(problem, name)) for name in ("acyclic", "baseline")}
    for name in ("reward_range", "overall_range", "weights", "structure"):
        value = getattr(problem, name)
        changed[name] = None if value is None else np.asarray(value, float).tolist()
    return problem._replace(**changed).in_full()


def about_learner(policy: Policy, problem: Problem) -> dict[str, str]:
    """The policy and the problem that a saved file must match."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique", linewidth=sys.maxsize):  # all of it
        return {"policy": repr(policy), "problem": described(problem)}


def save_learner(
    path: str | Path,
    book: Book,
    state: State,
    problem: Problem,
    about: dict[str, str],
    constraints: Sequence[Constraint],
) -> None:
    """Write a learner to a file, atomically."""
    arrays = to_arrays(book, problem.n_arms) | {f"{STATE}{name}": leaf for name, leaf in leaves(state).items()}
    save_arrays(path, arrays, about | {"constraints": json.dumps(to_entries(constraints))})


def read_learner(saved: Saved, problem: Problem, start: State, like: Choice) -> tuple[Book, State]:
    """The book and the state of a saved learner that starts with this state and whose choices are like this one."""
    book = Reader(saved.path, saved.arrays, problem).book(like)
    stored = {name.removeprefix(STATE): leaf for name, leaf in saved.arrays.items() if name.startswith(STATE)}
    state = fill(saved.path, stored, start)
    check_ranges(saved.path, state, start, book.rounds, STATE)
    return book, state


def saved_setting(
    saved: Saved,
    policy: Policy,
    problem: Problem,
    constraints: Sequence[Constraint] | None,
    arms: Sequence[str] | None,
    effort: int | None,
) -> tuple[Policy, Sequence[Constraint], int | None]:
    """Policy, constraints and effort of learners that are loaded; the saved constraints if no others are given."""
    missing = sorted({"policy", "problem", "constraints"} - saved.about.keys())
    accepted = f"those of a saved learner; no {', '.join(missing)}"
    require(not missing, f"{saved.path}: fields", sorted(saved.about), accepted)
    if constraints is not None:
        return policy, constraints, effort
    names = same_names(policy.arms, arms)
    kept = saved_constraints(saved, problem.n_arms if names is None else names)
    return policy.unconstrained, kept, policy.effort if effort is None else effort  # the policy's are among the saved


def saved_constraints(saved: Saved, arms: Sequence[str] | int) -> tuple[Constraint, ...]:
    """The constraints of a saved learner."""
    try:
        entries = json.loads(saved.about["constraints"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{saved.path}: constraints: must be a list of tables, as JSON ({error})") from None
    try:
        return parse(entries, arms)
    except ValueError as error:
        raise ValueError(f"{saved.path}: {error} (constraints by name need the names: load(..., arms=...))") from None

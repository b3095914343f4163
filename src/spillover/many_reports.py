"""Outcomes of many rounds that are reported in one call: checked, added to what is known, and ready to be learned.

The checks are those of a single learner (`reports`, `validate`), made for all rows at once. A message is about the
first row that fails; it names its learner and round.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.learner_input import Details, dose_of, merged, reported, same_or_new
from spillover.rows import ALL, Part
from spillover.tabular import table_of
from spillover.types import Array, BoolArray, Choice, Feedback, IntArray, Problem

OUTCOMES = "numbers, NaN for outcomes that are not known yet"


class Rounds(NamedTuple):
    """Some rounds of some learners, a row each."""

    learners: IntArray
    numbers: IntArray
    played: IntArray  # how many rounds the learner has played by now
    choice: Choice
    reward_range: Array  # (rows, 2)
    distinct: bool = True  # no learner has two of them

    def name(self, row: int) -> str:
        """How a message about a row starts."""
        return f"learner {self.learners[row]}, round {self.numbers[row]}"

    def check(self, check: Callable[..., Any], *columns: Any) -> Any:
        """The result of a check of all rows at once; if it fails, its message about the first row that it refuses.

        columns: arrays with a row for each round, or None.
        """
        try:
            return check(*columns)
        except ValueError:
            for row in range(len(self.learners)):
                try:
                    check(*(None if column is None else column[row] for column in columns))
                except ValueError as error:
                    raise ValueError(f"{self.name(row)}: {error}") from None
            raise

    def some(self, rows: Part) -> "Rounds":
        if rows is ALL:
            return self
        choice: list[Any] = [None if part is None else part[rows] for part in self.choice]
        ends = self.reward_range[rows]
        return Rounds(self.learners[rows], self.numbers[rows], self.played[rows], Choice(*choice), ends)


class Known(NamedTuple):
    """All that is known of some rounds after a report."""

    details: Details
    fresh: BoolArray  # (rows, n): the outcomes that the report added
    in_one: BoolArray  # (rows,): nothing was known before, and everything is known now
    complete: BoolArray  # (rows,)


def table(name: str, value: Any, shape: tuple[int, ...], *others: tuple[int, ...]) -> NDArray[Any]:
    """An array with a row for each round or learner."""
    accepted = "an array with the arms in their order, as the learners do not know their names"
    validate.require(not is_labelled(name, value), name, type(value).__name__, accepted)
    try:
        given = np.asarray(validate.unmasked(name, value))
    except ValueError:
        raise ValueError(f"{name}: must be an array of shape {shape}, without rows of different lengths") from None
    validate.require(given.shape in (shape, *others), f"shape of {name}", given.shape, f"{shape}")
    return given


def is_labelled(name: str, value: Any) -> bool:
    """Whether a value has labels, whose order may not be that of the arms."""
    rows = value if isinstance(value, list | tuple) else (value,)
    return any(validate.labels_of(row) is not None or table_of(name, row) is not None for row in rows)


def own_context(rounds: Rounds, context: Any, columns: int) -> Any:
    """Checked context, (rows, columns), in an array of our own; None if none is given."""
    if context is None:
        return None
    given = table("context", context, (len(rounds.learners), columns)) if columns else [context] * len(rounds.learners)
    rows = (len(rounds.learners),)

    def check(one: Any) -> Any:
        return validate.context(one, columns, rows if np.ndim(one) == 2 else ())

    return np.array(rounds.check(check, given))


def own_doses(rounds: Rounds, dose: Any, accepts_doses: bool) -> Any:
    """Checked amounts of the chosen arms; None if none are given."""
    if dose is None:
        return None
    given = table("dose", dose, rounds.choice.x.shape)
    return rounds.check(partial(dose_of, accepts_doses=accepts_doses), given, rounds.choice.x)


def known_after(problem: Problem, rounds: Rounds, before: Details, given: Details, accepts_doses: bool) -> Known:
    """What is known of some rounds after a report of what is given."""
    x = rounds.choice.x
    dose = rounds.check(partial(same_or_new, "dose"), before.dose, own_doses(rounds, given.dose, accepts_doses))
    context = own_context(rounds, given.context, problem.context)
    context = rounds.check(partial(same_or_new, "context"), before.context, context)
    shapes = (x.shape, x.shape[:1]) if problem.observes == "payoff" else (x.shape,)
    z = None if given.z is None else table("z", given.z, x.shape)
    y = table("y", given.y, *shapes)
    z, y = rounds.check(lambda x, z, y: outcomes(problem, x, z, y), x, z, y)
    whole = ~np.isnan(y).any(axis=-1)
    in_one = whole if before.y is None else whole & np.isnan(before.y).all(axis=-1)
    fresh, complete = np.ones(x.shape, np.bool_), in_one.copy()
    parts = np.flatnonzero(~in_one)
    if parts.size:
        earlier = (None, None) if before.y is None else (before.z[parts], before.y[parts])

        def add(old_z: Any, old_y: Any, z: Array, y: Array) -> Any:
            return merged(Details(z=old_z, y=old_y), z, y, problem)

        z[parts], y[parts], fresh[parts], complete[parts] = rounds.some(parts).check(add, *earlier, z[parts], y[parts])
    return Known(Details(context, dose, z, y), fresh, in_one, complete)


def outcomes(problem: Problem, x: BoolArray, z: Any, y: Any) -> tuple[Array, Array]:
    """z and y of a report, in arrays of our own."""
    z = None if z is None else validate.numbers("z", z, OUTCOMES)
    rewards, overall = reported(problem, z, validate.numbers("y", y, OUTCOMES), x.shape)
    return np.array(rewards), np.array(overall)


def check_feedback(problem: Problem, rounds: Rounds, known: Known, *, closed: bool) -> None:
    """Raise a ValueError about the first round with an impossible outcome."""
    strictly = problem.observes == "both" and not closed
    dose = known.details.dose
    if strictly and dose is None and known.complete.all():
        check_rows(validate.feedback, rounds, known.details)
        return
    dosed = np.zeros(len(known.complete), np.bool_) if dose is None else has(dose)
    strict = known.complete & ~dosed & strictly
    for here, check in (
        (strict, validate.feedback),
        (~strict & ~dosed, validate.partial_feedback),
        (dosed, validate.partial_feedback),
    ):
        rows = np.flatnonzero(here)
        if rows.size:
            check_rows(check, rounds.some(rows), part_of(known.details, rows))


def check_rows(check: Any, rounds: Rounds, details: Details) -> None:
    """Check rounds that have doses all of them, or none."""
    age, arrived = rounds.played - rounds.numbers, np.ones(len(rounds.learners), np.bool_)
    dose = None if details.dose is None or not has(details.dose).all() else details.dose

    def check_them(x: Any, z: Any, y: Any, age: Any, arrived: Any, dose: Any, ends: Any, played: Any) -> None:
        check(Feedback(x, z, y, age, arrived, dose=dose), x.shape, ends, played)

    shared = (age, arrived, dose, rounds.reward_range, rounds.played)
    rounds.check(check_them, rounds.choice.x, details.z, details.y, *shared)


def part_of(details: Details, rows: Part) -> Details:
    return Details(*(None if part is None else part[rows] for part in details))


def has(values: Array) -> BoolArray:
    """In which rows there is something, (rows,); NaN is nothing."""
    return np.asarray(~np.isnan(values).all(axis=-1))


class Lesson(NamedTuple):
    """Rounds of different learners that a policy learns in one call."""

    rows: Part  # of the report
    in_parts: bool  # whether the policy is told what is new
    with_dose: bool

    def feedback(self, rounds: Rounds, known: Known) -> Feedback:
        context, dose, z, y = part_of(known.details, self.rows)
        x, probability, memo = rounds.some(self.rows).choice
        age = (rounds.played - rounds.numbers)[self.rows]
        return Feedback(
            x,
            z,
            y,
            age,
            np.ones(len(age), np.bool_),
            probability,
            memo,
            context,
            known.fresh[self.rows] if self.in_parts else None,
            known.complete[self.rows] if self.in_parts else None,
            dose if self.with_dose else None,
        )


def lessons(rounds: Rounds, known: Known, learned: BoolArray, in_parts: BoolArray) -> list[Lesson]:
    """The rows that are learned, in as few calls as possible; rounds of one learner are in order, in several calls."""
    dose = known.details.dose
    if not learned.any():
        return []
    if rounds.distinct and dose is None and learned.all() and not in_parts.any():
        return [Lesson(ALL, False, False)]
    dosed = np.zeros(len(learned), np.bool_) if dose is None else has(dose)
    found = []
    for turn in turns(rounds.learners):
        for parts in (False, True):
            for with_dose in (False, True):
                here = turn & learned & (in_parts == parts) & (dosed == with_dose)
                if here.any():
                    found.append(Lesson(np.flatnonzero(here), parts, with_dose))
    return found


def turns(learners: IntArray) -> list[BoolArray]:
    """Masks of the rows of a list: first mentions of a learner, then second ones, and so on."""
    seen: dict[int, int] = {}
    turn = np.empty(len(learners), np.int64)
    for row, learner in enumerate(learners.tolist()):
        turn[row] = seen[learner] = seen.get(learner, -1) + 1
    return [turn == k for k in range(int(turn.max(initial=-1)) + 1)]

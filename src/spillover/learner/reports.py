"""Outcomes that learners are told: checked, added to what is known already, and ready to be learned.

Reports are of one round, or of a row for each of many rounds in one call. The checks of many are those of one, made for
all rows at once; a message is about the first row that fails, and names its learner and round.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.constraints import finder
from spillover.learner.rows import ALL, Part
from spillover.tabular import table_of
from spillover.types import ARRIVED, Array, BoolArray, Choice, Feedback, IntArray, Problem


def same_names(known: tuple[str, ...] | None, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of the arms; names that are known already must not be contradicted."""
    if given is None:
        return known
    accepted = f"the names that the constraints use, {known}"
    validate.require(known is None or tuple(given) == known, "arms", tuple(given), accepted)
    return tuple(given)


def check_names(arms: tuple[str, ...] | None, n: int) -> None:
    """Raise a ValueError if the arms do not have one name each."""
    if arms is not None:
        good = len(set(arms)) == len(arms) == n
        validate.require(good, "arms", arms, f"{n} different names, one for each arm")


def missing_arms(available: Any, n: int, arms: tuple[str, ...] | None) -> tuple[int, ...]:
    """The positions of the arms that are not available; `available` is a mask, positions or names."""
    if available is None:
        return ()
    given = np.asarray(validate.unmasked("available", available))
    if given.dtype == np.bool_:
        mask = np.asarray(validate.in_order("available", available, n, arms, "arms"))
        validate.require(mask.shape == (n,), "shape of available", mask.shape, f"({n},)")
        return tuple(np.flatnonzero(~mask).tolist())
    listed: list[Any] = given.tolist() if given.ndim == 1 else [None]
    is_list = (given.ndim == 1 and given.dtype.kind in "iuU") or all(isinstance(arm, str) for arm in listed)
    accepted = f"a mask of {n} values True or False, or a list of arms"
    validate.require(is_list, "available", available, accepted)
    find = finder(n, arms)
    present = {find("available", arm) for arm in listed}
    return tuple(position for position in range(n) if position not in present)


REAL = np.dtype(np.float64)  # a singleton: `is` is faster than `==`


class Details(NamedTuple):
    """Of pending rounds; None where nothing is known of any of them, NaN where nothing is known of one."""

    context: Any = None  # (*batch, k)
    dose: Any = None  # (*batch, n)
    z: Any = None  # (*batch, n)
    y: Any = None  # (*batch, n)


class Known(NamedTuple):
    """All outcomes of rounds that are known after a report."""

    z: Array  # (*batch, n)
    y: Array  # (*batch, n)
    fresh: Any  # (*batch, n): the outcomes that this report added; None: all of them
    complete: Any  # (*batch,)


def with_report(
    problem: Problem, x: BoolArray, before: Details, given: Details, accepts_doses: bool
) -> tuple[Details, Known]:
    """What is known of one round after a report, in which the given values arrived."""
    dose = same_or_new("dose", before.dose, dose_of(given.dose, x, accepts_doses))
    context = same_or_new("context", before.context, given.context)
    z, y = reported(problem, given.z, given.y, x.shape)
    whole = before.y is None and not np.isnan(y).any()
    known = Known(z, y, None, True) if whole else merged(before, z, y, problem)
    return Details(context, dose, known.z, known.y), known


def feedback_of(choice: Choice, now: Details, known: Known, age: int, *, in_parts: bool) -> Feedback:
    """What is known of one round as feedback; in_parts: whether the policy is told what is new."""
    fresh, complete = (known.fresh, np.array(known.complete)) if in_parts else (None, None)
    carried = (choice.probability, choice.memo, now.context, fresh, complete, now.dose)
    return Feedback(choice.x, known.z, known.y, np.array(age), ARRIVED, *carried)


def is_line(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether a value is an array of numbers of this shape already."""
    return type(value) is np.ndarray and value.dtype is REAL and value.shape == shape


def reported(problem: Problem, z: Any, y: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """z and y of a report as arrays of the right shape; the payoff may be a single number."""
    given = y
    if problem.observes == "payoff" and given.shape == shape[:-1]:
        given = np.concatenate([given[..., None], np.zeros((*shape[:-1], problem.n_arms - 1))], axis=-1)
    if problem.observes == "payoff":
        validate.require(bool(np.isfinite(given).all()), "y", y, "a finite number, the payoff")
    rewards = validate.numbers("z", validate.observed_rewards(z, problem.observes, shape), "numbers")
    for name, value in (("z", rewards), ("y", given)):
        validate.require(value.shape == shape, f"shape of {name}", value.shape, f"{shape}")
    return rewards, given


def merged(before: Details, z: Array, y: Array, problem: Problem) -> Known:
    """What is known after a report in addition to earlier ones; a value that was reported must not change."""
    accepted = "at least one outcome: one that is not known yet must not be reported"
    validate.require(not np.isnan(y).all(axis=-1).any(), "y", y, accepted)
    if before.y is not None:
        z, y = kept("z", before.z, z), kept("y", before.y, y)
    if problem.observes == "both":
        unknown = np.isnan(z) & ~np.isnan(y)
        validate.require(not unknown.any(), "z", z, "finite numbers for all arms whose y is reported")
    known = ~np.isnan(y)
    fresh = known if before.y is None else known & np.isnan(before.y)
    return Known(z, y, fresh, known.all(axis=-1))


def kept(name: str, before: Array, now: Array) -> Array:
    """Earlier values and new ones together."""
    both = ~np.isnan(before) & ~np.isnan(now)
    same = bool((before[both] == now[both]).all())
    validate.require(same, name, now, f"the values that were reported before, {before}, where there are any")
    return np.where(np.isnan(now), before, now)


def dose_of(given: Any, x: BoolArray, accepts_doses: bool) -> Array | None:
    """Checked amounts of the chosen arms, 0 for the others; None if none were given."""
    if given is None:
        return None
    validate.require(accepts_doses, "dose", given, "None: the policy learns from yes or no only")
    amounts = validate.numbers("dose", given, "numbers")
    validate.require(amounts.shape == x.shape, "shape of dose", amounts.shape, f"{x.shape}, as x has")
    good = bool((np.isfinite(amounts) & (amounts > 0))[x].all())
    validate.require(good, "dose", amounts, f"finite and > 0 for every arm that was played, x = {x.astype(int)}")
    return np.where(x, amounts, 0.0)


def same_or_new(name: str, before: Any, now: Any) -> Any:
    """A detail that is given once, or again with the same value."""
    if before is None or now is None:
        return before if now is None else now
    new = np.isnan(before)
    validate.require(bool((new | (before == now)).all()), name, now, f"{before}, as before")
    return np.where(new, now, before)


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


class KnownRows(NamedTuple):
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


def known_after(problem: Problem, rounds: Rounds, before: Details, given: Details, accepts_doses: bool) -> KnownRows:
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
    return KnownRows(Details(context, dose, z, y), fresh, in_one, complete)


def outcomes(problem: Problem, x: BoolArray, z: Any, y: Any) -> tuple[Array, Array]:
    """z and y of a report, in arrays of our own."""
    z = None if z is None else validate.numbers("z", z, OUTCOMES)
    rewards, overall = reported(problem, z, validate.numbers("y", y, OUTCOMES), x.shape)
    return np.array(rewards), np.array(overall)


def check_feedback(problem: Problem, rounds: Rounds, known: KnownRows, *, closed: bool) -> None:
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

    def feedback(self, rounds: Rounds, known: KnownRows) -> Feedback:
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


def lessons(rounds: Rounds, known: KnownRows, learned: BoolArray, in_parts: BoolArray) -> list[Lesson]:
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

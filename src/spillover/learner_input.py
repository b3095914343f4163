"""Check what learners are told: the names of arms, those that are available, and outcomes that arrive in parts.

Reports are of one round or of a batch of them, (*batch, n).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints import finder
from spillover.types import ARRIVED, Array, BoolArray, Choice, Feedback, Problem


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

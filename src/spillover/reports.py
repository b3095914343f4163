"""What is known of a round that was played and whose outcome is not complete: its context, its doses, some outcomes."""

from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.types import Array, BoolArray, Problem


class Details(NamedTuple):
    """Of one pending round; None where nothing is known."""

    context: Any = None  # (k,)
    dose: Any = None  # (n,)
    z: Any = None  # (n,): NaN where it is not known
    y: Any = None  # (n,): NaN where it is not known


class Known(NamedTuple):
    """All outcomes of a round that are known after a report."""

    z: Array  # (n,)
    y: Array  # (n,)
    fresh: Any  # (n,): the outcomes that this report added; None: all of them
    complete: bool


def reported(problem: Problem, z: Any, y: Array) -> tuple[Array, Array]:
    """z and y of a report as arrays of the right shape; the payoff may be a single number."""
    shape, given = (problem.n_arms,), y
    if problem.observes == "payoff" and given.shape == ():
        given = np.concatenate([given[None], np.zeros(problem.n_arms - 1)])
    if problem.observes == "payoff":
        validate.require(bool(np.isfinite(given).all()), "y", y, "a finite number, the payoff")
    rewards = validate.numbers("z", validate.observed_rewards(z, problem.observes, shape), "numbers")
    for name, value in (("z", rewards), ("y", given)):
        validate.require(value.shape == shape, f"shape of {name}", value.shape, f"{shape}")
    return rewards, given


def merged(before: Details, z: Array, y: Array, problem: Problem) -> Known:
    """What is known after a report in addition to earlier ones; a value that was reported must not change."""
    accepted = "at least one outcome: one that is not known yet must not be reported"
    validate.require(not np.isnan(y).all(), "y", y, accepted)
    if before.y is not None:
        z, y = kept("z", before.z, z), kept("y", before.y, y)
    if problem.observes == "both":
        unknown = np.isnan(z) & ~np.isnan(y)
        validate.require(not unknown.any(), "z", z, "finite numbers for all arms whose y is reported")
    known = ~np.isnan(y)
    fresh = known if before.y is None else known & np.isnan(before.y)
    return Known(z, y, fresh, bool(known.all()))


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
    validate.require(bool(np.array_equal(before, now)), name, now, f"{before}, as before")
    return before

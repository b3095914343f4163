"""The names of the arms of a learner, and the arms that are available in a round."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spillover import validate
from spillover.constraints import finder


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

"""From constraints to linear rows, which the set search works on."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints.kinds import KINDS, Arm, Constraint, Find
from spillover.types import Array, BoolArray, IntArray

BUDGET = -1  # the owner of the row that says "at most s"
SLACK = 1e-9  # tolerance for rounding in sums; rows are in units of about 1


class Rows(NamedTuple):
    """low <= matrix x <= high; `owner` is the constraint that a row belongs to, BUDGET for the budget.

    >>> from spillover.constraints import Exclusive
    >>> rows = compile_rows((Exclusive([0, 1]),), n=3, budget=2)
    >>> rows.matrix, rows.high  # the budget, then the constraint
    (array([[1., 1., 1.],
           [1., 1., 0.]]), array([2., 1.]))
    """

    matrix: Array  # (m, n)
    low: Array  # (m,)
    high: Array  # (m,)
    owner: IntArray  # (m,)
    matroid: bool  # whether greedy search is exact: fixed arms, and limits on groups that are nested or disjoint

    def holds(self, x: BoolArray) -> BoolArray:
        """Whether decisions are feasible, (*batch,)."""
        total = np.asarray(x, float) @ self.matrix.T
        return np.asarray(((total <= self.high + SLACK) & (total >= self.low - SLACK)).all(axis=-1))

    def without(self, dropped: int) -> "Rows":
        """The rows of all other owners."""
        keep = self.owner != dropped
        return self._replace(matrix=self.matrix[keep], low=self.low[keep], high=self.high[keep], owner=self.owner[keep])


def finder(n: int, arms: Sequence[str] | None) -> Find:
    """A function that returns the position of an arm; its errors name the field.

    >>> find = finder(3, ["web", "radio", "video"])
    >>> find("arms", "radio"), find("arms", 2)
    (1, 2)
    """
    places = {} if arms is None else {name: place for place, name in enumerate(arms)}

    def find(field: str, arm: Arm) -> int:
        if isinstance(arm, str):
            if arm not in places:
                validate.require(arms is not None, field, arm, "a position: the names of the arms are not known here")
                hint = validate.suggestion(arm, places)
                validate.require(False, field, arm, f"one of the arms {validate.listed(places)}{hint}")
            return places[arm]
        validate.require(0 <= arm < n, field, arm, f"a position from 0 to {n - 1}")
        return arm

    return find


@lru_cache(maxsize=256)
def compile_rows(constraints: tuple[Constraint, ...], n: int, budget: int, arms: tuple[str, ...] | None = None) -> Rows:
    """All rows of some constraints, the budget's first.

    >>> from spillover.constraints import Include
    >>> compile_rows((Include([2]),), n=3, budget=2).low
    array([-inf,   1.])
    """
    find = finder(n, arms)
    found = [(np.ones(n), -np.inf, float(budget), BUDGET)]
    for owner, constraint in enumerate(constraints):
        found += [(*row, owner) for row in constraint.rows(n, find)]
    matrix, low, high, owners = (np.array(column) for column in zip(*found, strict=True))
    return Rows(matrix, low, high, owners, is_matroid(constraints, n, find))


def is_matroid(constraints: tuple[Constraint, ...], n: int, find: Find) -> bool:
    """Whether there are only fixed arms and limits on a laminar family of groups."""
    limited: list[set[int]] = []
    for constraint in constraints:
        if constraint.fixes_arms:
            continue
        if constraint.capped_arms is None:
            return False
        limited.append({find("arms", arm) for arm in constraint.capped_arms})
    limited.sort(key=len)
    return all(a.isdisjoint(b) or a <= b for k, a in enumerate(limited) for b in limited[k + 1 :])


def check_constraints(constraints: object) -> tuple[Constraint, ...]:
    """The constraints as a tuple, checked.

    >>> from spillover.constraints import Include
    >>> check_constraints([Include([2])])
    (Include((2,)),)
    """
    accepted = f"a tuple of constraints: {', '.join(kind.__name__ for kind in KINDS.values())}"
    given = tuple(constraints) if isinstance(constraints, list | tuple) else (constraints,)
    kinds = tuple(KINDS.values())
    good = isinstance(constraints, list | tuple) and all(isinstance(constraint, kinds) for constraint in given)
    validate.require(good, "constraints", constraints, accepted)
    return given

"""Compile constraints to linear rows, which the set search works on; read and write them as tables, for files."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import numpy as np

from spillover import validate
from spillover.constraints.kinds import KINDS, Arm, Constraint, Find
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import suggestion

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


def parse(entries: Any, arms: Sequence[str] | int, *, by_name: bool = False) -> tuple[Constraint, ...]:
    """The constraints described by a list of tables; `arms` are the names of the arms, or their number.

    by_name: read numbers as names (2 is the arm "2"), not as positions.

    >>> parse([{"kind": "exclusive", "arms": ["north", "south"]}], ["north", "south", "west"])
    (Exclusive(('north', 'south')),)
    >>> parse([{"kind": "exclusve", "arms": [0, 1]}], 3)
    Traceback (most recent call last):
    ...
    ValueError: constraint 1: kind = 'exclusve': must be one of costs, group, exclusive, together, requires, include,
    unavailable; did you mean exclusive?
    """
    if not isinstance(entries, list | tuple):
        raise ValueError(f"constraints = {entries!r}: must be a list of tables, each with a kind")
    read = [with_named_arms(entry) for entry in entries] if by_name else entries
    return tuple(parse_entry(number, entry, arms) for number, entry in enumerate(read, 1))


def with_named_arms(entry: Any) -> Any:
    """An entry in which arms written as whole numbers become names."""

    def name(arm: Any) -> Any:
        return str(arm) if isinstance(arm, int) and not isinstance(arm, bool) else arm

    if not isinstance(entry, dict):
        return entry
    lists = {key: [name(arm) for arm in entry[key]] for key in ("arms", "needs") if isinstance(entry.get(key), list)}
    return entry | lists | ({"arm": name(entry["arm"])} if "arm" in entry else {})


def parse_entry(number: int, entry: Any, arms: Sequence[str] | int) -> Constraint:
    """One constraint; errors name the number of the entry."""

    def refuse(message: str) -> NoReturn:
        raise ValueError(f"constraint {number}: {message}") from None

    if not isinstance(entry, dict):
        refuse(f"{entry!r}: must be a table with a kind, one of {', '.join(KINDS)}")
    given = dict(entry)
    if "kind" not in given:
        refuse(f"no kind in {entry!r}: must be one of {', '.join(KINDS)}")
    kind = given.pop("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        refuse(f"kind = {kind!r}: must be one of {', '.join(KINDS)}{suggestion(str(kind), KINDS)}")
    accepted = [field.name for field in fields(KINDS[kind])]
    for key in given:
        if key not in accepted:
            refuse(f"unknown key {key}: must be one of {', '.join(accepted)}{suggestion(str(key), accepted)}")
    for field in fields(KINDS[kind]):
        if field.default is MISSING and field.name not in given:
            refuse(f"no {field.name} in a constraint of kind {kind}: must be given")
    try:
        made: Constraint = KINDS[kind](**given)
        names = None if isinstance(arms, int) else arms
        n = arms if isinstance(arms, int) else len(arms)
        made.rows(n, finder(n, names))
    except (TypeError, ValueError) as error:
        refuse(str(error))
    return made


def to_entries(constraints: Iterable[Constraint]) -> list[dict[str, Any]]:
    """The tables that `parse` reads back.

    >>> from spillover.constraints import Requires
    >>> to_entries([Requires(2, needs=[0])])
    [{'kind': 'requires', 'arm': 2, 'needs': [0]}]
    """
    return [constraint.entry() for constraint in constraints]

"""Constraints on a set of arms: small frozen objects that compose, and their linear rows for the set search."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np

from spillover import validate
from spillover.types import Array, BoolArray, IntArray
from spillover.validate import suggestion

Arm: TypeAlias = int | str
Find: TypeAlias = Callable[[str, Arm], int]  # the position of an arm in a field, or an error that names the field

# Relative tolerance of a limit, so that costs 0.1 and 0.2 fit into 0.3.
ROUNDING = 1e-9


class Row(NamedTuple):
    """low <= coefficients x <= high."""

    coefficients: Array  # (n,)
    low: float
    high: float


class Constraint(ABC):
    """A constraint on sets of arms; subclasses are frozen dataclasses.

    >>> import spillover as sp
    >>> rules = [Exclusive(["radio", "video"]), Include(["web"])]
    >>> problem, arms = sp.Problem(n_arms=3, budget=2), ["web", "radio", "video"]
    >>> sp.Learner(sp.NDCSEM(), problem, constraints=rules, arms=arms).choose()
    array([ True, False, False])
    """

    kind: ClassVar[str]
    fixes_arms: ClassVar[bool] = False  # whether it only decides single arms, to be always or never chosen

    @property
    def capped_arms(self) -> "Sequence[Arm] | None":
        """The arms of which it allows at most some number, if that is all it requires; otherwise None."""
        return None

    @abstractmethod
    def rows(self, n: int, find: Find) -> list[Row]:
        """The linear rows over the decision."""

    @abstractmethod
    def words(self, name: Callable[[Arm], str]) -> str:
        """A description with the names of the arms."""

    def given(self) -> dict[str, Any]:
        """The fields that are not left at their defaults."""
        own: Any = self
        return {f.name: value for f in fields(own) if (value := getattr(self, f.name)) != f.default}

    def __repr__(self) -> str:
        first, *others = self.given().items()
        shown = [repr(first[1]), *(f"{name}={value!r}" for name, value in others)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def entry(self) -> dict[str, Any]:
        """The table that `parse` reads."""
        return {"kind": self.kind} | {name: plain(value) for name, value in self.given().items()}


@dataclass(frozen=True, repr=False)
class Costs(Constraint):
    """The costs of the chosen arms sum to at most `limit`: money, staff, vehicles. Use one for each resource.

    costs: a number >= 0 for each arm, or a dictionary from arms to costs (or a pandas Series with arms as its labels);
    the others cost nothing.

    >>> Costs([3, 1, 2], limit=4)
    Costs((3.0, 1.0, 2.0), limit=4.0)
    """

    kind: ClassVar[str] = "costs"
    costs: Any
    limit: float
    label: str = ""

    def __post_init__(self) -> None:
        labels = validate.labels_of(self.costs)
        by_arm = self.costs if labels is None else dict(zip(labels, self.costs.tolist(), strict=True))
        if labels is not None:
            validate.require(len(by_arm) == len(labels), "labels of costs", labels, "different arms")
        if isinstance(by_arm, dict):
            arms, amounts = [checked_arm("costs", arm) for arm in by_arm], list(by_arm.values())
        else:
            accepted = "a list of numbers, one for each arm, or a table from arms to numbers"
            arms, amounts = [], validate.numbers("costs", self.costs, accepted).ravel().tolist()
        accepted = "finite numbers >= 0, at least one"
        validate.number("costs", amounts or None, accepted, low=0, high=np.inf)
        validate.require(np.ndim(amounts) == 1, "costs", self.costs, accepted)
        validate.number("limit", self.limit, "a finite number >= 0", low=0, high=np.inf)
        validate.require(np.ndim(self.limit) == 0, "limit", self.limit, "a finite number >= 0")
        check_label(self)
        costs = tuple(float(amount) for amount in amounts)
        object.__setattr__(self, "costs", tuple(zip(arms, costs, strict=True)) if arms else costs)
        object.__setattr__(self, "limit", float(self.limit))

    def given(self) -> dict[str, Any]:
        return super().given() | {"costs": dict(self.costs) if self.by_arm else self.costs}

    @property
    def by_arm(self) -> bool:
        return isinstance(self.costs[0], tuple)

    def rows(self, n: int, find: Find) -> list[Row]:
        amounts = np.zeros(n)
        if self.by_arm:
            for arm, cost in self.costs:
                amounts[find("costs", arm)] += cost
        else:
            validate.require(len(self.costs) == n, "number of costs", len(self.costs), f"{n}, one for each arm")
            amounts[:] = self.costs
        # in units of the limit, so that one tolerance fits every currency; a limit of 0 forbids arms with any cost
        unit = self.limit or amounts.max() or 1.0
        # an arm that costs more than twice the limit can be chosen as little as one that costs twice the limit
        shares = np.minimum(amounts, 2.0 * unit) / unit
        return [Row(shares, -np.inf, self.limit / unit * (1.0 + ROUNDING))]

    def words(self, name: Callable[[Arm], str]) -> str:
        return f"costs of at most {self.limit:g}{titled(self)}"


@dataclass(frozen=True, repr=False)
class Group(Constraint):
    """At least `at_least` and at most `at_most` of these arms; the same number in both means exactly that many.

    >>> Group(["north", "south"], at_least=1)
    Group(('north', 'south'), at_least=1)
    """

    kind: ClassVar[str] = "group"
    arms: Sequence[Arm]
    at_most: int | None = None
    at_least: int = 0
    label: str = ""

    def __post_init__(self) -> None:
        set_arms(self, "arms")
        for field in ("at_most", "at_least"):
            count = getattr(self, field)
            if count is not None or field == "at_least":
                validate.whole(field, count, 0)
                object.__setattr__(self, field, int(count))
        some = self.at_most is not None or self.at_least > 0
        validate.require(some, "at_most", self.at_most, "a whole number, when at_least is not given")
        most = len(self.arms) if self.at_most is None else min(self.at_most, len(self.arms))
        accepted = f"at most {most}, as at_most and the number of arms allow"
        validate.require(self.at_least <= most, "at_least", self.at_least, accepted)

    @property
    def capped_arms(self) -> Sequence[Arm] | None:
        return self.arms if self.at_least == 0 else None

    def rows(self, n: int, find: Find) -> list[Row]:
        most = np.inf if self.at_most is None else float(self.at_most)
        return [Row(indicator(n, find, "arms", self.arms), float(self.at_least) or -np.inf, most)]

    def words(self, name: Callable[[Arm], str]) -> str:
        least = [f"at least {self.at_least}"] if self.at_least else []
        most = [] if self.at_most is None else [f"at most {self.at_most}"]
        return f"{' and '.join(least + most)} of {arm_list(self.arms, name)}{titled(self)}"


@dataclass(frozen=True, repr=False)
class OfArms(Constraint):
    """Base of the constraints that are defined by a list of arms."""

    kind: ClassVar[str]
    verdict: ClassVar[str]
    arms: Sequence[Arm]
    label: str = ""

    def __post_init__(self) -> None:
        set_arms(self, "arms")

    def words(self, name: Callable[[Arm], str]) -> str:
        return f"{self.verdict} {arm_list(self.arms, name)}{titled(self)}"


class Exclusive(OfArms):
    """At most one of these arms.

    >>> import spillover as sp
    >>> problem = sp.Problem(n_arms=3, budget=2)
    >>> sp.Learner(sp.NDCSEM(), problem, constraints=[Exclusive([0, 1])]).choose().sum() <= 2
    np.True_
    """

    kind = "exclusive"
    verdict = "at most one of"

    @property
    def capped_arms(self) -> Sequence[Arm]:
        return self.arms

    def rows(self, n: int, find: Find) -> list[Row]:
        return [Row(indicator(n, find, "arms", self.arms), -np.inf, 1.0)]


class Together(OfArms):
    """All of these arms, or none of them.

    >>> import spillover as sp
    >>> problem = sp.Problem(n_arms=3, budget=2)
    >>> x = sp.Learner(sp.NDCSEM(), problem, constraints=[Together([0, 1])]).choose()
    >>> x[0] == x[1]
    np.True_
    """

    kind = "together"
    verdict = "all or none of"

    def rows(self, n: int, find: Find) -> list[Row]:
        first, *others = (indicator(n, find, "arms", [arm]) for arm in self.arms)
        return [Row(first - other, 0.0, 0.0) for other in others]


class Include(OfArms):
    """Always these arms.

    >>> import spillover as sp
    >>> problem = sp.Problem(n_arms=3, budget=2)
    >>> sp.Learner(sp.NDCSEM(), problem, constraints=[Include([2])]).choose()[2]
    np.True_
    """

    kind = "include"
    verdict = "always"
    fixes_arms = True

    def rows(self, n: int, find: Find) -> list[Row]:
        marked = indicator(n, find, "arms", self.arms)
        return [Row(marked, marked.sum(), np.inf)]


class Unavailable(OfArms):
    """None of these arms; for a single round use `Learner.choose(available=...)`.

    >>> import spillover as sp
    >>> problem = sp.Problem(n_arms=3, budget=2)
    >>> sp.Learner(sp.NDCSEM(), problem, constraints=[Unavailable([0])]).choose()[0]
    np.False_
    """

    kind = "unavailable"
    verdict = "none of"
    fixes_arms = True

    def rows(self, n: int, find: Find) -> list[Row]:
        return [Row(indicator(n, find, "arms", self.arms), -np.inf, 0.0)]


@dataclass(frozen=True, repr=False)
class Requires(Constraint):
    """`arm` only together with all of `needs`; with `enough="any"`, with at least one of them.

    >>> Requires("drive", needs=["van", "driver"])
    Requires('drive', needs=('van', 'driver'))
    """

    kind: ClassVar[str] = "requires"
    arm: Arm
    needs: Sequence[Arm]
    enough: str = "all"
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arm", checked_arm("arm", self.arm))
        set_arms(self, "needs")
        enough: object = self.enough
        good = isinstance(enough, str) and enough in ("all", "any")
        validate.require(good, "enough", enough, "'all' or 'any'")
        validate.require(self.arm not in self.needs, "needs", self.needs, f"other arms than {self.arm!r} itself")

    def rows(self, n: int, find: Find) -> list[Row]:
        arm = indicator(n, find, "arm", [self.arm])
        groups = [self.needs] if self.enough == "any" else [[need] for need in self.needs]
        return [Row(arm - indicator(n, find, "needs", group), -np.inf, 0.0) for group in groups]

    def words(self, name: Callable[[Arm], str]) -> str:
        some = "one of " if self.enough == "any" and len(self.needs) > 1 else ""
        return f"{name(self.arm)} only with {some}{arm_list(self.needs, name)}{titled(self)}"


KINDS: dict[str, type[Any]] = {
    kind.kind: kind for kind in (Costs, Group, Exclusive, Together, Requires, Include, Unavailable)
}


def set_arms(constraint: Any, field: str) -> None:
    """Replace the arms of a field by a checked tuple without duplicates; the label is checked too."""
    check_label(constraint)
    given = getattr(constraint, field)
    accepted = "a list of arms, by position or by name, each once"
    is_list = isinstance(given, Sequence | np.ndarray | range) and not isinstance(given, str | bytes)
    is_list = is_list and np.ndim(given) > 0
    validate.require(is_list and len(given) > 0, field, given, accepted)
    arms = tuple(checked_arm(field, arm) for arm in given)
    validate.require(len(set(arms)) == len(arms), field, given, accepted)
    object.__setattr__(constraint, field, arms)


def check_label(constraint: Any) -> None:
    validate.require(isinstance(constraint.label, str), "label", constraint.label, "a text")


def checked_arm(field: str, arm: Any) -> Arm:
    """An arm as an int (its position) or a str (its name)."""
    is_position = isinstance(arm, int | np.integer) and not isinstance(arm, bool)
    accepted = "arms by position (a whole number from 0 on) or name"
    validate.require(is_position or isinstance(arm, str), field, arm, accepted)
    return int(arm) if is_position else str(arm)


def indicator(n: int, find: Find, field: str, arms: Sequence[Arm]) -> Array:
    """1 for these arms, 0 for the others."""
    row = np.zeros(n)
    row[[find(field, arm) for arm in arms]] = 1.0
    return row


def arm_list(arms: Sequence[Arm], name: Callable[[Arm], str]) -> str:
    """The names of the first arms, and how many more there are."""
    shown = [name(arm) for arm in arms[:6]]
    more = [f"{len(arms) - 6} more"] if len(arms) > 6 else []
    return ", ".join(shown + more)


def plain(value: Any) -> Any:
    """A value of a field for a table: lists, and arms as texts where they are keys."""
    if isinstance(value, dict):
        return {str(arm): cost for arm, cost in value.items()}
    return list(value) if isinstance(value, tuple) else value


def titled(constraint: Any) -> str:
    return f" ({constraint.label})" if constraint.label else ""


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

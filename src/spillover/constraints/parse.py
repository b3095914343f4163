"""Constraints as tables, for files: `[{kind = "group", arms = ["north", "south"], at_most = 1}, ...]`."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from typing import Any, NoReturn

from spillover.constraints.kinds import KINDS, Constraint
from spillover.constraints.rows import finder
from spillover.validate import suggestion


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

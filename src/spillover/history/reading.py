"""What each column of a table is taken for, why, and the `--columns` text that says the same."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from spillover.history.columns_option import Item, Wanted, matches, write_columns
from spillover.history.groups import compact
from spillover.history.naming import did_you_mean, quote_names

if TYPE_CHECKING:
    from spillover.history.frame import Frame

GIVEN, BY_NAME = "given", "by its name"
ABOUT = {
    "round": "the round: a whole number, a date, a month ...",
    "arm": "the name of the arm",
    "chosen": "whether the arm was chosen",
    "dose": "the amount for the arm",
    "z": "the arm's own reward",
    "outcome": "the outcome",
    "context": "context, known before the decision",
}


class TakenColumn(NamedTuple):
    """What a column was taken for, and why."""

    column: str
    meaning: str
    reason: str


@dataclass(frozen=True, eq=False)
class Reading:
    """The columns of a table by their meaning; with an `arm` column there is one row for each round and arm."""

    round: tuple[str, ...] = ()  # one column, or year and month (quarter, week; day); none: the rows in their order
    arm: str | None = None
    chosen: tuple[Item, ...] = ()  # with arms as labels, if there is one row for each round
    amounts: bool = False  # whether `chosen` holds amounts
    outcome: tuple[Item, ...] = ()
    own: tuple[Item, ...] = ()
    context: tuple[Item, ...] = ()  # columns, or built-in names
    reasons: Mapping[str, str] = field(default_factory=dict)  # role -> why

    @property
    def used(self) -> set[str]:
        """The columns that have a meaning, without context."""
        items = (*self.chosen, *self.outcome, *self.own)
        return {*self.round, *((self.arm,) if self.arm else ()), *(item.name for item in items)}

    def taken(self, names: Sequence[str]) -> tuple[TakenColumn, ...]:
        """What each column of the table was taken for, in the order of the table."""
        chosen = "dose" if self.amounts else "chosen"
        roles = {name: "round" for name in self.round} | ({self.arm: "arm"} if self.arm else {})
        roles |= {item.name: "context" for item in self.context if item.name in names}
        for role, items in ((chosen, self.chosen), ("outcome", self.outcome), ("z", self.own)):
            roles |= {item.name: role for item in items}
        whole = {"dose": "chosen"}
        reasons = {name: self.reasons.get(whole.get(role, role), GIVEN) for name, role in roles.items()}
        return tuple(TakenColumn(name, roles[name], reasons[name]) for name in names if name in roles)

    def columns(self, names: Sequence[str]) -> str:
        """The text for `--columns` that gives this reading of a table with these columns."""
        left, found = list(names), dict[str, tuple[Item, ...]]()
        found["round"] = tuple(Item(name) for name in self.round)
        if self.arm is not None:
            found["arm"] = (Item(self.arm),)
        parts = {"dose" if self.amounts else "chosen": self.chosen, "z": self.own, "outcome": self.outcome}
        left = [name for name in left if name not in (*self.round, self.arm)]
        for role, items in parts.items():
            if items:
                found[role] = compact(items, left)
                left = [name for name in left if name not in {item.name for item in items}]
        if self.context:
            found["context"] = compact(self.context, left) if len(self.context) > 1 else self.context
        return write_columns(found)


def option_line(columns: str, further: Sequence[str] = ()) -> str:
    """The options to paste on a command line.

    >>> option_line("chosen=feat.*")
    "--columns 'chosen=feat.*'"
    """
    return " ".join(["--columns", shlex.quote(columns), *further])


def resolve(frame: "Frame", wanted: Wanted) -> Wanted:
    """The given columns as they are called in the table; patterns become all columns that match."""
    found: Wanted = {}
    for role in ("round", "arm", "chosen", "dose", "z", "outcome"):
        if role in wanted:
            taken = {item.name for items in found.values() for item in items}
            left = [name for name in frame.names if name not in taken]
            found[role] = tuple(one for item in wanted[role] for one in resolve_item(frame, item, role, left))
    check_used_once(found)
    return found


def resolve_item(frame: "Frame", item: Item, role: str, left: Sequence[str]) -> list[Item]:
    """The columns that an item names; an error if there are none."""
    if item.is_pattern:
        found = [Item(name, arm) for name in left if (arm := matches(item.name, name)) is not None]
    else:
        same = [name for name in frame.names if name == item.name]
        folded = [name for name in frame.names if name.casefold() == item.name.casefold()]
        found = [Item(name, item.label) for name in same or (folded if len(folded) == 1 else [])]
    if not found:
        name = item.name.replace("\0", "*")
        there = f"there are: {quote_names(frame.names)}{did_you_mean(name, frame.names)}"
        raise ValueError(f"{frame.name}: no column {name!r} ({ABOUT[role]}); {there}")
    return found


def check_used_once(found: Wanted) -> None:
    """Refuse one column with two meanings."""
    meanings: dict[str, list[str]] = {}
    for role, items in found.items():
        for item in items:
            meanings.setdefault(item.name, []).append(role)
    for name, roles in meanings.items():
        if len(roles) > 1:
            raise ValueError(f"columns: must use each column once, but {name!r} is {' and '.join(roles)}")

"""Groups of columns in a table with one row for each round: feat.north, feat.south; tv_S, radio_S."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from spillover.history.columns_option import STAR, Item, matches

SEPARATOR = re.compile(r"[._\-:/|# ]+")


class Group(NamedTuple):
    """Columns whose names differ in one part only: the arm's name."""

    key: str  # what they have in common, such as feat
    pattern: str  # with STAR for the arm's name
    columns: tuple[str, ...]
    arms: tuple[str, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(Item(column, arm) for column, arm in zip(self.columns, self.arms, strict=True))


def find_groups(names: Sequence[str]) -> list[Group]:
    """Every group of at least two columns, the largest first.

    >>> [(group.key, group.arms) for group in find_groups(["date", "tv_S", "ooh_S", "sales"])]
    [('S', ('tv', 'ooh'))]
    """
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for name in names:
        for match in SEPARATOR.finditer(name):
            before, sign, after = name[: match.start()], match.group(), name[match.end() :]
            if before and after:
                found.setdefault(f"{before}{sign}{STAR}", (before, []))[1].append((name, after))
                found.setdefault(f"{STAR}{sign}{after}", (after, []))[1].append((name, before))
    groups = [
        Group(key, pattern, tuple(name for name, _ in members), tuple(arm for _, arm in members))
        for pattern, (key, members) in found.items()
        if len(members) > 1 and len({arm for _, arm in members}) == len(members)
    ]
    return sorted(groups, key=lambda group: -len(group.columns))


def compact(items: Sequence[Item], names: Sequence[str]) -> tuple[Item, ...]:
    """Items in their shortest form that still names exactly these columns with these arms, among all the names."""
    for group in find_groups([item.name for item in items]):
        if set(group.items) == set(items) and matched(group.pattern, names) == set(items):
            return (Item(group.pattern),)
    return tuple(Item(item.name) if item.label in (None, item.name) else item for item in items)


def matched(pattern: str, names: Sequence[str]) -> set[Item]:
    """All columns that match a pattern."""
    found = ((name, matches(pattern, name)) for name in names)
    return {Item(name, arm) for name, arm in found if arm is not None}


def collapsed(names: Sequence[str], among: Sequence[str]) -> list[str]:
    """Names for a list in a message: price.* for all columns of a group that are there.

    >>> [text.replace(STAR, "*") for text in collapsed(["price.a", "temp", "price.b"], ["price.a", "price.b", "temp"])]
    ['price.*', 'temp']
    """
    left = list(names)
    for group in find_groups(names):
        whole = {item.name for item in matched(group.pattern, among)} == set(group.columns)
        if whole and set(group.columns) <= set(left):
            left[left.index(group.columns[0])] = group.pattern
            left = [name for name in left if name not in group.columns]
    return left

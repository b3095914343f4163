"""Columns that belong to a group by their names, although some cells are not what the group holds.

They are read with the group, so that the cells are reported. Left out, an arm would be missing without a word.
"""

from collections.abc import Sequence

from spillover.history import words
from spillover.history.frame import Frame
from spillover.history.groups import Group, find_groups
from spillover.history.totals import is_total


def keys(group: Group) -> set[str]:
    """The arms of a group, in one spelling."""
    return {arm.strip().casefold() for arm in group.arms}


def near_decisions(frame: Frame, names: Sequence[str], allowed: Sequence[str], amounts: bool) -> list[str]:
    """Columns named like decisions: most cells are some, or the arm has a column in another group, as all others do."""
    groups, good, found = find_groups(names), set(allowed), list[str]()
    for group in groups:
        inside = [column in good for column in group.columns]
        if words.rank(group.key, words.CHOSEN) is None or 2 * sum(inside) < len(inside) or all(inside):
            continue
        arms = {arm.strip().casefold() for arm, here in zip(group.arms, inside, strict=True) if here}
        others = [keys(other) for other in groups if other.pattern != group.pattern and arms <= keys(other)]
        for name, arm in zip(group.columns, group.arms, strict=True):
            column = frame[name]
            mostly = column.seems_number if amounts else column.seems_flag
            everywhere = any(arm.strip().casefold() in some for some in others)
            if name not in good and not is_total(arm) and not column.is_blank and (mostly or everywhere):
                found.append(name)
    return list(dict.fromkeys(found))


def near_outcomes(frame: Frame, arms: set[str], numeric: Sequence[str], free: Sequence[str]) -> list[str]:
    """Columns named like the outcomes of arms, if those of some arms are numbers."""
    found = []
    for group in find_groups(free):
        if words.rank(group.key, words.OUTCOME) is None or not arms <= keys(group):
            continue
        own = [n for n, arm in zip(group.columns, group.arms, strict=True) if arm.strip().casefold() in arms]
        lacking = [name for name in own if name not in numeric and not frame[name].is_blank]
        found += lacking if len(lacking) < len(own) else []
    return list(dict.fromkeys(found))

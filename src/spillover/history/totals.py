"""Columns that add up others, as spreadsheets have them: they are no arms, and no outcomes of their own."""

from collections.abc import Sequence

import numpy as np

from spillover.history.columns_option import Item
from spillover.history.frame import Frame
from spillover.history.words import is_a

WORDS = "total totals sum all overall grandtotal subtotal gesamt summe"
ROUNDED = 1e-3  # of the largest total: parts are often rounded


def is_total(name: str) -> bool:
    """Whether a name is that of a total.

    >>> is_total("Grand total"), is_total("totality")
    (True, False)
    """
    return is_a(name, WORDS)


def is_sum(frame: Frame, name: str, parts: Sequence[Item]) -> bool:
    """Whether a column is the sum of several others, wherever all of them are known."""
    columns = [frame[item.name].numbers for item in parts if item.name != name]
    total = frame[name].numbers
    if len(columns) < 2 or not isinstance(total, np.ndarray):
        return False
    values = [column for column in columns if isinstance(column, np.ndarray)]
    if len(values) < len(columns):
        return False
    known = np.isfinite(total) & np.isfinite(values).all(axis=0)
    rest = np.abs(total - np.sum(values, axis=0))[known]
    return bool(len(rest) > 1 and np.ptp(total[known]) > 0 and rest.max() <= ROUNDED * np.abs(total[known]).max())


def without_totals(frame: Frame, items: Sequence[Item], own: Sequence[Item]) -> tuple[Item, ...]:
    """Outcomes without those that add up the others. own: the outcomes of arms that have decisions."""
    return tuple(
        item
        for item in items
        if item in own or not (is_total(item.label or item.name) or is_sum(frame, item.name, own))
    )

"""A history: the decisions and outcomes of all rounds, checked, with the arms in a fixed order."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spillover.history.reading import TakenColumn
from spillover.types import Array, BoolArray


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """Past decisions and their outcomes; rows are rounds in order, columns are arms in natural order.

    A table with own rewards z as `spillover next --example` writes it has complete rounds only: z is 0 for arms that
    were not chosen, and both are 0 in rounds that have not arrived. In other tables y (and z) are NaN where missing.

    >>> from spillover.history import read_history
    >>> table = {"week": [1, 2, 3], "promo_a": [1, 0, 1], "promo_b": [0, 1, 1]}
    >>> table |= {"sales_a": [9, 5, None], "sales_b": [3, 4, None]}
    >>> history = read_history(table)
    >>> history.arms, history.pending
    (('a', 'b'), ('3',))
    """

    arms: tuple[str, ...]
    rounds: tuple[str, ...]  # their labels
    x: BoolArray  # (rounds, arms)
    z: Any  # (rounds, arms); None: the table has no own rewards
    y: Array  # (rounds, arms); z if the table has no y; with observes="payoff" the sum is in the first column
    arrived: BoolArray  # (rounds,): whether outcomes of the round are known
    has_overall: bool = True  # whether the table has y: without it no spill-over can be learned
    following: str | None  # the label of the next round, if the rounds have a regular step
    notes: tuple[str, ...]  # what the owner of the table should know
    observes: str = "both"  # "both": z and y; "overall": y only; "payoff": one outcome for all arms
    dose: Any = None  # (rounds, arms): amounts relative to each arm's reference dose; None: yes or no
    reference_dose: Any = None  # (arms,): the average amount where it is positive, in the units of the table
    context: Any = None  # (rounds, k), as in the table; None: no context
    context_names: tuple[str, ...] = ()
    next_context: Any = None  # (k,): of the round to decide
    minimise: bool = False  # whether y and z are the negated outcomes of the table
    has_baseline: bool = False  # whether outcomes may differ from 0 where nothing is chosen
    outcome_names: tuple[str, ...] = ()  # the table's columns of y
    taken: tuple[TakenColumn, ...] = ()  # what each column of the table was taken for, and why
    columns_option: str = ""  # the options to paste for the same reading

    @property
    def pending(self) -> tuple[str, ...]:
        """Rounds whose outcomes have not arrived."""
        return tuple(self.rounds[k] for k in np.flatnonzero(~self.arrived))

    @cached_property
    def observed(self) -> BoolArray:
        """Which arms have outcomes, (arms,)."""
        known = np.isfinite(self.y) | (self.observes == "payoff")
        return np.asarray(np.any(self.x & known, axis=0, where=self.arrived[:, None]))

    @property
    def nothing_chosen(self) -> bool:
        """Whether some rounds have outcomes, but no arm was chosen in any of them."""
        return bool(self.arrived.any() and not self.observed.any())


def natural_order(names: list[str]) -> list[int]:
    """Positions of names in natural order: arm 2 before arm 10.

    >>> natural_order(["arm 10", "arm 2", "Arm 1"])
    [2, 1, 0]
    """
    return sorted(range(len(names)), key=lambda k: natural(names[k]))


def natural(name: str) -> tuple[Any, ...]:
    parts = re.split(r"(\d+)", name.casefold())
    return [by_size(part) if k % 2 else part for k, part in enumerate(parts)], name


def by_size(digits: str) -> tuple[int, str]:
    """Sorts digits as the number that they are, however many there are."""
    plain = digits.lstrip("0")
    return len(plain), plain

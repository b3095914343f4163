"""Outcomes that are far from what an arm has brought so far: flagged, never refused."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from spillover.service.ledger import Ledger

ENOUGH = 20  # values to compare with
LOOKED_AT = 500  # rounds, the latest
FAR = 8.0  # robust standard deviations
ROBUST = 1.4826  # standard deviations in a median absolute deviation, under a normal distribution


def median(values: Any) -> float:
    """The same as that of NumPy, which takes several times as long for so few values."""
    ordered, last = np.sort(values), len(values) - 1
    return float(0.5 * (ordered[last // 2] + ordered[(last + 1) // 2]))


def unusual_values(ledger: Ledger) -> Callable[[str, str, str | None, float], str]:
    """A function that says what is unusual about a value (its name, round and arm before it); "" if nothing is."""

    @cache
    def usual(name: str, column: int, played: bool) -> tuple[float, float] | None:
        latest = slice(max(len(ledger.keys) - LOOKED_AT, 0), len(ledger.keys))
        table: Any = ledger.z if name == "z" else ledger.y
        same = ledger.x[latest, column] == played if ledger.settings.observes != "payoff" else slice(None)
        values = table[latest, column][same]
        known = values[np.isfinite(values)]
        if len(known) < ENOUGH:
            return None
        middle = median(known)
        return middle, FAR * ROBUST * median(np.abs(known - middle))

    def look(name: str, label: str, arm: str | None, value: float) -> str:
        column = ledger.column(arm)
        played = bool(ledger.x[ledger.rows[label], column])
        found = usual(name, column, played)
        if found is None or not found[1] or abs(value - found[0]) <= found[1]:
            return ""
        return f"{name} = {value:g} is far from the usual {found[0]:.4g}"

    return look

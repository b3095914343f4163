"""Findings at several delays in one sentence."""

from collections.abc import Callable

from spillover.report.claims import FAILS, HOLDS, OPEN
from spillover_studies.synthetic.names import DELAYS


def by_delay(finding: Callable[[str], str]) -> str:
    """The finding at each of the paper's delays."""
    return "; ".join(f"D = {delay}: {finding(delay)}" for delay in DELAYS)


def joint(*verdicts: str) -> str:
    """Holds if all hold, fails if one fails, else not decided."""
    if all(verdict == HOLDS for verdict in verdicts):
        return HOLDS
    return FAILS if FAILS in verdicts else OPEN


def listed(values: list[str]) -> str:
    """
    >>> listed(["1", "2", "3"]), listed(["1"])
    ('1, 2 and 3', '1')
    """
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} and {values[-1]}"

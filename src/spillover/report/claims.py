"""What is claimed beside what is found: the verdict that follows from an interval, and the table of a page."""

from html import escape
from typing import Any, NamedTuple

import numpy as np

from spillover.experiments import Record
from spillover.metrics import Interval
from spillover.report.tables import paired_difference
from spillover.types import Array

HOLDS, FAILS, OPEN, GIVEN = "holds", "does not hold", "not decided", "our number"


class Claim(NamedTuple):
    """One claim beside what was found."""

    source: str
    claim: str
    finding: str
    verdict: str


def shown(interval: Interval, digits: int = 0) -> str:
    """A mean with its 95% interval."""
    mean, low, high = (f"{float(v):,.{digits}f}".replace("-", "−") for v in interval)
    return f"{mean} [{low}, {high}]"


def sign_verdict(*differences: Interval) -> str:
    """Whether all differences are above 0 beyond their intervals, or one is below."""
    if all(float(d.low) > 0 for d in differences):
        return HOLDS
    return FAILS if any(float(d.high) < 0 for d in differences) else OPEN


def final(record: Record) -> Array:
    return record.regret[:, -1]


def paired(worse: Record, better: Record) -> Interval:
    """Final regret of one above that of the other."""
    difference = paired_difference(worse, better)
    return Interval(*(np.array(v) for v in (difference.mean, difference.low, difference.high)))


def claims_body(claims: list[Claim], names: tuple[str, ...] = ("where", "the paper claims", "we find")) -> str:
    """The claims as a table."""
    kinds = {HOLDS: "holds", FAILS: "fails"}
    counts = {
        verdict: sum(c.verdict == verdict for c in claims) for verdict in dict.fromkeys(c.verdict for c in claims)
    }
    told = ", ".join(f"{count} {plural(verdict, count)}" for verdict, count in counts.items())
    rows: list[Any] = [
        f"<tr><td>{escape(c.source)}</td><td>{escape(c.claim)}</td><td>{escape(c.finding)}</td>"
        f'<td class="{kinds.get(c.verdict, "open")}">{escape(c.verdict)}</td></tr>'
        for c in claims
    ]
    head = "".join(f"<th>{name}</th>" for name in (*names, "verdict"))
    return (
        f"<p>{len(claims)} claims: {escape(told)}. A difference counts when its 95% interval leaves out 0; differences "
        "are paired, over the same fresh worlds, rewards and delays.</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def plural(verdict: str, count: int) -> str:
    """The verdict as a verb for so many claims.

    >>> plural("holds", 1), plural("does not hold", 2)
    ('holds', 'do not hold')
    """
    words = {HOLDS: "hold", FAILS: "do not hold"}
    return words.get(verdict, verdict) if count != 1 else verdict

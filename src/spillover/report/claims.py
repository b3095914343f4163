"""Claims and findings side by side: verdicts from confidence intervals, and the table on a page."""

from html import escape
from typing import Any, NamedTuple

import numpy as np

from spillover.experiments import Record
from spillover.metrics import Interval
from spillover.report.tables import paired_difference
from spillover.types import Array

HOLDS, FAILS, OPEN, GIVEN = "holds", "does not hold", "not decided", "our number"


class Claim(NamedTuple):
    """One claim and the finding on it."""

    source: str
    claim: str
    finding: str
    verdict: str


def format_ci(interval: Interval, digits: int = 0) -> str:
    """A mean with its 95% confidence interval."""
    mean, low, high = (f"{float(v):,.{digits}f}".replace("-", "−") for v in interval)
    return f"{mean} [{low}, {high}]"


def sign_verdict(*differences: Interval) -> str:
    """Holds if all intervals are above 0, fails if one is below 0, else not decided."""
    if all(float(d.low) > 0 for d in differences):
        return HOLDS
    return FAILS if any(float(d.high) < 0 for d in differences) else OPEN


def final_regret(record: Record) -> Array:
    return record.regret[:, -1]


def paired_interval(worse: Record, better: Record) -> Interval:
    """The paired difference of the final regrets, worse minus better."""
    difference = paired_difference(worse, better)
    return Interval(*(np.array(v) for v in (difference.mean, difference.low, difference.high)))


def claims_body(claims: list[Claim], names: tuple[str, ...] = ("where", "the paper claims", "we find")) -> str:
    """The claims as a table."""
    kinds = {HOLDS: "holds", FAILS: "fails"}
    counts = {
        verdict: sum(c.verdict == verdict for c in claims) for verdict in dict.fromkeys(c.verdict for c in claims)
    }
    summary = ", ".join(f"{count} {plural(verdict, count)}" for verdict, count in counts.items())
    rows: list[Any] = [
        f"<tr><td>{escape(c.source)}</td><td>{escape(c.claim)}</td><td>{escape(c.finding)}</td>"
        f'<td class="{kinds.get(c.verdict, "open")}">{escape(c.verdict)}</td></tr>'
        for c in claims
    ]
    head = "".join(f"<th>{name}</th>" for name in (*names, "verdict"))
    return (
        f"<p>{len(claims)} claims: {escape(summary)}. A difference counts if its 95% interval excludes 0; "
        "differences are paired: both policies meet the same worlds, rewards and delays.</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def plural(verdict: str, count: int) -> str:
    """The verdict as a verb, for one claim or several.

    >>> plural("holds", 1), plural("does not hold", 2)
    ('holds', 'do not hold')
    """
    words = {HOLDS: "hold", FAILS: "do not hold"}
    return words.get(verdict, verdict) if count != 1 else verdict

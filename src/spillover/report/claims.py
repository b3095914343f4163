"""Claims and findings side by side: verdicts from confidence intervals, and the table on a page."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from spillover.experiments import Record
from spillover.metrics import Interval
from spillover.number_format import format_value
from spillover.report.tables import paired_difference
from spillover.types import Array

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
NAMES = ("the paper claims", "we find")


class Variant(NamedTuple):
    """The same claim under other conditions: another delay, scale, graph or tuning."""

    conditions: str  # "D = 200", "tuned on other worlds"
    finding: str
    verdict: str


class Claim(NamedTuple):
    """One claim in the words of its source, the finding under the source's own conditions, and variants."""

    source: str  # where it is said: "V-A, regret comparison"
    claim: str
    finding: str
    verdict: str
    bar: str = ""  # how the verdict is decided; says so where the source sets no such bar
    variants: tuple[Variant, ...] = ()


def format_ci(interval: Interval, digits: int = 0) -> str:
    """A mean with its 95% confidence interval.

    >>> format_ci(Interval(np.array(-1234.5), np.array(-2000.0), np.array(-0.2)))
    '−1,234 [−2,000, 0]'
    """
    mean, low, high = (format_value(round(float(v), digits) + 0.0, f",.{digits}f") for v in interval)
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


def verdict_counts(claims: Sequence[Claim]) -> str:
    """How many claims hold, under the conditions of their source.

    >>> verdict_counts([Claim("", "", "", verdict) for verdict in (HOLDS, HOLDS, FAILS, OPEN)])
    '2 of 4 claims hold, 1 does not, 1 is not decided'
    """
    holds, fails, undecided = (sum(claim.verdict == verdict for claim in claims) for verdict in (HOLDS, FAILS, OPEN))
    parts = [f"{holds} of {len(claims)} claim{'' if len(claims) == 1 else 's'} {'holds' if holds == 1 else 'hold'}"]
    parts += [f"{fails} {'does' if fails == 1 else 'do'} not"] if fails else []
    parts += [f"{undecided} {'is' if undecided == 1 else 'are'} not decided"] if undecided else []
    return ", ".join(parts)


def claims_body(claims: Sequence[Claim], names: tuple[str, str] = NAMES) -> str:
    """How many claims hold, how that is decided, and the table."""
    return (
        f"<p>{verdict_counts(claims)}. Each claim has one row, judged under the conditions of its source; indented "
        "rows are the same claim under other conditions, and do not count. A difference counts if its 95% interval "
        "excludes 0; differences are paired: both policies meet the same worlds, rewards and delays.</p>"
        f"{claims_table(claims, names)}"
    )


def claims_table(claims: Sequence[Claim], names: tuple[str, str] = NAMES) -> str:
    """One row a claim, its variants as rows below it; as wide as the page, so that no verdict is out of sight.

    names: the headings of what is claimed and of what is found.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in (*names, "verdict"))
    widths = "".join(f'<col style="width:{width}">' for width in ("37%", "auto", "5.2rem"))
    rows = "".join(row for claim in claims for row in claim_rows(claim))
    return (
        f'<table style="table-layout:fixed;width:100%;overflow-wrap:break-word"><colgroup>{widths}</colgroup>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def claim_rows(claim: Claim) -> Iterator[str]:
    source = f'<div class="small">{escape(claim.source)}</div>'
    bar = f'<div class="small">{escape(claim.bar)}</div>' if claim.bar else ""
    yield table_row(source + escape(claim.claim), escape(claim.finding) + bar, claim.verdict)
    for variant in claim.variants:
        conditions = f'<div style="padding-left:1rem">{escape(variant.conditions)}</div>'
        yield table_row(conditions, escape(variant.finding), variant.verdict)


def table_row(claim: str, finding: str, verdict: str) -> str:
    kind = {HOLDS: "holds", FAILS: "fails"}.get(verdict, "open")
    return f'<tr><td>{claim}</td><td>{finding}</td><td class="{kind}">{escape(verdict)}</td></tr>'

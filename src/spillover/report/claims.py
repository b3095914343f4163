"""Claims and findings side by side: verdicts from confidence intervals, and the table on a page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from spillover.experiments import Record
from spillover.formatting import format_value
from spillover.metrics import Interval
from spillover.report.tables import paired_difference
from spillover.types import Array

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
DEPENDS = "depends on the measure"  # it holds by some of several good measures, and not by others
UNCHECKABLE = "cannot be checked"  # what it would take is not public
NAMES = ("the paper claims", "we find")
CONDITIONS = ("on one instance, as in the paper", "over many worlds")  # of the two verdicts


class Variant(NamedTuple):
    """The same claim under other conditions: another delay, scale, graph or tuning."""

    conditions: str  # "D = 200", "tuned on other worlds"
    finding: str
    verdict: str = ""
    one: str = ""  # see `Claim`


class Claim(NamedTuple):
    """One claim in the words of its source, the finding under the source's own conditions, and variants.

    A source that shows one instance is judged on one, and over many worlds as well.
    """

    source: str  # where it is said: "V-A, regret comparison"
    claim: str
    finding: str
    verdict: str  # over many worlds
    bar: str = ""  # how the verdict is decided; says so where the source sets no such bar
    variants: tuple[Variant, ...] = ()
    one: str = ""  # the verdict on one instance; empty if the source's claim is about no instance


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


def by_measures(*verdicts: str) -> str:
    """The verdict of all measures, if they agree. Not decided if they do not and the claim holds by none of them.

    >>> by_measures(HOLDS, HOLDS), by_measures(HOLDS, FAILS), by_measures(FAILS, OPEN)
    ('holds', 'depends on the measure', 'not decided')
    """
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return DEPENDS if HOLDS in verdicts else OPEN


def final_regret(record: Record) -> Array:
    return record.regret[:, -1]


def paired_interval(worse: Record, better: Record) -> Interval:
    """The paired difference of the final regrets, worse minus better."""
    difference = paired_difference(worse, better)
    return Interval(*(np.array(v) for v in (difference.mean, difference.low, difference.high)))


PLURALS = {FAILS: "do not", OPEN: "are not decided", DEPENDS: "depend on the measure", UNCHECKABLE: UNCHECKABLE}
SINGULARS = {FAILS: "does not", OPEN: "is not decided", DEPENDS: DEPENDS, UNCHECKABLE: UNCHECKABLE}


def verdict_counts(verdicts: Sequence[str]) -> str:
    """Count the claims that hold.

    >>> verdict_counts([HOLDS, HOLDS, FAILS, OPEN, DEPENDS])
    '2 of 5 claims hold, 1 does not, 1 is not decided, 1 depends on the measure'
    """
    count = Counter(verdicts)
    holds, total = count[HOLDS], len(verdicts)
    first = f"{holds} of {total} claim{'' if total == 1 else 's'} {'holds' if holds == 1 else 'hold'}"
    others = [f"{count[v]} {(SINGULARS if count[v] == 1 else PLURALS)[v]}" for v in PLURALS if count[v]]
    return ", ".join([first, *others])


def tally(claims: Sequence[Claim], conditions: tuple[str, str] = CONDITIONS) -> str:
    """Count the claims that hold on one instance, of those that are about one, and those that hold over many worlds.

    >>> tally([Claim("", "", "", HOLDS, one=FAILS), Claim("", "", "", HOLDS)])
    'on one instance, as in the paper, 0 of 1 claim hold, 1 does not; over many worlds, 2 of 2 claims hold'
    """
    one = [claim.one for claim in claims if claim.one]
    everywhere = verdict_counts([claim.verdict for claim in claims])
    return f"{conditions[0]}, {verdict_counts(one)}; {conditions[1]}, {everywhere}" if one else everywhere


def claims_body(claims: Sequence[Claim], names: tuple[str, str] = NAMES) -> str:
    """Write how many claims hold, how that is decided, and the table."""
    found = tally(claims)
    return (
        f"<p>{found[0].upper()}{found[1:]}. Each claim has one row, judged under the conditions of its source; "
        "indented rows are the same claim under other conditions, and do not count. A difference counts if its 95% "
        "interval excludes 0; differences are paired: both policies meet the same worlds, rewards and delays.</p>"
        f"{claims_table(claims, names)}"
    )


def claims_table(
    claims: Sequence[Claim], names: tuple[str, str] = NAMES, conditions: tuple[str, str] = CONDITIONS
) -> str:
    """One row a claim, its variants as rows below it; as wide as the page, so that no verdict is out of sight.

    names: the headings of what is claimed and of what is found; conditions: those of the two verdicts. The one on one
    instance has a column if a claim is about one.
    """
    verdicts = conditions if any(claim.one for claim in claims) else ("verdict",)
    head = "".join(f"<th>{escape(name)}</th>" for name in (*names, *verdicts))
    widths = "".join(f'<col style="width:{width}">' for width in ("32%", "auto", *["5.2rem"] * len(verdicts)))
    rows = "".join(row for claim in claims for row in claim_rows(claim, len(verdicts)))
    return (
        f'<table style="table-layout:fixed;width:100%;overflow-wrap:break-word"><colgroup>{widths}</colgroup>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def claim_rows(claim: Claim, columns: int) -> Iterator[str]:
    """columns: how many verdicts a row shows, the one on one instance first."""
    source = f'<div class="small">{escape(claim.source)}</div>'
    notes = " ".join(text for text in (claim.bar, robustness(claim)) if text)
    bar = f'<div class="small">{escape(notes)}</div>' if notes else ""
    yield table_row(source + escape(claim.claim), escape(claim.finding) + bar, (claim.one, claim.verdict)[-columns:])
    for variant in claim.variants:
        conditions = f'<div style="padding-left:1rem">{escape(variant.conditions)}</div>'
        yield table_row(conditions, escape(variant.finding), (variant.one, variant.verdict)[-columns:])


def agreeing(claim: Claim) -> tuple[int, int]:
    """Under how many of the other conditions the verdict is the same, and how many there are."""
    others = [variant.verdict for variant in claim.variants if variant.verdict]
    return sum(verdict == claim.verdict for verdict in others), len(others)


def robustness(claim: Claim) -> str:
    """Count the rows below a claim with the same verdict."""
    same, others = agreeing(claim)
    if not others or claim.verdict in (DEPENDS, UNCHECKABLE):
        return ""
    return f"The same verdict under {same} of {others} other conditions, below."


def table_row(claim: str, finding: str, verdicts: Sequence[str]) -> str:
    kinds = {HOLDS: "holds", FAILS: "fails", "": "none"}
    cells = "".join(f'<td class="{kinds.get(v, "open")}">{escape(v) or "–"}</td>' for v in verdicts)
    return f"<tr><td>{claim}</td><td>{finding}</td>{cells}</tr>"

"""Claims and findings side by side: verdicts, counts and the table."""

import re

import numpy as np
import pytest

from spillover.metrics import Interval
from spillover.report.claims import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Variant,
    claims_body,
    claims_table,
    sign_verdict,
    verdict_counts,
)

CLAIMS = [
    Claim(
        "V-A",
        "A < B",
        "by 3 [2, 4]",
        HOLDS,
        "the paper sets no bar",
        (Variant("D = 200", "by −1 [−2, 0]", OPEN), Variant("D = 400", "by −5 [−6, −4]", FAILS)),
    ),
    Claim("V-B", "C is best", "it is not: 1 [0, 2]", FAILS),
]


def test_a_claim_is_one_row_and_its_variants_are_rows_below():
    table = claims_table(CLAIMS)
    rows = re.findall(r"<tr>(.*?)</tr>", table)[1:]
    assert len(rows) == 4
    assert "A &lt; B" in rows[0]
    assert "the paper sets no bar" in rows[0]
    assert "D = 200" in rows[1]
    assert "padding-left" in rows[1]
    assert "D = 400" in rows[2]
    assert "padding-left" not in rows[3]
    verdicts = [re.findall(r'<td class="(\w+)">([^<]*)</td>$', row)[0] for row in rows]
    assert verdicts == [("holds", HOLDS), ("open", OPEN), ("fails", FAILS), ("fails", FAILS)]


def test_the_verdict_is_never_out_of_sight():
    """The table is as wide as the page, with a verdict column of a fixed width."""
    table = claims_table(CLAIMS)
    assert 'style="table-layout:fixed;width:100%' in table
    assert '<div class="wide">' not in table


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        ((HOLDS,), "1 of 1 claim holds"),
        ((FAILS, OPEN), "0 of 2 claims hold, 1 does not, 1 is not decided"),
        ((HOLDS, HOLDS, FAILS, FAILS, OPEN, OPEN), "2 of 6 claims hold, 2 do not, 2 are not decided"),
        ((HOLDS, FAILS, FAILS), "1 of 3 claims holds, 2 do not"),
    ],
)
def test_counts_are_sentences(verdicts, text):
    assert verdict_counts([Claim("", "", "", verdict) for verdict in verdicts]) == text


def test_variants_do_not_count():
    assert verdict_counts(CLAIMS) == "1 of 2 claims holds, 1 does not"
    assert "1 of 2 claims holds, 1 does not." in claims_body(CLAIMS, ("claim", "finding"))


def test_a_sign_counts_when_the_interval_leaves_out_0():
    def interval(low, high):
        return Interval(np.array((low + high) / 2), np.array(low), np.array(high))

    assert sign_verdict(interval(1, 2), interval(0.5, 3)) == HOLDS
    assert sign_verdict(interval(1, 2), interval(-1, 3)) == OPEN
    assert sign_verdict(interval(1, 2), interval(-3, -1)) == FAILS

"""Claims and findings side by side: verdicts, counts and the table."""

import re

import numpy as np
import pytest

from spillover.metrics import Interval
from spillover.report.claims import (
    DEPENDS,
    FAILS,
    HOLDS,
    OPEN,
    UNCHECKABLE,
    Claim,
    Variant,
    claims_body,
    claims_table,
    sign_verdict,
    tally,
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
        ((DEPENDS, UNCHECKABLE), "0 of 2 claims hold, 1 depends on the measure, 1 cannot be checked"),
    ],
)
def test_counts_are_sentences(verdicts, text):
    assert verdict_counts(verdicts) == text


def test_variants_do_not_count():
    assert tally(CLAIMS) == "1 of 2 claims holds, 1 does not"
    assert "1 of 2 claims holds, 1 does not." in claims_body(CLAIMS, ("claim", "finding"))


def test_a_claim_about_one_instance_has_a_verdict_on_one():
    claims = [CLAIMS[0]._replace(one=FAILS), CLAIMS[1]]
    assert tally(claims, ("in the median run", "over all runs")) == (
        "in the median run, 0 of 1 claim hold, 1 does not; over all runs, 1 of 2 claims holds, 1 does not"
    )
    table = claims_table(claims)
    head, first, variant, *_, last = re.findall(r"<tr>(.*?)</tr>", table)
    assert "<th>on one instance, as in the paper</th><th>over many worlds</th>" in head
    assert first.endswith('<td class="fails">does not hold</td><td class="holds">holds</td>')
    assert variant.endswith('<td class="none">–</td><td class="open">not decided</td>')
    assert last.endswith('<td class="none">–</td><td class="fails">does not hold</td>')


def test_a_claim_says_under_how_many_other_conditions_it_is_so():
    assert "The same verdict under 0 of 2 other conditions" in claims_table(CLAIMS)
    both = CLAIMS[0]._replace(variants=(Variant("D = 200", "by 1 [0.5, 2]", HOLDS), Variant("D = 400", "", OPEN)))
    assert "The same verdict under 1 of 2 other conditions" in claims_table([both])


def test_a_sign_counts_when_the_interval_leaves_out_0():
    def interval(low, high):
        return Interval(np.array((low + high) / 2), np.array(low), np.array(high))

    assert sign_verdict(interval(1, 2), interval(0.5, 3)) == HOLDS
    assert sign_verdict(interval(1, 2), interval(-1, 3)) == OPEN
    assert sign_verdict(interval(1, 2), interval(-3, -1)) == FAILS

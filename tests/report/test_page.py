"""The first section of a page: three or four sentences, then the main numbers."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from spillover import ConstantDelay, SyntheticSEM
from spillover.experiments import Entry, Experiment
from spillover.formatting import format_value
from spillover.metrics import Interval, mean_interval
from spillover.report import tables as made
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
from spillover.report.page import short_body
from tests.report.examples import made_up, study

NUMBERS = pd.DataFrame({"policy": ["NDC-SEM"], "regret": ["1,234 [1,000, 1,468]"]})


def test_three_sentences_and_a_table_with_numbers_on_the_right() -> None:
    page = short_body(("One & one.", "Two.", "Three."), NUMBERS, "regret")
    assert page.startswith("<p>One &amp; one. Two. Three.</p>")
    assert '<th scope="col" style="text-align:left">policy' in page
    assert '<th scope="col" style="text-align:right' in page
    assert "<caption>regret</caption>" in page


@pytest.mark.parametrize(
    "sentences", [("One.", "Two."), ("One.", "Two.", "Three.", "Four.", "Five."), ("One.", "Two", "Three.")]
)
def test_neither_fewer_nor_more(sentences) -> None:
    with pytest.raises(ValueError, match=r"sentences = .*: must be three"):
        short_body(sentences, NUMBERS)


# --- Claims and findings side by side: verdicts, counts and the table -----------------------------------------------


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


# --- Tables: regret in proportion, pairs of replications, text that can be read -------------------------------------


tables: Any = made  # the cells of a table may be anything, for its stubs


def test_final_regret_with_blind_regret_apart() -> None:
    records = study(("ndc-sem", "random", "delayed-oracle"))
    table = tables.final_table(records).set_index("policy")
    for record in records:
        row = table.loc[record.policy]
        assert row["final_regret"] == record.regret[:, -1].mean()
        assert (row["final_regret_low"], row["final_regret_high"]) == mean_interval(record.regret[:, -1])[1:]
        assert row["blind_regret"] == record.blind_regret.mean()
        assert row["blind_regret"] + row["later_regret"] == pytest.approx(row["final_regret"])
    reference = records[2].regret[:, -1].mean()
    np.testing.assert_allclose(table["ratio"], [r.regret[:, -1].mean() / reference for r in records])
    assert table.loc["delayed-oracle", "ratio_low"] == table.loc["delayed-oracle", "ratio_high"] == 1.0
    assert table.loc["ndc-sem", "ratio_low"] < table.loc["ndc-sem", "ratio"] < table.loc["ndc-sem", "ratio_high"]


def test_shares_of_the_best_divide_ties_and_leave_the_oracles_out() -> None:
    a, b, c = (made_up(p, replications=4) for p in ("ndc-sem", "cucb", "oracle"))
    last = np.zeros((4, 100))
    a = a._replace(regret=last + np.array([[1.0], [2.0], [3.0], [1.0]]))
    b = b._replace(regret=last + np.array([[2.0], [2.0], [1.0], [5.0]]))
    table = tables.final_table([a, b, c]).set_index("policy")["best_share"]
    assert (table["ndc-sem"], table["cucb"]) == (0.625, 0.375)
    assert np.isnan(table["oracle"])


def test_the_ratio_is_nothing_without_a_reference_or_with_one_of_no_regret() -> None:
    assert tables.final_table(study(("ndc-sem",)))["ratio"].isna().all()
    assert tables.final_table(study(("ndc-sem", "oracle")), reference="oracle")["ratio"].isna().all()


def test_the_interval_of_a_ratio_covers() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        base = rng.gamma(9.0, 100.0, 50)
        own = 2.0 * base + rng.normal(0, 200, 50)
        first = made_up("ndc-sem", replications=50)._replace(regret=own[:, None])
        second = made_up("cucb", replications=50)._replace(regret=base[:, None])
        _, low, high = tables.paired_ratio(first, second)
        hits += bool(low <= 2.0 <= high)
    assert 0.91 < hits / 400 < 0.985


def test_delays_are_compared_with_their_own_reference() -> None:
    records = [*study(("ndc-sem", "delayed-oracle"), "50"), *study(("ndc-sem", "delayed-oracle"), "200")]
    table = tables.final_table(records)
    assert list(table["delay"]) == ["50", "50", "200", "200"]
    assert list(table["best_share"][[0, 2]]) == [1.0, 1.0]


def test_paired_differences_are_of_the_same_replications() -> None:
    first, second = made_up("ndc-sem"), made_up("cucb")
    found = tables.paired_difference(first, second)
    assert found.label == "NDC-SEM − CUCB"
    assert tuple(found[1:]) == pytest.approx(tuple(mean_interval(first.regret[:, -1] - second.regret[:, -1])))
    assert found.clear
    payoff = tables.paired_difference(first, second, label="payoff", measure=lambda r: r.payoff[:, -1])
    assert (payoff.label, payoff.mean, payoff.clear) == ("payoff", 0.0, False)
    with pytest.raises(
        ValueError, match=r"'NDC-SEM' in 'fresh' \(6 replications\) and 'CUCB' in 'fresh' \(5\): must be"
    ):
        tables.paired_difference(first, made_up("cucb", replications=5))
    assert list(tables.difference_table([found, payoff])["clear"]) == [True, False]


def test_the_parameters_of_each_delay() -> None:
    experiment = Experiment(
        name="e",
        title="E",
        worlds={"fresh": SyntheticSEM()},
        delays={d: ConstantDelay(int(d)) for d in ("50", "200", "400")},
        policies={
            "ndc-sem": Entry(
                label="NDC-SEM",
                kind="ndc-sem",
                parameters={"discount": 0.985, "exploration": 1e-10},
                at={"200": {"exploration": 1e-6}},
            ),
            "random": Entry(label="random", kind="random"),
        },
        studies=(),
    )
    table = tables.parameter_table(experiment)
    assert table.to_numpy()[:2].tolist() == [
        ["NDC-SEM", "50, 400", 0.985, 1e-10, 1e-3],
        ["NDC-SEM", "200", 0.985, 1e-6, 1e-3],
    ]
    assert list(table.columns) == ["policy", "delay", "discount γ", "exploration ξ", "sparsity λ"]
    assert table["policy"].tolist()[2:] == ["random"]
    page = tables.html_table(table)
    assert ">1e−10<" in page
    assert ">1e−6<" in page
    assert "<td" in page.split("random")[1]
    assert ">–</td>" in page  # random has no discount


def test_text_for_a_page() -> None:
    records = [made_up("ndc-sem", label="<b>A & B"), made_up("delayed-oracle")]
    shown = tables.show_final(tables.final_table(records))
    assert shown["final regret"][0].count(",") >= 1
    assert shown["best in"].tolist() == ["100%", "–"]
    assert len(shown.columns) == 7  # more do not fit a page of 400 pixels
    page = tables.html_table(shown, caption="D = 50 & more")
    assert "&lt;b&gt;A &amp; B" in page
    assert "<caption>D = 50 &amp; more</caption>" in page
    assert page.count("<tr>") == 3
    assert "tabular-nums" in page.split("final regret")[0].rsplit("<th", 1)[1]
    assert format_value(-3.0, ".1f") == "−3.0"


def test_the_numbers_of_a_column_have_one_format() -> None:
    frame = pd.DataFrame({"xi": [1e-10, 0.01, np.nan], "gamma": [0.985, 0.9, 0.5], "regret": [1234.6, 7.0, 0.0]})
    page = tables.html_table(frame)
    for cells in (("1e−10", "1e−2", "–"), ("0.985", "0.900", "0.500"), ("1,235", "7", "0")):
        assert all(f">{cell}<" in page for cell in cells)


def test_a_small_number_is_not_shown_as_nothing() -> None:
    assert ">0.001<" in tables.html_table(pd.DataFrame({"lambda": [1e-3, 10.0]}))


def test_a_number_stays_whole_and_its_interval_may_go_to_another_line() -> None:
    page = tables.html_table(pd.DataFrame({"ratio": ["1.2 [1.0, 1.4]"], "note": ["a [b"]}))
    assert '<span class="whole">1.2</span> <span class="whole">[1.0, 1.4]</span>' in page
    assert ">a [b<" in page

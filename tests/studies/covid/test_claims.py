"""The claims of the Covid-19 study on made-up results: each verdict where it must hold and where it must fail."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spillover.metrics import Interval
from spillover.report.claims import DEPENDS, FAILS, HOLDS, OPEN, UNCHECKABLE
from spillover_studies.covid import LITERAL, SEMI, clustered_interval
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, SQUARED_RULE, run_name
from spillover_studies.covid.play import ONE_RUN
from spillover_studies.covid.report.claims import covid_claims
from spillover_studies.covid.report.measures import (
    all_single_ranks,
    detected,
    gain,
    graph_share,
    half_verdict,
    in_most_runs,
    level_verdict,
    median_run,
    more_or_fewer,
    only_after,
    single_winners,
)
from spillover_studies.covid.report.page import conclusion, findings, in_short
from spillover_studies.covid.report.sections import by_region, specific_a_day, star_effect
from spillover_studies.covid.scores import top_regions, weights_of


@pytest.fixture
def study(small_study):
    return small_study


def with_run(study, mode, name, *, rule=PAPER_RULE, **changes):
    """The study with other results of one policy."""
    found = study.played(mode, name, rule)._replace(**changes)._asdict()
    entry = {run_name(mode, name, rule, rule): (found, {"seconds": 1.0})}
    return replace(study, read=study.read | entry)


def with_data(study, **changes):
    kept = {name: value for name, value in study.read.items() if name[0] != "rulers"}
    return replace(study, read=kept | {"data": (study.data | changes, {})})


def claim(study, words):
    (found,) = (c for c in covid_claims(study) if words in c.claim)
    return found


def test_every_claim_once_in_the_words_of_the_paper(study) -> None:
    claims = covid_claims(study)
    assert len(claims) == 14
    assert len({c.claim for c in claims}) == len(claims)
    assert all(re.fullmatch("“.*”", c.claim) for c in claims)
    assert {c.verdict for c in claims} <= {HOLDS, FAILS, OPEN, DEPENDS, UNCHECKABLE}
    assert {c.one for c in claims} <= {HOLDS, FAILS, DEPENDS, UNCHECKABLE, ""}
    assert sum(c.one == "" for c in claims) == 2  # about the data, not about a run
    assert all(re.search(r"\d", c.finding) for c in claims)
    for text in [c.source for c in claims] + [v.conditions for c in claims for v in c.variants]:
        assert not re.search(r"fig:|\\|[a-z][A-Z]", text), text
    judged = (
        "efficiently estimates the regions",
        "detect the optimal",
        "due to the existing",
        "helps to improve",
        "due to the fact",
    )
    for words in judged:  # by a bar that the paper does not set
        assert "ours" in claim(study, words).bar.lower()


@pytest.mark.parametrize("words", ["achieves a higher estimated", "after the change point at day 40"])
def test_rewards_decide_who_is_better(study, words) -> None:
    """The same graph, and twice the cases of the other in every run."""
    rival = study.played(LITERAL, "sem-ucb")
    ahead = with_run(study, LITERAL, "ndc-sem", z=2 * rival.z, adjacency=rival.adjacency)
    assert (claim(ahead, words).one, claim(ahead, words).verdict) == (HOLDS, HOLDS)
    assert "more estimated cases; more in 6 of 6 runs" in claim(ahead, words).finding
    behind = with_run(study, LITERAL, "ndc-sem", z=0.5 * rival.z, adjacency=rival.adjacency)
    assert (claim(behind, words).one, claim(behind, words).verdict) == (FAILS, FAILS)
    assert "fewer estimated cases; more in 0 of 6 runs" in claim(behind, words).finding
    common = next(v for v in claim(behind, words).variants if v.conditions == "scored by: common graph")
    assert common.verdict == FAILS


def test_the_reason_is_a_gain_that_grows_after_the_change(study) -> None:
    rival = study.played(LITERAL, "sem-ucb")
    factor = np.where(np.arange(1, 81) >= 44, 2.0, 1.0)[:, None]
    later = with_run(study, LITERAL, "ndc-sem", z=factor * rival.z, adjacency=rival.adjacency)
    assert claim(later, "due to the fact").verdict == HOLDS
    earlier = with_run(study, LITERAL, "ndc-sem", z=rival.z / factor, adjacency=rival.adjacency)
    assert claim(earlier, "due to the fact").verdict == FAILS


def test_a_gain_that_only_shrinks_less_has_no_reason(study) -> None:
    """The gain is larger after the change than before, but below 0: there is no better result to explain."""
    rival = study.played(LITERAL, "sem-ucb")
    factor = np.where(np.arange(1, 81) >= 44, 0.9, 0.1)[:, None]
    behind = with_run(study, LITERAL, "ndc-sem", z=factor * rival.z, adjacency=rival.adjacency)
    assert (claim(behind, "due to the fact").one, claim(behind, "due to the fact").verdict) == (FAILS, FAILS)


def test_the_measure_by_a_policy_s_own_graph_says_how_much_a_region_can_count(study) -> None:
    largest = np.linalg.inv(np.eye(21) - study.played(LITERAL, "sem-ucb").adjacency).sum(axis=-2).max()
    assert f"in SEM-UCB's for up to {largest:,.0f}." in claim(study, "achieves a higher estimated").bar


def test_every_other_way_to_learn_graphs_is_a_condition(study) -> None:
    for words in (
        "efficiently estimates the regions",
        "adaptive selection of regions",
        "after the change point at day",
    ):
        conditions = [variant.conditions for variant in claim(study, words).variants]
        for rule in ("bounded graphs (effects on a region sum to at most 0.95)", "λ by the squared error, 1% rule"):
            assert any(rule in condition for condition in conditions)


def test_the_median_run() -> None:
    values = np.random.default_rng(0).normal(size=(5, 3))
    assert values[median_run(values)] == np.median(values)
    assert in_most_runs(np.array([[True, False], [True, True]])) == HOLDS
    assert in_most_runs(np.array([[True, False], [True, False]])) == FAILS


def test_estimates_are_compared_with_the_last_known_value_and_with_no_graph(study) -> None:
    """Exact with a graph that is needed; exact without one; and worse than the last known value, but better than z."""
    y, words = study.played(LITERAL, "ndc-sem").y, "efficiently estimates the regions"
    weak = np.broadcast_to(0.01 * (1 - np.eye(21)), (3, 2, 21, 21))
    exact = claim(with_run(study, LITERAL, "ndc-sem", z=y - y @ weak[0, 0].T, adjacency=weak), words)
    assert (exact.one, exact.verdict) == (HOLDS, HOLDS)
    off = claim(with_run(study, LITERAL, "ndc-sem", z=y, adjacency=100 * weak), words)
    assert (off.one, off.verdict) == (FAILS, FAILS)
    between = claim(with_run(study, LITERAL, "ndc-sem", z=-10 * y, adjacency=weak), words)
    assert (between.one, between.verdict) == (DEPENDS, DEPENDS)
    assert [variant.verdict for variant in between.variants[:2]] == [FAILS, HOLDS]


def test_the_graph_helps_if_there_is_more_with_it(study) -> None:
    without = study.played(LITERAL, "ndc-sem-no-graph").z
    for factor, verdict in ((2.0, HOLDS), (0.5, FAILS)):
        assert claim(with_run(study, LITERAL, "ndc-sem", z=factor * without), "helps to improve").verdict == verdict
    weights = weights_of(study.common())
    heaviest = np.arange(21) == weights.argmax(axis=-1)[..., None]
    fewer = np.where(heaviest[..., None, :], 0.99 * without.sum(axis=-1, keepdims=True), 0.0)  # but they count for more
    split = claim(with_run(study, LITERAL, "ndc-sem", z=fewer), "helps to improve")
    assert (split.one, split.verdict) == (DEPENDS, DEPENDS)


def test_adaptive_selection_needs_new_regions(study) -> None:
    still = np.zeros_like(study.played(LITERAL, "ndc-sem").x)
    still[..., :5] = True
    stuck = with_run(study, LITERAL, "ndc-sem", x=still)
    assert claim(stuck, "adaptively selects").verdict == FAILS
    assert "0.0 of the 21 regions are chosen only after" in claim(stuck, "For example, Marche").bar
    assert claim(stuck, "adaptive selection of regions is").variants[0].verdict in {FAILS, OPEN}
    moved = still.copy()
    moved[..., 39:, :] = False
    moved[..., 39:, [study.regions.index(r) for r in ("MAR", "ABR", "VDA", "LOM", "PIE")]] = True
    moved[..., :39, [study.regions.index("ABR")]] = False  # it is one of the first five
    new = with_run(study, LITERAL, "ndc-sem", x=moved)
    assert only_after(new, "ndc-sem").sum(axis=-1).tolist() == [[5, 5]] * 3
    assert claim(new, "adaptively selects").verdict == HOLDS
    named = claim(new, "For example, Marche")
    assert (named.one, named.verdict) == (UNCHECKABLE, UNCHECKABLE)  # the shift of the paper's run is not known
    assert "all three in 6 of 6 runs" in named.finding
    assert "It says little, too: in a run 5.0 of the 21 regions" in named.bar


def test_an_advantage_is_a_larger_share_of_the_best_regions_and_more_reward(study) -> None:
    best, rival = top_regions(study.data["expected"], 5), study.played(LITERAL, "sem-ucb")
    for right, factor, verdict in (
        (True, 2.0, HOLDS),
        (True, 0.5, DEPENDS),
        (False, 2.0, DEPENDS),
        (False, 0.5, FAILS),
    ):
        played = with_run(
            study, LITERAL, "ndc-sem", x=best if right else ~best, z=factor * rival.z, adjacency=rival.adjacency
        )
        found = claim(with_run(played, LITERAL, "sem-ucb", x=~best if right else best), "adaptive selection of regions")
        assert (found.one, found.verdict) == (verdict, verdict)


def test_detection_counts_the_optimal_regions(study) -> None:
    best = top_regions(weights_of(study.star()) * study.data["expected"][..., -1, :], 5)
    shape = study.played(SEMI, "ndc-sem").x.shape
    right = with_run(study, SEMI, "ndc-sem", x=np.broadcast_to(best[..., None, :], shape))
    assert (detected(right, "ndc-sem") == 5).all()
    order = np.argsort(~best, axis=-1, kind="stable")
    two = np.zeros_like(best)
    np.put_along_axis(two, order[..., 3:8], True, axis=-1)  # two of the best five and three others
    some = with_run(study, SEMI, "ndc-sem", x=np.broadcast_to(two[..., None, :], shape))
    assert (detected(some, "ndc-sem") == 2).all()
    assert "0 of 6 runs" in claim(some, "detect the optimal").finding
    interval = Interval(*map(np.array, (4.5, 4.1, 4.9)))
    assert level_verdict(interval, 4) == HOLDS
    assert level_verdict(interval, 5) == FAILS
    assert level_verdict(interval, 4.5) == OPEN


def test_whose_difference_the_graph_is(study) -> None:
    """Without effects the graph explains nothing; a graph that turns the order around explains all."""
    star = np.zeros_like(study.star())
    none = with_run(with_data(study, graph_unshifted_paper=star), LITERAL, "ndc-sem", adjacency=star)
    assert (graph_share(none)[1] == 0).all()
    assert (graph_share(none, own=True)[1] == 0).all()
    assert claim(none, "due to the existing").verdict == FAILS
    expected = study.data["expected"][..., 0, :]
    lowest = np.argsort(expected[0, 0])[:5]
    strong = star.copy()
    strong[..., np.argsort(expected[0, 0])[-1], lowest] = 1e6  # acyclic: weights are 1 + 1e6
    turned = with_data(none, graph_unshifted_paper=strong)
    differ, due = graph_share(turned)
    split = claim(turned, "due to the existing")  # by A* all, by NDC-SEM's own graph nothing
    assert [variant.one for variant in split.variants[:2]] == [HOLDS, FAILS]
    assert split.one == DEPENDS
    assert (due == 5).all()
    assert (differ == 5).all()
    assert half_verdict(due + np.arange(3)[:, None] * 1e-3, differ) == HOLDS


def test_sampled_cases_must_be_part_of_all_cases(study) -> None:
    less = with_data(study, unshifted_specific=0.5 * study.data["unshifted_overall"])
    assert claim(less, "Naturally, the overall").verdict == HOLDS
    more = with_data(study, unshifted_specific=2 * study.data["unshifted_overall"])
    assert claim(more, "Naturally, the overall").verdict == FAILS
    assert "100%" in claim(more, "Naturally, the overall").finding


def test_expected_cases_must_be_constant_in_each_period(study) -> None:
    assert claim(study, "piece-wise constant").verdict == HOLDS
    drift = study.data["expected"] + np.arange(80)[:, None]
    assert claim(with_data(study, expected=drift), "piece-wise constant").verdict == FAILS


def test_the_sets_are_not_necessarily_the_same(study) -> None:
    most = study.data["unshifted_overall"][..., :39, :].mean(axis=-2)
    same = with_data(
        study,
        graph_unshifted_paper=np.zeros_like(study.star()),
        expected=np.broadcast_to(most[..., None, :], study.data["expected"].shape),
    )
    assert claim(same, "not necessarily the same").verdict == FAILS


def test_a_grid_search_is_judged_run_by_run(study) -> None:
    def searched(first: np.ndarray):
        """The paper's cell (1, 1) is the best on the runs in a mask."""
        values = (
            np.where(first, 2.0, 0.5) * np.array([[0, 0], [0, 1]])[..., None] + np.array([[1, 0], [0, 0]])[..., None]
        )
        grids: Any = {f"grid-cases-{seeds}": ({"own": values}, {}) for seeds in ("reported", "others")}
        one: Any = {f"grid-cases-{ONE_RUN}": ({"own": values[..., :1]}, {})}
        return replace(study, read=study.read | grids | one)

    for mask, verdict in (([True] * 3, HOLDS), ([False] * 3, FAILS), ([False, True, False], FAILS)):
        found = searched(np.array(mask))
        assert claim(found, "grid search").verdict == UNCHECKABLE  # the run that the paper searched is not known
        assert claim(found, "grid search").variants[0].one == verdict
        assert sorted(set(all_single_ranks(found, "cases").tolist())) == sorted({1 if m else 2 for m in mask})
        assert single_winners(found, "cases") == len(set(mask))


# --- in short, lambda, the document ----------------------------------------------------------------------------------


def interval(mean: float, half: float) -> Interval:
    return Interval(*map(np.array, (mean, mean - half, mean + half)))


def test_the_conclusion_follows_the_numbers() -> None:
    assert conclusion(interval(5, 1), interval(-5, 1)) == "the scale decides which policy is ahead"
    assert conclusion(interval(5, 1), interval(5, 1)) == "NDC-SEM is ahead on both scales"
    assert conclusion(interval(-5, 1), interval(-5, 1)) == "SEM-UCB is ahead on both scales"
    assert conclusion(interval(5, 6), interval(5, 1)) == "only the difference on [0, 1] is clear"
    assert conclusion(interval(5, 1), interval(5, 6)) == "only the difference in cases is clear"
    assert conclusion(interval(5, 6), interval(5, 6)) == "neither difference is clear"
    assert more_or_fewer(interval(-50, 10)) == "50 [40, 60] fewer estimated cases"
    assert more_or_fewer(interval(50, 10)) == "50 [40, 60] more estimated cases"


def test_in_short_has_few_and_short_sentences(study) -> None:
    text = in_short(study)
    (words,) = re.findall(r"<p>(After the.*?)</p>", text)
    assert len(re.findall(r"\.(?= [A-Z]|$)", words)) == 8
    assert "of 12 claims" in words
    assert "of 14 claims" in words
    bounded = clustered_interval(gain(study, "cases", "own", BOUNDED_RULE))
    assert f"the difference is {more_or_fewer(bounded)} if the effects on a region may sum to at most 0.95" in words
    rival = study.played(LITERAL, "sem-ucb")
    ahead = with_run(study, LITERAL, "ndc-sem", z=2 * rival.z, adjacency=rival.adjacency)
    assert re.search(
        r"account for [\d,]+ \[[^]]*\] more estimated cases than SEM-UCB&#x27;s with data in cases", in_short(ahead)
    )
    behind = with_run(study, LITERAL, "ndc-sem", z=0.5 * rival.z, adjacency=rival.adjacency)
    assert re.search(
        r"account for [\d,]+ \[[^]]*\] fewer estimated cases than SEM-UCB&#x27;s with data in cases", in_short(behind)
    )


def test_what_the_rule_of_lambda_changes(study) -> None:
    """By hand, for one run and one policy."""
    z = study.played(LITERAL, "sem-ucb-unit", SQUARED_RULE).z[1, 0]
    by_hand = sum(float(z[day - 1].sum()) for day in range(40, 81)) / 41
    assert specific_a_day(study, "sem-ucb-unit", SQUARED_RULE)[1, 0] == pytest.approx(by_hand)
    paper, squared = (
        study.played(SEMI, "sem-ucb", PAPER_RULE, star).regret[..., -1].mean() for star in ("paper", "squared")
    )
    assert star_effect(study)["sem-ucb"] == pytest.approx(paper / squared - 1)


def test_names_follow_the_data_after_the_shift(study) -> None:
    days = np.array([15, 35, 55, 75])
    at = (study.plan.picture, 0)
    moved = study.data["overall"][at][days - 1]
    np.testing.assert_array_equal(by_region(study, moved, days), study.data["unshifted_overall"][at][days - 1])
    assert not np.array_equal(moved, study.data["unshifted_overall"][at][days - 1])


def test_findings_count_the_claims_and_have_one_row_for_each(study) -> None:
    text = findings(study)
    assert text.startswith("On the record, ")
    assert len(re.findall(r"^\| “", text, re.MULTILINE)) == len(covid_claims(study))

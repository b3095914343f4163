"""Comparisons: the same draws for all, differences by pairs, verdicts that hold together."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import spillover as sp
from spillover.metrics import Interval, graph_mse
from spillover.report import regret_figure
from spillover.simulation.comparison import BETTER, OPEN, SAME, WORSE, PairedComparison, compare, verdict_of

WORLD = sp.SyntheticSEM(n_arms=5, budget=2, horizon=80, changes=())


def made_up(*final: list[float], baseline: str | None = None) -> PairedComparison:
    """A comparison whose final regrets are given, a list for each policy."""
    template = sp.simulate(sp.Uniform(), WORLD, replications=1)
    runs = {}
    for name, values in zip("abcdefgh", final, strict=False):
        regret = np.array(values, float)[:, None]
        runs[name] = replace(template, regret=regret, payoff=0 * regret, optimality_ratio=np.ones_like(regret))
    return PairedComparison(runs=runs, baseline=baseline)


def test_every_policy_meets_the_draws_that_it_meets_alone() -> None:
    both = compare([sp.NDCSEM(), sp.Uniform()], WORLD, 3, replications=4, seed=5)
    for name, policy in (("NDCSEM", sp.NDCSEM()), ("Uniform", sp.Uniform())):
        alone = sp.simulate(policy, WORLD, 3, replications=4, seed=5)
        np.testing.assert_array_equal(both.runs[name].regret, alone.regret)


def test_differences_are_paired_and_hold_together() -> None:
    first, second, third = [1.0, 2.0, 4.0, 3.0], [3.0, 3.5, 6.5, 5.0], [9.0, 7.0, 9.0, 9.0]
    for baseline, pairs in ((None, 3), ("a", 2)):
        found = made_up(first, second, third, baseline=baseline).difference("b", "a")
        gaps = np.subtract(second, first)
        low, high = stats.t.interval(1 - 0.05 / pairs, 3, loc=gaps.mean(), scale=stats.sem(gaps))
        np.testing.assert_allclose(found, (gaps.mean(), low, high))


def test_two_policies_have_plain_intervals() -> None:
    first, second = [1.0, 2.0, 4.0, 3.0], [3.0, 3.5, 6.5, 5.0]
    found = made_up(first, second).difference("b", "a")
    test = stats.ttest_rel(second, first).confidence_interval()
    np.testing.assert_allclose(found[1:], (test.low, test.high))


def test_verdicts() -> None:
    verdicts = {(-2, -1): BETTER, (1, 2): WORSE, (-1, 1): OPEN, (0, 0): SAME, (np.nan, np.nan): OPEN, (0, 1): OPEN}
    for (low, high), verdict in verdicts.items():
        assert verdict_of(Interval(np.array(0.0), np.array(low), np.array(high))) == verdict


def test_the_best_first_and_compared_with_it_or_with_the_baseline() -> None:
    regrets = ([5.0, 6.0, 7.0, 6.5], [1.0, 2.0, 1.5, 1.0], [1.1, 1.9, 1.6, 1.1])
    best = made_up(*regrets)
    assert [row.policy for row in best.rows] == ["b", "c", "a"]
    assert [row.verdict for row in best.rows] == ["best", OPEN, WORSE]
    verdicts = {row.policy: row.verdict for row in made_up(*regrets, baseline="a").rows}
    assert verdicts == {"a": "baseline", "b": BETTER, "c": BETTER}
    table: Any = best.to_frame()
    assert table.loc["a", "verdict"] == WORSE
    lead = np.mean(regrets[0]) - best.runs[best.reference].final_regret.mean()
    assert table.loc["a", "difference"] == pytest.approx(lead)
    assert table.loc["a", "difference_low"] > 0
    assert (table["replications"] == 4).all()


def test_those_who_know_the_world_are_no_reference() -> None:
    found = compare(["oracle", sp.NDCSEM(), sp.Uniform()], WORLD, replications=3)
    assert found.ranked[0] == "Oracle"
    assert found.reference == "NDCSEM"
    assert found.rows[0].verdict == "knows the world"


def test_one_replication_tells_nothing() -> None:
    found = compare([sp.NDCSEM(), sp.Uniform()], WORLD, replications=1)
    assert {row.verdict for row in found.rows} == {"best", OPEN}
    assert "One replication" in found._repr_html_()
    assert found.plot() is not None


@pytest.mark.long
def test_intervals_of_all_pairs_cover_together() -> None:
    """Eight equally good policies: in at least 95% of the experiments (up to chance), no difference is claimed."""
    rng = np.random.default_rng(0)
    experiments, false = 400, 0
    for _ in range(experiments):
        found = made_up(*rng.normal(10, 1, (8, 12)).tolist())
        claims = [found.difference(one, other) for one, other in combinations(found.runs, 2)]
        false += any(verdict_of(claim) != OPEN for claim in claims)
    assert false / experiments <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / experiments)
    assert false > 0  # Bonferroni is careful, but not infinitely so


def test_names_tell_policies_apart() -> None:
    policies: list[Any] = [sp.NDCSEM(discount=0.9), sp.NDCSEM(graph=sp.SparseGraph(sparsity=0.01)), "random"]
    names = list(compare(policies, WORLD, replications=1).runs)
    assert names == [
        "NDCSEM(graph.sparsity=0.001, discount=0.9)",
        "NDCSEM(graph.sparsity=0.01, discount=0.985)",
        "Uniform",
    ]


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([sp.NDCSEM()], "policies = .*: must be a list or a mapping of at least two policies"),
        ("cucb", "policies = 'cucb': must be a list"),
        ([sp.NDCSEM(), sp.NDCSEM()], "must be policies that differ; a mapping gives them names"),
        (
            [sp.NDCSEM(discount=np.array([0.5, 0.9])), "random"],
            "shape of the grid of NDCSEM = \\(2,\\): must be",
        ),
        (["cucb", "cubc"], "policy = 'cubc': .*did you mean cucb"),
    ],
)
def test_what_cannot_be_compared(policies, message) -> None:
    with pytest.raises(ValueError, match=message):
        compare(policies, WORLD, replications=1)


def test_the_baseline_must_be_one_of_them() -> None:
    with pytest.raises(ValueError, match="baseline = 'CTS': must be one of the policies: NDCSEM, Uniform"):
        compare([sp.NDCSEM(), sp.Uniform()], WORLD, replications=1, baseline="CTS")
    with pytest.raises(ValueError, match="policy = 'CTS': must be one of a, b"):
        made_up([1.0, 2.0], [2.0, 3.0]).difference("a", "CTS")


def test_figures_take_runs_comparisons_and_grids_together() -> None:
    both = compare({"mine": sp.NDCSEM(), "$random$": sp.Uniform()}, WORLD, replications=2)
    grid = sp.simulate(sp.NDCSEM(discount=np.array([0.5, 0.9])), WORLD, replications=2)
    lines: Any = regret_figure([both, grid, both.runs["mine"]]).get_lines()
    labels = ["mine", r"\$random\$", "NDCSEM(discount=0.5)", "NDCSEM(discount=0.9)", "NDCSEM"]
    assert [line.get_label() for line in lines] == labels
    np.testing.assert_allclose(lines[0].get_ydata(), both.runs["mine"].regret.mean(axis=0))
    assert lines[4].get_color() == "#0072B2"  # the style of ndc-sem


def test_long_curves_keep_their_last_round() -> None:
    run = sp.simulate(sp.Uniform(), sp.SyntheticSEM(n_arms=3, budget=1, horizon=1203, changes=()), replications=1)
    (curve,) = run.regret_curves()
    assert curve.rounds[-1] == 1203
    assert len(curve.rounds) <= 500
    np.testing.assert_array_equal(curve.regret[:, -1], run.final_regret)


# --- Intervals and the error of the graph, against SciPy and by hand ------------------------------------------------


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40), st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_is_students(values, level):
    data = np.array(values)
    if np.ptp(data) < 1e-6:
        return
    found = sp.metrics.mean_interval(data, level=level)
    low, high = stats.t.interval(level, len(data) - 1, loc=data.mean(), scale=stats.sem(data))
    np.testing.assert_allclose([found.mean, found.low, found.high], [data.mean(), low, high], rtol=1e-9, atol=1e-9)


def test_interval_along_an_axis():
    data = np.random.default_rng(0).normal(size=(3, 20, 7))
    found = sp.metrics.mean_interval(data, axis=-2)
    assert found.mean.shape == found.low.shape == found.high.shape == (3, 7)
    low, high = stats.t.interval(0.95, 19, loc=data.mean(axis=1), scale=stats.sem(data, axis=1))
    np.testing.assert_allclose(found.low, low)
    np.testing.assert_allclose(found.high, high)


def test_interval_of_equal_values_is_a_point():
    found = sp.metrics.mean_interval(np.full(5, 2.5))
    assert found.low == found.mean == found.high == 2.5


def test_interval_of_one_replication_is_unknown():
    found = sp.metrics.mean_interval(np.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(found.mean, [1.0, 2.0])
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()


def test_interval_covers_the_mean_as_often_as_it_says():
    draws = np.random.default_rng(1).normal(3.0, 2.0, size=(8, 5000))
    found = sp.metrics.mean_interval(draws, axis=0)
    covered = int(((found.low <= 3.0) & (found.high >= 3.0)).sum())
    assert stats.binomtest(covered, 5000, 0.95).pvalue > 1e-3


def test_graph_error_is_the_mean_squared_difference():
    truth = np.zeros((2, 3, 3))
    estimate = truth.copy()
    estimate[1, 0, 2], estimate[1, 1, 2] = 0.6, -0.3
    np.testing.assert_allclose(graph_mse(estimate, truth), [0.0, (0.36 + 0.09) / 9])
    assert graph_mse(estimate[1], truth[1]) == pytest.approx(0.05)


def test_several_worlds_and_delays_in_one_call() -> None:
    worlds = {"dense": sp.SyntheticSEM(horizon=40, changes=(), edge_density=0.3), "paper": WORLD}
    found = sp.compare_across({"a": "sem-ucb", "b": "random"}, worlds, {"none": 0, "late": sp.GeometricDelay(mean=4)})
    assert list(found.found) == [("dense", "none"), ("dense", "late"), ("paper", "none"), ("paper", "late")]
    alone = compare({"a": "sem-ucb", "b": "random"}, WORLD, 0)
    np.testing.assert_array_equal(found["paper", "none"].runs["a"].regret, alone.runs["a"].regret)
    frame = found.to_frame()
    assert frame.columns[:3].tolist() == ["world", "delay", "policy"]
    assert len(frame) == 8
    assert repr(found).splitlines()[0].startswith("dense, delay none: ")


@pytest.mark.parametrize(
    ("worlds", "delays", "name"),
    [
        ({}, [0], "environments"),
        (WORLD, [0], "environments"),
        ({"w": WORLD}, [], "delays"),
        ({"w": WORLD}, [0.5], "delays"),
    ],
)
def test_worlds_without_names_and_delays_without_rounds_are_refused(worlds, delays, name) -> None:
    with pytest.raises(ValueError, match=f"{name} = "):
        sp.compare_across(["sem-ucb", "random"], worlds, delays)


def test_a_setting_that_was_not_compared_is_refused() -> None:
    found = sp.compare_across(["sem-ucb", "random"], {"w": WORLD}, [0], replications=2)
    with pytest.raises(ValueError, match="setting = "):
        found["w", 5]

"""Each finding where it must be, and not where it must not."""

import re

import numpy as np
import pytest
from scipy import stats

from spillover.assessment import assess
from spillover.assessment.assess import pooled_effect
from spillover.assessment.reduced_form import checked_data
from tests.assessment.panels import panel
from tests.assessment.worlds import days, months, table


def codes(found):
    return {finding.code for finding in found.findings}


def said(found, code):
    finding = found.find(code)
    assert finding is not None, found.findings
    return finding


def arms_of(found, code):
    return said(found, code).arms


def test_a_clean_table_has_no_warning() -> None:
    x, y, c = table(0, context=1)
    found = assess(x, y, context=c, rounds=days(len(x)))
    assert found.warnings == ()
    assert codes(found) >= {"enough-rounds", "separable"}


def test_averages_are_those_of_the_rounds_with_and_without() -> None:
    x, y, _ = table(1)
    y[3, 0] = np.nan
    found = assess(x, y).averages[0]
    known = np.isfinite(y[:, 0])
    inside, outside = y[known & x[:, 0], 0], y[known & ~x[:, 0], 0]
    assert found.times == x[:, 0].sum()
    assert found.own[:3] == pytest.approx((inside.mean(), outside.mean(), inside.mean() - outside.mean()))
    error = np.sqrt(inside.var(ddof=1) / len(inside) + outside.var(ddof=1) / len(outside))
    assert found.own.error == pytest.approx(error)
    assert found.rest.chosen == pytest.approx(y[known & x[:, 0], 1:].sum(axis=1).mean())


def test_arms_never_always_and_rarely_chosen() -> None:
    x, y, _ = table(2, arms=5)
    x[:, 0], x[:, 1], x[:, 2] = False, True, False
    x[4, 2] = True
    found = assess(x, y, arms="abcde")
    assert arms_of(found, "never-chosen") == ("a",)
    assert arms_of(found, "always-chosen") == ("b",)
    assert arms_of(found, "rarely-varied") == ("c",)


def test_arms_together_opposite_and_dependent() -> None:
    x, y, _ = table(3, arms=6)
    x[:, 1], x[:, 3] = x[:, 0], ~x[:, 2]
    found = assess(x, y, arms="abcdef")
    assert arms_of(found, "always-together") == ("a", "b")
    assert arms_of(found, "always-opposite") == ("c", "d")
    assert "separable" not in codes(found)
    x, y, _ = table(3, arms=4)
    x[:, 2] = x[:, 0] & x[:, 1]
    x[:, 3] = x[:, 0] | x[:, 1]  # a + b = c + d
    assert arms_of(assess(x, y, arms="abcd"), "arms-dependent") == ("a", "b", "c", "d")


def test_choices_that_follow_from_the_context() -> None:
    x, y, _ = table(4)
    holiday = x[:, [1]].astype(float)
    found = assess(x, y, context=holiday, arms="abcd")
    assert arms_of(found, "arms-dependent") == ("b",)


def test_a_constant_budget_is_noted() -> None:
    x, y, _ = table(5, budget=2)
    found = assess(x, y)
    assert found.warnings == ()
    assert "Exactly 2 arms were chosen" in said(found, "constant-budget").sentence


def test_nearly_together() -> None:
    x, y, _ = table(6, rounds=400)
    x[:, 1] = x[:, 0]
    x[::80, 1] ^= True
    assert arms_of(assess(x, y, arms="abcd"), "nearly-together") == ("a", "b")


def test_rounds_against_unknowns() -> None:
    x, y, c = table(7, rounds=300, context=2)
    assert "too-few-rounds" in codes(assess(x[:7], y[:7], context=c[:7]))
    assert "few-rounds" in codes(assess(x[:15], y[:15], context=c[:15]))
    assert "enough-rounds" in codes(assess(x, y, context=c))


@pytest.mark.parametrize(("labels", "cycle"), [(days(364), 7), (months(120), 12)])
def test_seasons_in_choices_and_residuals(labels, cycle) -> None:
    x, y, _ = table(8, rounds=len(labels))
    season = np.sin(2 * np.pi * np.arange(len(labels)) / cycle)
    found = assess(x, y + 0.5 * season[:, None], rounds=labels, arms="abcd")
    assert {finding.code for finding in found.warnings} == {"season-in-residuals"}
    x[:, 2] = season > 0.3
    found = assess(x, y, rounds=labels, arms="abcd")
    assert arms_of(found, "choices-follow-season") == ("c",)


def test_a_drift_is_no_season() -> None:
    x, y, _ = table(9, rounds=120)
    walk = np.cumsum(np.random.default_rng(1).normal(size=120))
    found = assess(x, y + walk[:, None], rounds=months(120))
    assert found.warnings == ()


def test_a_trend_in_choices() -> None:
    x, y, _ = table(10)
    x[:, 1] = (np.arange(len(x)) > 60) ^ (np.arange(len(x)) % 30 == 0)
    assert arms_of(assess(x, y, arms="abcd"), "choices-follow-trend") == ("b",)


def test_an_arm_that_was_switched_on_once() -> None:
    x, y, _ = table(10)
    x[:, 1] = np.arange(len(x)) > 80
    found = assess(x, y, arms="abcd")
    assert arms_of(found, "switched-once") == ("b",)
    assert "choices-follow-trend" not in codes(found)


def test_outcomes_that_add_up_to_one() -> None:
    x, y, _ = table(10)
    shares = np.exp(y) / np.exp(y).sum(axis=1, keepdims=True)
    for digits in (2, 4, 16):
        assert said(assess(x, shares.round(digits)), "constant-sum").warning
    for others in (y, y.round(1), y > np.median(y), np.random.default_rng(0).poisson(20, y.shape)):
        assert "constant-sum" not in codes(assess(x, np.asarray(others, float)))


def test_a_baseline_is_seen_where_nothing_is_chosen() -> None:
    x, y, _ = table(11, baseline=2.0, share=0.3)
    assert "baseline" in codes(assess(x, y))
    x, y, _ = table(11, noise=0.0, share=0.3)
    assert "no-baseline" in codes(assess(x, y))


def test_constant_outcomes() -> None:
    x, y, _ = table(12)
    y[:, 1] = 3.0
    assert arms_of(assess(x, y, arms="abcd"), "constant-outcomes") == ("b",)
    assert said(assess(x, np.ones_like(y)), "constant-outcomes").warning


def test_common_shocks() -> None:
    x, y, _ = table(13)
    shock = np.random.default_rng(2).normal(size=(len(y), 1))
    assert "common-shock" in codes(assess(x, y + shock))
    assert "common-shock" not in codes(assess(x, y))


def test_one_outcome_for_all_arms() -> None:
    x, y, _ = table(14)
    total = y.sum(axis=1, keepdims=True)
    found = assess(x, total, outcomes=["sales"])
    assert found.reduced.total == pytest.approx(assess(x, y).reduced.total)
    assert np.isnan(found.reduced.own).all()
    assert np.isnan(found.averages[0].own.chosen)


def test_many_arms_get_averages_but_no_regression() -> None:
    x, y, _ = table(18, rounds=500, arms=401)
    found = assess(x, y)
    assert np.isnan(found.reduced.effects).all()
    assert found.averages[400].times == x[:, 400].sum()
    assert codes(found) == {"too-few-rounds" if len(x) <= 402 else "few-rounds", "separable"}


def test_nothing_known_yet() -> None:
    x, y, _ = table(15, rounds=3)
    found = assess(x, np.full_like(y, np.nan))
    assert codes(found) == {"too-few-rounds"}
    assert assess(np.zeros((0, 2)), np.zeros((0, 2))).known == 0


def test_units_and_order_do_not_matter() -> None:
    x, y, c = table(16, context=1, baseline=1.0)
    found, scaled = assess(x, y, context=c, arms="abcd"), assess(x, 1e6 * y, context=1e-3 * c, arms="abcd")
    assert codes(found) == codes(scaled)
    assert scaled.reduced.effects == pytest.approx(1e6 * found.reduced.effects)
    order = [2, 0, 3, 1]
    turned = assess(x[:, order], y[:, order], context=c, arms="cadb")
    assert turned.reduced.total == pytest.approx(found.reduced.total[order])
    shuffled = np.random.default_rng(0).permutation(len(x))
    assert assess(x[shuffled], y[shuffled], context=c[shuffled]).reduced.errors == pytest.approx(found.reduced.errors)


def test_content_for_programs_has_plain_values() -> None:
    x, y, _ = table(17)
    content = assess(x, y, arms="abcd").to_dict()
    assert [arm["arm"] for arm in content["arms"]] == list("abcd")
    assert content["arms"][0]["least_squares"]["identified"] is True


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"y": np.zeros((4, 3))}, "shape of y = (4, 3): must be (5, 2)"),
        ({"dose": np.zeros(5)}, "shape of dose"),
        ({"context": np.zeros(5)}, "shape of context"),
        ({"rounds": ["1"]}, "length of rounds = 1: must be 5"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(given, words) -> None:
    arguments = {"x": np.zeros((5, 2)), "y": np.zeros((5, 2))} | given
    with pytest.raises(ValueError, match=re.escape(words)):
        assess(**arguments)


@pytest.mark.long
def test_false_alarms_are_rare() -> None:
    """On 200 clean tables of daily and monthly rounds, with and without a drift of the baseline."""
    alarms = []
    for seed in range(200):
        labels = days(200) if seed % 2 else months(120)
        x, y, c = table(seed, rounds=len(labels), context=seed % 3)
        drift = np.cumsum(0.1 * np.random.default_rng(seed).normal(size=len(x))) if seed % 4 < 2 else np.zeros(len(x))
        found = assess(x, y + drift[:, None], context=c, rounds=labels)
        alarms.append({finding.code for finding in found.warnings})
    assert sum(map(bool, alarms)) <= 2


def test_context_that_moves_an_effect() -> None:
    x, y, c = table(19, context=2, rounds=200)
    found = assess(x, y, context=c, arms="abcd")
    assert "context-moves-outcomes" in codes(found)
    y[:, 1] += 0.5 * x[:, 1] * c[:, 0]
    found = assess(x, y, context=c, arms="abcd")
    assert arms_of(found, "context-moves-effects") == ("b",)
    assert found.moved.tolist() == [False, True, False, False]
    total = assess(x, y.sum(axis=1, keepdims=True), outcomes=["sales"], context=c, arms="abcd")
    assert total.moved.tolist() == [False, True, False, False]


def test_a_season_in_the_context_does_no_harm() -> None:
    labels = months(120)
    x, y, _ = table(8, rounds=120)
    season = np.sin(2 * np.pi * np.arange(120) / 12)
    x[:, 2] = season + 0.3 * np.random.default_rng(0).normal(size=120) > 0.3
    month = np.eye(12)[np.arange(120) % 12][:, 1:]
    assert "choices-follow-season" in codes(assess(x, y, rounds=labels))
    assert "choices-follow-season" not in codes(assess(x, y, rounds=labels, context=month))


def test_an_outcome_far_from_all_others_is_named() -> None:
    x, y, _ = table(11)
    assert assess(x, y).find("outlier") is None
    y[40, 2] = -1e6
    found = said(assess(x, y, rounds=days(len(x))), "outlier")
    assert found.warning
    assert found.arms == ("arm 3",)
    assert found.sentence.startswith("The outcome of arm 3 in round 2020-02-10 is -1,000,000, where ")
    y[50, 0] = 1e4
    assert "(1 more outcome like this)" in said(assess(x, y), "outlier").sentence


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_heavy_tails_and_many_zeros_are_no_outliers(scale) -> None:
    x, y, _ = table(12)
    draw = np.random.default_rng(0)
    assert assess(x, scale * np.exp(draw.normal(size=y.shape))).find("outlier") is None
    assert assess(x, scale * draw.poisson(0.05, y.shape).astype(float)).find("outlier") is None
    assert assess(x, np.where(x, 1e6 * scale, scale * y)).find("outlier") is None


def test_a_total_among_the_arms_is_named() -> None:
    x, y, _ = table(13)
    assert assess(x, y).find("total-among-arms") is None
    x[:, 3] = False
    y[:, 3] = y[:, :3].sum(axis=1).round(3)
    assert arms_of(assess(x, y), "total-among-arms") == ("arm 4",)
    y[:, 3] += 1.0
    assert assess(x, y).find("total-among-arms") is None


# --- The pooled effect of units that were chosen once or twice, against independent computations and a known truth


def pooled(x, y):
    found = pooled_effect(checked_data(x, y))
    assert found is not None
    return found


def by_dummies(x, y):
    """The effect by a regression on one column for each unit and each round, from outcomes that were not chosen."""
    rounds, units = x.shape
    t, i = np.nonzero(np.isfinite(y))
    columns = np.concatenate([np.eye(units)[i], np.eye(rounds)[t]], axis=1)
    idle = ~x[t, i]
    fitted = np.linalg.lstsq(columns[idle], y[t, i][idle], rcond=None)[0]
    return float((y[t, i] - columns @ fitted)[~idle].mean())


@pytest.mark.parametrize("seed", range(3))
def test_the_effect_is_that_of_a_regression_on_dummies(seed) -> None:
    x, y, _ = panel(seed)
    y[np.random.default_rng(seed).random(y.shape) < 0.1] = np.nan
    assert pooled(x, y).effect == pytest.approx(by_dummies(x, y))


def test_two_rounds_are_a_comparison_of_two_samples() -> None:
    """Welch's test of what outcomes change by from the first round to the second."""
    x, y, _ = panel(3, units=30, rounds=2, together=True)
    found, change = pooled(x, y), y[1] - y[0]
    welch = stats.ttest_ind(change[:12], change[12:], equal_var=False)
    assert found.effect == pytest.approx(change[:12].mean() - change[12:].mean())
    assert found.error == pytest.approx(found.effect / welch.statistic)
    assert found.freedom == pytest.approx(welch.df)
    assert found.interval == pytest.approx(tuple(welch.confidence_interval()))
    assert (found.treated, found.controls, found.before) == (12, 18, None)


@pytest.mark.parametrize("chosen", [1, 3])
def test_few_chosen_units_are_judged_by_those_never_chosen(chosen) -> None:
    """With one start: the difference of two means, whose variance is that of the larger sample."""
    x, y, _ = panel(4, chosen=chosen, together=True)
    found = pooled(x, y)
    change = y[10:].mean(axis=0) - y[:10].mean(axis=0)
    inside, outside = change[:chosen], change[chosen:]
    assert found.by_controls
    assert found.effect == pytest.approx(inside.mean() - outside.mean())
    error = outside.std(ddof=1) * np.sqrt(1 / chosen + 1 / len(outside))
    assert found.error == pytest.approx(error)
    assert found.freedom == len(outside) - 1
    reach = stats.t.ppf(0.975, len(outside) - 1) * error
    assert found.interval == pytest.approx((found.effect - reach, found.effect + reach))


def test_effects_that_grow_do_not_mislead() -> None:
    """Two-way fixed effects of all outcomes compare with units chosen before, and even get the sign wrong."""
    starts = np.array([1, 1, 1, 9, 9, 9])
    x = np.arange(12)[:, None] >= starts
    effects = x * np.cumsum(x, axis=0).astype(float)
    y = effects + np.arange(12)[:, None] ** 1.5 + np.arange(6)
    columns = np.stack([np.eye(6)[i] for _ in range(12) for i in range(6)])
    columns = np.concatenate([columns, np.repeat(np.eye(12), 6, axis=0), x.reshape(-1, 1)], axis=1)
    assert np.linalg.lstsq(columns, y.ravel(), rcond=None)[0][-1] < 0
    here = x & (np.arange(12) < 9)[:, None]  # later nobody is left to compare with
    assert pooled(x, y).effect == pytest.approx(effects[here].mean())


def test_units_and_rounds_without_anything_to_compare_with_are_left_out() -> None:
    x, y, _ = panel(5, units=8, rounds=10, chosen=4)
    before = pooled(x[:9], y[:9]).effect
    x[9] = True
    assert pooled(x, y).effect == pytest.approx(before)
    more = np.ones((10, 1), np.bool_)
    assert pooled(np.hstack([x, more]), np.hstack([y, 99 * more])).effect == pytest.approx(before)


def test_trends_that_differ_before_the_choices_are_named() -> None:
    x, y, _ = panel(6)
    assert assess(x, y).find("trends-differ") is None
    y[:, :12] += 0.5 * np.arange(len(y))[:, None]
    finding = assess(x, y).find("trends-differ")
    assert finding is not None
    assert finding.warning


def test_the_finding_has_number_interval_and_assumption() -> None:
    x, y, _ = panel(7)
    found = assess(x, y)
    finding = found.find("pooled-effect")
    assert finding is not None
    assert found.pooled is not None
    assert finding.sentence.startswith("Pooled over 12 chosen units: choosing a unit changes its own outcome by -2.")
    assert "parallel trends" in finding.sentence
    content = found.to_dict()["pooled"]
    assert content["interval"] == list(found.pooled.interval)
    assert content["treated"] == 12


def test_too_few_units_have_no_interval() -> None:
    x, y, _ = panel(8, units=5, chosen=1)
    y[:, 4] = np.nan
    found = assess(x, y)
    assert found.pooled is not None
    assert found.pooled.to_dict()["error"] is None
    finding = found.find("pooled-effect")
    assert finding is not None
    assert "too few units" in finding.sentence


def test_arms_that_come_and_go_are_no_units() -> None:
    x, y, _ = table(0, arms=8)
    assert assess(x, y).pooled is None
    assert assess(x[:12], y[:12]).pooled is None
    assert assess(x[:, :1], y.sum(axis=1, keepdims=True), outcomes=["sales"]).pooled is None
    x, y, _ = panel(0)
    assert assess(x, y, dose=np.where(x, 2.0, 0.0)).pooled is None


def covered(seeds, **kind):
    """How many intervals contain the effect."""
    hits = 0
    for seed in seeds:
        x, y, truth = panel(seed, **kind)
        low, high = pooled(x, y).interval
        hits += low <= truth <= high
    return hits


def test_intervals_contain_the_effect_of_some_panels() -> None:
    assert covered(range(40)) >= 36


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"growth": 0.3},
        {"units": 20, "chosen": 6},
        {"units": 20, "chosen": 1},
        {"units": 30, "chosen": 3},
        {"units": 100, "rounds": 6, "chosen": 30, "together": True},
    ],
)
def test_intervals_contain_the_effect(kind) -> None:
    assert covered(range(200), **kind) >= 186

"""The pooled effect of units that were chosen once or twice, against independent computations and a known truth."""

import numpy as np
import pytest
from scipy import stats

from spillover.assessment import assess
from spillover.assessment.data import checked_data
from spillover.assessment.pooled import pooled_effect
from tests.assessment.panels import panel
from tests.assessment.worlds import table


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

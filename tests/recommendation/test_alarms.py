"""Warnings of a whole answer, from the table on."""

import numpy as np
import pandas as pd

import spillover as sp
from tests.assessment.worlds import days, months, table
from tests.recommendation.tables import wide


def codes(found):
    return {finding.code for finding in found.cautions} | {
        signal.code for signal in found.reasons.health if signal.warning
    }


def long_table(x, y, z=None, labels=None):
    rounds, n = x.shape
    cells = {"round": np.repeat(labels or days(rounds), n), "arm": np.tile(list("abcdefgh"[:n]), rounds)}
    cells |= {"chosen": x.ravel().astype(int), "y": y.ravel()}
    if z is not None:
        cells["z"] = np.where(x, z, np.nan).ravel()
    return pd.DataFrame(cells)


def test_a_change_of_effects() -> None:
    x, early, _ = table(0, rounds=300, effects=np.diag([1.0, 0.2, 0.5, 0.4]), noise=0.1)
    late = x @ np.diag([0.1, 1.0, 0.5, 0.4]) + early - x @ np.diag([1.0, 0.2, 0.5, 0.4])
    y = np.where(np.arange(300)[:, None] < 200, early, late)
    found = sp.next_decision(long_table(x, y), budget=1)
    assert "changes" in codes(found)
    assert found.greedy == ("b",)


def test_a_season_that_is_not_given() -> None:
    x, y, _ = table(1, rounds=96)
    y = y + np.sin(2 * np.pi * np.arange(96) / 12)[:, None]
    frame = long_table(x, y, labels=months(96))
    assert "season-in-residuals" in codes(sp.next_decision(frame, budget=1))
    assert "season-in-residuals" not in codes(sp.next_decision(frame, budget=1, context="season"))


def follows(driver, context=None):
    """Choices of the first arm follow what also moves the outcomes of the same and the next round."""
    x, y, _ = table(6, rounds=200)
    x[1:, 0] = driver[:-1] > 0
    frame = long_table(x, y + driver[:, None])
    if context is not None:
        frame["weather"] = np.repeat(driver, x.shape[1])
    return sp.next_decision(frame, budget=1, context=context)


def test_choices_that_follow_outcomes() -> None:
    noise = np.random.default_rng(7).normal(size=200)
    driver = np.convolve(noise, 0.8 ** np.arange(10))[:200]
    assert "choices-follow-outcomes" in codes(follows(driver))
    assert "choices-follow-outcomes" not in codes(follows(driver, "weather"))
    assert "choices-follow-outcomes" not in codes(follows(noise[::-1] * 0.01))


def test_choices_and_outcomes_with_a_trend_do_not_follow_each_other() -> None:
    rng = np.random.default_rng(8)
    x, y, _ = table(6, rounds=200)
    x[:, 0] = rng.random(200) < np.linspace(0.05, 0.95, 200)
    frame = long_table(x, y + 0.05 * np.arange(200)[:, None])
    assert "choices-follow-outcomes" not in codes(sp.next_decision(frame, budget=1))


def test_a_hidden_common_cause_of_rewards_and_outcomes() -> None:
    generator = np.random.default_rng(2)
    x = generator.random((600, 4)) < 0.5
    hidden = 0.3 * generator.normal(size=(600, 1))
    z = np.where(x, np.clip(0.5 + hidden + 0.05 * generator.normal(size=x.shape), 0.0, 1.0), 0.0)
    y = z + hidden
    assert "confounded" in codes(sp.next_decision(long_table(x, y, z), budget=1))


def test_a_constant_sum_of_outcomes_is_the_headline() -> None:
    x, y, _ = table(3)
    shares = np.exp(y) / np.exp(y).sum(axis=1, keepdims=True)
    found = sp.next_decision(long_table(x, shares), budget=1)
    assert "constant-sum" in codes(found)
    assert "no choice changes the sum of the outcomes" in str(found).splitlines()[0]


def test_arms_that_were_always_chosen_together() -> None:
    x, _, _ = table(4)
    x[:, 1] = x[:, 0]
    y = x @ np.diag([1.0, 1.0, 0.3, 0.2]) + 0.1 * np.random.default_rng(0).normal(size=x.shape)
    found = sp.next_decision(long_table(x, y.sum(axis=1, keepdims=True) / 4 + 0 * y), budget=1)
    assert "always-together" in codes(found)
    assert any("always chosen together" in reason for reason in found.not_yet)


def test_too_few_rounds() -> None:
    found = sp.next_decision(wide(5).head(4), budget=1)
    assert "too-few-rounds" in codes(found)
    assert found.not_yet
    assert "not yet clear which arms are best" in str(found)

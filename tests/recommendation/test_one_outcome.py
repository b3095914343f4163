"""Tables with one outcome for all arms: clear effects are found, and intervals cover them and are not far too wide."""

import numpy as np
import pandas as pd
import pytest

import spillover as sp

EFFECTS = np.array([3.0, 2.0, 1.0, 0.2, 0.0])
NAMES = ["tv", "radio", "print", "mail", "web"]


def answers(rounds, noise, tables=30, level=20.0):
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        x = rng.random((rounds, len(EFFECTS))) < 0.4
        outcome = level + x @ EFFECTS + noise * rng.normal(size=rounds)
        days = pd.date_range("2024-01-01", periods=rounds, freq="7D")
        yield sp.next_decision(
            pd.DataFrame({"week": days, **dict(zip(NAMES, x.T.astype(int), strict=True)), "revenue": outcome}), budget=2
        )


def test_clear_effects_are_told_apart() -> None:
    found = list(answers(rounds=60, noise=0.5))
    assert all(set(one.greedy) == {"tv", "radio"} for one in found)
    assert sum(bool(one.not_yet) for one in found) <= 1  # of 30


@pytest.mark.parametrize(("rounds", "noise"), [(20, 0.5), (60, 0.5), (60, 2.0)])
def test_intervals_cover_the_effects_and_are_not_far_too_wide(rounds, noise) -> None:
    truth = dict(zip(NAMES, EFFECTS, strict=True))
    arms = [arm for one in answers(rounds, noise) for arm in one.arms]
    covered = [arm.total_interval[0] <= truth[arm.arm] <= arm.total_interval[1] for arm in arms]
    assert np.mean(covered) >= 0.9
    width = np.mean([arm.total_interval[1] - arm.total_interval[0] for arm in arms])
    plain = 2 * 1.96 * noise / np.sqrt(rounds * 0.4 * 0.6)  # of least squares with known noise
    assert width < 2 * plain

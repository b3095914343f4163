"""Means that drift: the process against a Gaussian posterior, and the evidence for drifting or switching."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import spillover as sp
from spillover.policies.switching_state import OTHER_WORLD, empty_drift
from tests.policies.filters import DRIFT, forecast, learn_drift

SCALE, VARIANCE = DRIFT


def arrive(drift, x, reward, played_at, likely=None, weight=1.0):
    likely = np.zeros(len(x)) if likely is None else likely
    x, reward = np.asarray(x, bool), np.asarray(reward, float)
    learn_drift(drift, x, reward, np.asarray(likely, float), weight, int(played_at), OTHER_WORLD)


def covariance(one, two):
    """Of a Matern process of smoothness 3/2."""
    distance = np.sqrt(3.0) * np.abs(np.subtract.outer(one, two)) / SCALE
    return VARIANCE * (1.0 + distance) * np.exp(-distance)


def test_it_is_the_posterior_of_a_gaussian_process():
    draws, drift = np.random.default_rng(3), empty_drift(1, ())
    rounds = np.cumsum(draws.integers(1, 40, 60))
    rewards = draws.integers(0, 2, 60).astype(float)
    noises: list[float] = []
    for t, reward in zip(rounds, rewards, strict=True):
        elapsed = t - drift.latest[0] if noises else 0
        mean = forecast(drift.track, int(elapsed))[0][0]
        noises.append(mean * (1.0 - mean))
        arrive(drift, [True], [reward], t)
    ahead = rounds[-1] + 70
    gram = covariance(rounds, rounds) + np.diag(noises)
    across = covariance(rounds, np.array([ahead]))[:, 0]
    mean = 0.5 + across @ np.linalg.solve(gram, rewards - 0.5)
    spread = VARIANCE - across @ np.linalg.solve(gram, across)
    found = forecast(drift.track, 70)
    assert_allclose([found[0][0], found[1][0]], [mean, np.sqrt(spread)], rtol=1e-9)


def test_an_old_reward_is_a_noisier_one():
    early, late = empty_drift(1, ()), empty_drift(1, ())
    for drift in (early, late):
        arrive(drift, [False], [0.0], 500)
    arrive(early, [True], [1.0], 500)
    arrive(late, [True], [1.0], 100)
    assert early.track[0, 0] > late.track[0, 0] > 0
    assert early.track[0, 2] < late.track[0, 2] < VARIANCE


@pytest.mark.parametrize(("smooth", "probable"), [(True, (0.7, 1.0)), (False, (0.0, 0.1))])
def test_the_evidence_tells_drifting_from_switching(smooth, probable):
    rng = sp.Rng(5, np.arange(10))
    world = sp.SyntheticSEM(smooth=smooth, horizon=2500, changes=(1000,)).draw(rng, (10,))
    for last in sp.rounds(sp.SwitchingSEM(), world, 50, rng, (10,)):
        state = last.state
    assert probable[0] <= np.median(state.drift.probability) <= probable[1]

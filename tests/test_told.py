"""The policies that are told something, of `python -m benchmarks told`, against enumerations."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import spillover as sp
from benchmarks.told import drawn, regret
from benchmarks.told_filters import POINTS, KnownChanges, KnownCourse
from benchmarks.told_weights import ToldWeights
from spillover.rng import Purpose

ENDS = np.array([1, 40, 90])


def share(t: int, first: int, last: int) -> float:
    return float((1.0 - np.cos(np.pi * (t - first) / (last - first))) / 2.0)


def test_a_known_course_is_the_posterior_of_three_levels():
    """Two periods: every triple of levels, with the likelihood of all rewards seen, in one sum."""
    draws, known = np.random.default_rng(1), KnownCourse(1, 2, ENDS)
    levels = (np.arange(POINTS) + 0.5) / POINTS
    a, b, c = np.meshgrid(levels, levels, levels, indexing="ij")
    posterior = np.ones((2, POINTS, POINTS, POINTS))
    for t in range(1, 61):
        seen, rewards = draws.uniform(size=(1, 2)) < 0.7, (draws.uniform(size=(1, 2)) < 0.4).astype(float)
        known.learn(t, seen, rewards)
        mean = a + share(t, 1, 40) * (b - a) if t < 40 else b + share(t, 40, 90) * (c - b)
        for arm in np.flatnonzero(seen[0]):
            posterior[arm] *= mean if rewards[0, arm] else 1.0 - mean
    posterior /= posterior.sum(axis=(1, 2, 3), keepdims=True)
    known.forecast(75)
    ahead = b + share(75, 40, 90) * (c - b)
    expected = [(each * ahead).sum() for each in posterior]
    variance = [(each * ahead**2).sum() - mean**2 for each, mean in zip(posterior, expected, strict=True)]
    assert_allclose(known.mean[0], expected, rtol=1e-9)
    assert_allclose(known.deviation[0], np.sqrt(variance), rtol=1e-9)


def test_known_changes_are_counted_since_then():
    """Arm 0 is known to change in round 11, arm 1 is known not to."""
    draws, known = np.random.default_rng(2), KnownChanges(1, 2, (11,), np.array([[[1.0, 0.0]]]))
    rewards = (draws.uniform(size=(30, 1, 2)) < 0.6).astype(float)
    for t in range(1, 31):
        known.learn(t, np.ones((1, 2), bool), rewards[t - 1])
    known.forecast(31)
    ones, since = rewards.sum(axis=(0, 1)), rewards[10:].sum(axis=(0, 1))
    assert_allclose(known.mean[0], [(1 + since[0]) / 22, (1 + ones[1]) / 32], rtol=1e-9)


def test_an_arm_that_may_have_changed_is_weighed_by_its_rewards():
    """One success after a change with probability 0.3; before, 3 successes and 1 failure."""
    known = KnownChanges(1, 1, (5,), np.full((1, 1, 1), 0.3))
    for t, reward in enumerate((1.0, 1.0, 0.0, 1.0, 1.0), start=1):
        known.learn(t, np.ones((1, 1), bool), np.full((1, 1), reward))
    known.forecast(6)
    changed = 0.3 * 0.5 / (0.3 * 0.5 + 0.7 * 4 / 6)
    assert_allclose(known.mean, [[changed * 2 / 3 + (1.0 - changed) * 5 / 7]], rtol=1e-9)


def test_who_knows_the_means_has_no_regret_and_who_is_told_less_has_more():
    worlds = drawn(sp.SyntheticSEM(horizon=300, changes=(150,), smooth=True), 3, 4)

    class Knows(KnownCourse):
        def forecast(self, t: int) -> None:
            self.mean = worlds.means[t - 1]

    ends = worlds.world.ends
    assert_allclose(regret(worlds, Knows(4, 10, ends), True, 0.0), 0.0, atol=1e-12)
    all_seen, own = (regret(worlds, KnownCourse(4, 10, ends), seen, 0.0 if seen else 30.0) for seen in (True, False))
    assert (np.diff(own, axis=-1) > -1e-12).all()
    assert 0.0 < all_seen[:, -1].mean() < own[:, -1].mean()
    assert all_seen.shape == (4, 300)


def test_told_weights_are_those_of_the_world():
    """Without edges all weights are 1, and nothing is gained by being told."""
    environment = sp.SyntheticSEM(horizon=120, changes=(60,))
    alone, told = (
        sp.simulate(policy, replace(environment, edge_density=0.0), 20, replications=3)
        for policy in (sp.SwitchingSEM(graph="none"), ToldWeights())
    )
    assert_array_equal(alone.regret, told.regret)
    rng = sp.Rng(0, np.arange(3))
    world = environment.draw(rng.at(Purpose.WORLD), (3,))
    policy = ToldWeights().for_problem(world.problem, world)
    state = policy.init(world.problem, rng.at(Purpose.START), (3,))
    assert_allclose(policy.explain(state, rng).weights, world.weights(1), rtol=1e-12)

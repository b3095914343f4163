"""Worlds of a log: what is drawn in advance is what is played, and decisions are kept and measured."""

import io

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from spillover.evaluation.posterior import drawn_worlds
from spillover.evaluation.worlds import LoggedRounds, interval_of, log_of, of_best_sets, of_decisions, of_policy
from spillover.history import read_history
from spillover.history.example import example_file
from spillover.rng import Purpose
from tests.evaluation.coverage import FAMILIES, HIDDEN, covered


@pytest.fixture(scope="module")
def worlds():
    return drawn_worlds(log_of(read_history(pd.read_csv(io.StringIO(example_file()))), 2), 24)


def test_rounds_drawn_in_advance_are_those_that_are_played(worlds):
    rng = sp.Rng(3, np.arange(24))
    world = LoggedRounds.of(worlds, 24).draw(rng.at(Purpose.WORLD), (24,))
    course = world.course(1, world.horizon, rng)
    assert course is not None
    x = np.zeros((24, 6), np.bool_)
    x[:, [1, 4]] = True
    for t in (1, 7, world.horizon):
        z, y, _ = world.play(t, x, rng.at(Purpose.WORLD, t))
        assert (z == np.where(x, course.rewards[:, t - 1], 0.0)).all()
        expected = (course.total @ z[..., None])[..., 0] + course.noise[:, t - 1] + course.baseline[:, t - 1]
        assert y == pytest.approx(expected, abs=1e-12)


def test_expected_payoffs_are_averages_of_what_is_played(worlds):
    """Over many plays of a round, the payoff of a set is its score: rewards stay inside of their range here."""
    rng = sp.Rng(5, np.arange(24))
    world = LoggedRounds.of(worlds, 24).draw(rng.at(Purpose.WORLD), (24,))
    x = np.zeros((24, 6), np.bool_)
    x[:, [1, 4]] = True
    plays = [world.play(4, x, sp.Rng(seed, np.arange(24)).at(Purpose.WORLD, 4)).y.sum(axis=-1) for seed in range(300)]
    assert np.mean(plays, axis=0) == pytest.approx(world.expected(4, x) + worlds.without[:, 3], abs=0.12)


def test_a_policy_earns_no_more_than_the_best_sets_and_no_less_than_nothing(worlds):
    best, found = of_best_sets(worlds), of_policy(worlds, sp.SwitchingSEM(), 2)
    assert found.payoff.mean() < best.payoff.mean()
    assert found.shares.sum() == pytest.approx(1.0)
    assert found.course[:, -1] == pytest.approx(found.payoff)
    nothing = of_decisions(worlds, np.zeros(worlds.log.x.shape))
    assert nothing.payoff == pytest.approx(worlds.without.sum(axis=1))
    low, high = interval_of(found.payoff)
    assert low < found.payoff.mean() < high


# --- The 95% intervals of an evaluation contain the truth; `python -m tests.evaluation.coverage` prints the table ---


def test_intervals_contain_the_truth_in_a_few_worlds():
    """A guard against intervals that are far too narrow: of 16, one or two may miss."""
    found = covered(FAMILIES[0], worlds=16, seed=7, draws=40, replays=10)
    assert (found[:, :5].mean(axis=0) >= 0.75).all()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES + HIDDEN, ids=lambda family: family.name)
def test_intervals_contain_the_truth_as_often_as_they_say(family):
    """With 100 worlds, 86% is two standard errors below 92%."""
    found = covered(family, worlds=100, seed=11)
    assert (found[:, :3].mean(axis=0) >= 0.86).all()

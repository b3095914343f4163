"""SwitchingSEM where z misleads: it notices, says so, and shows baselines and intervals that hold."""

import numpy as np
import pytest

import spillover as sp
from spillover.graph import CANDIDATES, evidence
from spillover.rng import Purpose

R = 6


def last_state(policy, world, delay=10, seed=5, batch=R):
    rng = sp.Rng(seed, np.arange(batch))
    drawn = world.draw(rng.at(Purpose.WORLD), (batch,))
    *_, last = sp.rounds(policy, drawn, delay, rng, (batch,))
    return drawn, last.state, rng.at(Purpose.CHOICE, drawn.horizon + 1)


def test_a_hidden_cause_is_noticed_and_said():
    policy = sp.SwitchingSEM()
    _, state, _ = last_state(policy, sp.SyntheticSEM(horizon=1500, changes=(700,), noise=0.1, confounding=0.3))
    signals, account = policy.signals(state), evidence(state.graph)
    assert signals["confounded"].shape == (R,)
    noticed = signals["confounded"]
    assert noticed.sum() >= R - 1  # in some worlds the alarm takes longer: decisions differ too little
    assert (account.confounded == noticed).all()
    assert (account.used[noticed] == CANDIDATES.index("k-class")).all()


@pytest.mark.parametrize("given", [{}, {"noise": 0.5}, {"baseline": True}, {"gain_range": (0.5, 2.0)}], ids=str)
def test_no_hidden_cause_no_alarm(given):
    policy = sp.SwitchingSEM()
    _, state, _ = last_state(policy, sp.SyntheticSEM(horizon=400, changes=(200,), **given))
    assert not policy.signals(state)["confounded"].any()
    assert not policy.signals(state)["baseline"].any()  # there is none, or it is declared
    if not given:  # the paper's own world: the candidates that trust z decide
        assert (state.graph.used != CANDIDATES.index("k-class")).all()


def test_the_baseline_is_shown_and_intervals_hold():
    policy = sp.SwitchingSEM()
    world, state, rng = last_state(policy, sp.SyntheticSEM(horizon=500, changes=(), noise=0.3, baseline=True), batch=12)
    shown = policy.explain(state, rng)
    nothing = np.zeros((12, 10), bool)
    plain = [world.play(t, nothing, sp.Rng(9, np.arange(12)).at(Purpose.WORLD, t)).y for t in range(1, 400)]
    np.testing.assert_allclose(shown.baseline, np.mean(plain, axis=0), atol=0.5)
    means, weights = world.means(500), world.weights(500)
    truth = {
        "direct_interval": means,
        "spill_interval": (weights - 1.0) * means,
        "total_interval": weights * means,
    }
    for name, value in truth.items():
        low, high = np.moveaxis(getattr(shown, name), -1, 0)
        assert ((low <= value) & (value <= high)).mean() >= 0.9, name
    np.testing.assert_allclose(shown.effects.sum(axis=-2), shown.weights * np.nan_to_num(shown.mean), atol=0.3)

"""What outcomes say against a declared order, and against equal units of z and y."""

from dataclasses import dataclass

import numpy as np
import pytest

import spillover as sp
from spillover.policy_wrapper import PolicyWrapper
from spillover.rng import Purpose

CAUSE_FIRST = np.array([[0.0, 0.0], [0.9, 0.0]])  # arm 0 affects arm 1: not in the order that a problem can declare
ROUNDS = 400


def learner_after(problem, adjacency, means, *, rounds=ROUNDS, unit=1.0, noise=0.0):
    """A learner that has decided for itself, in a world of Bernoulli rewards; y may be in other units."""
    n = len(adjacency)
    draws, spread = np.random.default_rng(0), np.linalg.inv(np.eye(n) - adjacency)
    learner = sp.Learner(sp.SwitchingSEM(), problem, seed=1)
    for t in range(1, rounds + 1):
        x = learner.choose()
        learner.play(x)
        z = np.where(x, (draws.uniform(size=n) < means).astype(float), 0.0)
        learner.report(t, z, unit * spread @ (z + noise * draws.normal(size=n)))
    return learner


def codes(learner):
    return {signal.code for signal in learner.reasons().health}


@dataclass(frozen=True, kw_only=True)
class Misled(PolicyWrapper):
    """A policy that is told that causes come after effects."""

    policy: sp.Policy

    @property
    def inner(self):
        return self.policy

    def around(self, inner):
        return Misled(policy=inner)

    def init(self, problem, rng, batch=()):
        return self.policy.init(problem._replace(acyclic=True), rng, batch)


def test_an_order_that_nobody_declared_is_not_assumed():
    """The first arm is the better one: with its effect on the second, 0.5 * 1.9 against 0.6."""
    assert not sp.Problem(2, 1).acyclic
    world = sp.FixedSEM(adjacency=CAUSE_FIRST, means=[0.5, 0.6], budget=1, horizon=ROUNDS, acyclic=False)
    unknown, wrong = (
        sp.simulate(policy, world, replications=40).final_regret
        for policy in (sp.SwitchingSEM(), Misled(policy=sp.SwitchingSEM()))
    )
    assert unknown.mean() < 0.5 * wrong.mean()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_wrong_order_is_noticed(noise):
    learner = learner_after(sp.Problem(2, 2, acyclic=True), CAUSE_FIRST, [0.5, 0.6], noise=noise)
    (found,) = [signal for signal in learner.reasons().health if signal.code == "order-contradicted"]
    assert found.warning
    assert (found.arms, found.value) == (("arm 1",), 1.0)
    assert "arm 1 affects arm 2" in found.sentence
    assert "acyclic=False" in found.sentence


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_right_order_is_not_contradicted(noise):
    world, rng = sp.SyntheticSEM(horizon=400, changes=(), noise=noise), sp.Rng(5, np.arange(20))
    *_, last = sp.rounds(sp.SwitchingSEM(), world.draw(rng.at(Purpose.WORLD), (20,)), 5, rng, (20,))
    signals = sp.SwitchingSEM().signals(last.state)
    assert not signals["against_order"].any()
    assert np.isin(signals["own_slopes"][~np.isnan(signals["own_slopes"])], 1.0).all()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_an_arm_that_lowers_the_outcome_of_another_one_is_noticed(noise):
    learner = learner_after(sp.Problem(2, 2), -CAUSE_FIRST.T, [0.5, 0.6], noise=noise)
    (found,) = [signal for signal in learner.reasons().health if signal.code == "negative-effects"]
    assert found.warning
    assert (found.arms, found.value) == (("arm 2",), 1.0)
    assert "arm 2 lowers arm 1" in found.sentence
    assert learner.explain().weights[1] < 1.0  # although edges of the sparse graph are positive


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_positive_edges_are_not_contradicted(noise):
    world, rng = sp.SyntheticSEM(horizon=400, changes=(), noise=noise), sp.Rng(5, np.arange(20))
    *_, last = sp.rounds(sp.SwitchingSEM(), world.draw(rng.at(Purpose.WORLD), (20,)), 5, rng, (20,))
    assert not sp.SwitchingSEM().signals(last.state)["negative_effects"].any()


def test_negative_edges_cost_little_although_nobody_declared_them():
    world = sp.SyntheticSEM(n_arms=6, budget=2, edge_density=0.5, harmful=0.6, horizon=600, changes=(), noise=0.2)
    sparse, adaptive = (sp.simulate(sp.SwitchingSEM(graph=g), world, replications=20) for g in ("sparse", "adaptive"))
    assert adaptive.final_regret.mean() < 0.5 * sparse.final_regret.mean()


def test_most_wrong_orders_are_noticed_under_noise():
    """The same worlds with the arms the other way around, and an order declared."""
    replications = 20
    world, rng = sp.SyntheticSEM(horizon=400, changes=(), noise=0.1), sp.Rng(5, np.arange(replications))
    drawn, policy = world.draw(rng.at(Purpose.WORLD), (replications,)), sp.SwitchingSEM()
    state = policy.init(drawn.problem, rng.at(Purpose.START), (replications,))
    arrived, age = np.ones(replications, bool), np.zeros(replications, int)
    for t in range(1, 401):
        x = policy.select(state, rng.at(Purpose.CHOICE, t)).x
        outcome = drawn.play(t, x[:, ::-1], rng.at(Purpose.WORLD, t))
        piece = sp.Feedback(x, outcome.z[:, ::-1], outcome.y[:, ::-1], age, arrived)
        state = policy.update(policy.played(state, x), piece, rng.at(Purpose.LEARNING, t))
    assert policy.signals(state)["against_order"].any(axis=(-1, -2)).mean() >= 0.8


@pytest.mark.parametrize(("unit", "noise"), [(1000.0, 0.0), (1000.0, 0.1), (3.0, 0.1), (0.01, 0.1)])
def test_outcomes_in_other_units_than_rewards_are_noticed(unit, noise):
    learner = learner_after(sp.Problem(2, 2), CAUSE_FIRST.T, [0.5, 0.6], unit=unit, noise=noise, rounds=100)
    (found,) = [signal for signal in learner.reasons().health if signal.code == "units-differ"]
    assert found.value == pytest.approx(unit, rel=0.1)
    assert found.warning


@pytest.mark.parametrize("unit", [1.0, 1.7, 0.6])
def test_a_direct_effect_near_1_is_no_other_unit(unit):
    learner = learner_after(sp.Problem(2, 2), CAUSE_FIRST.T, [0.5, 0.6], unit=unit, noise=0.1, rounds=100)
    assert "units-differ" not in codes(learner)


def test_nothing_is_said_after_few_rounds():
    learner = learner_after(sp.Problem(2, 2), CAUSE_FIRST.T, [0.5, 0.6], unit=1000.0, rounds=8)
    assert "units-differ" not in codes(learner)

"""Policies without a learned graph, DiscountedTS, reference points: stretches equal the four functions, bit for bit."""

from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.policies import (
    CTS,
    CUCB,
    FTRL,
    GLRCUCB,
    DelayedOracle,
    DiscountedCUCB,
    DiscountedTS,
    Oracle,
    SlidingWindowCUCB,
    SuperArmUCB,
)
from spillover.testing.invariance import demand_same_stretches, in_stretches
from spillover.testing.trial import Trial
from tests.sampling import every
from tests.test_stretches import DELAYS, HORIZON, WORLDS, Broken, world

POLICIES: dict[str, Any] = {
    "cucb": CUCB(),
    "cucb, known graph": CUCB(knows_graph=True),
    "discounted cucb": DiscountedCUCB(discount=0.9),
    "cts": CTS(),
    "cts, known graph": CTS(knows_graph=True),
    "window": SlidingWindowCUCB(window=9),
    "restarts": GLRCUCB(false_alarms=0.1, forced=0.2),
    "restarts, known graph": GLRCUCB(false_alarms=0.1, forced=0.2, knows_graph=True),
    "ftrl": FTRL(),
    "ftrl, known graph": FTRL(knows_graph=True),
    "discounted ts": DiscountedTS(),
    "discounted ts, signed graph": DiscountedTS(graph=sp.SparseGraph(sparsity=0.01, signed=True)),
    "discounted ts, no graph": DiscountedTS(graph="none"),
}
GRID = DiscountedCUCB(discount=np.array([0.9, 0.999])[:, None])


class Undeclared(sp.SyntheticSEM):
    """A world that does not tell the range of y."""

    def draw(self, rng, batch=()):
        drawn = super().draw(rng, batch)
        vars(drawn)["problem"] = drawn.problem._replace(overall_range=None)
        return drawn


def playable(policy, environment):
    """Whether a policy can be played there: one that knows the graph needs one that stays as it is."""
    return not (policy.knows_graph and environment.draw(sp.Rng(0)).graph_changes)


PAIRS = [(policy, name) for policy in POLICIES for name in WORLDS if playable(POLICIES[policy], WORLDS[name])]


@pytest.mark.parametrize(("policy", "name"), every(4, PAIRS))
def test_each_world(policy, name):
    demand_same_stretches(POLICIES[policy], Trial(WORLDS[name], 3), sp.UniformDelay(0, 9), (3,), 16)


@pytest.mark.parametrize("delay", DELAYS)
def test_each_delay(delay):
    policy = list(POLICIES.values())[list(DELAYS).index(delay) % len(POLICIES)]
    demand_same_stretches(policy, Trial(world(noise=0.1), 4), DELAYS[delay], (2, 3), 8)


def test_whole_sets_as_arms():
    demand_same_stretches(SuperArmUCB(discount=0.9), Trial(world(noise=0.1), 4), sp.UniformDelay(0, 9), (2, 3), 8)


@pytest.mark.parametrize("policy", [CUCB(), DiscountedCUCB(discount=0.95), FTRL()])
def test_a_range_that_is_not_declared(policy):
    """The scale is the largest outcome so far, so earlier ones are rescaled in the middle of a stretch."""
    environment = Undeclared(n_arms=6, budget=3, horizon=HORIZON, changes=(20,), law="beta", harmful=0.3, noise=0.1)
    trial = Trial(environment, 5)
    demand_same_stretches(policy, trial, sp.UniformDelay(0, 9), (3,), 16)
    found = in_stretches(policy, trial, sp.UniformDelay(0, 9), (3,), 16)
    assert not found["state.scale.declared"].any()
    assert (found["state.scale.unit"] > 0.5).all()


def test_a_grid():
    for delay in ("geometric", "bad news"):
        demand_same_stretches(GRID, Trial(world(smooth=True), 7), DELAYS[delay], (2, 3), 16)


@pytest.mark.long
@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize(("policy", "name"), PAIRS)
def test_each_policy_with_each_delay_in_each_world(policy, name, delay):
    arms = WORLDS[name].draw(sp.Rng(0)).problem.n_arms
    if arms == 6 or delay != "each arm":
        demand_same_stretches(POLICIES[policy], Trial(WORLDS[name], 6), DELAYS[delay], (3,), 16)


def test_long_gaps_reach_beyond_the_table_of_powers():
    """Few arms are played again and again, so that others are last observed more rounds ago than the table has."""
    environment = sp.FixedSEM(adjacency=np.zeros((4, 4)), means=[0.99, 0.01, 0.01, 0.01], budget=1, horizon=2500)
    for policy in (DiscountedCUCB(discount=0.9999), DiscountedTS()):
        demand_same_stretches(policy, Trial(environment, 1), sp.ConstantDelay(2), (), 512)


@pytest.mark.parametrize("policy", [CUCB(), CTS(), FTRL(), DiscountedTS()])
def test_invalid_outcomes_are_reported_as_by_the_four_functions(policy):
    with pytest.raises(ValueError, match=r"^z of row \d = .*: must be inside the problem's reward_range \[0, 1\]"):
        sp.simulate(policy, Broken(horizon=HORIZON, changes=()), 2, replications=3)


@pytest.mark.parametrize("policy", [GRID, CTS(), FTRL()])
def test_results_do_not_depend_on_the_number_of_threads(policy, monkeypatch):
    monkeypatch.setattr("spillover.simulation.replications.FEWEST_DECISIONS", 0)
    runs = [
        sp.simulate(policy, world(noise=0.1), sp.UniformDelay(2, 9), replications=9, first=4, threads=threads)
        for threads in (1, 2, 20)
    ]
    for run in runs[1:]:
        for measure in ("regret", "payoff", "optimality_ratio"):
            np.testing.assert_array_equal(getattr(run, measure), getattr(runs[0], measure))


@pytest.mark.parametrize("delay", DELAYS)
def test_reference_points(delay):
    late = () if DELAYS[delay].per_arm else (DelayedOracle(),)
    for policy in (sp.Uniform(), Oracle(), *late):
        demand_same_stretches(policy, Trial(world(noise=0.1, law="beta"), 4), DELAYS[delay], (2, 3), 8)


def test_random_sets_are_the_first_places_of_random_orders():
    rng = sp.Rng(1, np.arange(200)).at(sp.rng.Purpose.CHOICE, 3)
    for n in (1, 2, 3, 4, 5, 10, 33, 70):
        for budget in {1, (n + 1) // 2, n}:
            state = sp.Uniform().init(sp.Problem(n, budget), rng, (200,))
            found = sp.Uniform().select(state, rng.restarted()).x
            np.testing.assert_array_equal(found, rng.restarted().permutation(n) < budget)

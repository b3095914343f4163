"""Policies that do not use z decide the same whether they see it or not."""

from dataclasses import replace

import numpy as np
import pytest

import spillover as sp

WORLD = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=40, changes=(20,), noise=0.2)
USES_Z = "instrumental-sem"  # it does not need z, but uses it where it is observed
NAMES = [name for name, make in sp.policies.POLICIES.items() if not make().traits.needs_rewards and name != USES_Z]


def test_they_are_the_ones_that_learn_from_y():
    assert {"cucb", "cts", "ftrl", "window-cucb", "glr-cucb", "discounted-cucb", "super-arm-ucb", "random"} <= set(
        NAMES
    )
    assert not {"ndc-sem", "sem-ucb", "cucb-known-graph"} & set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delay", [3, sp.LossyDelay(sp.UniformDelay(0, 5), 0.2)], ids=["constant", "lossy"])
def test_z_makes_no_difference(name, delay):
    policy = sp.policies.POLICIES[name]()
    seen, unseen = (sp.simulate(policy, replace(WORLD, observes=o), delay, replications=3) for o in ("both", "overall"))
    np.testing.assert_array_equal(seen.regret, unseen.regret)


def test_the_payoff_is_enough_for_sets():
    policy = sp.policies.SuperArmUCB()
    seen, unseen = (sp.simulate(policy, replace(WORLD, observes=o), 3, replications=3) for o in ("both", "payoff"))
    np.testing.assert_array_equal(seen.regret, unseen.regret)


def test_a_bad_z_is_still_refused():
    policy = sp.policies.CUCB()
    learner = sp.Learner(policy, sp.Problem(3, 2))
    learner.play([1, 1, 0])
    with pytest.raises(ValueError, match=r"z = .*: must be finite"):
        learner.report(1, [np.nan, 0.5, 0.0], [0.5, 0.5, 0.0])

"""Knowing the true graph, policies rank weight times reward, wherever the range of rewards begins."""

import numpy as np
import pytest

import spillover as sp

KNOWING = [name for name in sp.policies.POLICIES if name.endswith("-known-graph")]


@pytest.mark.parametrize("name", KNOWING)
def test_the_arm_with_the_larger_product_is_played(name):
    """Rewards .55 and .95 in (.5, 1) with weights 3 and 1: the first is worth 1.65, the second .95."""
    problem = sp.Problem(2, 1, reward_range=(0.5, 1.0), weights=np.array([3.0, 1.0]))
    learner = sp.Learner(sp.policies.POLICIES[name](), problem, seed=1)
    rewards, played = np.array([0.55, 0.95]), np.zeros(2)
    for _ in range(1500):
        x = learner.choose()
        z = np.where(x, rewards, 0.0)
        learner.report(learner.play(), z, z)
        played += x
    assert played[0] > 0.7 * played.sum()


def test_a_graph_that_changes_cannot_be_known():
    world = sp.SyntheticSEM(horizon=40, changes=(), graph_changes=(20,))
    with pytest.raises(ValueError, match=r"graph_changes = \(20,\): must be none for a policy that knows"):
        sp.simulate(sp.policies.CUCB(knows_graph=True), world, 0)

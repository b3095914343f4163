"""One drawn world for every replication."""

import numpy as np

import spillover as sp
from spillover.rng import Purpose
from spillover.testing import check_environment

FAMILY = sp.SyntheticSEM(n_arms=5, budget=2, horizon=30, changes=(12,), law="beta")


def test_it_keeps_the_contract_of_environments():
    check_environment(sp.environments.Instance(seed=3, of=FAMILY))


def test_every_replication_meets_the_world_of_that_seed():
    one = FAMILY.draw(sp.Rng(3).at(Purpose.WORLD))
    drawn = sp.environments.Instance(seed=3, of=FAMILY).draw(sp.Rng(99, np.arange(4)).at(Purpose.WORLD), (4,))
    for t in (1, 20):
        np.testing.assert_array_equal(drawn.means(t), np.broadcast_to(one.means(t), (4, 5)))
        np.testing.assert_array_equal(drawn.adjacency(t), np.broadcast_to(one.adjacency(t), (4, 5, 5)))


def test_rewards_still_differ():
    run = sp.simulate(sp.Uniform(), sp.environments.Instance(of=FAMILY), 0, replications=3)
    assert len(np.unique(run.payoff.sum(axis=-1))) == 3

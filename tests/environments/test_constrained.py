"""Regret against the best feasible set."""

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Costs, Exclusive
from spillover.constraints.search import Infeasible
from spillover.rng import Purpose
from tests.reference.constraints_reference import feasible_sets

CONSTRAINTS = (Exclusive([0, 1]), Costs([1, 2, 1, 2, 1], limit=3))
FREE = sp.SyntheticSEM(n_arms=5, budget=3, horizon=30, changes=(10, 20))


def test_the_best_set_is_the_best_feasible_one_in_every_period():
    rng = sp.Rng(1, np.arange(4))
    world = sp.environments.ConstrainedSEM(environment=FREE, constraints=CONSTRAINTS).draw(rng.at(Purpose.WORLD), (4,))
    sets = np.array(feasible_sets(CONSTRAINTS, 5, 3))
    for t in (1, 9, 10, 25):
        values = world.expected(t, np.broadcast_to(sets[:, None], (len(sets), 4, 5)))
        np.testing.assert_allclose(world.expected(t, world.best(t)), values.max(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(world.matches(t, world.best(t)), world.best(t).sum(axis=-1))
    assert world.best(5) is world.best(6)


def test_a_constrained_oracle_has_no_regret_and_a_constrained_policy_some():
    environment = sp.environments.ConstrainedSEM(environment=FREE, constraints=CONSTRAINTS)
    best = sp.simulate(sp.policies.Oracle(), environment, replications=3)
    assert (best.regret == 0).all()
    assert (best.optimality_ratio == 1).all()
    run = sp.simulate(sp.Constrained(policy=sp.NDCSEM(), constraints=CONSTRAINTS), environment, 2, replications=3)
    assert (np.diff(run.regret) >= -1e-12).all()
    assert run.final_regret.min() > 0


def test_an_impossible_world_is_refused():
    with pytest.raises(Infeasible):
        sp.environments.ConstrainedSEM(
            environment=FREE, constraints=(sp.constraints.Include([0, 1]), *CONSTRAINTS)
        ).draw(sp.Rng(0))

"""The oracle with delayed knowledge, in contexts and with arms that report at different times."""

from dataclasses import replace

import numpy as np
import pytest

import spillover as sp
from spillover.delays import ArmDelays
from spillover.environments import ConstrainedSEM
from spillover.policies import DelayedOracle, Oracle
from spillover.rng import Purpose
from spillover.testing import check_policy

PLAIN = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=60, changes=(20, 40))
CONTEXT = replace(PLAIN, context=2, baseline=True, confounding=0.3, observes="overall")


def played(policy, environment, delay, rows=6):
    rng = sp.Rng(4, np.arange(rows))
    world = environment.draw(rng.at(Purpose.WORLD), (rows,))
    player = policy.for_problem(world.problem, world)
    return world, np.array([r.x for r in sp.rounds(player, world, delay, rng, (rows,))])


def top(scores, budget):
    order = np.argsort(-scores, axis=-1, kind="stable")
    x = np.zeros(scores.shape, bool)
    np.put_along_axis(x, order[..., :budget], True, axis=-1)
    return x & (scores > 0)


def test_the_oracle_has_no_regret_in_any_context():
    run = sp.simulate(Oracle(), CONTEXT, 5, replications=5)
    np.testing.assert_array_equal(run.regret, 0.0)


def test_it_knows_the_context_of_now_and_the_effectiveness_of_then():
    world, x = played(DelayedOracle(), CONTEXT, 7)
    around = world.surroundings
    for t in range(9, 61):
        then = world.levels[:, np.searchsorted(world.changes, t - 8, side="right")]
        now = np.clip(then + np.einsum("rnk,rk->rn", around.on_effect, around.table[:, t - 1]), 0, 1)
        np.testing.assert_array_equal(x[t - 1], top(world.weights(t) * now, 2), err_msg=f"round {t}")
    assert (x[:8].sum(axis=-1) == 2).all()  # random sets


def test_without_changes_only_the_first_rounds_cost_anything():
    run = sp.simulate(DelayedOracle(), replace(CONTEXT, changes=()), 5, replications=20)
    np.testing.assert_allclose(run.regret[:, -1], run.regret[:, 5], rtol=1e-9)


def test_each_arm_is_known_as_of_its_own_latest_report():
    late = np.array([0, 4, 9, 2, 6])
    world, x = played(DelayedOracle(), replace(PLAIN, law="beta"), ArmDelays(tuple(late.tolist())))
    for t in range(11, 61):
        periods = np.searchsorted(world.changes, t - 1 - late, side="right")
        known = world.levels[:, periods, np.arange(5)]
        np.testing.assert_array_equal(x[t - 1], top(world.weights(t) * known, 2), err_msg=f"round {t}")


def test_arms_that_all_report_together_are_as_before():
    whole = sp.simulate(DelayedOracle(), PLAIN, 4, replications=5)
    apart = sp.simulate(DelayedOracle(), PLAIN, ArmDelays((4,) * 5), replications=5)
    np.testing.assert_array_equal(whole.regret, apart.regret)


def test_its_sets_are_feasible_in_a_constrained_world():
    limited = ConstrainedSEM(environment=CONTEXT, constraints=(sp.constraints.Exclusive([0, 1, 2, 3]),))
    _, x = played(DelayedOracle(), limited, 3)
    assert x[4:, :, :4].sum(axis=-1).max() == 1


@pytest.mark.parametrize("policy", [Oracle(), DelayedOracle(), sp.Uniform()])
def test_the_contract_in_contexts(policy):
    check_policy(policy, environment=replace(CONTEXT, horizon=25, changes=(12,)), edge_shapes=False)

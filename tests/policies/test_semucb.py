"""SEM-UCB against a twin that keeps the whole history, and against NDC-SEM in the limit."""

import numpy as np
import pytest

import spillover as sp
from spillover.policies import SEMUCB
from tests.reference import graph_reference
from tests.reference import rivals_reference as reference
from tests.reference.ndcsem_reference import initialisation_faults
from tests.support import explained, feedback, sparse

N, BUDGET, SPARSITY = 4, 2, 0.05


@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (-0.3, 2.0)])
@pytest.mark.parametrize("way", reference.WAYS)
def test_slow_twin_agrees_at_every_round(way, reward_range):
    policy, problem = SEMUCB(graph=sparse(SPARSITY)), sp.Problem(N, BUDGET, True, reward_range)
    clear, plan = 0, []
    for seed in (1, 2):
        twin = reference.SlowSEMUCB(N, BUDGET, SPARSITY, reward_range=reward_range)
        outcome = reference.spilling(N, seed, reward_range[0], reward_range[1], change=30)
        delay = reference.delays(seed)[way]
        for t, state, x in reference.play_beside(policy, problem, delay, outcome, 60, twin.observe_at, seed):
            shown = explained(policy, state)
            index = twin.index(t)
            np.testing.assert_allclose(shown.index, index, rtol=1e-10, err_msg=f"round {t}")
            weights = shown.weights
            if (found := twin.graph()) is not None:
                np.testing.assert_allclose(shown.adjacency, found[0], atol=1e-6)
                np.testing.assert_allclose(weights, found[1], atol=1e-5)
            else:
                np.testing.assert_allclose(weights, graph_reference.total_effects(shown.adjacency), rtol=1e-9)
            if t <= N:
                plan.append(x)
            else:
                assert reference.top_sets_fault(x, weights * index, BUDGET, near=1e-5) == ""
                clear += reference.is_clear(weights * index, BUDGET, near=1e-5)
        assert initialisation_faults(plan[-N:], BUDGET) == []
    assert clear >= 80


@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_ndcsem_tends_to_it(law):
    """No delay, hardly any discount, exploration 1/4: the same index and the same graph on the same data."""
    environment = sp.SyntheticSEM(n_arms=6, budget=3, edge_density=0.2, horizon=300, changes=(), law=law)
    world = environment.draw(sp.Rng(2).at(sp.rng.Purpose.WORLD))
    one, other = SEMUCB(graph=sparse(0.1)), sp.NDCSEM(discount=1 - 1e-9, exploration=0.25, graph=sparse(0.1))
    twin = other.init(world.problem, sp.Rng(2).at(sp.rng.Purpose.START))
    for t, x, outcome, state in sp.rounds(one, world, 0, sp.Rng(2), ()):
        piece = feedback(x, outcome.z, outcome.y)
        twin = other.update(other.played(twin, x), piece, sp.Rng(0))
        mine, theirs = explained(one, state), explained(other, twin)
        np.testing.assert_allclose(mine.index, theirs.index, rtol=1e-6, err_msg=f"round {t}")
        np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-6)
        np.testing.assert_array_equal(mine.adjacency, theirs.adjacency)
    assert (mine.index < 2).all()


def test_arms_without_a_positive_score_are_not_taken():
    policy = SEMUCB()
    state = policy.init(sp.Problem(2, 2, reward_range=(-9.0, 1.0)), sp.Rng(0))
    for _ in range(9):  # then the bonus, which is as wide as the range at first, is small enough
        state = policy.played(state, np.ones(2, bool))
        state = policy.update(state, feedback([1, 1], [-9.0, 0.5], [-9.0, 0.5]), sp.Rng(0))
    assert policy.select(state, sp.Rng(0)).x.tolist() == [False, True]

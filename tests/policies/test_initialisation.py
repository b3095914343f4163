"""The initialisation matrix: as described in the paper, and what it does to the graph problem."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.policies.averages import follows_plan, initialisation, start_plan, starting, sweep
from tests.reference.ndcsem_reference import initialisation_faults
from tests.support import sparse


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_as_the_paper_describes_it(n):
    for budget in range(1, n + 1):
        plans = initialisation(n, budget, sp.Rng(1, np.arange(50)), (50,))
        assert plans.shape == (50, n, n)
        for plan in plans:
            assert initialisation_faults(plan, budget) == []
            assert np.linalg.matrix_rank(plan.T.astype(float)) == n
        assert (plans.sum(axis=-1) <= budget).all()
        assert plans.any(axis=-2).all()  # every arm is played


def test_the_arms_above_the_diagonal_are_drawn_uniformly():
    n, budget, learners = 5, 3, 6000
    plans = initialisation(n, budget, sp.Rng(2, np.arange(learners)), (learners,))
    for i in range(budget, n):
        sets = list(combinations(range(i), budget - 1))
        counted = [int(plans[:, i, pair].all(axis=-1).sum()) for pair in sets]
        assert sum(counted) == learners
        assert stats.chisquare(counted).pvalue > 1e-3
    # and the columns are independent of each other
    table = [[int((plans[:, 3, j] & plans[:, 4, k]).sum()) for k in range(4)] for j in range(3)]
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_one_learner_draws_what_its_row_of_a_batch_draws():
    together = initialisation(8, 3, sp.Rng(3, np.arange(4)), (4,))
    for k in range(4):
        np.testing.assert_array_equal(together[k], initialisation(8, 3, sp.Rng(3, k)))


@pytest.mark.parametrize("budget", [1, 3, 5])
def test_probability_that_bernoulli_rewards_identify_the_graph(budget):
    """Round i plays arm i and arms before it, and an arm acts on arms before it only. So the overall rewards of the
    n rounds are a triangular matrix with the rewards of round i's arm i on its diagonal, and row i's Gram matrix,
    on the columns after i, is nonsingular just if these rewards are not 0 in all later rounds. For all rows
    that is every round from the second on: the product of the means of all arms but the first."""
    n, learners = 5, 20_000
    means = np.array([0.2, 0.9, 0.8, 0.95, 0.85])
    a = np.zeros((n, n))
    a[0, 1], a[0, 3], a[1, 2], a[2, 4], a[1, 4] = 0.5, 0.4, 0.7, 0.6, 0.5
    world = sp.FixedSEM(adjacency=a, means=means, budget=budget, horizon=n)
    rng = sp.Rng(4, np.arange(learners))
    drawn = world.draw(rng.at(sp.rng.Purpose.WORLD), (learners,))
    *_, last = sp.rounds(sp.NDCSEM(), drawn, 0, rng, (learners,))
    gram = last.state.graph.gram
    good = np.ones(learners, bool)
    for i in range(n - 1):
        good &= np.linalg.matrix_rank(gram[:, i + 1 :, i + 1 :]) == n - 1 - i
    claimed = means[1:].prod()
    assert stats.binomtest(int(good.sum()), learners, claimed).pvalue > 1e-3
    assert abs(good.mean() - means.prod()) > 0.1  # the first arm does not matter


def test_rewards_without_an_atom_at_zero_identify_the_graph():
    environment = sp.SyntheticSEM(n_arms=6, budget=2, edge_density=0.3, horizon=6, changes=(), law="beta")
    run = sp.simulate(sp.NDCSEM(graph=sparse(0.0)), environment, 0, replications=200, record=[6])
    assert np.median(run.graph_error) < 1e-16
    assert (run.graph_error < 1e-6).mean() > 0.9


def followed(plan, rounds, budget):
    """Whether a plan decides a round, and what."""
    x = np.zeros(plan.shape[-1], bool)
    return follows_plan(plan, rounds, budget, x), x


@pytest.mark.parametrize(("n", "budget"), [(1, 1), (7, 3), (600, 50), (601, 600)])
def test_a_sweep_plays_every_arm_once_in_as_few_rounds_as_possible(n, budget):
    plan, rounds = sweep(n, budget, sp.Rng(3, np.arange(4)), (4,)), -(-n // budget)
    decisions = np.array([[followed(own, t, budget)[1] for own in plan] for t in range(rounds)])
    assert (decisions.sum(axis=0) == 1).all()
    assert (decisions.sum(axis=-1) <= budget).all()
    assert [bool(starting(plan, np.full(4, t)).all()) for t in (rounds - 1, rounds)] == [True, False]
    assert not followed(plan[0], rounds, budget)[0]


def test_learners_of_a_batch_sweep_in_different_orders_and_may_be_in_different_rounds():
    plan = sweep(6, 2, sp.Rng(3, np.arange(3)), (3,))
    assert len(np.unique(plan, axis=0)) == 3
    decisions = [followed(own, t, 2)[1] for own, t in zip(plan, (0, 2, 3), strict=True)]
    np.testing.assert_array_equal(decisions, [plan[0] == 0, plan[1] == 2, np.zeros(6, bool)])


def test_many_arms_start_with_a_sweep():
    assert start_plan("auto", 500, 5, sp.Rng(0)).shape == (500, 500)
    assert start_plan("auto", 501, 5, sp.Rng(0)).shape == (501,)
    np.testing.assert_array_equal(start_plan("paper", 501, 5, sp.Rng(0)), initialisation(501, 5, sp.Rng(0)))
    policy = sp.NDCSEM(initialisation="sweep")
    state = policy.init(sp.Problem(6, 2), sp.Rng(0))
    assert bool(policy.explain(state, sp.Rng(0)).planned)
    for _ in range(3):
        state = policy.played(state, policy.select(state, sp.Rng(0)).x)
    assert not policy.explain(state, sp.Rng(0)).planned

"""SEM-UCB against a twin that keeps the whole history, and against NDC-SEM in the limit."""

import math

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.graph import SparseGraph
from spillover.policies import SEMUCB
from spillover.testing import check_policy
from tests.reference import graph_reference
from tests.reference import rivals_reference as reference
from tests.reference.ndcsem_reference import initialisation_faults
from tests.support import explained, sparse

N, BUDGET, SPARSITY = 4, 2, 0.05


def feedback(x, z, y, age=0, arrived=True):
    x = np.asarray(x, bool)
    batch = x.shape[:-1]
    return sp.Feedback(x, np.asarray(z, float), np.asarray(y, float), np.full(batch, age), np.full(batch, arrived))


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


def test_index_by_hand():
    policy = SEMUCB()
    state = policy.init(sp.Problem(3, 2), sp.Rng(0))
    for z in (0.25, 0.75, 0.5, 1.0):
        state = policy.played(state, np.array([True, False, False]))
        state = policy.update(state, feedback([1, 0, 0], [z, 0, 0], [z, 0, 0]), sp.Rng(0))
    state = policy.played(state, np.array([True, False, False]))  # its outcome is still under way
    expected = 0.625 + math.sqrt(3 * math.log(5) / 4)
    np.testing.assert_allclose(policy.indices(state, sp.Rng(0)), [expected, np.inf, np.inf], rtol=1e-14)


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


def test_same_decisions_as_ndcsem_in_the_limit():
    environment = sp.SyntheticSEM(horizon=250, changes=(), law="beta")  # no atoms, so no ties
    one = sp.simulate(SEMUCB(), environment, replications=5)
    other = sp.simulate(sp.NDCSEM(discount=1 - 1e-9, exploration=0.25), environment, replications=5)
    np.testing.assert_array_equal(one.regret, other.regret)


def test_feedback_counts_alike_however_old_it_is():
    policy, problem = SEMUCB(graph=sparse(0.0)), sp.Problem(3, 2)
    rng = np.random.default_rng(0)
    z = rng.random((20, 3))
    y = z @ np.array([[1, 0, 0], [0.5, 1, 0], [0.2, 0.3, 1]])
    expected = np.array([[0, 0.5, 0.05], [0, 0, 0.3], [0, 0, 0]])  # its inverse is what made y
    results = []
    for order in (np.arange(20), np.arange(20)[::-1], rng.permutation(20)):
        state = policy.init(problem, sp.Rng(0))
        for _ in range(20):
            state = policy.played(state, np.ones(3, bool))
        for k in order:
            state = policy.update(state, feedback([1, 1, 1], z[k], y[k], age=19 - int(k)), sp.Rng(0))
        results.append(explained(policy, state))
    for shown in results:
        np.testing.assert_allclose(shown.mean, z.mean(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(shown.count, [20, 20, 20])
        np.testing.assert_allclose(shown.adjacency, results[0].adjacency, atol=1e-9)
        np.testing.assert_allclose(shown.adjacency, expected, atol=1e-9)


def test_ties_are_broken_uniformly_at_random():
    """After an initialisation without any feedback all arms are alike."""
    policy, draws = SEMUCB(), 10_000
    state = policy.init(sp.Problem(4, 1), sp.Rng(0), (draws,))
    for _ in range(4):
        state = policy.played(state, np.ones((draws, 4), bool))
    x = policy.select(state, sp.Rng(1, np.arange(draws))).x
    assert (x.sum(axis=-1) == 1).all()
    assert stats.chisquare(x.sum(axis=0)).pvalue > 1e-3


def test_arms_without_a_positive_score_are_not_taken():
    policy = SEMUCB()
    state = policy.init(sp.Problem(2, 2, reward_range=(-9.0, 1.0)), sp.Rng(0))
    for _ in range(9):  # then the bonus, which is as wide as the range at first, is small enough
        state = policy.played(state, np.ones(2, bool))
        state = policy.update(state, feedback([1, 1], [-9.0, 0.5], [-9.0, 0.5]), sp.Rng(0))
    assert policy.select(state, sp.Rng(0)).x.tolist() == [False, True]


def test_contract():
    check_policy(SEMUCB())


@pytest.mark.parametrize("sparsity", [0.01, "auto"])
def test_live_equals_its_row_of_a_batch(sparsity):
    policy, environment = SEMUCB(graph=sparse(sparsity)), sp.SyntheticSEM(n_arms=6, budget=2, horizon=80, changes=())
    delay = sp.LossyDelay(sp.GeometricDelay(5), 0.2)
    many = sp.simulate(policy, environment, delay, replications=5, seed=2)
    alone = sp.simulate(policy, environment, delay, replications=1, seed=2, first=3)
    np.testing.assert_array_equal(many.regret[3:4], alone.regret)
    assert many.adjacency is not None
    assert alone.adjacency is not None
    np.testing.assert_array_equal(many.adjacency[3:4], alone.adjacency)


def test_a_grid_of_sparsities():
    environment = sp.SyntheticSEM(n_arms=5, budget=2, horizon=60, changes=())
    values = np.array([0.0, 0.5, 50.0])
    grid = sp.simulate(SEMUCB(graph=sparse(values)), environment, 4, replications=3)
    for k, value in enumerate(values):
        alone = sp.simulate(SEMUCB(graph=sparse(value)), environment, 4, replications=3)
        np.testing.assert_array_equal(grid.regret[k], alone.regret)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sparsity": -1.0}, "sparsity = -1.0: must be a finite number >= 0"),
        ({"sparsity": "some"}, "sparsity = 'some': must be a finite number >= 0"),
        ({"sparsity": np.inf}, "sparsity = inf: must be a finite number >= 0"),
        ({"row_bound": 1.0}, "row_bound = 1.0: must be a number strictly between 0 and 1"),
    ],
)
def test_errors_name_the_argument(settings, message):
    with pytest.raises(ValueError, match=message):
        SEMUCB(graph=SparseGraph(**settings))


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (feedback([1, 0], [0.5, 0], [np.nan, 0]), r"y = \[nan  ?0\.\], with x = \[1 0\]: must be finite"),
        (
            feedback([1, 0], [1.5, 0], [1, 1]),
            r"z = \[1\.5 0\. \], .*: must be inside the problem's reward_range \[0, 1\]",
        ),
        (feedback([1, 0], [0, 0.5], [1, 1]), r"z = \[0\. +0\.5\], .*: must be 0 for every arm that was not played"),
        (feedback([1, 0], [0.5, 0], [1, 1], age=3), "age = 3: must be from 0 to 0, as 1 rounds were played"),
    ],
)
def test_errors_name_what_is_wrong_with_feedback(piece, message):
    policy = SEMUCB()
    state = policy.init(sp.Problem(2, 1), sp.Rng(0))
    with pytest.raises(ValueError, match=message):
        policy.update(policy.played(state, piece.x), piece, sp.Rng(0))

"""The paper's synthetic worlds: graphs, weights, means and their changes."""

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.rng import Purpose, Rng

UNLIKELY = 1e-3  # seeds are fixed: a test below this p-value fails always or never


def worlds(count=300, seed=0, **settings):
    environment = sp.SyntheticSEM(**settings)
    return environment.draw(Rng(seed, np.arange(count)).at(Purpose.WORLD), (count,))


def test_the_defaults_are_the_papers():
    world = worlds(1)
    assert world.problem.n_arms == 10
    assert world.problem.budget == 4
    assert world.horizon == 5000
    assert world.changes == (1000, 2500, 4000)
    assert (world.adjacency(1) > 0).sum() == 8
    assert world.arms == tuple(str(i) for i in range(1, 11))


@pytest.mark.parametrize(
    ("n", "density", "edges"), [(10, 0.09, 8), (10, 0.5, 45), (5, 0.0, 0), (6, 0.2, 6), (1, 0.5, 0)]
)
def test_graphs_have_their_edges_above_the_diagonal_in_the_range(n, density, edges):
    a = worlds(n_arms=n, budget=1, edge_density=density, weight_range=(0.4, 0.7)).adjacency(1)
    assert a.shape == (300, n, n)
    assert ((a > 0).sum(axis=(1, 2)) == edges).all()
    assert not np.tril(a).any()
    assert ((a[a > 0] >= 0.4) & (a[a > 0] <= 0.7)).all()


def test_edges_are_uniform_over_the_pairs_and_weights_over_the_range():
    a = worlds(4000, n_arms=5, budget=1, edge_density=0.2).adjacency(1)
    above = a[:, *np.triu_indices(5, 1)]
    # four of ten places without replacement: counts vary by 6/9 of what independent draws would
    places = (above > 0).sum(axis=0)
    statistic = ((places - 1600) ** 2 / (1600 * 0.6)).sum() * 9 / 10
    assert stats.chi2(9).sf(statistic) > UNLIKELY
    assert stats.kstest(above[above > 0], stats.uniform(0.4, 0.3).cdf).pvalue > UNLIKELY


def test_means_are_uniform_and_constant_exactly_between_changes():
    world = worlds(2000, horizon=60, changes=(20, 45))
    assert stats.kstest(world.means(1).ravel(), "uniform").pvalue > UNLIKELY
    assert stats.kstest(world.means(45).ravel(), "uniform").pvalue > UNLIKELY
    before, after = None, None
    for t in range(1, 61):
        after = world.means(t)
        if before is not None:
            assert (after != before).all() if t in (20, 45) else (after == before).all()
        before = after
    assert stats.pearsonr(world.means(19).ravel(), world.means(20).ravel()).pvalue > UNLIKELY


@pytest.mark.parametrize("changed", [0, 3, 10])
def test_so_many_arms_change(changed):
    world = worlds(500, horizon=60, changes=(20, 45), changed=changed)
    for change in (20, 45):
        moved = world.means(change) != world.means(change - 1)
        assert (moved.sum(axis=-1) == changed).all()
    if changed == 3:
        counts = (world.means(20) != world.means(19)).sum(axis=0)
        statistic = ((counts - 150) ** 2 / (150 * 0.7)).sum() * 9 / 10
        assert stats.chi2(9).sf(statistic) > UNLIKELY


def test_smooth_drift_has_no_jumps_and_hits_the_draws():
    world = worlds(50, horizon=300, changes=(100, 200), smooth=True)
    assert world.levels.shape == (50, 4, 10)
    path = np.stack([world.means(t) for t in range(1, 301)])
    for k, t in enumerate((1, 100, 200)):
        np.testing.assert_allclose(world.means(t), world.levels[:, k], atol=1e-12)
    assert (np.abs(np.diff(path, axis=0)) <= np.pi / 2 / 99 + 1e-12).all()  # half a cosine of height 1 in 99 rounds
    assert ((path >= 0) & (path <= 1)).all()


def test_the_graph_changes_only_at_its_changes():
    world = worlds(50, horizon=100, changes=(30,), graph_changes=(40, 80))
    graphs = [world.adjacency(t) for t in (1, 30, 39, 40, 79, 80, 100)]
    assert (graphs[0] == graphs[1]).all()
    assert (graphs[0] == graphs[2]).all()
    assert (graphs[3] == graphs[4]).all()
    assert (graphs[5] == graphs[6]).all()
    assert (graphs[0] != graphs[3]).any(axis=(1, 2)).all()
    assert (graphs[3] != graphs[5]).any(axis=(1, 2)).all()
    assert ((graphs[5] > 0).sum(axis=(1, 2)) == 8).all()


def test_gains_are_drawn_from_their_range():
    world = worlds(400, gain_range=(0.5, 2.0))
    assert stats.kstest(world.gain.ravel(), stats.uniform(0.5, 1.5).cdf).pvalue > UNLIKELY
    assert (worlds(3).gain == 1).all()
    plain, geared = worlds(3), worlds(3, gain_range=(2.0, 2.0))
    np.testing.assert_allclose(geared.weights(1), 2 * plain.weights(1), rtol=1e-12)


def test_more_replications_leave_the_first_ones_as_they_were():
    settings = {"n_arms": 6, "budget": 2, "graph_changes": (50,), "gain_range": (0.5, 2.0), "changed": 2}
    few, many = worlds(3, **settings), worlds(9, **settings)
    assert (few.graphs == many.graphs[:3]).all()
    assert (few.levels == many.levels[:3]).all()
    assert (few.gain == many.gain[:3]).all()


def test_seeds_and_replications_differ():
    world, other = worlds(20), worlds(20, seed=1)
    assert len(np.unique(world.levels[:, 0, 0])) == 20
    assert (world.levels != other.levels).all()


def test_whole_numbers_of_numpy_will_do():
    assert worlds(1, n_arms=np.int64(5), budget=np.int64(2), changed=np.int64(3)).problem.n_arms == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_arms": 0}, "n_arms = 0: must be a whole number from 1 on"),
        ({"n_arms": 2.0}, r"n_arms = 2\.0: must be a whole number"),
        ({"budget": 0}, "budget = 0: must be a whole number from 1 on"),
        ({"n_arms": 3, "budget": 4}, "budget = 4: must be at most n_arms = 3"),
        ({"edge_density": 0.6}, r"edge_density = 0\.6: must be from 0 to 0\.5"),
        ({"edge_density": -0.1}, r"edge_density = -0\.1: must be from 0 to 0\.5"),
        ({"edge_density": float("nan")}, "edge_density = nan: must be from 0"),
        ({"weight_range": (0.7, 0.4)}, r"weight_range = \(0\.7, 0\.4\): must be a pair \(low, high\) with 0 <= low"),
        ({"weight_range": (-0.1, 0.4)}, r"weight_range = \(-0\.1, 0\.4\): must be a pair"),
        ({"weight_range": 0.4}, r"weight_range = 0\.4: must be a pair"),
        ({"weight_range": ("a", "b")}, r"weight_range = \('a', 'b'\): must be a pair"),
        ({"gain_range": (0.0, 1.0)}, r"gain_range = \(0\.0, 1\.0\): must be a pair \(low, high\) with 0 < low"),
        ({"gain_range": "wide"}, "gain_range = 'wide': must be a pair"),
        ({"horizon": 0}, "horizon = 0: must be a whole number from 1 on"),
        ({"horizon": 100}, r"changes = \(1000, 2500, 4000\): must be increasing rounds from 2 to the horizon, 100"),
        ({"changes": (1,)}, r"changes = \(1,\): must be increasing rounds from 2"),
        ({"changes": (30, 30)}, r"changes = \(30, 30\): must be increasing"),
        ({"changes": (2.5,)}, r"changes = \(2\.5,\): must be increasing"),
        ({"changes": 30}, "changes = 30: must be increasing"),
        ({"graph_changes": (5, 4)}, r"graph_changes = \(5, 4\): must be increasing"),
        ({"changed": 11}, "changed = 11: must be a whole number from 0 to 10"),
        ({"changed": "some"}, "changed = 'some': must be \"all\" or a number of arms"),
        ({"changed": True}, "changed = True: must be"),
        ({"law": "normal"}, "law = 'normal': must be one of bernoulli, beta, pareto"),
        ({"concentration": 0.0}, r"concentration = 0\.0: must be a number > 0"),
        ({"noise": (0.1, 0.2)}, r"noise = \(0\.1, 0\.2\): must be a single number"),
        ({"noise": -1.0}, r"noise = -1\.0: must be a finite number >= 0"),
        ({"noise": float("inf")}, "noise = inf: must be a finite number >= 0"),
    ],
)
def test_bad_arguments_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        sp.SyntheticSEM(**settings)

"""The paper's synthetic worlds: graphs, weights, means and their changes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spillover as sp
from spillover.environments import ConstrainedSEM, Instance
from spillover.environments.surroundings import draw_context, reflected
from spillover.rng import Purpose, Rng
from spillover.testing import check_environment

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


# --- Worlds with a baseline, context and a hidden common cause ------------------------------------------------------


PLAIN = sp.SyntheticSEM(n_arms=6, budget=2, edge_density=0.2, horizon=40, changes=(15,))
RICH = replace(PLAIN, baseline=(0.5, 2.0), context=3, confounding=0.3, noise=0.5)


def drawn(environment, rows=4, seed=0):
    rng = sp.Rng(seed, np.arange(rows))
    return environment.draw(rng.at(Purpose.WORLD), (rows,)), rng


def play(world, rng, t, x):
    return world.play(t, np.broadcast_to(np.asarray(x, bool), world.best(t).shape), rng.at(Purpose.WORLD, t))


@pytest.mark.parametrize(
    "environment",
    [
        replace(PLAIN, baseline=True),
        replace(PLAIN, context=2, law="beta"),
        RICH,
        replace(RICH, observes="overall", harmful=0.5),
        replace(RICH, observes="payoff", smooth=True),
        replace(PLAIN, context=1, context_effect=0.0, graph_changes=(20,)),
        replace(PLAIN, confounding=1.0, n_arms=1, budget=1),
        Instance(of=RICH, seed=3),
        ConstrainedSEM(environment=RICH, constraints=(sp.constraints.Exclusive([0, 1]),)),
    ],
    ids=["baseline", "context", "all", "overall", "payoff", "still effects", "one arm", "instance", "constrained"],
)
def test_the_contract(environment):
    check_environment(environment)


def test_what_a_world_drew_before_is_unchanged():
    """Baselines, context and hidden causes come from streams of their own: the same graph, means and rewards."""
    plain, rng = drawn(replace(PLAIN, noise=0.5))
    rich, _ = drawn(RICH)
    np.testing.assert_array_equal(plain.graphs, rich.graphs)
    np.testing.assert_array_equal(plain.levels, rich.levels)
    still, _ = drawn(replace(RICH, context_effect=0.0, confounding=0.0))
    x = np.ones(6, bool)
    one, two = play(plain, rng, 7, x), play(still, rng, 7, x)
    np.testing.assert_array_equal(one.z, two.z)  # the same rewards, as context moves the baselines only
    own = still.surroundings.without_decision(7)
    np.testing.assert_allclose(two.y, one.y + (still.spread[:, 0] @ own[..., None])[..., 0], rtol=1e-12)


def test_each_part_keeps_its_draws_whatever_else_there_is():
    alone, both = drawn(replace(PLAIN, context=3))[0].surroundings, drawn(RICH)[0].surroundings
    np.testing.assert_array_equal(alone.table, both.table)
    np.testing.assert_array_equal(alone.on_effect, both.on_effect)
    longer = drawn(replace(RICH, horizon=60))[0].surroundings
    np.testing.assert_array_equal(longer.table[:, :40], both.table)


def test_the_sizes_are_those_documented():
    around = drawn(replace(RICH, n_arms=10, budget=4, horizon=2000), rows=300)[0].surroundings
    assert 0.5 <= around.baseline.min() < 0.51
    assert 1.99 < around.baseline.max() <= 2.0
    assert abs(around.on_baseline.std() - 0.5) < 0.02
    assert abs(around.on_effect.std() - 0.3) < 0.01
    np.testing.assert_array_equal(around.loading.astype(bool).sum(axis=-1), 5)
    np.testing.assert_allclose(around.loading.max(axis=-1), 0.3)
    np.testing.assert_allclose(around.table[:, :8, 0], np.tile(np.sin(2 * np.pi * np.arange(8) / 7), (300, 1)))
    walks = around.table[..., 1:]
    assert np.abs(walks).max() <= 1.5
    steps = np.diff(walks, axis=1)
    assert abs(np.abs(steps).mean() - 0.1 * np.sqrt(2 / np.pi)) < 0.002


def test_a_folded_path_is_the_reflected_one():
    """Step by step: a path that would leave the interval is reflected, and its later steps are mirrored."""
    steps = np.random.default_rng(1).normal(0.0, 0.7, 500)
    place, sign, walked = 0.0, 1.0, []
    for step in steps:
        place += sign * step
        while abs(place) > 1.5:
            place, sign = (3.0 if place > 0 else -3.0) - place, -sign
        walked.append(place)
    np.testing.assert_allclose(reflected(np.cumsum(steps), 1.5), walked, atol=1e-9)


def test_context_is_the_same_alone_and_in_a_batch():
    whole = draw_context(sp.Rng(4, np.arange(3)).at(Purpose.SURROUNDINGS), (3,), 30, 3)
    for row in range(3):
        one = draw_context(sp.Rng(4, row).at(Purpose.SURROUNDINGS), (), 30, 3)
        np.testing.assert_array_equal(whole[row], one)


def test_outcomes_follow_the_structural_equations():
    """y_i = A_i y + baseline_i + B_i c + loading_i h + gain_i z_i, where z_i = x_i (b_i + loading_i h)."""
    world, rng = drawn(replace(RICH, noise=0.0, gain_range=(0.5, 2.0)))
    around = world.surroundings
    x = np.array([1, 0, 1, 0, 0, 0], bool)
    z, y, context = play(world, rng, 9, x)
    np.testing.assert_array_equal(context, world.context(9))
    cause = np.clip(rng.at(Purpose.SURROUNDINGS, 9).normal(1), -4, 4) * around.loading
    b = rng.at(Purpose.WORLD, 9).uniform(6) < world.means(9)
    np.testing.assert_array_equal(z, np.where(x, b + cause, 0.0))
    for row in range(4):
        base = around.baseline[row] + around.on_baseline[row] @ around.table[row, 8] + cause[row]
        np.testing.assert_allclose(y[row], world.graphs[row, 0] @ y[row] + base + world.gain[row] * z[row], atol=1e-12)
    level = np.clip(world.levels[:, 0] + np.einsum("rnk,rk->rn", around.on_effect, around.table[:, 8]), 0, 1)
    np.testing.assert_allclose(world.means(9), level)


def test_the_expected_payoff_by_monte_carlo():
    """4,000 draws of round 20: the mean of payoff minus baseline is the expected payoff, within four errors."""
    one: Any = RICH.draw(sp.Rng(2).at(Purpose.WORLD))
    x, t, draws = np.array([1, 0, 0, 1, 0, 0], bool), 20, 4000
    around = one.surroundings
    streams = sp.Rng(9, np.arange(draws)).at(Purpose.WORLD, t)
    many = replace(
        one,
        graphs=np.broadcast_to(one.graphs, (draws, *one.graphs.shape)),
        gain=np.broadcast_to(one.gain, (draws, 6)),
        levels=np.broadcast_to(one.levels, (draws, *one.levels.shape)),
        surroundings=around.spread((draws,)),
        cache={},
    )
    payoff = many.play(t, np.broadcast_to(x, (draws, 6)), streams).y.sum(axis=-1)
    weights = np.linalg.inv(np.eye(6) - one.adjacency(t)).sum(axis=0)
    baseline = weights @ around.without_decision(t)
    expected = float(one.expected(t, x))
    assert expected == pytest.approx(float(weights @ (x * one.means(t))))
    assert abs(payoff.mean() - baseline - expected) < 4 * payoff.std() / np.sqrt(draws)


def test_the_best_set_depends_on_the_context():
    world, _ = drawn(replace(PLAIN, context=2, context_effect=0.5, horizon=200, changes=()), rows=20)
    sets = np.array([world.best(t) for t in range(1, 201)])
    assert (sets != sets[0]).any(axis=(0, 2)).mean() > 0.9
    for t in (3, 77):
        scores = world.weights(t) * world.means(t)
        np.testing.assert_allclose(world.expected(t, world.best(t)), np.sort(scores)[:, -2:].sum(axis=-1))
        np.testing.assert_array_equal(world.scores(t, t), scores)
    early = world.weights(3) * np.clip(world.effectiveness(3) + world.surroundings.added_effect(77), 0, 1)
    np.testing.assert_array_equal(world.scores(77, 3), early)


def test_regret_does_not_contain_the_baseline():
    plain, high = (sp.simulate(sp.Uniform(), replace(PLAIN, baseline=b), replications=3) for b in (False, (5.0, 9.0)))
    np.testing.assert_array_equal(plain.regret, high.regret)
    assert (high.payoff.mean(axis=-1) > plain.payoff.mean(axis=-1) + 30).all()


def test_the_problem_says_what_there_is():
    problem = drawn(RICH)[0].problem
    assert (problem.observes, problem.context, problem.baseline) == ("both", 3, True)
    np.testing.assert_allclose(problem.reward_range, (-1.2, 2.2))
    hidden = drawn(replace(RICH, observes="overall"))[0].problem
    assert (hidden.observes, hidden.reward_range) == ("overall", (0.0, 1.0))
    assert not drawn(replace(PLAIN, confounding=0.3))[0].problem.baseline
    assert drawn(PLAIN)[0].problem.reward_range == (0.0, 1.0)
    assert drawn(PLAIN)[0].surroundings is None


def test_the_range_of_y_covers_what_happens():
    for environment in (RICH, replace(RICH, noise=0.0, confounding=0.0), replace(RICH, harmful=1.0)):
        world, rng = drawn(environment, rows=50)
        low, high = np.moveaxis(np.asarray(world.problem.overall_range), -1, 0)
        least, most = np.full(50, np.inf), np.full(50, -np.inf)
        for t in range(1, 41):
            for x in (np.zeros(6), np.arange(6) < 2, np.arange(6) >= 4):
                y = play(world, rng, t, x).y
                least, most = np.minimum(least, y.min(axis=-1)), np.maximum(most, y.max(axis=-1))
        assert (least >= low).all()
        assert (most <= high).all()
        assert (high - low < 6 * (most - least)).all()  # and is not much wider


def test_rewards_stay_in_their_range():
    world, rng = drawn(replace(RICH, confounding=1.0, horizon=2000), rows=20)
    low, high = world.problem.reward_range
    z = np.array([play(world, rng, t, np.ones(6)).z for t in range(1, 2001)])
    assert low <= z.min() < -2.5  # a normal of 40,000 draws reaches beyond 3.5 deviations
    assert 3.5 < z.max() <= high


FIXED: dict[str, Any] = {
    "adjacency": pd.DataFrame([[0, 0], [0.5, 0]], ["a", "b"], ["a", "b"]),
    "means": [0.5, 0.25],
    "budget": 1,
    "horizon": 3,
    "baseline": pd.Series({"b": 2.0, "a": 1.0}),
    "context": [[0.0], [1.0], [-1.0]],
    "context_effect": [[0.25], [0.0]],
    "context_on_baseline": [[0.0], [3.0]],
    "confounding": [0.5, 0.0],
}


def test_a_given_world_has_what_it_was_given():
    """Arm a acts on b, so that the world's order is b, a: everything moves with the arms."""
    environment = sp.FixedSEM(**FIXED)
    assert environment.arms == ("b", "a")
    world: Any = environment.draw(sp.Rng(0, np.arange(3)), (3,))
    np.testing.assert_array_equal(world.means(2)[0], [0.25, 0.75])
    np.testing.assert_array_equal(world.means(3)[0], [0.25, 0.25])
    np.testing.assert_array_equal(world.surroundings.without_decision(2)[0], [5.0, 1.0])
    np.testing.assert_array_equal(world.context(3), [[-1.0]] * 3)
    y = play(world, rng := sp.Rng(0, np.arange(3)), 2, [0, 0]).y
    cause = 0.5 * np.clip(rng.at(Purpose.SURROUNDINGS, 2).normal(1)[..., 0], -4, 4)
    np.testing.assert_allclose(y, np.stack([5 + 0.5 * (1 + cause), 1 + cause], axis=-1))
    check_environment(environment)


def test_a_given_world_may_have_cycles():
    cycle = [[0, 0.4], [0.4, 0]]
    check_environment(sp.FixedSEM(adjacency=cycle, means=[0.2, 0.8], budget=1, acyclic=False, baseline=1.0, horizon=9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": [1.0]}, "baseline = .*: must be a finite number, or 2 of them"),
        ({"baseline": [1.0, np.nan]}, "baseline = .*: must be a finite number"),
        ({"context": [[1.0]]}, r"shape of context = \(1, 1\): must be .*at least 3 rounds"),
        ({"context": None}, "context_on_baseline = .*: must be None, as there is no context"),
        ({"context_effect": [[1.0, 2.0]]}, r"context_effect = .*: must be finite numbers of shape \(2, 1\)"),
        ({"observes": "nothing"}, "observes = 'nothing': must be one of both, overall, payoff"),
    ],
)
def test_a_wrong_given_world_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        sp.FixedSEM(**FIXED | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": (2.0, 1.0)}, r"baseline = \(2.0, 1.0\): must be a pair \(low, high\) with low <= high"),
        ({"baseline": 3.0}, "baseline = 3.0: must be a pair"),
        ({"context": 1.5}, "context = 1.5: must be a whole number from 0 on"),
        ({"context_effect": -1.0}, "context_effect = -1.0: must be a finite number >= 0"),
        ({"confounding": np.inf}, "confounding = inf: must be a finite number >= 0"),
        ({"observes": 3}, "observes = 3: must be one of"),
    ],
)
def test_a_wrong_synthetic_world_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(PLAIN, **change)

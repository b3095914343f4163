"""A drawn world against the paper's equations 1 to 5, written out by hand."""

from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

import spillover as sp
from spillover.constraints import Exclusive
from spillover.environments import SEMWorld
from spillover.environments.synthetic import NO_MATRICES
from spillover.environments.world import LARGEST_PARETO, MEAN_DRAW, ManyArmsWorld, draw_pairs, sorted_edges
from spillover.experiments import parse_experiment
from spillover.rng import Purpose, Rng
from spillover.testing import check_environment
from tests.properties import examples

UNLIKELY = 1e-3  # seeds are fixed: a test below this p-value fails always or never


def world_of(adjacency, means, budget=1, **changes):
    """One world with a given graph and given means, in the order they come in."""
    a, levels = np.asarray(adjacency, float), np.atleast_2d(np.asarray(means, float))
    given = {
        "graphs": a[None],
        "gain": np.ones(len(a)),
        "levels": levels,
        "budget": budget,
        "horizon": 100,
        "changes": (),
        "graph_changes": (),
        "smooth": False,
        "law": "bernoulli",
        "concentration": 4.0,
        "noise": 0.0,
        "acyclic": True,
        "arms": tuple("abcdefgh"[: len(a)]),
    }
    return SEMWorld(**(given | changes))


def by_the_equations(a, gain, b, x):
    """Eq. 1: z = diag(b) x. Eq. 2: y_i = sum_j A_ij y_j + F_ii z_i, solved from the last arm to the first."""
    n = len(b)
    z, y = [b[i] * x[i] for i in range(n)], [0.0] * n
    for i in reversed(range(n)):
        y[i] = sum(a[i, j] * y[j] for j in range(i + 1, n)) + gain[i] * z[i]
    return np.array(z), np.array(y)


@given(st.integers(1, 7), st.integers(0, 10**6))
def test_outcomes_satisfy_the_equations(n, seed):
    generator = np.random.default_rng(seed)
    a = np.triu(generator.random((n, n)), 1)
    gain, means, x = 0.5 + generator.random(n), generator.random(n), generator.random(n) < 0.6
    world = world_of(a, means, gain=gain, law="beta")
    rng = Rng(seed).at(Purpose.WORLD, 1)
    b = world.rewards(1, rng.at(Purpose.WORLD, 1))
    outcome = world.play(1, x, rng)
    z, y = by_the_equations(a, gain, b, x)
    assert (outcome.z == z).all()
    np.testing.assert_allclose(outcome.y, y, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(outcome.y, a @ outcome.y + gain * outcome.z, rtol=1e-12, atol=1e-14)  # eq. 3
    np.testing.assert_allclose(  # eq. 4
        outcome.y, np.linalg.inv(np.eye(n) - a) @ np.diag(gain) @ np.diag(b) @ x, rtol=1e-12, atol=1e-14
    )
    payoff = np.ones(n) @ np.linalg.solve(np.eye(n) - a, np.diag(gain) @ np.diag(means) @ x)  # eq. 5, in expectation
    np.testing.assert_allclose(world.expected(1, x), payoff, rtol=1e-12, atol=1e-14)


@examples(8)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_best_is_the_best_of_all_sets(n, budget, seed):
    generator = np.random.default_rng(seed)
    budget = min(n, budget)
    world = world_of(np.triu(generator.random((n, n)), 1), generator.random(n), budget)
    sets = [s for k in range(budget + 1) for s in combinations(range(n), k)]
    values = [float(world.expected(1, np.isin(np.arange(n), s))) for s in sets]
    best = world.best(1)
    assert best.sum() <= budget
    np.testing.assert_allclose(world.expected(1, best), max(values), rtol=1e-12)


def test_an_arm_that_never_pays_is_not_worth_playing():
    world = world_of(np.zeros((3, 3)), [0.0, 0.4, 0.0], budget=2)
    assert world.best(1).tolist() == [False, True, False]


def test_of_several_optimal_sets_the_nearest_counts():
    world = world_of(np.zeros((4, 4)), [0.9, 0.5, 0.5, 0.5], budget=2)
    sets = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1]], bool)
    # all of the first three are optimal; of the level arms only one belongs to an optimal set
    assert world.matches(1, sets).tolist() == [2, 2, 2, 1, 1, 1]


def test_without_ties_matches_counts_the_best_arms():
    world = world_of(np.zeros((4, 4)), [0.9, 0.6, 0.5, 0.4], budget=2)
    sets = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]], bool)
    assert world.matches(1, sets).tolist() == [2, 1, 0, 0]


def test_matches_in_a_batch_where_only_some_worlds_have_ties():
    levels = np.array([[[0.9, 0.5, 0.5, 0.5]], [[0.9, 0.6, 0.5, 0.4]]])
    world = world_of(np.zeros((4, 4)), levels[0], 2, levels=levels, graphs=np.zeros((2, 1, 4, 4)), gain=np.ones((2, 4)))
    x = np.broadcast_to(np.array([1, 0, 0, 1], bool), (2, 4))
    assert world.matches(1, x).tolist() == [2, 1]
    assert world.matches(1, np.stack([x, ~x])).tolist() == [[2, 1], [1, 1]]


def test_where_nothing_pays_the_best_is_nothing():
    world = world_of(np.zeros((3, 3)), np.zeros(3), budget=2)
    assert not world.best(1).any()
    assert world.matches(1, np.array([True, True, False])) == 0
    assert world.expected(1, np.array([True, True, False])) == 0


def test_periods_begin_at_their_changes():
    world = world_of(np.zeros((1, 1)), [[0.1], [0.2], [0.3]], changes=(5, 8))
    assert [world.means(t)[0] for t in (1, 4, 5, 7, 8, 100)] == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]


def test_graphs_change_at_their_rounds():
    graphs = np.array([[[0, 0.5], [0, 0]], [[0, 0.25], [0, 0]]])
    world = world_of(graphs[0], [0.3, 0.6], graphs=graphs, graph_changes=(4,))
    assert [world.adjacency(t)[0, 1] for t in (1, 3, 4, 100)] == [0.5, 0.5, 0.25, 0.25]
    x = np.array([False, True])
    np.testing.assert_allclose([world.expected(t, x) for t in (3, 4)], [0.6 * 1.5, 0.6 * 1.25])
    sure = world_of(graphs[0], [1.0, 1.0], graphs=graphs, graph_changes=(4,))
    assert sure.play(3, x, Rng(0).at(Purpose.WORLD, 3)).y.tolist() == [0.5, 1.0]
    assert sure.play(4, x, Rng(0).at(Purpose.WORLD, 4)).y.tolist() == [0.25, 1.0]


def test_smooth_means_hit_their_anchors_and_glide_on_a_cosine():
    world = world_of(np.zeros((1, 1)), [[0.2], [0.8], [0.4]], changes=(11,), smooth=True, horizon=30)
    assert world.means(1)[0] == pytest.approx(0.2, abs=1e-15)
    assert world.means(11)[0] == pytest.approx(0.8, abs=1e-15)
    assert world.means(6)[0] == pytest.approx(0.5)  # half of the way in half of the time
    assert world.means(1 + 10 // 5)[0] == pytest.approx(0.2 + 0.6 * (1 - np.cos(np.pi / 5)) / 2)
    path = np.array([world.means(t)[0] for t in range(1, 31)])
    # a cosine of height h over k rounds moves by at most h pi / (2 k) a round: no jump, not even at the anchor
    assert (np.abs(np.diff(path)) <= 0.6 * np.pi / 20 + 1e-12).all()
    assert (np.diff(path[:11]) > 0).all()
    assert (np.diff(path[10:]) < 0).all()
    assert path[-1] > 0.4  # the last anchor is just after the horizon


def test_bernoulli_rewards_have_their_means():
    means = np.array([0.0, 0.1, 0.5, 1.0])
    draws = world_of(np.zeros((4, 4)), means).rewards(1, Rng(0, np.arange(20_000)))
    assert set(np.unique(draws)) == {0.0, 1.0}
    for ones, mean in zip(draws.sum(axis=0), means, strict=True):
        assert stats.binomtest(int(ones), 20_000, mean).pvalue > UNLIKELY


@pytest.mark.parametrize("concentration", [0.5, 4.0, 60.0])
def test_beta_rewards_follow_their_law(concentration):
    means = np.array([0.25, 0.5, 0.9])
    world = world_of(np.zeros((3, 3)), means, law="beta", concentration=concentration)
    draws = world.rewards(1, Rng(0, np.arange(5000)))
    assert ((draws >= 0) & (draws <= 1)).all()
    for column, mean in zip(draws.T[:2], means, strict=False):
        law = stats.beta(concentration * mean, concentration * (1 - mean))
        assert stats.kstest(column, law.cdf).pvalue > UNLIKELY
    spread = np.sqrt(means * (1 - means) / (concentration + 1) / 5000)
    assert (np.abs(draws.mean(axis=0) - means) < 4 * spread).all()


def test_pareto_rewards_have_their_means_a_heavy_tail_and_a_declared_range():
    means = np.array([0.2, 0.5, 1.0])
    world, rng = world_of(np.zeros((3, 3)), means, law="pareto"), Rng(1, np.arange(100_000))
    drawn = world.rewards(1, rng)
    assert_allclose(drawn.mean(axis=0), means, rtol=0.02)
    assert world.problem.reward_range == (0.0, pytest.approx(LARGEST_PARETO))
    assert 0.9 * LARGEST_PARETO < drawn.max() <= LARGEST_PARETO
    for share in (2.0, 8.0):  # P(z > c z_least) = c^-1.5, up to the cut
        above = float((drawn[:, 2] > share / MEAN_DRAW).mean())
        assert above == pytest.approx((share**-1.5 - 30.0**-1.5) / (1.0 - 30.0**-1.5), rel=0.05)


def test_beta_rewards_at_the_ends_are_constant():
    world = world_of(np.zeros((2, 2)), [0.0, 1.0], law="beta")
    assert (world.rewards(1, Rng(0, np.arange(50))) == [0.0, 1.0]).all()


def test_noise_enters_every_structural_equation():
    a = np.array([[0, 0.5, 0.2], [0, 0, 0.7], [0, 0, 0]])
    quiet, loud = (world_of(a, [1.0, 1.0, 1.0], budget=3, noise=noise) for noise in (0.0, 0.3))
    rng, x = Rng(1, np.arange(4000)), np.ones((4000, 3), bool)
    still, shaken = (world.play(1, x, rng.at(Purpose.WORLD, 1)) for world in (quiet, loud))
    assert (still.z == shaken.z).all()
    shocks = shaken.y - shaken.y @ a.T - shaken.z  # what y = A y + z + e leaves over
    for column in shocks.T:
        assert stats.kstest(column / 0.3, "norm").pvalue > UNLIKELY
    correlations = np.corrcoef(shocks.T)[np.triu_indices(3, 1)]
    assert (np.abs(correlations) < 4 / np.sqrt(4000)).all()
    assert (loud.expected(1, x[0]) == quiet.expected(1, x[0])).all()


def test_the_range_of_y_is_reached_and_never_left():
    a = np.array([[0, 0.5, 0.2], [0, 0, 0.7], [0, 0, 0]])
    world = world_of(a, np.ones(3), budget=2, gain=np.array([1.0, 2.0, 0.5]))
    low, high = world.problem.overall_range
    sets = np.array([np.isin(np.arange(3), s) for k in range(3) for s in combinations(range(3), k)])
    y = world.play(1, sets, Rng(0)).y
    assert low == 0
    assert y.max() == pytest.approx(high, rel=1e-12)


def test_a_policy_is_told_neither_graph_nor_means():
    problem = sp.SyntheticSEM().draw(Rng(0)).problem
    assert problem[:4] == (10, 4, True, (0.0, 1.0))
    assert problem.weights is None


def test_rewards_are_the_same_whatever_is_played():
    world, rng = world_of(np.zeros((4, 4)), [0.5] * 4, law="beta"), Rng(3)
    everything = world.play(5, np.ones(4, bool), rng.at(Purpose.WORLD, 5)).z
    for arm in range(4):
        alone = world.play(5, np.arange(4) == arm, rng.at(Purpose.WORLD, 5)).z
        assert alone[arm] == everything[arm]
        assert alone.sum() == alone[arm]


def test_noise_is_the_same_alone_and_in_a_batch():
    environment = sp.SyntheticSEM(n_arms=9, budget=4, edge_density=0.5, noise=0.5, horizon=5, changes=())
    rng, x = Rng(0, np.arange(40)), np.random.default_rng(0).random((40, 9)) < 0.5
    whole = environment.draw(rng.at(Purpose.WORLD), (40,)).play(2, x, rng.at(Purpose.WORLD, 2))
    for k in range(40):
        alone = environment.draw(Rng(0, k).at(Purpose.WORLD)).play(2, x[k], Rng(0, k).at(Purpose.WORLD, 2))
        assert (alone.y == whole.y[k]).all()


@pytest.mark.parametrize("n", [1, 3, 4, 10])
def test_noise_is_spread_over_the_graph(n):
    graphs = np.triu(np.random.default_rng(n).uniform(0.0, 0.5, (2, n, n)), 1)
    world = world_of(np.zeros((n, n)), np.full(n, 0.5), arms=tuple(map(str, range(n))), graphs=graphs, noise=0.3)
    rounds, rng = np.arange(3, 20), Rng(5)
    together = world.shocks(1, rng.over(Purpose.WORLD, rounds))
    for row, t in enumerate(rounds.tolist()):
        own = 0.3 * rng.at(Purpose.WORLD, t).normal(n)
        assert_allclose(together[row], np.linalg.solve(np.eye(n) - graphs[1], own), rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(world.shocks(1, rng.at(Purpose.WORLD, t)), together[row])


@pytest.mark.parametrize("field", ["play", "expected"])
def test_a_world_with_nan_is_refused(field):
    """Its results would be NaN."""

    class Broken(sp.SyntheticSEM):
        def draw(self, rng, batch=()):
            return Unknown(super().draw(rng, batch))

    class Unknown:
        def __init__(self, world):
            self.world = world

        def __getattr__(self, name):
            if name in ("course", "score_rounds", "best_of_rounds"):
                raise AttributeError(name)
            return getattr(self.world, name)

        def play(self, t, x, rng):
            found = self.world.play(t, x, rng)
            return found._replace(y=found.y * np.nan) if field == "play" else found

        def expected(self, t, x):
            return self.world.expected(t, x) * (np.nan if field == "expected" else 1.0)

    with pytest.raises(ValueError, match=r"(outcome|payoff) of Unknown in rounds 1 to 8 = nan: must be numbers"):
        sp.simulate(sp.Uniform(), Broken(horizon=8, changes=()), replications=2)


# --- Worlds that keep lists of edges: the same model as worlds with matrices, and no n * n numbers ------------------


PLAIN: dict[str, Any] = {"n_arms": 12, "budget": 3, "horizon": 40, "changes": (15,)}
KINDS: dict[str, dict[str, Any]] = {
    "bernoulli": {},
    "beta": {"law": "beta"},
    "pareto": {"law": "pareto"},
    "noise": {"noise": 0.2},
    "harmful edges": {"harmful": 0.5},
    "gains": {"gain_range": (0.5, 2.0)},
    "moving": {"smooth": True},
    "new graphs": {"graph_changes": (9, 20)},
    "surroundings": {"baseline": True, "context": 2, "confounding": 0.3},
    "payoff": {"observes": "payoff"},
}


def listed(world):
    """The same world with lists of edges."""
    graphs = []
    for k in range(world.graphs.shape[-3]):
        a = world.graphs[..., k, :, :]
        count = int((a != 0).sum(axis=(-2, -1)).max())
        flat = a.reshape(*a.shape[:-2], -1)
        places = np.argsort(flat == 0, axis=-1, kind="stable")[..., :count]
        effect, cause = np.divmod(places, a.shape[-1])
        graphs.append(sorted_edges(effect, cause, np.take_along_axis(flat, places, axis=-1), a.shape[-1]))
    own = {
        name: getattr(world, name)
        for name in (field.name for field in fields(world))
        if name not in ("graphs", "cache")
    }
    return ManyArmsWorld(edges_of_graphs=tuple(graphs), graphs=NO_MATRICES, **own)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """An environment whose worlds keep lists, however few arms there are."""

    of: sp.SyntheticSEM

    def draw(self, rng, batch=()):
        return listed(self.of.draw(rng, batch))


@pytest.mark.parametrize("kind", KINDS)
def test_the_outcomes_are_those_of_matrices(kind):
    dense = sp.SyntheticSEM(**PLAIN, **KINDS[kind])
    rng = sp.Rng(3, np.arange(4))
    full = dense.draw(rng.at(Purpose.WORLD), (4,))
    few = listed(full)
    x = np.random.default_rng(0).random((40, 4, 12)) < 0.3
    for t in (1, 9, 14, 15, 25, 40):
        np.testing.assert_array_equal(few.adjacency(t), full.adjacency(t))
        np.testing.assert_allclose(few.weights(t), full.weights(t), rtol=1e-13)
        ours, theirs = (world.play(t, x[t - 1], rng.at(Purpose.WORLD, t)) for world in (few, full))
        np.testing.assert_array_equal(ours.z, theirs.z)
        np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(few.expected(t, x[t - 1]), full.expected(t, x[t - 1]), rtol=1e-13)
        np.testing.assert_array_equal(few.best(t), full.best(t))
    low, high = np.moveaxis(few.problem.overall_range, -1, 0)
    least, most = np.moveaxis(full.problem.overall_range, -1, 0)
    assert (low <= least + 1e-12).all()
    assert (high >= most - 1e-12).all()


@pytest.mark.parametrize("kind", ["bernoulli", "noise", "surroundings", "harmful edges"])
def test_the_contract(kind):
    check_environment(Listed(of=sp.SyntheticSEM(**PLAIN, **KINDS[kind])), draws=100)


@pytest.mark.parametrize("policy", [sp.NDCSEM(), sp.SEMUCB(), sp.Uniform()], ids=["ndc-sem", "sem-ucb", "random"])
def test_a_simulation_measures_the_same(policy):
    """As long as rounding breaks no tie between arms, the decisions are the same."""
    world = sp.SyntheticSEM(**PLAIN, law="beta")
    ours, theirs = (sp.simulate(policy, each, 3, replications=3, seed=1) for each in (Listed(of=world), world))
    np.testing.assert_allclose(ours.regret, theirs.regret, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.graph_error, theirs.graph_error, rtol=1e-6, atol=1e-12)
    if theirs.adjacency is not None:
        np.testing.assert_allclose(ours.adjacency.todense(), theirs.adjacency, atol=1e-8)


def test_pairs_are_different_and_do_not_depend_on_other_replications():
    rng = sp.Rng(5, np.arange(3))
    pairs = draw_pairs(rng.at(Purpose.WORLD), (3,), 30, 300)
    effect, cause = np.divmod(pairs, 30)
    assert all(len(set(row)) == 300 for row in pairs.tolist())
    assert (effect < cause).all()
    np.testing.assert_array_equal(draw_pairs(sp.Rng(5, 2).at(Purpose.WORLD), (), 30, 300), pairs[2])


def test_every_pair_is_equally_likely():
    pairs = draw_pairs(sp.Rng(1, np.arange(2000)).at(Purpose.WORLD), (2000,), 5, 3)
    counts = np.bincount(pairs.ravel(), minlength=25).reshape(5, 5)[np.triu_indices(5, 1)]
    assert counts.sum() == 6000
    assert abs(counts - 600).max() < 5 * np.sqrt(600)


def test_a_world_without_edges():
    world = sp.SyntheticSEM(n_arms=2_001, budget=2, edge_density=0.0, horizon=3, changes=())
    drawn: Any = world.draw(sp.Rng(0, [0, 1]).at(Purpose.WORLD), (2,))
    assert drawn.edges(1).nnz == 0
    assert (drawn.weights(1) == 1).all()
    assert sp.simulate(sp.NDCSEM(), world, 0, replications=2, record=3).graph_error.tolist() == [[0.0], [0.0]]


def test_thirty_thousand_arms_run():
    world = sp.SyntheticSEM(n_arms=30_000, budget=50, edge_density=0.8 / 29_999, horizon=12, changes=(6,))
    run = sp.simulate(sp.NDCSEM(), world, 2, replications=1, record=12)
    assert run.adjacency.shape == (1, 30_000, 30_000)
    assert (np.diff(run.regret, axis=-1) > 0).all()
    assert run.graph_error.shape == (1, 1)
    best = sp.simulate(sp.policies.Oracle(), world, 2)
    assert best.final_regret[0] == pytest.approx(0.0, abs=1e-9)


def test_every_kind_of_environment_and_learner():
    many: dict[str, Any] = {"n_arms": 2_500, "budget": 20, "edge_density": 3e-4, "horizon": 4, "changes": ()}
    world = sp.SyntheticSEM(**many)
    same = sp.environments.Instance(seed=3, of=world)
    limited = sp.environments.ConstrainedSEM(environment=world, constraints=(Exclusive([0, 1, 2]),))
    for environment in (world, same, limited):
        for policy in (sp.NDCSEM(graph="none"), sp.SwitchingSEM(), sp.policies.DelayedOracle()):
            run = sp.simulate(policy, environment, 1, replications=2, record=4)
            assert (run.final_regret > 0).all()


FILE = """
name = "many"
seed = 1
replications = 1
[worlds.w]
kind = "synthetic"
n_arms = {arms}
budget = 10
edge_density = 1e-4
horizon = 5
changes = []
[delays.0]
kind = "constant"
rounds = 0
[policies.p]
kind = "ndc-sem"
[[studies]]
worlds = ["w"]
delays = ["0"]
policies = ["p"]
"""


def test_an_experiment_with_many_arms(tmp_path):
    from spillover.experiments import run_experiment

    run_experiment(parse_experiment(FILE.format(arms=3_000)), tmp_path, engine="serial", progress=False)
    with pytest.raises(ValueError, match="n_arms = 2,000,000: must be at most 1,000,000"):
        parse_experiment(FILE.format(arms=2_000_000))

"""Worlds that keep lists of edges: the same model as worlds with matrices, and no n * n numbers."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Exclusive
from spillover.environments.synthetic import NO_MATRICES
from spillover.environments.world import ManyArmsWorld, draw_pairs, sorted_edges
from spillover.experiments import parse_experiment
from spillover.metrics import graph_mse, sparse_graph_mse
from spillover.rng import Purpose
from spillover.testing import check_environment

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


def test_the_error_of_sparse_graphs():
    draw = np.random.default_rng(2)
    found, real = draw.random((2, 3, 4, 4)), draw.random((3, 4, 4))
    from scipy.sparse import coo_array

    np.testing.assert_allclose(sparse_graph_mse(coo_array(found), coo_array(real)), graph_mse(found, real))


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
    with pytest.raises(ValueError, match="2,000,000 arms: must be at most 1,000,000"):
        parse_experiment(FILE.format(arms=2_000_000))

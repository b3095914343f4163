"""Graphs of arms as networks of NetworkX, and back."""

from typing import Any

import networkx
import numpy as np
import pytest
from scipy.sparse import coo_array

import spillover as sp
from spillover.environments import example_graph
from spillover.interop.sklearn import SpilloverGraph
from spillover.tabular import from_networkx, to_networkx

A = np.array([[0, 0.5, 0], [0, 0, 0], [0.25, -1.0, 0]])
NAMES = ["tv", "radio", "print"]


def test_edges_lead_from_causes_to_effects():
    network = to_networkx(A, NAMES)
    assert list(network) == NAMES
    expected = {("radio", "tv"): 0.5, ("tv", "print"): 0.25, ("radio", "print"): -1.0}
    assert networkx.get_edge_attributes(network, "weight") == expected
    # NetworkX's own matrix has causes in rows
    np.testing.assert_array_equal(networkx.to_numpy_array(network, nodelist=NAMES).T, A)


def test_there_and_back():
    names, adjacency = from_networkx(to_networkx(A, NAMES))
    assert names == NAMES
    np.testing.assert_array_equal(adjacency, A)
    assert list(to_networkx(A, NAMES, threshold=0.25).edges) == [("radio", "tv"), ("radio", "print")]
    numbered = to_networkx(coo_array(A))
    assert list(numbered) == [0, 1, 2]
    np.testing.assert_array_equal(from_networkx(numbered)[1], A)


def test_a_world_from_a_network_and_back():
    network = networkx.DiGraph([("rain", "grass", {"weight": 0.5, "lag": 2.0}), ("grass", "cow")])
    world = sp.FixedSEM.from_networkx(network, means={"cow": 0.1, "grass": 0.2, "rain": 0.3}, budget=2, horizon=10)
    assert world.names() == ["rain", "grass", "cow"]
    assert world.levels().tolist() == [[0.3, 0.2, 0.1]]
    assert world.matrix().tolist() == [[0, 0, 0], [0.5, 0, 0], [0, 1.0, 0]]
    assert networkx.utils.graphs_equal(
        world.to_networkx(),
        sp.FixedSEM.from_networkx(world.to_networkx(), means=[0.3, 0.2, 0.1], budget=2).to_networkx(),
    )
    lagged = sp.FixedSEM.from_networkx(network, means=[0.1] * 3, budget=1, weight="lag")
    assert lagged.matrix()[1, 0] == 2.0
    assert sp.simulate(sp.NDCSEM(), world).regret.shape == (1, 10)


def test_everything_with_a_graph_becomes_a_network():
    fixed = example_graph()
    world = fixed.draw(sp.Rng(0))
    truth = networkx.get_edge_attributes(fixed.to_networkx(), "weight")
    assert set(truth) == {("1", "2"), ("3", "2"), ("1", "3"), ("4", "2"), ("3", "4")}
    assert networkx.get_edge_attributes(world.to_networkx(), "weight") == truth
    learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=2), arms=["tv", "radio"])
    for t in (1, 2, 3):
        learner.play([1, 1])
        learner.report(t, z=[1, t / 3], y=[1 + t / 6, t / 3])
    edges = dict(learner.explain().to_networkx().edges)
    assert edges.keys() == {(1, 0)}
    assert edges[1, 0]["weight"] == pytest.approx(0.5, abs=0.01)
    assert learner.reasons().to_networkx().edges["radio", "tv"] == edges[1, 0]
    random = np.random.default_rng(0)
    z = random.uniform(size=(50, 3))
    model = SpilloverGraph("instrument", signed=True).fit(z, np.linalg.solve(np.eye(3) - A, z.T).T)
    assert set(model.to_networkx().edges) == {(1, 0), (0, 2), (1, 2)}


def test_a_world_with_many_arms_gives_its_edges():
    world: Any = sp.SyntheticSEM(n_arms=2_001, budget=3, edge_density=0.0001, horizon=5, changes=()).draw(sp.Rng(1))
    network = world.to_networkx()
    effect, cause = world.edges(1).coords
    assert set(network.edges) == {(world.arms[j], world.arms[i]) for i, j in zip(effect, cause, strict=True)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: to_networkx(A, ["a", "a", "b"]), "arms = .*: must be 3 different names"),
        (lambda: to_networkx(A, threshold=-1), "threshold = -1: must be a number >= 0"),
        (lambda: to_networkx(A[:2]), r"shape of adjacency = \(2, 3\): must be \(n, n\)"),
        (lambda: to_networkx(A * np.nan), "adjacency = .*: must be finite numbers"),
        (lambda: from_networkx(networkx.Graph([(1, 2)])), "network = .*: must be a networkx.DiGraph"),
        (lambda: from_networkx(networkx.MultiDiGraph([(1, 2)])), "network = .*: must be a networkx.DiGraph"),
        (lambda: from_networkx(networkx.DiGraph([(1, "1")])), "nodes = .*: must be arms with different names"),
        (
            lambda: from_networkx(networkx.DiGraph([("a", "b", {"weight": "strong"})])),
            "weight of edge a -> b = 'strong': must be a finite number",
        ),
        (
            lambda: sp.FixedSEM.from_networkx(to_networkx(np.abs(A), NAMES), means={"tv": 1}, budget=1),
            "labels of means = .*: must be the arms",
        ),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()

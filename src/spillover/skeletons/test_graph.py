"""ExampleGraph keeps the contract of a graph learner, and learns the graph."""

import pytest

import spillover as sp
from spillover.skeletons.graph import ExampleGraph
from spillover.testing import check_graph_learner, check_policy


def test_it_keeps_the_contract() -> None:
    check_graph_learner(ExampleGraph())


def test_a_policy_with_it_keeps_the_contract() -> None:
    check_policy(sp.NDCSEM(graph=ExampleGraph()))


def test_it_learns_the_graph() -> None:
    world = sp.SyntheticSEM(horizon=300, changes=())
    run = sp.simulate(sp.NDCSEM(graph=ExampleGraph(ridge=1e-3)), world, 5, replications=5)
    idle = sp.simulate(sp.NDCSEM(graph="none"), world, 5, replications=5)
    assert run.graph_error[:, -1].mean() < 0.3 * idle.graph_error[:, -1].mean()


def test_an_impossible_ridge_is_refused() -> None:
    with pytest.raises(ValueError, match="ridge = 0"):
        ExampleGraph(ridge=0)

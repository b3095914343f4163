"""The worlds of the rivals' papers keep the contract, and are what they say."""

from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.simulation.protocol import structure_of
from spillover.testing import check_environment
from spillover_studies.field.set_worlds import NetworkInterference, NonlinearSEM
from spillover_studies.field.worlds import HierarchicalSEM, ParallelSEM, SubgraphSEM

LINEAR = {
    "hierarchical": HierarchicalSEM(width=2, layers=2, horizon=12),
    "reward node": HierarchicalSEM(width=2, layers=2, horizon=12, reward="node", harmful=0.5),
    "parallel": ParallelSEM(nodes=5, horizon=12),
    "sub-graph": SubgraphSEM(nodes=5, horizon=12, changes=(5, 9), changed=2),
    "sub-graph, reward node": SubgraphSEM(nodes=5, horizon=12, changes=(5, 9), changed=2, reward="node"),
}
SETS = {
    "table": NetworkInterference(units=4, neighbours=2, horizon=6),
    "linear": NetworkInterference(units=4, neighbours=3, horizon=6, form="linear", budget=2),
    "nonlinear": NonlinearSEM(nodes=4, horizon=6),
}


@pytest.mark.parametrize("name", [*LINEAR, *SETS])
def test_it_keeps_the_contract(name):
    environment: Any = LINEAR.get(name) or SETS[name]
    check_environment(environment, draws=100)


def test_the_payoff_of_a_reward_node_is_its_outcome_alone():
    """The same draws, booked in the two ways: what the nodes do is the same, and the sum is the reward node's."""
    shared: dict[str, Any] = {"width": 2, "layers": 2, "horizon": 12, "harmful": 0.5}
    both, x = {}, np.array([False, True, False, True, False])
    for reward in ("sum", "node"):
        rng = sp.Rng(3)
        world = HierarchicalSEM(reward=reward, **shared).draw(rng.at(sp.rng.Purpose.WORLD))
        both[reward] = world.play(1, x, rng.at(sp.rng.Purpose.WORLD, 1)).y
    np.testing.assert_allclose(both["sum"][1:], both["node"][1:], rtol=1e-12)
    np.testing.assert_allclose(both["node"].sum(), both["sum"][0], rtol=1e-12)


def test_the_structure_of_a_reward_node_is_that_of_its_edges():
    plain, booked = (HierarchicalSEM(width=2, layers=2, reward=reward).draw(sp.Rng(3)) for reward in ("sum", "node"))
    edges, told = np.isnan(structure_of(plain)), structure_of(booked)
    np.testing.assert_array_equal(np.isnan(told), edges)
    np.testing.assert_array_equal(told[0, 1:][~edges[0, 1:]], -1.0)
    np.testing.assert_array_equal(told[1:][~edges[1:]], 0.0)


def test_a_change_concerns_some_nodes_with_the_edges_from_their_causes():
    world = SubgraphSEM(nodes=8, changed=3, changes=(5,), horizon=9).draw(sp.Rng(0))
    rows = (world.adjacency(4) != world.adjacency(5)).any(axis=-1)
    assert 0 < rows.sum() <= 3
    assert set(np.flatnonzero(world.means(4) != world.means(5))) >= set(np.flatnonzero(rows)) - {0}


@pytest.mark.parametrize("form", ["table", "linear"])
def test_an_outcome_depends_on_its_neighbours_only(form):
    world = NetworkInterference(units=6, neighbours=3, form=form).draw(sp.Rng(1))
    assert (world.neighbours.sum(axis=-1) == 3).all()
    for unit in range(6):
        flipped = world.sets.copy()
        flipped[:, unit] ^= True
        moved = np.abs(world.of_set(world.sets) - world.of_set(flipped)).max(axis=0) > 1e-12
        np.testing.assert_array_equal(moved, world.neighbours[:, unit])


def test_a_steep_model_is_not_additive_and_a_flat_one_is():
    gaps = []
    for steepness in (1e-4, 4.0):
        world = NonlinearSEM(nodes=5, density=0.9, budget=5, steepness=steepness).draw(sp.Rng(0))
        gaps.append(float(np.abs(world.of_set(world.sets) - world.sets @ world.alone.T).max()))
    assert gaps[0] < 1e-6 < 0.01 < gaps[1]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: HierarchicalSEM(reward="none"), "reward = 'none'"),
        (lambda: HierarchicalSEM(width=0), "width = 0"),
        (lambda: ParallelSEM(nodes=2), "nodes = 2"),
        (lambda: SubgraphSEM(density=2), "density = 2"),
        (lambda: NetworkInterference(units=13), "units = 13"),
        (lambda: NetworkInterference(form="none"), "form = 'none'"),
        (lambda: NonlinearSEM(steepness=0), "steepness = 0"),
    ],
)
def test_impossible_worlds_are_refused(make, name):
    with pytest.raises(ValueError, match=name):
        make()

"""Policies that are told which edges there can be, but not their weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.policies import Uniform
from spillover.simulation.protocol import problem_for


@dataclass(frozen=True, kw_only=True)
class Told(Uniform):
    """Does nothing with what it is told."""

    traits = Uniform.traits._replace(knows_structure=True)


def test_the_structure_is_where_edges_are_and_not_what_they_weigh():
    world = sp.SyntheticSEM(n_arms=5, edge_density=0.2, budget=2, horizon=9, changes=()).draw(sp.Rng(0, [0, 1]), (2,))
    told = problem_for(Told(), world).structure
    np.testing.assert_array_equal(np.isnan(told), world.adjacency(1) != 0)
    np.testing.assert_array_equal(told[~np.isnan(told)], 0.0)
    assert problem_for(Uniform(), world).structure is None


def test_a_graph_that_changes_has_the_edges_of_all_its_periods():
    changing = sp.SyntheticSEM(n_arms=5, edge_density=0.2, budget=2, horizon=9, changes=(), graph_changes=(4,))
    world = changing.draw(sp.Rng(0))
    told = problem_for(Told(), world).structure
    np.testing.assert_array_equal(np.isnan(told), (world.adjacency(1) != 0) | (world.adjacency(4) != 0))


def test_a_comparison_is_with_the_best_policy_that_is_told_nothing():
    world = sp.SyntheticSEM(horizon=30, changes=())
    named: dict[str, Any] = {"told": Told(), "graph": "cucb-known-graph", "oracle": "oracle", "not": "random"}
    found = sp.compare(named, world, 5, replications=3)
    assert found.reference == "not"
    verdicts = {row.policy: row.verdict for row in found.rows}
    assert verdicts["told"] == "the same, knows the structure"
    assert verdicts["graph"].endswith(", knows the graph")
    assert verdicts["oracle"] == "knows the world"


@pytest.mark.parametrize("given", [np.zeros((2, 2)), np.full((3, 3), np.inf), "none"])
def test_an_impossible_structure_is_refused(given):
    with pytest.raises(ValueError, match="structure = "):
        Uniform().init(sp.Problem(3, 1, structure=given), sp.Rng(0))


def test_a_saved_learner_is_held_against_the_structure(tmp_path):
    one, other = (sp.Problem(2, 1, structure=[[0, each], [0, 0]]) for each in (np.nan, 0.0))
    sp.Learner(Uniform(), one).save(tmp_path / "learner")
    sp.Learner.load(tmp_path / "learner", Uniform(), one)
    with pytest.raises(ValueError, match="problem"):
        sp.Learner.load(tmp_path / "learner", Uniform(), other)

"""Reasons of very many arms: the same words as for few, without any array of n * n numbers."""

from dataclasses import replace

import numpy as np
from scipy import sparse

import spillover as sp
from spillover.figures.select_arms import graph_arms, strongest_flows
from spillover.reasons import reasons

N = 30


def learned():
    """An explanation after a few rounds in a world with edges."""
    world = sp.SyntheticSEM(n_arms=N, budget=5, edge_density=0.05, horizon=60, changes=(), law="beta")
    drawn = world.draw(sp.Rng(1).at(sp.rng.Purpose.WORLD))
    learner = sp.Learner(sp.NDCSEM(), drawn.problem, seed=2)
    for t in range(1, 61):
        x = learner.choose()
        outcome = drawn.play(t, x, sp.Rng(1).at(sp.rng.Purpose.WORLD, t))
        learner.report(learner.play(x), outcome.z, outcome.y)
    return learner.explain()


def test_a_sparse_explanation_has_the_same_reasons():
    full = learned()
    few = replace(full, adjacency=sparse.csr_array(full.adjacency))
    ours, theirs = reasons(few), reasons(full)
    assert np.count_nonzero(full.adjacency) > 5
    assert str(ours) == str(theirs)
    np.testing.assert_allclose(ours.flows.toarray(), theirs.flows, atol=1e-12)
    assert [edge["to"] for edge in ours.to_dict()["graph"]["edges"]] == [
        edge["to"] for edge in theirs.to_dict()["graph"]["edges"]
    ]
    assert [arm.arm for arm in graph_arms(ours)] == [arm.arm for arm in graph_arms(theirs)]
    np.testing.assert_allclose(strongest_flows(ours), strongest_flows(theirs), atol=1e-12)


def test_three_thousand_arms_are_explained():
    for policy in (sp.NDCSEM(), sp.SwitchingSEM(), sp.policies.CUCB()):
        learner = sp.Learner(policy, sp.Problem(3_000, 20, overall_range=(0, 5)))
        x = learner.choose()
        learner.report(learner.play(x), 0.5 * x, 0.5 * x)
        found = reasons(learner.explain())
        assert found.adjacency.shape == (3_000, 3_000)
        assert found.adjacency.nnz < 3_000
        assert len(str(found).splitlines()) < 300
        assert len(found.swaps) == 5

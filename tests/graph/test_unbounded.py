"""Cyclic graphs without a bound on their rows, as in the paper: a spectral radius of 1 or more is refused by name."""

from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.graph import AdaptiveGraph, CandidateGraph, PaperTunedGraph, SelfTunedGraph, SparseGraph
from spillover.rng import Purpose
from tests.graph.random_rounds import random_rounds
from tests.reference import graph_reference as reference
from tests.sampling import every


def learned(learner, Z, Y):
    graph = learner.init(sp.Problem(Y.shape[1], 1, acyclic=False))
    for t, (z, y) in enumerate(zip(Z, Y, strict=True), start=1):
        graph = learner.absorb(graph, z, y, np.array(1.0), np.array(t))
    return learner.solve(graph)


@pytest.mark.parametrize("seed", range(6))
def test_the_minimiser_without_a_bound(seed):
    Z, Y = random_rounds(seed, 4, 12, 2, "beta", acyclic=False, noise=0.3)
    graph = learned(SparseGraph(sparsity=1e-3, row_bound=None), Z, Y)
    allowed, penalty = reference.allowed_edges(4, False), reference.penalties(4, 1e-3)
    least = reference.objective(Z, Y, reference.solve_by_enumeration(Z, Y, penalty, allowed, np.inf), penalty)
    assert reference.objective(Z, Y, graph.adjacency, penalty) == pytest.approx(least, rel=1e-8)
    radius = np.abs(np.linalg.eigvals(graph.adjacency)).max()
    expected = reference.total_effects(graph.adjacency) if radius < 1 else np.zeros(4)
    np.testing.assert_allclose(graph.weights, expected, rtol=1e-9)


def outcomes_of(adjacency, rounds=60):
    """Overall rewards that satisfy y = A y + z with z that may be negative, so that any A can be learned exactly."""
    Y = np.random.default_rng(0).uniform(0.5, 1.0, (rounds, len(adjacency)))
    return Y - Y @ adjacency.T, Y


@pytest.mark.parametrize(("scale", "exists"), [(0.5, True), (0.999, True), (1.01, False), (1.3, False), (4.0, False)])
@pytest.mark.parametrize("learner", [SparseGraph(sparsity=0.0, row_bound=None), SelfTunedGraph(row_bound=None)])
def test_weights_exist_below_a_radius_of_one(learner, scale, exists):
    a = np.array([[0, 2.0, 0], [0, 0, 0.5], [1.0, 0, 0]]) * scale  # a cycle: radius scale, rows sum to more
    graph = learned(learner, *outcomes_of(a))
    np.testing.assert_allclose(graph.adjacency, a, atol=1e-4)
    assert bool(graph.weights.any()) == exists
    if exists:
        np.testing.assert_allclose(graph.weights, reference.total_effects(graph.adjacency), rtol=1e-6)


PAIR = sp.Problem(2, 2, acyclic=False, reward_range=(-3.0, 1.0))
POLICIES = (sp.NDCSEM, sp.SEMUCB, sp.SwitchingSEM, sp.policies.GLRSEMUCB, sp.policies.DiscountedTS)
PAIRS: list[tuple[Any, Any]] = [(make, SparseGraph(sparsity=0.0, row_bound=None)) for make in POLICIES]
PAIRS += [(sp.NDCSEM, PaperTunedGraph(row_bound=None))]


@pytest.mark.parametrize(("make", "learner"), every(6, PAIRS))
@pytest.mark.parametrize("effect", [0.9, 2.0])
def test_decisions_by_an_infinite_spread_are_refused(make, learner, effect):
    policy = make(graph=learner)
    state = after_rounds(policy, effect, 4)
    if effect < 1:
        policy.select(state, sp.Rng(0))
        return
    with pytest.raises(ValueError, match=r"spectral radius of the learned graph = (2\.0|1\.999).*row_bound, such as"):
        policy.select(state, sp.Rng(0))


def after_rounds(policy, effect, count):
    """The state after rounds of two arms that affect each other by so much."""
    a, x, rng = np.array([[0.0, effect], [effect, 0.0]]), np.ones(2, bool), sp.Rng(0)
    state = policy.init(PAIR, rng)
    for t, y in enumerate(np.random.default_rng(1).uniform(0.5, 1.0, (count, 2)), start=1):
        feedback = sp.types.Feedback(x, y - a @ y, y, np.array(0), np.array(True))
        state = policy.update(policy.played(state, x), feedback, rng.at(Purpose.LEARNING, t))
    return state


def test_the_initialisation_decides_without_weights():
    policy = sp.NDCSEM(graph=SparseGraph(sparsity=0.0, row_bound=None))
    state = after_rounds(policy, 2.0, 1)  # the plan has two rounds
    assert not state.graph.weights.any()
    policy.select(state, sp.Rng(0))


def test_an_order_needs_no_bound():
    world = sp.SyntheticSEM(horizon=60, changes=())
    runs = [sp.simulate(sp.NDCSEM(graph=SparseGraph(row_bound=b)), world, 5, replications=3) for b in (None, 0.95)]
    np.testing.assert_array_equal(runs[0].final_regret, runs[1].final_regret)


@pytest.mark.parametrize("learner", [SparseGraph, SelfTunedGraph, PaperTunedGraph])
def test_negative_edges_need_a_bound(learner):
    with pytest.raises(ValueError, match=r"row_bound = None: must be a number .*or None, for"):
        learner(row_bound=None, signed=True)


@pytest.mark.parametrize("learner", [AdaptiveGraph, CandidateGraph])
def test_other_learners_need_a_bound(learner):
    with pytest.raises(ValueError, match=r"row_bound = None: must be a number strictly between 0 and 1$"):
        learner(row_bound=None)

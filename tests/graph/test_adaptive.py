"""The adaptive learner: it notices changes, judges by the weights that were held, and falls back."""

from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.graph import (
    AdaptiveGraph,
    InstrumentGraph,
    KClassGraph,
    NoGraph,
    PayoffWeights,
    SelfTunedGraph,
    SparseGraph,
    evidence,
)
from spillover.graph.adaptive import K_CLASS, empty_evidence
from spillover.kernels.evidence import favourite, judge_pair, judge_weights
from spillover.rng import Purpose
from spillover.state import copy_state
from spillover.testing import check_policy
from tests.graph.worlds import learn, played, random_model, weights_of
from tests.sampling import every


def detected_alarms(world, delay, replications=100, seed=3):
    """(alarms, since) after a run of NDC-SEM, and the rounds in which the alarms were raised."""
    rng = sp.Rng(seed, np.arange(replications))
    drawn = world.draw(rng.at(Purpose.WORLD), (replications,))
    alarms: list[Any] = []
    state: Any = None
    for _, _, _, state in sp.rounds(sp.NDCSEM(graph="adaptive"), drawn, delay, rng, (replications,)):
        alarms.append(np.array(state.graph.alarms))
    return state.graph.alarms, state.graph.since, np.array(alarms)


@pytest.mark.parametrize(
    ("world", "replications"),
    [
        (sp.SyntheticSEM(horizon=1000, changes=(300, 700)), 20),
        pytest.param(sp.SyntheticSEM(), 100, marks=pytest.mark.long),
    ],
    ids=["short", "whole"],
)
@pytest.mark.parametrize("delay", [sp.ConstantDelay(20), sp.UniformDelay(0, 60)])
def test_no_false_alarm_without_noise(delay, world, replications):
    alarms, _, _ = detected_alarms(world, delay, replications)
    assert not alarms.any()


@pytest.mark.parametrize("noise", every(2, [0.1, 1.0]))
def test_false_alarms_under_noise_are_rare(noise):
    # 40 x 2,000 arrivals at one false alarm in a million: 0.08 are expected, 3 or more have probability 1e-4
    alarms, _, _ = detected_alarms(sp.SyntheticSEM(noise=noise, horizon=2000, changes=(1000,)), 0, 40)
    assert alarms.sum() <= 2


@pytest.mark.parametrize("acyclic", [True, False])
def test_a_change_is_noticed_by_the_first_outcomes_that_tell(acyclic):
    for seed in range(20):
        n = 6
        before, after = random_model(seed, n, acyclic=acyclic), random_model(seed + 1000, n, acyclic=acyclic)
        Z, Y = played(seed, before[0], before[1], 150)
        Z_new, Y_new = played(seed + 1, after[0], after[1], 200)
        predicted = np.linalg.solve(np.eye(n) - before[0], Z_new.T).T  # by the old graph
        informative = np.flatnonzero(np.abs(predicted - Y_new).max(axis=1) > 1e-9)
        learner, problem = AdaptiveGraph(), sp.Problem(n, 3, acyclic=False)
        graph = learn(learner, problem, Z, Y)
        assert graph.alarms == 0
        for t in range(200):
            played_at = np.array(151 + t)
            graph = learner.solve(learner.absorb(graph, Z_new[t], Y_new[t], np.array(True), played_at))
            if t == informative[4]:
                assert graph.alarms == 1
        assert graph.alarms == 1
        assert 151 + informative[0] <= graph.since <= 151 + informative[4]
        np.testing.assert_allclose(graph.instrument.adjacency, after[0], atol=1e-8)


def test_late_rounds_of_the_old_graph_are_left_out():
    n = 5
    old, new = random_model(1, n), random_model(2, n)
    Z, Y = played(1, old[0], old[1], 200)
    Z_new, Y_new = played(2, new[0], new[1], 200)
    learner, problem = AdaptiveGraph(), sp.Problem(n, 3, acyclic=False)
    graph = learn(learner, problem, Z[:150], Y[:150])
    for t in range(200):  # played in rounds 201 to 400; a quarter of what comes is still of rounds 151 to 200
        graph = learner.solve(learner.absorb(graph, Z_new[t], Y_new[t], np.array(True), np.array(201 + t)))
        if t % 4 == 3:
            k = 150 + t // 4
            graph = learner.solve(learner.absorb(graph, Z[k], Y[k], np.array(True), np.array(k + 1)))
    assert graph.alarms == 1
    np.testing.assert_allclose(graph.instrument.adjacency, new[0], atol=1e-8)


def test_a_change_under_noise_is_noticed():
    world = sp.SyntheticSEM(noise=0.3, horizon=1600, changes=(), graph_changes=(1000,))
    _, _, alarms = detected_alarms(world, 0, 20)
    assert (alarms[998] == 0).all()
    assert (alarms[1300] > 0).mean() > 0.9


@pytest.mark.parametrize("seed", range(5))
def test_order_unknown_and_rows_above_the_bound(seed):
    n = 6
    A, F = random_model(seed, n, acyclic=True)
    A[A > 0] += 0.5  # rows that sum to more than 0.95
    Z, Y = played(seed, A, F, 800)
    learner = AdaptiveGraph()
    graph = learner.init(sp.Problem(n, 3, acyclic=False))
    for t in range(800):
        memo = learner.remember(graph)
        graph = learner.absorb(graph, Z[t], Y[t], np.array(True), np.array(t + 1), Z[t], memo)
        graph = learner.solve(graph)
    np.testing.assert_allclose(graph.adjacency, A, atol=1e-3)
    np.testing.assert_allclose(graph.weights, weights_of(A, F), atol=1e-2)


def judged(held, memo, z, y):
    return held._replace(observed=np.array(judge_weights(*held[:5], float(held.observed), memo, z, y)))


def best(held):
    return favourite(held.errors, held.lead, held.doubt, held.power)


def test_judged_by_the_weights_that_were_held():
    # the first candidate held the right weights, the second the wrong ones, whatever they hold now
    held, memo = empty_evidence(3, ()), np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]])
    rng = np.random.default_rng(0)
    for _ in range(30):
        z = rng.uniform(size=4)
        held = judged(held, memo, z, z * [1, 2, 3, 4])
    assert best(held) == 0
    assert held.errors[0] < 1e-12 < held.errors[2] < held.errors[1]
    same = judged(copy_state(held), np.zeros_like(memo), z, np.full(4, 7.0))  # nothing was remembered
    for old, new in zip(held, same, strict=True):
        np.testing.assert_array_equal(old, new)


def test_k_class_is_estimated_where_it_is_used_or_asked_for():
    rng = np.random.default_rng(3)
    A = np.triu(rng.uniform(0.1, 0.4, (4, 4)), 1)
    learner, alone = AdaptiveGraph(), KClassGraph()
    graph, own = learner.init(sp.Problem(4, 2)), alone.init(sp.Problem(4, 2))
    for t in range(60):
        z = (rng.uniform(size=4) < 0.5).astype(float)
        y = np.linalg.solve(np.eye(4) - A, z)
        graph = learner.solve(learner.absorb(graph, z, y, np.array(True), np.array(t + 1)))
        own = alone.absorb(own, z, y, np.array(True), np.array(t + 1))
    assert graph.used != K_CLASS
    assert graph.k_class.solved == 0.0
    before = copy_state(graph)
    solved = alone.solve(own)
    found, expected = learner.errors(graph), alone.errors(solved)
    np.testing.assert_allclose(found.edge_probability, expected.edge_probability)
    np.testing.assert_allclose(found.weights_variance, solved.weights_variance)
    for old, new in zip(before.k_class, graph.k_class, strict=True):  # asking changes nothing
        np.testing.assert_array_equal(old, new)


def test_a_level_is_no_merit():
    held, rng = empty_evidence(2, ()), np.random.default_rng(0)
    for _ in range(50):
        z = rng.uniform(1, 2, size=1)
        count = judge_pair(*held[:5], float(held.observed), np.array([3.0]), np.array([1.0]), z, 3 * z)
        held = held._replace(observed=np.array(count))
    assert best(held) == 0
    assert held.errors[1] < 10  # of the first arrival alone: afterwards the factor makes up for the level


def test_no_evidence_from_what_has_no_memo():
    learner = AdaptiveGraph()
    graph = learner.init(sp.Problem(3, 2))
    graph = learner.absorb(graph, np.ones(3), np.ones(3), np.array(True), np.array(1))
    account = evidence(graph)
    assert np.isnan(account.errors).all()
    assert account.candidates[int(account.used)] == "sparse"
    log = np.ones((20, 3), bool)
    *_, explanation = sp.replay(sp.NDCSEM(graph="adaptive"), sp.Problem(3, 3), log, np.ones((20, 3)), np.ones((20, 3)))
    assert np.isfinite(explanation.weights).all()


def test_evidence_says_what_a_graph_brings():
    learner, world = sp.NDCSEM(graph="adaptive"), sp.SyntheticSEM(horizon=300, changes=())
    rng = sp.Rng(0, np.arange(20))
    *_, last = sp.rounds(learner, world.draw(rng.at(Purpose.WORLD), (20,)), 10, rng, (20,))
    account = evidence(last.state.graph)
    assert (account.with_graph < account.without).mean() > 0.9
    assert (account.used == 0).all()  # the paper's own world: nothing is clearly better than its learner


@pytest.mark.parametrize(
    ("delay", "horizon", "replications"),
    [(50, 600, 20), *(pytest.param(delay, 1500, 60, marks=pytest.mark.long) for delay in (50, 0))],
)
def test_no_worse_than_no_graph_where_graphs_do_not_last(delay, horizon, replications):
    world = sp.SyntheticSEM(horizon=horizon, changes=(), graph_changes=tuple(range(50, horizon, 50)))
    ours, without = (
        sp.simulate(sp.NDCSEM(graph=graph), world, delay, replications=replications, record=horizon).final_regret
        for graph in ("adaptive", "none")
    )
    error = (ours - 1.05 * without).std() / np.sqrt(replications)
    assert (ours - 1.05 * without).mean() < 2 * error


def test_without_edges_it_is_no_graph():
    world = sp.SyntheticSEM(edge_density=0.0, horizon=500, changes=(200,))
    ours, without = (sp.simulate(sp.NDCSEM(graph=graph), world, 20, replications=20) for graph in ("adaptive", "none"))
    np.testing.assert_allclose(ours.final_regret, without.final_regret)


GRAPHS = {
    "payoff": PayoffWeights(signed=True),
    "instrument": InstrumentGraph(signed=True),
    "adaptive": AdaptiveGraph(signed=True),
    "none": NoGraph(),
}


@pytest.mark.long  # check_graph_learner checks the learners by themselves
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("policy", [sp.NDCSEM, sp.SEMUCB])
def test_contract(policy, graph):
    check_policy(policy(graph=GRAPHS[graph]))


@pytest.mark.long
def test_contract_with_a_chosen_sparsity_and_noise():
    world = sp.SyntheticSEM(
        n_arms=4, budget=2, edge_density=0.3, horizon=30, changes=(), noise=0.2, graph_changes=(15,)
    )
    check_policy(sp.NDCSEM(graph=AdaptiveGraph(sparsity="auto")), environment=world)


def test_a_learner_itself_may_be_given():
    world = sp.SyntheticSEM(horizon=100, changes=())
    given, named = (sp.simulate(sp.NDCSEM(graph=g), world, 5, replications=3) for g in (SparseGraph(), "sparse"))
    np.testing.assert_array_equal(given.regret, named.regret)
    assert isinstance(sp.NDCSEM(graph="none").graph, NoGraph)


@pytest.mark.parametrize("learner", [SparseGraph, SelfTunedGraph, PayoffWeights, InstrumentGraph, AdaptiveGraph])
def test_a_sign_that_is_neither_is_refused(learner):
    with pytest.raises(ValueError, match="signed = 1: must be True or False"):
        learner(signed=1)


@pytest.mark.parametrize("baseline", [False, True])
def test_baselines_are_known_without_the_errors(baseline) -> None:
    rng, learner = np.random.default_rng(3), AdaptiveGraph()
    graph = learner.init(sp.Problem(n_arms=4, budget=2, acyclic=False, baseline=baseline))
    for t in range(60):
        z = np.where(rng.permutation(4) < 2, rng.uniform(size=4), 0.0)
        y = z + 0.3 * np.roll(z, 1) + baseline
        graph = learner.solve(learner.absorb(graph, z, y, np.array(1.0), np.array(t + 1)))
    assert (graph.used == K_CLASS) == baseline
    np.testing.assert_array_equal(learner.baseline(graph), learner.errors(graph).baseline)
    assert learner.baseline(graph).any() == baseline

"""The k-class learner: exact without noise, equal to textbook estimators at its ends, right where z is confounded."""

from itertools import product

import numpy as np
import pytest

import spillover as sp
from spillover.graph import KClassGraph, evidence
from spillover.graph.k_class import ALARM
from spillover.testing import check_graph_learner
from tests.graph.worlds import random_model

N = 5


def history(seed, rounds, *, noise=0.0, baseline=None, hidden=0.0, acyclic=True):
    """x, z, expected z and y of random decisions; the hidden cause acts on the rewards and outcomes of arms 0 to 2."""
    rng = np.random.default_rng(seed)
    A = np.triu(random_model(seed, N)[0], 1) if acyclic else random_model(seed, N)[0]
    x = rng.uniform(size=(rounds, N)) < 0.5
    means = np.linspace(0.3, 0.9, N)
    cause = hidden * rng.normal(size=(rounds, 1)) * (np.arange(N) < 3)
    z = np.where(x, means + rng.uniform(-0.3, 0.3, (rounds, N)) + cause, 0.0)
    own = z + noise * rng.normal(size=z.shape) + cause + (0.0 if baseline is None else baseline)
    y = np.ascontiguousarray(np.linalg.solve(np.eye(N) - A, own.T).T)
    return A, x, z, np.where(x, means, 0.0), y


def learn(learner, problem, z, expected, y):
    graph = learner.init(problem)
    for t in range(len(z)):
        graph = learner.absorb(graph, z[t], y[t], np.array(1.0), np.array(t + 1), expected[t])
    for _ in range(40):  # solve again until it has converged
        graph = learner.solve(graph._replace(solved=np.zeros(())))
    return graph


@pytest.mark.parametrize("acyclic", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_exact_without_noise(seed, acyclic):
    baseline = np.array([0.5, 1.0, 0.0, 2.0, 1.5])
    A, _, z, expected, y = history(seed, 300, baseline=baseline, acyclic=acyclic)
    graph = learn(KClassGraph(), sp.Problem(N, 3, acyclic=acyclic), z, expected, y)
    np.testing.assert_allclose(graph.adjacency, A, atol=2e-4)
    np.testing.assert_allclose(graph.own_baseline, baseline, atol=2e-3)
    np.testing.assert_allclose(graph.weights, np.linalg.inv(np.eye(N) - A).sum(axis=0), atol=2e-3)
    assert (graph.probability[A > 0] > 0.99).all()
    assert (graph.probability[A == 0] < 0.2).all()
    away = np.linalg.solve(np.eye(N) - A, baseline)
    np.testing.assert_allclose(KClassGraph().errors(graph).baseline, away, atol=1e-2)


def textbook(i, causes, z, instruments, y):
    """Two-stage least squares of y_i - z_i on its causes and 1; least squares if the causes are the instruments."""
    ones = np.ones((len(z), 1))
    regressors, given = np.hstack([y[:, causes], ones]), np.hstack([instruments, ones])
    first = given @ np.linalg.lstsq(given, regressors, rcond=None)[0]
    return np.linalg.lstsq(first, y[:, i] - z[:, i], rcond=None)[0]


@pytest.mark.parametrize("acyclic", [True, False])
@pytest.mark.parametrize("trust", [0.0, 1.0])
def test_the_ends_are_least_squares_and_two_stage_least_squares(trust, acyclic):
    """With edges that are all required, so that no prior acts; without an order z are the instruments at trust 1."""
    _, _, z, expected, y = history(3, 400, noise=0.2, baseline=1.0, hidden=0.3, acyclic=acyclic)
    possible = np.triu(np.ones((N, N), bool), 1) if acyclic else ~np.eye(N, dtype=bool)
    learner = KClassGraph(signed=True, trust=trust, required=possible)
    graph = learn(learner, sp.Problem(N, 3, acyclic=acyclic), z, expected, y)
    for i in range(N):
        causes = np.flatnonzero(possible[i])
        instruments = expected if trust == 0.0 else y[:, causes] if acyclic else z
        wanted = textbook(i, causes, z, instruments, y)
        np.testing.assert_allclose(graph.own_baseline[i], wanted[-1], rtol=5e-3)  # it has a wide prior
        if not acyclic:  # without spill-over that dies out the graph would be damped
            continue
        np.testing.assert_allclose(graph.adjacency[i, causes], wanted[:-1], atol=1e-3)


def test_a_hidden_cause_misleads_least_squares_but_not_the_instruments():
    A, _, z, expected, y = history(1, 4000, noise=0.1, hidden=0.3)
    problem = sp.Problem(N, 3)
    trusting, careful = (
        np.abs(learn(KClassGraph(trust=trust), problem, z, expected, y).adjacency - A).max() for trust in (1.0, None)
    )
    assert careful < 0.1 < trusting


@pytest.mark.parametrize("seed", range(5))
def test_hidden_causes_are_detected_and_nothing_else_is_taken_for_one(seed):
    problem = sp.Problem(N, 3)
    for hidden, noise, baseline in ((0.3, 0.1, None), (0.0, 0.5, None), (0.0, 0.5, 1.0), (0.0, 0.0, 1.0)):
        _, _, z, expected, y = history(seed, 500, noise=noise, hidden=hidden, baseline=baseline)
        graph = learn(KClassGraph(), problem, z, expected, y)
        assert (graph.confounded > ALARM) == (hidden > 0)
        if hidden == 0:  # a hidden cause makes a constant of its own in the regression on z
            assert (graph.constant > ALARM) == (baseline is not None)


def test_units_do_not_matter():
    _, _, z, expected, y = history(2, 200, noise=0.1, hidden=0.2, baseline=0.7)
    one = learn(KClassGraph(), sp.Problem(N, 3), z, expected, y)
    many = learn(KClassGraph(), sp.Problem(N, 3, reward_range=(0.0, 100.0)), 100 * z, 100 * expected, 100 * y)
    np.testing.assert_allclose(many.adjacency, one.adjacency, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(many.own_baseline, 100 * one.own_baseline, rtol=1e-6)
    np.testing.assert_allclose(many.confounded, one.confounded, rtol=1e-6)


@pytest.mark.parametrize("learner", [KClassGraph(), KClassGraph(signed=True), KClassGraph(trust=0.0)], ids=repr)
def test_the_contract(learner):
    check_graph_learner(learner)


def test_a_baseline_that_nobody_declared_is_fitted_and_said():
    world = sp.SyntheticSEM(n_arms=4, budget=2, horizon=200, changes=(), baseline=True).draw(sp.Rng(3))
    learner = sp.Learner(sp.SwitchingSEM(), sp.Problem(n_arms=4, budget=2, acyclic=True), seed=1)
    for t in range(1, 200):
        x = learner.choose()
        learner.play(x)
        outcome = world.play(t, x, sp.Rng(3).at(sp.rng.Purpose.WORLD, t))
        learner.report(t, outcome.z, outcome.y)
    graph = learner.state.graph
    assert evidence(graph).baseline
    assert not evidence(graph).confounded
    assert graph.alarms == 0
    np.testing.assert_allclose(graph.adjacency, world.adjacency(1), atol=1e-2)
    codes = {signal.code for signal in learner.reasons().health}
    assert "baseline" in codes
    assert "confounded" not in codes


def test_errors_of_total_effects_are_those_of_edges_that_exist_by_chance():
    """Where z is its own instrument: the covariance of a row's edges, over all sets of edges that may exist."""
    _, _, z, _, y = history(3, 60, noise=0.3, acyclic=False)
    graph = learn(KClassGraph(), sp.Problem(N, 2), z, z, y)
    reach = np.linalg.inv(np.eye(N) - graph.adjacency)
    design, expected = np.column_stack([y, np.ones(len(y))]), np.zeros(N)
    instruments = np.column_stack([z, np.ones(len(z))])
    fitted = instruments @ np.linalg.lstsq(instruments, design, rcond=None)[0]
    for i in range(N):
        edges = [j for j in range(N) if j != i]
        gram = fitted[:, [*edges, N]].T @ fitted[:, [*edges, N]] / graph.noise[i]
        alone = np.linalg.inv(gram + np.diag([4.0] * (N - 1) + [0.01 / float(graph.unit)]))[:-1, :-1]
        chance = graph.probability[i, edges]
        second = alone + np.outer(*[graph.adjacency[i, edges] / chance] * 2)
        square = np.zeros((N - 1, N - 1))
        for exists in product((0.0, 1.0), repeat=N - 1):
            share = np.prod(np.where(exists, chance, 1.0 - chance))
            square += share * second * np.outer(exists, exists)
        spread = square - np.outer(graph.adjacency[i, edges], graph.adjacency[i, edges])
        expected += graph.weights[i] ** 2 * np.einsum("aj,ab,bj->j", reach[edges], spread, reach[edges])
    np.testing.assert_allclose(KClassGraph().errors(graph).weights_variance, expected, rtol=1e-6)
    assert (expected < graph.weights_variance).all()


def test_errors_stay_wide_where_moments_are_too_extreme_to_invert():
    _, _, z, _, y = history(3, 60, noise=0.3, acyclic=False)
    graph = learn(KClassGraph(), sp.Problem(N, 2), z, z, y)
    broken = graph._replace(noise=np.full(N, np.inf), unit=np.array(np.inf), required=graph.possible)
    found = KClassGraph().errors(broken).weights_variance
    assert np.isfinite(found).all()


def test_errors_stay_wide_where_something_was_expected_of_z():
    _, _, z, expected, y = history(3, 60, noise=0.3, acyclic=False)
    graph = learn(KClassGraph(), sp.Problem(N, 2), z, expected, y)
    np.testing.assert_array_equal(KClassGraph().errors(graph).weights_variance, graph.weights_variance)

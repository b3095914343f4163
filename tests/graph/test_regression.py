"""Payoff regression and instruments: exact without noise, consistent with it, equal to their slow twins."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.graph import InstrumentGraph, PayoffWeights
from spillover.graph.regression import FLOOR, RIDGE
from tests.graph.worlds import learn, played, random_model, weights_of
from tests.properties import examples
from tests.reference import regression_reference as reference

CASES = [(acyclic, gain, signed) for acyclic in (True, False) for gain in (True, False) for signed in (True, False)]


@pytest.mark.parametrize(("acyclic", "gain", "signed"), CASES)
@pytest.mark.parametrize("law", ["bernoulli", "uniform"])
def test_exact_without_noise(acyclic, gain, signed, law):
    for seed in range(3):
        n = (3, 6, 10)[seed]
        A, F = random_model(seed, n, acyclic=acyclic, gain=gain, signed=signed)
        Z, Y = played(seed, A, F, 400, law=law)
        problem = sp.Problem(n, 2, acyclic=False)
        graph = learn(InstrumentGraph(signed=signed), problem, Z, Y)
        np.testing.assert_allclose(graph.adjacency, A, atol=1e-8)
        np.testing.assert_array_equal(graph.adjacency != 0, A != 0)
        np.testing.assert_allclose(graph.gain, F, atol=1e-8)
        np.testing.assert_allclose(graph.weights, weights_of(A, F), atol=1e-7)
        payoff = learn(PayoffWeights(signed=True), problem, Z, Y)
        np.testing.assert_allclose(payoff.weights, weights_of(A, F), atol=1e-7)
        assert np.isnan(payoff.adjacency).all()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), rounds=st.integers(1, 60), noise=st.sampled_from([0, 0.3]))
@examples(12)
def test_slow_twin_agrees(seed, n, rounds, noise):
    A, F = random_model(seed, n, gain=True)
    Z, Y = played(seed, A, F, rounds, law="uniform", noise=noise)
    if np.linalg.cond(Z.T @ Z + RIDGE * np.eye(n)) > 1e6:
        return  # rounding of the twin itself
    learner, problem = InstrumentGraph(), sp.Problem(n, 1, acyclic=False)
    graph = learner.init(problem)
    for z, y in zip(Z, Y, strict=True):
        graph = learner.absorb(graph, z, y, np.array(1.0), np.array(1))
    known = graph.regression
    np.testing.assert_allclose(known.effects, reference.total_effects(Z, Y, RIDGE), atol=1e-8)
    inverse = np.linalg.inv(Z.T @ Z + RIDGE * np.eye(n))
    np.testing.assert_allclose(known.root @ known.root.T, inverse, atol=1e-8 * np.abs(inverse).max())
    assert known.freedom == pytest.approx(sum(reference.certainties(Z, RIDGE)), rel=1e-6, abs=1e-6)
    payoff = learn(PayoffWeights(signed=True), problem, Z, Y)
    np.testing.assert_allclose(payoff.weights, reference.payoff_weights(Z, Y, RIDGE), atol=1e-6)
    if np.linalg.cond(known.effects) < 1e4 and (1 / np.diag(np.linalg.inv(known.effects)) > 0).all():
        graph = learner.solve(graph)
        adjacency, gain = reference.structure(Z, Y, RIDGE, graph.gain_bars[0], FLOOR)
        np.testing.assert_allclose(graph.adjacency, adjacency, atol=1e-6)
        np.testing.assert_allclose(graph.gain, gain, atol=1e-6)


def test_error_under_noise_falls_like_one_over_the_root():
    worlds, rounds = 40, (1000, 16_000)
    models = [random_model(seed, 5, gain=True) for seed in range(worlds)]
    data = [played(seed, model[0], model[1], rounds[-1], noise=0.3) for seed, model in enumerate(models)]
    Z, Y = (np.stack([rows[k] for rows in data], axis=1) for k in (0, 1))
    problem, arrived = sp.Problem(5, 2, acyclic=False), np.ones(worlds, bool)
    learners: list[Any] = [InstrumentGraph(), PayoffWeights()]
    for learner in learners:
        graph, errors = learner.init(problem, (worlds,)), []
        for t in range(rounds[-1]):
            graph = learner.absorb(graph, Z[t], Y[t], arrived, np.full(worlds, t + 1))
            if t + 1 in rounds:
                graph = learner.solve(graph)
                true = np.stack([weights_of(*model) for model in models])
                errors.append(((graph.weights - true) ** 2).mean(axis=-1))
        ratio = np.exp(0.5 * np.log(errors[0] / errors[1]).mean())  # 16 times the rounds bring 4
        assert 3.0 < ratio < 5.5


def test_edges_that_are_not_there_are_seldom_seen_under_noise():
    false = total = 0
    for seed in range(20):
        A, F = random_model(seed, 6)
        graph = learn(
            InstrumentGraph(signed=True), sp.Problem(6, 2, acyclic=False), *played(seed, A, F, 600, noise=0.3)
        )
        false += int(((graph.adjacency != 0) & (A == 0)).sum())
        total += int((A == 0).sum()) - 6
    assert false / total < 0.02  # sqrt(2 log 30) standard errors: 0.9% of normal draws


def test_nothing_is_lost_in_many_thousands_of_rounds():
    A, F = random_model(2, 6, gain=True)
    Z, Y = played(2, A, F, 30_000, noise=0.2)
    learner, problem = InstrumentGraph(), sp.Problem(6, 2, acyclic=False)
    graph = learner.init(problem)
    for z, y in zip(Z, Y, strict=True):
        graph = learner.absorb(graph, z, y, np.array(True), np.array(1))
    root = graph.regression.root
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(Z.T @ Z + RIDGE * np.eye(6)), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(graph.regression.effects, reference.total_effects(Z, Y, RIDGE), atol=1e-9)


def test_before_the_rounds_tell_arms_apart():
    Z = np.array([[1.0, 1.0, 0.0]] * 5)  # always together; the third never
    Y = Z @ np.array([[1, 0, 0], [0.5, 1, 0], [0, 0, 1]]).T
    graph = learn(InstrumentGraph(), sp.Problem(3, 2, acyclic=False), Z, Y)
    assert not graph.adjacency.any()
    payoff = learn(PayoffWeights(unit_gain=True), sp.Problem(3, 2, acyclic=False), Z, Y)
    assert payoff.weights[2] == 1.0
    assert (payoff.weights >= 1.0).all()


def test_weights_that_can_be():
    Z, Y = np.eye(2), np.array([[-3.0, 0.0], [0.0, 0.2]])
    problem = sp.Problem(2, 1)
    assert learn(PayoffWeights(signed=True), problem, Z, Y).weights[0] < -1
    assert (learn(PayoffWeights(), problem, Z, Y).weights > 0).all()
    assert (learn(PayoffWeights(unit_gain=True), problem, Z, Y).weights >= 1).all()


def test_known_edges():
    A, F = random_model(3, 5)
    Z, Y = played(3, A, F, 300, noise=0.2)
    i, j = np.argwhere(A > 0)[0]
    forbidden, required = np.zeros((2, 5, 5), bool)
    forbidden[i, j] = True
    assert learn(InstrumentGraph(forbidden=forbidden), sp.Problem(5, 2), Z, Y).adjacency[i, j] == 0
    required[j, i] = True
    with pytest.raises(ValueError, match="required"):
        InstrumentGraph(required=forbidden, forbidden=forbidden).init(sp.Problem(5, 2))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 2000.0])
def test_any_unit_of_reward(scale):
    A, F = random_model(1, 5, gain=True)
    Z, Y = played(1, A, F, 200)
    problem = sp.Problem(5, 2, acyclic=False, reward_range=(0.0, scale))
    graph = learn(InstrumentGraph(), problem, scale * Z, scale * Y)
    np.testing.assert_allclose(graph.adjacency, A, atol=1e-8)

"""NDC-SEM with parts taken out: each switch takes out what it says, and nothing else."""

import numpy as np
import pytest

import spillover as sp
from spillover.policies import AblatedNDCSEM
from spillover.rng import Purpose
from tests.support import explained, sparse

WORLD = sp.SyntheticSEM(n_arms=6, budget=2, edge_density=0.2, horizon=80, changes=(40,))


def played(policy, delay=5):
    rng = sp.Rng(4, np.arange(3))
    return list(sp.rounds(policy, WORLD.draw(rng.at(Purpose.WORLD), (3,)), delay, rng, (3,)))


def test_with_everything_on_it_is_ndc_sem():
    ablated = AblatedNDCSEM(discount=0.9, exploration=0.01, graph=sparse(0.1))
    whole_policy = sp.NDCSEM(discount=0.9, exploration=0.01, graph=sparse(0.1))
    for ours, whole in zip(played(ablated), played(whole_policy), strict=True):
        np.testing.assert_array_equal(ours.x, whole.x)


def test_without_the_graph_every_weight_stays_one():
    state = played(AblatedNDCSEM(graph="none"))[-1].state
    assert (state.graph.weights == 1).all()
    assert not state.graph.adjacency.any()
    assert (played(AblatedNDCSEM())[-1].state.graph.weights > 1).any()


def test_without_a_discount_means_are_plain_averages():
    policy = AblatedNDCSEM(discount=1.0)
    seen, total = np.zeros((3, 6)), np.zeros((3, 6))
    history = played(policy)
    for round_, x, outcome, _ in history:
        if round_ <= 80 - 5:
            seen, total = seen + x, total + outcome.z
    known = explained(policy, history[-1].state)
    np.testing.assert_allclose(known.count, seen)
    np.testing.assert_allclose(known.mean, total / seen)
    assert (known.clock == 80).all()


def test_by_arrival_late_feedback_counts_as_new():
    """One outcome, four rounds late: weight gamma^4 by action, 1 by arrival."""
    problem = sp.Problem(n_arms=2, budget=1)
    for aware, weight in ((True, 0.5**4), (False, 1.0)):
        policy = AblatedNDCSEM(discount=0.5, delay_aware=aware)
        state = policy.init(problem, sp.Rng(0))
        x = np.array([True, False])
        for _ in range(5):
            state = policy.played(state, x)
        outcome = sp.Feedback(x, np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.array(4), np.array(True))
        assert explained(policy, policy.update(state, outcome, sp.Rng(0))).count[0] == weight
        assert policy.traits.order_free is aware


def test_random_sets_at_the_start_are_uniform():
    n, s = 5, 2
    plan = AblatedNDCSEM(designed_start=False).init(sp.Problem(n, s), sp.Rng(1, np.arange(4000)), (4000,)).plan
    assert (plan.sum(axis=-1) == s).all()
    np.testing.assert_allclose(plan.mean(axis=(0, 1)), s / n, atol=0.01)  # 20,000 sets: standard error 0.0035
    together = (plan[..., 0] & plan[..., 1]).mean()
    assert together == pytest.approx(s * (s - 1) / (n * (n - 1)), abs=0.01)

"""Every policy says why: what it shows is what it ranks by, and what it then plays."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import spillover as sp
from spillover.policies import GraphPolicy
from spillover.policies.instrumental_equations import edge_prior
from spillover.policies.sampling import leaders
from spillover.rng import Purpose
from spillover.simulation.protocol import problem_for
from tests.support import explained

WORLD = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.3, horizon=40, changes=(20,), law="beta")
DRAWN_SETS = {"ftrl", "ftrl-known-graph", "super-arm-ucb"}  # whose choice is not the best by score


def play(name, batch=(), horizon=None):
    """Explanations before every round, and what was then played."""
    rng = sp.Rng(11, np.arange(batch[0]) if batch else 0)
    world = WORLD.draw(rng.at(Purpose.WORLD), batch)
    policy: Any = sp.policies.POLICIES[name]()
    policy = policy.for_problem(world.problem, world)
    shown = explained(policy, policy.init(problem_for(policy, world), rng.at(Purpose.START), batch), rng)
    for played in sp.rounds(policy, world, 2, rng, batch):
        yield shown, played.x, world, played.t
        shown = explained(policy, played.state, rng)


@pytest.mark.parametrize("name", sp.policies.POLICIES)
def test_the_best_by_score_are_played_unless_a_plan_decides(name):
    for shown, x, _, _ in play(name, (3,)):
        assert_array_equal(shown.chosen, x)
        for k in np.flatnonzero(~shown.planned):
            inside, outside = shown.score[k][x[k]], shown.score[k][~x[k]]
            if name not in DRAWN_SETS:
                assert inside.min() >= outside.max()
            elif name == "super-arm-ucb":
                assert (inside == shown.score[k].max()).all()
        assert_array_equal(np.isnan(shown.mean), shown.count == 0)


@pytest.mark.parametrize("name", sp.policies.POLICIES)
def test_who_learns_a_graph_shows_one(name):
    policy = sp.policies.POLICIES[name]()
    assert policy.traits.learns_graph == isinstance(policy, GraphPolicy | sp.InstrumentalSEM)
    shown = next(play(name))[0]
    if name.endswith("known-graph") and "ftrl" not in name:
        assert np.isnan(shown.adjacency).all()
        assert (shown.weights > 1).any()
    elif name == "payoff-regression":  # the payoff alone does not identify the graph
        assert np.isnan(shown.adjacency).all()
    elif name == "instrumental-sem":  # before any outcome: the prior mean of a spike and slab
        assert_allclose(shown.adjacency, np.triu(np.full((5, 5), edge_prior(5) * 0.5 * np.sqrt(2 / np.pi)), 1))
    elif "oracle" not in name:
        assert (shown.adjacency == 0).all()
    assert_array_equal(shown.gain, 1.0)


def test_the_oracle_shows_the_world():
    for shown, x, world, t in play("oracle"):
        assert_allclose(shown.mean, world.means(t))
        assert_allclose(shown.score[x].sum(), world.expected(t, x))
        assert_array_equal(shown.adjacency, world.adjacency(t))
    for shown, _, world, t in play("delayed-oracle"):
        if t > 3:
            assert_allclose(shown.mean, world.means(t - 3))
        else:
            assert np.isnan(shown.mean).all()


def test_graph_errors_are_those_of_learned_graphs_only():
    for name, learned in (("cucb", False), ("random", False), ("oracle", False), ("ndc-sem", True)):
        run = sp.simulate(sp.policies.POLICIES[name](), WORLD, 0, replications=1, record=20)
        assert np.isfinite(run.graph_error).all() == learned
        assert (run.adjacency is not None) == learned


def test_cts_shows_posterior_means_and_the_draws_around_them():
    shown = [s for s, *_ in play("cts")][-1]
    policy, problem = sp.policies.CTS(), sp.Problem(2, 1, overall_range=(0.0, 1.0))
    state = policy.init(problem, sp.Rng(0))
    state = state._replace(successes=np.array([3.0, 1.0]), failures=np.array([2.0, 1.0]), rounds=np.array(3))
    explanation = explained(policy, state, sp.Rng(4))
    assert_allclose(explanation.mean, [0.6, np.nan])
    assert_array_equal(explanation.count, [3, 0])
    assert_array_equal(explanation.index, sp.Rng(4).at(Purpose.CHOICE, 4).beta([3.0, 1.0], [2.0, 1.0]))
    assert (shown.index != shown.mean).all()


def test_ftrl_shows_probabilities_and_who_leads():
    *_, (shown, _, _, _) = play("ftrl")
    assert_allclose(shown.score.sum(), 2.0)
    assert set(shown.mean[shown.count > 0]) <= {0.0, 1.0}
    assert_array_equal(
        leaders(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]]), np.array([1, 2])), [[0, 1, 0], [2 / 3] * 3]
    )


def test_a_super_arm_lends_its_arms_what_is_known_of_it():
    policy = sp.policies.POLICIES["super-arm-ucb"](exploration=0.0)
    state = policy.init(sp.Problem(3, 2, overall_range=(0.0, 1.0)), sp.Rng(0))
    for x, payoff in (([1, 1, 0], 0.3), ([1, 0, 1], 0.9), ([0, 1, 1], 0.6)):
        state = policy.played(state, np.array(x, bool))
        y = np.array([payoff, 0.0, 0.0])
        feedback = sp.Feedback(np.array(x, bool), np.zeros(3), y, np.array(0), np.array(True))
        state = policy.update(state, feedback, sp.Rng(0))
    shown = explained(policy, state)
    assert_allclose(shown.score, [0.9, 0.6, 0.9])
    assert_array_equal(shown.chosen, [1, 0, 1])


def test_replay_works_for_every_policy_that_needs_no_world():
    x = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
    z = 0.5 * x
    problem = sp.Problem(3, 2, overall_range=(0.0, 2.0), weights=np.array([1.0, 1.5, 1.2]))
    for name in sp.policies.POLICIES:
        if "oracle" not in name:
            shown = list(sp.replay(sp.policies.POLICIES[name](), problem, x, z, z, delay=1))
            assert len(shown) == 5
            assert (shown[-1].count > 0).all() == (name != "random")

"""Memory that calls share, whatever the call before left in it."""

import numpy as np
import pytest

import spillover as sp
from spillover import validate
from spillover.constraints.search import top_arms
from spillover.policies.graph_policy import scores
from spillover.rng import Purpose


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM(), sp.NDCSEM(pending=True, exploration=0.1)])
def test_decisions_are_those_of_weights_times_index(policy):
    """Of two learners in turn, so that each finds what the other has left."""
    n, rng = 610, sp.Rng(3)
    world = sp.SyntheticSEM(n_arms=n, budget=40, edge_density=0.8 / n, horizon=40, changes=(20,)).draw(
        rng.at(Purpose.WORLD)
    )
    player = policy.for_problem(world.problem)
    states = [player.init(world.problem, rng.at(Purpose.START)) for _ in range(2)]
    for t in range(1, 31):
        for k, state in enumerate(states):
            address = rng.at(Purpose.CHOICE, 2 * t + k)
            x = player.select(state, address).x
            if t > 16:  # after the sweep
                found = player.explain(state, address)
                again = rng.at(Purpose.CHOICE, 2 * t + k)
                assert np.array_equal(x, top_arms(scores(found.weights, found.index), state.budget, again))
            state = player.played(state, x)
            z, y, _ = world.play(t, x, rng.at(Purpose.WORLD, 2 * t + k))
            states[k] = player.update(state, sp.Feedback(x, z, y, np.array(0), np.array(True)), rng)


def test_scores_and_outcomes_need_not_be_contiguous():
    wide = np.random.default_rng(0).random((50, 3))
    column, x = wide[:, 1], np.zeros((50, 2), np.bool_)[:, 0]
    assert np.array_equal(top_arms(column, 5, sp.Rng(0)), column >= np.sort(column)[-5])
    x[4] = True
    z = np.zeros((50, 2))[:, 1]
    z[4] = 0.5
    given = sp.Feedback(x, z, z, np.array(0), np.array(True))
    assert validate.is_sound(given, (50,), np.array([0.0, 1.0]), np.array(1))
    z[5] = 0.5
    with pytest.raises(ValueError, match="0 for every arm that was not played"):
        validate.feedback(given, (50,), np.array([0.0, 1.0]), np.array(1))


def test_equal_scores_are_equally_likely():
    taken = np.sum([top_arms(np.full(1200, 0.5), 60, sp.Rng(seed)) for seed in range(200)], axis=0)
    assert taken.sum() == 200 * 60
    first, second = taken[:600].sum(), taken[600:].sum()
    assert abs(first - second) < 500  # five standard deviations

"""Slopes around changes, recovery from them, and the start, on made-up records."""

import numpy as np
import pytest

from spillover.environments import SyntheticSEM
from spillover.policies import AblatedNDCSEM
from spillover_studies.synthetic.measures import Slopes, Start, play_start, recovery, regret_at

ROUNDS = np.array([50, 100, 150, 200, 250, 300, 350, 400])


@pytest.fixture
def made_up(results):
    """A record with given regrets a round in eight windows of 50 rounds; the means change at 100, 200 and 300."""

    def make(*slopes):
        regret = np.cumsum(50.0 * np.array([slopes]), axis=-1)
        return results.record("fresh", "50", "random")._replace(rounds=ROUNDS, regret=regret)

    return make


def test_slopes_are_regret_a_round_before_and_after_changes(made_up):
    found = Slopes(made_up(1, 1, 2, 2, 1, 1, 0.2, 0.2), span=100)
    np.testing.assert_allclose(found.before, (1 + 2 + 1) / 3)
    np.testing.assert_allclose(found.after, (2 + 1 + 0.2) / 3)
    np.testing.assert_allclose(found.jump, ((2 - 1) + (1 - 2) + (0.2 - 1)) / 3)


def test_the_rounds_in_which_nobody_can_know_of_a_change_belong_to_it(made_up):
    found = Slopes(made_up(1, 1, 2, 0, 2, 0, 2, 0), span=50, blind=50)
    np.testing.assert_allclose(found.before, (1 + 0 + 0) / 3)
    np.testing.assert_allclose(found.after, 1)


def test_regret_is_interpolated_from_0_on(made_up):
    np.testing.assert_allclose(
        regret_at(made_up(1, 2, 0, 0, 0, 0, 0, 0), np.array([0, 25, 75, 100])), [[0, 25, 100, 150]]
    )


def test_recovery_is_counted_until_the_slope_is_low(made_up):
    random = made_up(*[2.0] * 8)
    waited, recovered = recovery(made_up(9, 9, 1, 0.1, 0.2, 5, 3, 3), random, share=0.1)
    assert waited.tolist() == [[50.0, 0.0, 100.0]]  # in the second window; at once; not before the end
    assert recovered.tolist() == [[True, True, False]]


def test_a_graph_is_identified_if_all_arms_but_the_first_have_a_reward_in_their_round():
    rewards = np.array([[True, True, True], [False, True, True], [True, False, True], [True, True, False]])
    start = Start(np.ones(4, bool), np.ones(4, bool), rewards, np.zeros(4))
    assert start.identified.tolist() == [True, True, False, False]


def test_the_identified_worlds_are_those_with_a_unique_solution():
    """The rank of the outcomes says the same, where rewards are 0 or 1: row i needs the outcomes of arms j > i."""
    environment = SyntheticSEM(n_arms=3, budget=2, edge_density=1 / 3, horizon=20, changes=())
    start = play_start(AblatedNDCSEM(), environment, 0, 40)
    assert 0 < start.identified.sum() < 40
    assert start.every_arm_pulled.all()
    assert start.full_rank.all()
    # an error of 0 up to the shrinkage by lambda is possible only where the graph is determined, or has no edge there
    assert start.graph_error[start.identified].max() < 1e-3
    assert start.graph_error[~start.identified].max() > 1e-2


def test_rewards_without_an_atom_at_0_identify_the_graph():
    environment = SyntheticSEM(n_arms=4, budget=2, law="beta", horizon=20, changes=())
    assert play_start(AblatedNDCSEM(), environment, 0, 20).identified.all()

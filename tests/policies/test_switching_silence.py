"""Arms that never report: whether silence is a reward of 0, and rounds that arrive in parts."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import spillover as sp
from spillover.contracts import learn_rounds
from spillover.core.batches import learns_histories
from spillover.delays import ArmDelays, BadNewsDelay, ConstantDelay, ConversionDelay, LossyDelay
from spillover.policies import DiscountedTS
from spillover.policies.switching_state import HYPOTHESES, empty_silence
from spillover.rng import Purpose
from spillover.types import Feedback
from tests.policies.filters import weigh

RANGE = np.array([0.0, 1.0])


def meaning(reports, seed=1, rounds=150):
    """The probability that silence means 0, after rounds in which `reports(reward, draws)` says who reports."""
    draws, silence = np.random.default_rng(seed), empty_silence(4, ())
    for _ in range(rounds):
        x = draws.permutation(4) < 2
        reward = (draws.uniform(size=4) < [0.2, 0.5, 0.7, 0.9]).astype(float) * x
        weight = weigh(*silence, x, x & reports(reward, draws), reward, RANGE)
    return weight


def test_if_only_rewards_report_silence_means_none():
    assert meaning(lambda reward, draws: reward > 0) > 0.999


@pytest.mark.parametrize("loss", [0.0, 0.3, 0.8])
def test_outcomes_lost_by_chance_mean_nothing(loss):
    assert meaning(lambda reward, draws: draws.uniform(size=4) >= loss) < 0.001


def test_amounts_are_told_from_nothing():
    """Orders of 10% to 30% of the range are conversions, however small."""
    draws, learner = np.random.default_rng(2), sp.Learner(sp.SwitchingSEM(graph="none"), sp.Problem(3, 2), seed=1)
    for t in range(1, 301):
        x = draws.permutation(3) < 2
        learner.play(x)
        z = np.where(x & (draws.uniform(size=3) < [0.2, 0.5, 0.8]), draws.uniform(0.1, 0.3, 3), 0.0)
        silent = x & (z == 0.0)
        learner.report(t, z=np.where(silent, np.nan, z), y=np.where(silent, np.nan, z))
        if silent.any():
            learner.close(t)
    assert_allclose(learner.explain().mean, [0.04, 0.1, 0.16], atol=0.03)


def regret(policy, delay, world=None):
    world = world or sp.SyntheticSEM(horizon=1500, changes=(700,))
    return sp.simulate(policy, world, delay, replications=12, seed=8).final_regret.mean()


def test_it_is_not_misled_where_only_conversions_arrive():
    """Rivals learn only from rounds in which every arm had a reward: all arms look alike to them."""
    ours, rivals = sp.SwitchingSEM(), (sp.NDCSEM(), sp.SEMUCB(), DiscountedTS())
    assert regret(ours, ConversionDelay(20)) < 0.5 * min(regret(rival, ConversionDelay(20)) for rival in rivals)


def test_bad_news_that_comes_late_costs_less_than_waiting_for_it():
    """Every outcome as late as the worst news, against good news early."""
    assert regret(sp.SwitchingSEM(), BadNewsDelay(5, 100)) < regret(sp.SwitchingSEM(), 100)


def test_arms_learned_when_they_report_beat_rounds_learned_when_complete():
    late = ArmDelays((0, 0, 0, 0, 200, 0, 0, 0, 0, 0))
    assert regret(sp.SwitchingSEM(), late) < 0.7 * regret(sp.SwitchingSEM(), 200)


def test_rounds_in_parts_of_a_history_are_learned_one_by_one():
    draws, policy = np.random.default_rng(3), sp.SwitchingSEM()
    x = draws.uniform(size=(12, 3)) < 0.6
    z = x * draws.integers(0, 2, (12, 3)).astype(float)
    z[3, x[3]] = np.nan
    rounds = Feedback(x, z, z, np.zeros(12, np.int64), np.ones(12, bool), complete=np.ones(12, bool))
    states = []
    past = learns_histories(policy)
    for catch_up in (past.catch_up, partial(learn_rounds, policy, learn=past.learn)):
        state = policy.init(sp.Problem(3, 2), sp.Rng(1).at(Purpose.START))
        states.append(sp.state.leaves(catch_up(state, rounds, 1, sp.Rng(1))))
    for name, leaf in states[0].items():
        assert_array_equal(leaf, states[1][name], err_msg=name)


def state_after(parts):
    """SwitchingSEM after one round of three arms; parts: the arms that each delivery adds."""
    policy, x = sp.SwitchingSEM(), np.array([True, True, False])
    state = policy.init(sp.Problem(3, 2), sp.Rng(1).at(Purpose.START))
    state = policy.played(state, x)
    known = np.zeros(3, bool)
    for part in parts:
        fresh = np.isin(np.arange(3), part)
        known = known | fresh
        z, y = (np.where(known, values, np.nan) for values in ([1.0, 0.0, 0.0], [1.5, 0.0, 0.5]))
        complete = np.array(part is parts[-1])
        given = Feedback(x, z, y, np.array(0), np.array(True), fresh=fresh, complete=complete)
        state = policy.update(state, given, sp.Rng(1).at(Purpose.START))
    return state


def test_parts_of_a_round_give_what_the_whole_round_gives():
    whole, parts = state_after([[0, 1, 2]]), state_after([[1], [2], [0]])
    for name in ("in_flight", "rewards_seen", "last_pull"):
        assert_allclose(getattr(parts, name), getattr(whole, name))
    assert_allclose(parts.belief.counts[..., HYPOTHESES:], whole.belief.counts[..., HYPOTHESES:])
    assert_allclose(parts.drift.track, whole.drift.track)
    assert_allclose(parts.graph.adjacency, whole.graph.adjacency)


def test_a_silent_arm_of_a_complete_round_is_a_failure_with_the_probability_of_that():
    """Beside an arm with a reward that reports: 0.5 x 1 x 0.5 x 0.98 against 0.5 x 1/2 x 1/2, by the counts so far."""
    state = state_after([[0, 2]])
    probable = (0.5 * 0.5 * 0.98) / (0.5 * 0.5 * 0.98 + 0.5 * 0.5 * 0.5)
    assert_allclose(state.belief.counts[1, :, HYPOTHESES], [1.0, 1.0 + probable])
    assert state.in_flight[1] == 0


def test_closing_a_round_late_is_no_delay():
    learner = sp.Learner(sp.SwitchingSEM(), sp.Problem(3, 2), seed=1)
    for _ in range(60):
        learner.play()
    learner.report(60, z=np.zeros(3), y=np.zeros(3))
    learner.close(1)
    assert learner.state.longest_delay == 0.0
    assert learner.state.typical_delay == 0.0


def test_delays_that_depend_on_rewards_need_rewards():
    world = sp.SyntheticSEM(horizon=50, changes=(), observes="overall")
    with pytest.raises(ValueError, match=r"^delay = .*: must be a delay that does not depend on rewards"):
        sp.simulate(sp.InstrumentalSEM(), world, BadNewsDelay(1, 5))
    for delay in (ConversionDelay(3), BadNewsDelay(1, 5)):
        with pytest.raises(ValueError, match="depends on the rewards"):
            delay.draw(1, sp.Rng(0))
    with pytest.raises(ValueError, match="one delay for all arms"):
        ConversionDelay(ArmDelays((1, LossyDelay(ConstantDelay(2), 0.1))))


def test_delays_that_depend_on_rewards_can_be_lost_and_differ_between_arms():
    x, z = np.array([True, True]), np.array([1.0, 0.0])
    assert LossyDelay(BadNewsDelay(10, 50), 0.0).draw_given(1, x, z, sp.Rng(0)) == 30
    assert LossyDelay(ConversionDelay(3), 0.0).draw_given(1, x, z, sp.Rng(0))[0] == 3
    assert ArmDelays((BadNewsDelay(10, 50), 7)).draw_given(1, x, z, sp.Rng(0)).tolist() == [30, 7]


def test_what_a_table_lacks_may_still_arrive():
    """Feedback in parts that does not say whether the round is complete: silence is no evidence."""
    policy, x = sp.SwitchingSEM(graph="none"), np.array([True, True, False])
    state = policy.played(policy.init(sp.Problem(3, 2), sp.Rng(1).at(Purpose.START)), x)
    z = np.array([1.0, np.nan, 0.0])
    state = policy.update(state, Feedback(x, z, z, np.array(0), np.array(True)), sp.Rng(1).at(Purpose.START))
    assert_array_equal(state.belief.counts[0, :, HYPOTHESES], [2.0, 1.0])
    assert_array_equal(state.belief.seen, [1, 0, 0])
    assert_array_equal(state.in_flight, [0.0, 1.0, 0.0])

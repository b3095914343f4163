"""Arms that never report: whether silence is a reward of 0, and rounds that arrive in parts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import spillover as sp
from spillover import kernels
from spillover.delays import ArmDelays, BadNewsDelay, ConstantDelay, ConversionDelay, LossyDelay
from spillover.policies import DiscountedTS
from spillover.policies.switching_state import empty_silence
from spillover.rng import Purpose
from spillover.types import Feedback


def meaning(reports, seed=1, rounds=150):
    """The probability that silence means 0, after rounds in which `reports(reward, draws)` says who reports."""
    draws, silence = np.random.default_rng(seed), empty_silence(4, ())
    for _ in range(rounds):
        x = draws.permutation(4) < 2
        reward = (draws.uniform(size=4) < [0.2, 0.5, 0.7, 0.9]).astype(float) * x
        weight = kernels.weigh_silence(*silence, x, x & reports(reward, draws), reward, True)
    return weight[0]


def test_if_only_rewards_report_silence_means_none():
    assert meaning(lambda reward, draws: reward > 0) > 0.999


@pytest.mark.parametrize("loss", [0.0, 0.3, 0.8])
def test_outcomes_lost_by_chance_mean_nothing(loss):
    assert meaning(lambda reward, draws: draws.uniform(size=4) >= loss) < 0.001


def test_nothing_is_concluded_from_a_round_that_is_not_complete():
    silence = empty_silence(3, ())
    weight = kernels.weigh_silence(*silence, np.ones(3, bool), np.zeros(3, bool), np.zeros(3), False)
    assert weight[0] == 0.5
    assert_array_equal(silence.answers, 0.0)


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
    assert_allclose(parts.belief.counts_since, whole.belief.counts_since)
    assert_allclose(parts.drift.track, whole.drift.track)
    assert_allclose(parts.graph.adjacency, whole.graph.adjacency)


def test_a_silent_arm_of_a_complete_round_is_a_failure_with_the_probability_of_that():
    """Beside an arm with a reward that reports: 0.5 x 1 x 0.5 x 0.98 against 0.5 x 1/2 x 1/2, by the counts so far."""
    state = state_after([[0, 2]])
    probable = (0.5 * 0.5 * 0.98) / (0.5 * 0.5 * 0.98 + 0.5 * 0.5 * 0.5)
    assert_allclose(state.belief.counts_since[0, 1], [1.0, 1.0 + probable])
    assert state.in_flight[1] == 0


def test_delays_that_depend_on_rewards_need_rewards():
    world = sp.SyntheticSEM(horizon=50, changes=(), observes="overall")
    with pytest.raises(ValueError, match=r"^delay = .*: must be a delay that does not depend on rewards"):
        sp.simulate(sp.InstrumentalSEM(), world, BadNewsDelay(1, 5))
    for delay in (ConversionDelay(3), BadNewsDelay(1, 5)):
        with pytest.raises(ValueError, match="depends on the rewards"):
            delay.draw(1, sp.Rng(0))
    with pytest.raises(ValueError, match="one delay for all arms"):
        ConversionDelay(ArmDelays((1, LossyDelay(ConstantDelay(2), 0.1))))

"""Stretches of rounds whose arms report at different times, or never, equal the four functions, bit for bit."""

from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import Delay, suited
from spillover.delays import NEVER, ArmDelays, BadNewsDelay, ConversionDelay
from spillover.graph import AdaptiveGraph
from spillover.rng import Purpose
from spillover.simulation import stretches
from spillover.testing import check_policy
from spillover.testing.invariance import demand_same_stretches
from spillover.testing.trial import Trial, snapshot
from spillover_studies.beyond.variants import MisdatedNDCSEM, MisdatedSwitchingSEM
from tests.sampling import every
from tests.test_stretches import DELAYS, HORIZON, SWITCHING, WORLDS, world

LOST = sp.LossyDelay(sp.ConstantDelay(3), 1.0)
OFTEN_LOST = sp.LossyDelay(sp.ConstantDelay(5), 0.3)
ONE_LATE = sp.RecordedDelay([*[1] * 20, 45, *[1] * (HORIZON - 21)])
IN_PARTS = {
    "constant": ArmDelays((0, 3, 3, 11, 0, 40)),
    "together": ArmDelays((4,) * 6),
    "random": ArmDelays(tuple(sp.UniformDelay(0, 2 + 3 * arm) for arm in range(6))),
    "some lost": ArmDelays((0, sp.LossyDelay(sp.GeometricDelay(4.0), 0.5), 2, OFTEN_LOST, 0, 7)),
    "one never": ArmDelays((1, 1, LOST, 1, sp.UniformDelay(0, 9), 1)),
    "none ever": ArmDelays((LOST,) * 6),
    "after the end": ArmDelays((2, 2, 1000, 2, HORIZON - 5, 2)),
    "rounds lost": sp.LossyDelay(ArmDelays((0, 9, 2, 30, 5, 1)), 0.3),
    "rings that grow": ArmDelays((1, 1, ONE_LATE, 1, ONE_LATE, 3)),
    "every zero silent": ConversionDelay(3),
    "some zeros silent": ConversionDelay(sp.GeometricDelay(6.0), 0.4),
}


def spread_over(n: int) -> ArmDelays:
    """Delays of n arms, a few of whose outcomes are lost."""
    return ArmDelays(tuple(sp.LossyDelay(sp.UniformDelay(0, 1 + 2 * (arm % 5)), 0.05) for arm in range(n)))


@pytest.mark.parametrize("delay", every(2, IN_PARTS))
def test_each_delay(delay):
    changing = world(noise=0.05, graph_changes=(40,))
    demand_same_stretches(sp.SwitchingSEM(), Trial(changing, 4), IN_PARTS[delay], (2, 3), 8)


@pytest.mark.parametrize("name", every(2, SWITCHING))
def test_each_world(name):
    late = spread_over(WORLDS[name].draw(sp.Rng(0)).problem.n_arms)
    demand_same_stretches(SWITCHING[name], Trial(WORLDS[name], 3), late, (3,), 16)


@pytest.mark.parametrize("delay", ["random", "some zeros silent"])
def test_one_learner(delay):
    demand_same_stretches(sp.SwitchingSEM(), Trial(world(), 3), IN_PARTS[delay], (), 16)


@pytest.mark.long
@pytest.mark.parametrize("delay", IN_PARTS)
def test_each_delay_in_each_world(delay):
    for environment in WORLDS.values():
        drawn = environment.draw(sp.Rng(0).at(Purpose.WORLD))
        fitting = drawn.problem.n_arms == 6 or delay.endswith("silent")
        if fitting and suited(sp.SwitchingSEM(), drawn.problem).runs_compiled:
            demand_same_stretches(sp.SwitchingSEM(), Trial(environment, 6), IN_PARTS[delay], (3,), 16)
    signed = sp.SwitchingSEM(graph=AdaptiveGraph(signed=True))
    demand_same_stretches(signed, Trial(WORLDS["harmful"], 6), IN_PARTS[delay], (3,), 16)


MISDATED = {"ndc-sem": MisdatedNDCSEM(assumed=9), "switching-sem": MisdatedSwitchingSEM(assumed=9)}
CASES = {"uniform": DELAYS["uniform"], "bad news": DELAYS["bad news"], "parts": IN_PARTS["some lost"]}


@pytest.mark.parametrize("delay", CASES)
@pytest.mark.parametrize("name", MISDATED)
def test_assumed_delays(name, delay):
    demand_same_stretches(MISDATED[name], Trial(world(graph_changes=(30,)), 5), CASES[delay], (2, 3), 8)


@pytest.mark.long
@pytest.mark.parametrize("name", MISDATED)
def test_the_contract_with_an_assumed_delay(name):
    check_policy(MISDATED[name])


def with_assumed_dates(policy: Any, feedback: sp.Feedback, rounds: Any) -> sp.Feedback:
    """Feedback as of the round that the policy assumes."""
    return feedback._replace(age=np.minimum(policy.assumed, rounds - 1))


@pytest.mark.parametrize(("misdated", "plain"), [(MisdatedNDCSEM, sp.NDCSEM), (MisdatedSwitchingSEM, sp.SwitchingSEM)])
@pytest.mark.parametrize("graph", ["sparse", "adaptive"])
def test_an_assumed_delay_is_the_age_of_all_feedback(misdated, plain, graph):
    """The policy learns what the one without an assumption learns from feedback of that age."""
    ours, usual = misdated(assumed=4, graph=graph), plain(graph=graph)
    problem, rng = sp.Problem(n_arms=3, budget=2), np.random.default_rng(1)
    mine, theirs = (policy.init(problem, sp.Rng(0)) for policy in (ours, usual))
    for t in range(1, 13):
        x = np.roll([True, True, False], t)
        mine, theirs = ours.played(mine, x), usual.played(theirs, x)
        z = np.where(x, rng.random(3), 0.0)
        outcome = sp.Feedback(x, z, z + 0.1 * z[::-1], np.array(t % 3 if t > 2 else 0), np.array(True))
        mine = ours.update(mine, outcome, sp.Rng(0))
        theirs = usual.update(theirs, with_assumed_dates(ours, outcome, np.array(t)), sp.Rng(0))
    found, wanted = snapshot(mine, "state."), snapshot(theirs, "state.")
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("name", MISDATED)
def test_a_history_and_a_live_learner_with_an_assumed_delay(name):
    """Rounds learned at once, and by a learner in use, are those learned one after another."""
    policy, problem, rng = MISDATED[name], sp.Problem(n_arms=3, budget=2), np.random.default_rng(2)
    x = np.array([np.roll([True, True, False], t) for t in range(15)])
    z = np.where(x, rng.random(x.shape), 0.0)
    rounds = sp.Feedback(x, z, z.copy(), np.zeros(15, np.int64), np.ones(15, np.bool_))
    at_once = policy.solve(policy.catch_up(policy.init(problem, sp.Rng(0)), rounds, 1, sp.Rng(0)))
    state, learner = policy.init(problem, sp.Rng(0)), sp.Learner(policy, problem, seed=0)
    for t in range(15):
        state = policy.played(state, x[t])
        state = policy.learn(state, sp.Feedback(x[t], z[t], z[t], np.array(0), np.array(True)), sp.Rng(0))
        learner.report(learner.play(x[t].astype(int)), z=z[t], y=z[t])
    score = policy.explain(policy.solve(state), sp.Rng(0)).score
    np.testing.assert_allclose(policy.explain(at_once, sp.Rng(0)).score, score)
    np.testing.assert_allclose(learner.explain().score, score)


class Unsuited(Delay):
    """Delays of other arms than there are, or before the decision."""

    per_arm = True

    def __init__(self, delays: Any) -> None:
        self.delays = delays

    def draw(self, t, rng, batch=()):
        return np.broadcast_to(self.delays, (*batch, len(self.delays)))


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM()])
def test_impossible_delays_are_reported_as_by_the_four_functions(policy):
    with pytest.raises(ValueError, match=r"^shape of delays = \(1, 2\): must be \(1, 6\)"):
        sp.simulate(policy, world(), Unsuited(np.array([1, 2])))
    with pytest.raises(ValueError, match=r"^delay of round 1 = .*: must be 0 or more rounds"):
        sp.simulate(policy, world(), Unsuited(np.full(6, -3)))
    if policy.traits.accepts_missing:  # otherwise a round has the delay of its last arm
        with pytest.raises(ValueError, match=r"^delay of round 1 = .*: must be 0 or more rounds"):
            sp.simulate(policy, world(), Unsuited(np.array([1, 2, -3, 4, 5, 6])))


def test_only_policies_that_learn_parts_in_their_compiled_form_are_played_by_it():
    class WholeRounds(sp.SwitchingSEM):
        plays_parts = False

    drawn, late = world().draw(sp.Rng(0).at(Purpose.WORLD)), IN_PARTS["random"]
    assert stretches.fuses(drawn, sp.SwitchingSEM(), late)
    assert stretches.fuses(drawn, WholeRounds(), sp.ConstantDelay(3))
    assert not stretches.fuses(drawn, WholeRounds(), late)
    assert stretches.fuses(drawn, sp.NDCSEM(), late)  # it learns whole rounds


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM()])
def test_news_whose_worst_would_come_after_the_end(policy):
    """The rings hold the rest of it, which arrives."""
    demand_same_stretches(policy, Trial(world(law="beta"), 5), BadNewsDelay(0, HORIZON + 5), (3,), 8)


def test_the_rings_hold_what_arrives_before_the_end():
    """A delay beyond the end does not make them grow; that of one arm does."""
    late = IN_PARTS["after the end"].foresee(np.arange(1, 11), sp.Rng(0), (), 6)
    assert stretches.longest_wait(late, HORIZON - np.arange(1, 11)) == HORIZON - 5
    assert stretches.longest_wait(late, np.arange(20, 10, -1)) == 2
    lost = LOST.foresee(np.arange(1, 11), sp.Rng(0), (), 6)
    assert (lost.delays == NEVER).all()
    assert stretches.longest_wait(lost, HORIZON - np.arange(1, 11)) == 0
    bad_news = sp.LossyDelay(BadNewsDelay(2, 30), 0.5).foresee(np.arange(1, 11), sp.Rng(0), (), 6)
    assert stretches.longest_wait(bad_news, np.arange(20, 10, -1)) == 20 - int(np.argmax(bad_news.delays < NEVER))
    assert stretches.longest_wait(bad_news, np.arange(40, 30, -1)) == 30
    assert stretches.longest_wait(bad_news, np.ones(10, np.int64)) == 0
    flight = stretches.grown(stretches.empty_flight(2, (3,), 8, 1, in_parts=True), 8, 9)
    assert (flight.arrival.shape, flight.following.shape, flight.memo.shape) == ((3, 16, 2), (3, 16, 2), (3, 16, 1, 2))

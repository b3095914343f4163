"""SwitchingSEM as a policy: any delay, range, budget and graph; pulls in flight; what it notices and what it explains.

Its filter has a file of its own, test_switching_filter.py.
"""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import spillover as sp
from spillover.graph import GRAPHS
from spillover.policies.switching_state import HAZARD, IDLE_HAZARD, PATIENCE, fading
from spillover.state import take_replication
from tests.policies.delays import DELAYS
from tests.sampling import often
from tests.support import explained, feedback

WORLD = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=60, changes=(25,), law="beta")


def state_after(policy, problem, x, z):
    """The state after rounds whose outcomes arrived at once."""
    state = policy.init(problem, sp.Rng(0))
    for decision, rewards in zip(np.asarray(x, bool), np.asarray(z, float), strict=True):
        state = policy.update(policy.played(state, decision), feedback(decision, rewards), sp.Rng(0))
    return state


@pytest.mark.parametrize("name", DELAYS)
def test_pulls_in_flight_are_those_not_heard_of_and_never_negative(name):
    rng, policy, delay = sp.Rng(2), sp.SwitchingSEM(), DELAYS[name]
    waiting: dict[int, tuple[int, Any]] = {}
    for t, x, _, state in sp.rounds(policy, WORLD.draw(rng.at(sp.rng.Purpose.WORLD)), delay, rng, ()):
        waiting[t] = int(delay.draw(t, rng.at(sp.rng.Purpose.DELAY, t))), x
        expected = sum((x for day, (late, x) in waiting.items() if day + late > t), np.zeros(5))
        assert (state.in_flight >= 0).all()
        assert_array_equal(explained(policy, state).pending, state.in_flight)
        if name in ("none", "all lost"):  # nothing is faded yet, or nothing is left
            assert_array_equal(state.in_flight, expected)
        if name == "constant" and t == 8:  # the first arrival ends its own pull, and fades nothing
            assert_array_equal(state.in_flight, expected)
    if name == "constant":  # late as ever: what is in flight has faded, at most by what remains after the longest delay
        assert (
            fading(state.longest_delay, np.array(True)) ** 7 * expected.sum()
            < state.in_flight.sum()
            < 1.2 * expected.sum()
        )


def test_an_outcome_that_never_comes_is_given_up_on():
    policy, problem = sp.SwitchingSEM(graph="none"), sp.Problem(2, 1)
    state = state_after(policy, problem, [[1, 0]] * 4, [[1, 0]] * 4)
    state = state._replace(longest_delay=np.array(29.0))
    state = policy.played(state, np.array([False, True]))
    for _ in range(180):
        state = policy.played(state, np.array([False, False]))
    assert_allclose(state.in_flight, [0, (1 - 1 / (PATIENCE * 30)) ** 180], rtol=1e-12)
    assert state.in_flight[1] < 0.05


def test_one_straggler_does_not_make_everything_wait():
    policy, problem = sp.SwitchingSEM(graph="none"), sp.Problem(2, 1)
    state = state_after(policy, problem, [[1, 0]] * 4, [[1, 0]] * 4)._replace(longest_delay=np.array(1900.0))
    for _ in range(600):
        state = policy.played(state, np.array([True, False]))
        outcome = np.array([0.5, 0.0])
        state = policy.update(state, sp.Feedback(outcome > 0, outcome, outcome, np.array(0), np.array(True)), sp.Rng(0))
    assert state.longest_delay < 20


def test_an_arm_under_way_is_not_asked_again():
    """One arm is known to be fair, of three others nothing is known: each is tried once, not one of them thrice."""
    policy = sp.SwitchingSEM()
    known = state_after(policy, sp.Problem(4, 1, acyclic=False), [[1, 0, 0, 0]] * 30, [[0.6, 0, 0, 0]] * 30)
    chosen = []
    for _ in range(3):
        chosen.append(policy.select(known, sp.Rng(0)).x)
        known = policy.played(known, chosen[-1])
    assert_array_equal(np.sort(np.argmax(chosen, axis=1)), [1, 2, 3])


@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_rewards_on_another_scale_or_shifted_are_the_same_problem(law):
    """Without a graph all weights are 1, so a shift adds the same to every score; a scale never matters."""
    policy, draws, means = sp.SwitchingSEM(graph="none"), np.random.default_rng(4), np.array([0.2, 0.5, 0.7, 0.4])
    ranges = [(0.0, 1.0), (0.0, 80.0), (3.0, 5.0)]
    states = [policy.init(sp.Problem(4, 2, False, reward_range), sp.Rng(0)) for reward_range in ranges]
    for t in range(1, 150):
        chosen = [policy.select(state, sp.Rng(0).at(sp.rng.Purpose.CHOICE, t)).x for state in states]
        share = draws.beta(3 * means, 3 * (1 - means)) if law == "beta" else draws.uniform(size=4) < means
        means = 1 - means if t == 80 else means
        for k, (low, high) in enumerate(ranges):
            assert_array_equal(chosen[k], chosen[0])
            piece = feedback(chosen[k], np.where(chosen[k], low + (high - low) * share, 0.0))
            states[k] = policy.update(policy.played(states[k], chosen[k]), piece, sp.Rng(0))
        one, *others = [explained(policy, state) for state in states]
        for shown, (low, high) in zip(others, ranges[1:], strict=True):
            assert_allclose(shown.index, low + (high - low) * one.index, rtol=1e-9)


@pytest.mark.parametrize("reward_range", [(-1.0, 1.0), (-3.0, 1.0), (-1.0, 9.0)])
def test_ranges_around_zero_are_explored_and_arms_that_lose_are_left(reward_range):
    """At first the expected reward may be 0 or less; what finding out is worth must not be."""
    policy, (low, high) = sp.SwitchingSEM(graph="none"), reward_range
    state = policy.init(sp.Problem(3, 2, False, reward_range), sp.Rng(0))
    pulls = []
    for t in range(1, 241):
        x = policy.select(state, sp.Rng(0).at(sp.rng.Purpose.CHOICE, t)).x
        pulls.append(x)
        state = policy.update(policy.played(state, x), feedback(x, np.where(x, [high, low, low], 0.0)), sp.Rng(0))
    assert pulls[0].sum() == 2
    assert np.any(pulls[:60], axis=0).all()
    settled = np.mean(pulls[120:], axis=0)
    assert settled[0] == 1.0
    assert settled[1:].sum() < 0.2  # tried now and then, as they may have changed


def test_rewards_that_are_all_losses_leave_every_arm_alone():
    policy = sp.SwitchingSEM(graph="none")
    state = policy.init(sp.Problem(3, 2, True, (-3.0, -1.0)), sp.Rng(0))
    assert not policy.select(state, sp.Rng(0)).x.any()
    harmful = state._replace(
        graph=state.graph._replace(weights=np.array([-1.0, 1.0, 1.0])), rewards_seen=np.full(3, 1e9)
    )
    shown = explained(policy, harmful)  # a loss that spills over as a gain
    assert_array_equal(shown.chosen, [1, 0, 0])
    assert_array_equal(shown.index, [-2.0, -2.0, -2.0])


@pytest.mark.parametrize("graph", often(["adaptive"], ["adaptive", "sparse", "payoff", "instrument"]))
def test_an_arm_whose_effect_hurts_is_not_chosen(graph):
    policy, rng = sp.SwitchingSEM(graph=GRAPHS[graph](signed=True)), sp.Rng(3, np.arange(12))
    world = sp.SyntheticSEM(
        n_arms=6, budget=4, edge_density=0.5, weight_range=(0.6, 0.9), harmful=0.5, horizon=150, changes=()
    )
    drawn = world.draw(rng.at(sp.rng.Purpose.WORLD), (12,))
    hurts, late = drawn.weights(1) < -0.1, np.zeros((12, 6))
    assert hurts.any()
    weights = None
    for t, x, _, state in sp.rounds(policy, drawn, 5, rng, (12,)):
        if weights is not None:
            assert not (x & (weights <= 0)).any()
        weights = explained(policy, state, rng).weights
        late += x if t > 100 else 0
    assert late[hurts].mean() < 0.05 * 50


def test_explanations_and_signals_add_up():
    policy, problem = sp.SwitchingSEM(), sp.Problem(3, 2, reward_range=(0.0, 4.0))
    x, z = [[1, 1, 0]] * 20, [[4, 0, 0], [4, 4, 0]] * 10
    state = state_after(policy, problem, x, z)
    shown, signals = explained(policy, state, sp.Rng(1)), policy.signals(state)
    assert_array_equal(np.isnan(shown.mean), [False, False, True])
    assert_allclose(shown.mean[:2], [4 * 21 / 22, 2.0], rtol=0.02)
    assert_allclose(shown.count, [20, 20, 0], rtol=0.05)
    assert_array_equal(shown.score, shown.weights * shown.index)
    assert (shown.index >= np.nan_to_num(shown.mean)).all()
    assert_array_equal(shown.pending, [0, 0, 0])
    assert not shown.planned
    assert_array_equal(signals["latest"], [20, 20, 0])
    assert signals["changes_seen"] == 0
    assert signals["gram"].shape == (3, 3)
    assert "gram" not in sp.SwitchingSEM(graph="none").signals(
        state_after(sp.SwitchingSEM(graph="none"), problem, x, z)
    )


def test_the_known_order_leads_until_effects_arrive():
    """Expected regret before any feedback is then below random play's; without an order all arms are alike."""
    policy, state = sp.SwitchingSEM(), sp.SwitchingSEM().init(sp.Problem(10, 4, acyclic=True), sp.Rng(0))
    assert_allclose(explained(policy, state).weights, 1.1 ** np.arange(10))
    unordered = policy.init(sp.Problem(10, 4), sp.Rng(0))
    assert_array_equal(explained(policy, unordered).weights, 1.0)
    world = sp.SyntheticSEM(horizon=30, changes=())
    blind = [sp.simulate(p, world, 50, replications=400).final_regret for p in (policy, sp.Uniform())]
    assert sp.metrics.mean_interval(blind[1] - blind[0]).low > 0
    learned = state_after(policy, sp.Problem(3, 1, acyclic=True), [[0, 0, 1]] * 3, [[0, 0, 1]] * 3)
    prior, found = 4 / 3 * 4 / 3, learned.graph.weights[2]
    assert_allclose(explained(policy, learned).weights[2], found + (prior - found) / 16)


def test_edges_of_the_problem():
    one = state_after(sp.SwitchingSEM(), sp.Problem(1, 1), [[1], [0], [1]], [[0.3], [0], [0.5]])
    assert_array_equal(sp.SwitchingSEM().select(one, sp.Rng(0)).x, [True])
    everything = state_after(sp.SwitchingSEM(), sp.Problem(3, 3), [[1, 1, 1]] * 5, [[1, 0, 0.5]] * 5)
    shown = explained(sp.SwitchingSEM(), everything)
    assert shown.chosen.all()
    assert_array_equal(shown.index, shown.mean)  # nothing to find out where all are chosen
    nothing = state_after(sp.SwitchingSEM(), sp.Problem(3, 2), [[0, 0, 0]] * 5, np.zeros((5, 3)))
    shown = explained(sp.SwitchingSEM(), nothing)
    assert np.isnan(shown.mean).all()
    assert_array_equal(shown.count, 0)
    assert shown.chosen.sum() == 2


def test_each_learner_of_a_batch_can_have_its_own_budget_and_range():
    policy, reward_range = sp.SwitchingSEM(), np.array([[0, 1], [0, 2], [-1, 1.0]])
    state = policy.init(sp.Problem(5, 1, reward_range=reward_range), sp.Rng(0, np.arange(3)), (3,))
    state = state._replace(budget=np.array([1, 3, 5]))
    x = policy.select(state, sp.Rng(0, np.arange(3))).x
    assert_array_equal(x.sum(axis=-1), [1, 3, 5])
    for k, budget in enumerate((1, 3, 5)):
        alone = policy.init(sp.Problem(5, budget, reward_range=reward_range[k]), sp.Rng(0, k))
        assert_array_equal(explained(policy, take_replication(state, k)).index, explained(policy, alone).index)


def test_a_row_without_feedback_may_have_any_age():
    policy = sp.SwitchingSEM()
    state = policy.played(policy.init(sp.Problem(2, 1), sp.Rng(0, np.arange(2)), (2,)), np.ones((2, 2), bool))
    z = np.ones((2, 2))
    piece = sp.Feedback(z > 0, z, z, np.array([0, -(10**6)]), np.array([True, False]))
    state = policy.update(state, piece, sp.Rng(0))
    assert_array_equal(state.in_flight, [[0, 0], [1, 1]])
    assert_array_equal(state.belief.seen, [[1, 1], [0, 0]])


def detected_changes(world, delay, replications):
    """Changes detected in each replication after every round, and the rounds they were dated to."""
    policy, rng = sp.SwitchingSEM(graph="none"), sp.Rng(11, np.arange(replications))
    drawn = world.draw(rng.at(sp.rng.Purpose.WORLD), (replications,))
    detected = [state.belief.detected.copy() for *_, state in sp.rounds(policy, drawn, delay, rng, (replications,))]
    return np.moveaxis(np.array(detected), -1, 0)


def test_a_change_of_all_means_is_detected_soon():
    """Four rewards a round tell two uniform means apart by 2 nats on average; log(1 / (hazard / 2)) is 7.6.

    So some ten arrivals should do on average. But new means can lie near the old ones, and a change counts as detected
    only once it is all but certain: 100 for four learners of five.
    """
    count, dated = detected_changes(sp.SyntheticSEM(horizon=520, changes=(400,)), 20, 60)
    assert (dated[-1] > 380).mean() > 0.8
    assert np.median(np.argmax(dated > 380, axis=0)) < 400 + 20 + 20
    assert count[-1].mean() < 2.0


def test_where_nothing_changes_false_alarms_are_rarer_than_changes_were_expected_to_be():
    """Without a change the odds of each hypothesis are a martingale: they ever exceed 1 with at most the prior odds.

    That is Ville's inequality, and over all rounds it adds up to the number of changes that the hazards expect.
    """
    horizon, budget = 1000, 4
    count, _ = detected_changes(sp.SyntheticSEM(horizon=horizon, changes=()), 20, 60)
    expected = horizon * (HAZARD + budget * IDLE_HAZARD)
    assert count[-1].mean() < expected
    assert (count[-1] == 0).mean() > 0.5

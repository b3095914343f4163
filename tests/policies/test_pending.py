"""NDC-SEM that counts pulls in flight, against its slow twin and in every way that feedback can arrive, or not."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.state import leaves
from tests.policies.delays import DELAYS
from tests.properties import examples
from tests.reference.pending_reference import SlowPending
from tests.support import explained

N, BUDGET = 5, 2
SETTINGS: dict[str, Any] = {"discount": 0.9, "exploration": 0.05}
WORLD = sp.SyntheticSEM(n_arms=N, budget=BUDGET, edge_density=0.2, horizon=60, changes=(25,), law="beta")


def state_after(policy, problem, played, outcomes, order):
    """A state after all rounds of `played`, of which those in `order` have arrived; z of round k is `outcomes[k]`."""
    state = policy.init(problem, sp.Rng(0))
    for x in played:
        state = policy.played(state, x)
    for k in order:
        age = np.array(len(played) - 1 - k)
        piece = sp.Feedback(played[k], outcomes[k], outcomes[k], age, np.array(True))
        state = policy.update(state, piece, sp.Rng(0))
    return state


@pytest.mark.parametrize("name", DELAYS)
def test_slow_twin_agrees_at_every_round(name):
    policy, delay, rng = sp.NDCSEM(**SETTINGS, pending=True), DELAYS[name], sp.Rng(8)
    world = WORLD.draw(rng.at(sp.rng.Purpose.WORLD))
    twin, under_way, flying = SlowPending(N, BUDGET, **SETTINGS), [], 0
    for t, x, outcome, state in sp.rounds(policy, world, delay, rng, ()):
        twin.play(x)
        late = int(delay.draw(t, rng.at(sp.rng.Purpose.DELAY, t)))
        under_way.append((late + t if late != sp.delays.NEVER else late, t, outcome.z))
        for arrival, played_at, z in under_way:
            if arrival == t:
                twin.observe(played_at, z)
        shown = explained(policy, state, rng)
        np.testing.assert_allclose(shown.index, twin.index(), rtol=1e-10)
        np.testing.assert_allclose(shown.pending, twin.in_flight(), rtol=1e-9, atol=1e-12)
        flying += (twin.in_flight() > 0).any()
    assert (flying == 0) == (name == "none")


def test_without_delay_it_is_the_plain_policy_bit_for_bit():
    plain, counting = (sp.simulate(sp.NDCSEM(**SETTINGS, pending=p), WORLD, 0, replications=4) for p in (False, True))
    np.testing.assert_array_equal(plain.regret, counting.regret)
    np.testing.assert_array_equal(plain.payoff, counting.payoff)
    late = [sp.simulate(sp.NDCSEM(**SETTINGS, pending=p), WORLD, 7, replications=4).regret for p in (False, True)]
    assert (late[0] != late[1]).any()


def test_the_plain_policy_holds_and_shows_nothing_of_it():
    policy = sp.NDCSEM()
    state = policy.init(sp.Problem(3, 1), sp.Rng(0))
    assert not [name for name, leaf in leaves(state).items() if "pulls" in name and leaf.size]
    assert explained(policy, state).pending is None
    assert leaves(sp.NDCSEM(pending=True).init(sp.Problem(3, 1), sp.Rng(0)))["pulls.counts"].shape == (3,)


@given(seed=st.integers(0, 2**32 - 1), discount=st.sampled_from([0.3, 0.9, 0.999]), data=st.data())
@examples(8)
def test_any_order_of_arrival_is_the_same(seed, discount, data):
    rounds = data.draw(st.integers(1, 30))
    order = data.draw(st.permutations(range(rounds)))[: data.draw(st.integers(0, rounds))]
    draws = np.random.default_rng(seed)
    played = draws.uniform(size=(rounds, N)) < 0.4
    z = np.where(played, draws.uniform(size=(rounds, N)), 0.0)
    policy, problem = sp.NDCSEM(discount=discount, exploration=0.1, pending=True), sp.Problem(N, BUDGET)
    one, two = (explained(policy, state_after(policy, problem, played, z, way)) for way in (sorted(order), order))
    np.testing.assert_allclose(one.index, two.index, rtol=1e-12)
    np.testing.assert_allclose(one.pending, two.pending, rtol=1e-9, atol=1e-12)
    assert (one.pending >= 0).all()


def test_while_blind_the_arms_take_turns():
    policy, rng = sp.NDCSEM(discount=0.999, exploration=0.01, pending=True), sp.Rng(2, np.arange(20))
    state = policy.init(sp.Problem(6, 2), rng.at(sp.rng.Purpose.START), (20,))
    pulls = []
    for t in range(1, 67):
        x = policy.select(state, rng.at(sp.rng.Purpose.CHOICE, t)).x
        state = policy.played(state, x)
        pulls.append(x)
    after = np.sum(pulls, axis=0)
    assert (after.max(axis=-1) - after.min(axis=-1) <= 2).all()  # +inf for all would leave them to chance


def test_an_outcome_that_never_comes_holds_its_arm_back_only_for_a_while():
    """Arm 1 was bad, is tried again and never observed: its bonus falls, grows again, and passes arm 0 as computed."""
    discount, exploration, tries = 0.9, 0.05, 4
    policy, problem = sp.NDCSEM(discount=discount, exploration=exploration, pending=True), sp.Problem(2, 1)
    state = policy.init(problem, sp.Rng(0))
    waits, since = [], 0
    z, alone = np.array([1.0, 0.0]), np.array([True, False])
    other = ~alone
    for t in range(1, 400):
        chosen = alone if t == 1 else other if t == 2 else policy.select(state, sp.Rng(0)).x
        state = policy.played(state, chosen)
        if not chosen[1] or t == 2:  # all later outcomes of arm 1 are lost
            piece = sp.Feedback(chosen, np.where(chosen, z, 0.0), np.where(chosen, z, 0.0), np.array(0), np.array(True))
            state = policy.update(state, piece, sp.Rng(0))
        if chosen[1] and t > 2:
            waits.append(since)
            since = 0
        since += 1
    assert len(waits) > tries
    # settled: between two tries the arm's pulls P = 1 / (1 - g^k) fade to g^k P, where both indices are equal
    log_clock = np.log(1 / (1 - discount))
    k = np.arange(1, 200)
    arm = 2 * np.sqrt(exploration * 2 * log_clock * (1 - discount**k) / discount**k)
    rest = 1 + 2 * np.sqrt(exploration * 2 * log_clock * (1 - discount))
    expected = k[np.argmax(arm > rest)]
    assert all(abs(wait - expected) <= 1 for wait in waits[-tries:])


def test_an_arm_tried_again_is_not_repeated_blindly():
    """Two arms, one far better: the plain bonus repeats the other one for as long as the delay lasts."""
    world = sp.FixedSEM(adjacency=np.zeros((2, 2)), means=[0.9, 0.1], budget=1, horizon=1500)
    worse = {}
    for pending in (False, True):
        policy = sp.NDCSEM(discount=0.99, exploration=0.05, pending=pending)
        rng = sp.Rng(1, np.arange(8))
        drawn = world.draw(rng.at(sp.rng.Purpose.WORLD), (8,))
        chosen = [x[:, 1] for t, x, _, _ in sp.rounds(policy, drawn, sp.ConstantDelay(50), rng, (8,)) if t > 300]
        worse[pending] = np.mean(chosen)
    assert worse[True] < 0.3 * worse[False]
    assert worse[True] > 0  # it is still tried

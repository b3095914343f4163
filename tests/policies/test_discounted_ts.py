"""Discounted Thompson sampling: a slow twin, the distribution of its draws, and the discount that it comes to."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.policies.discounted_ts import DISCOUNTS, EVIDENCE_DISCOUNT
from tests.policies.delays import DELAYS
from tests.reference.discounted_ts_reference import SlowDiscounts
from tests.support import explained, feedback

N, BUDGET = 4, 2
LOW, HIGH = -1.0, 3.0


class Drawn(NamedTuple):
    """A draw of the means from the posterior, and the posterior itself."""

    draw: Any
    mean: Any
    seen: Any
    flying: Any
    leader: Any  # position of the drawn discount


def drawn_means(policy, state, rng):
    draw, mean, seen, flying, leader = np.moveaxis(policy.indices(state, rng, (5, state.plan.shape[-1])), -2, 0)
    return Drawn(draw, mean, seen, flying, leader[..., 0].astype(int))


@pytest.mark.parametrize("law", ["bernoulli", "beta"])
@pytest.mark.parametrize("name", DELAYS)
def test_slow_twin_agrees(name, law):
    policy, delay, rng = sp.policies.DiscountedTS(), DELAYS[name], sp.Rng(4)
    world = sp.SyntheticSEM(n_arms=N, budget=BUDGET, edge_density=0.2, horizon=50, changes=(25,), law=law)
    twin, under_way = SlowDiscounts(N, DISCOUNTS, EVIDENCE_DISCOUNT), []
    for t, x, outcome, state in sp.rounds(policy, world.draw(rng.at(sp.rng.Purpose.WORLD)), delay, rng, ()):
        twin.play(x)
        late = int(delay.draw(t, rng.at(sp.rng.Purpose.DELAY, t)))
        under_way.append((late + t if late != sp.delays.NEVER else late, t, x, outcome.z))
        for arrival, played_at, *observation in under_way:
            if arrival == t:
                twin.observe(played_at, *observation)
        if t % 10:
            continue
        np.testing.assert_allclose(state.candidates.evidence, twin.evidence(), rtol=1e-9)
        drawn = drawn_means(policy, state, rng.at(sp.rng.Purpose.CHOICE, t + 1))
        shown = explained(policy, state, rng)
        mean, count, flying = twin.posterior(int(drawn.leader))
        np.testing.assert_allclose(shown.count, count, rtol=1e-9)
        np.testing.assert_allclose(shown.pending, flying, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(shown.mean, np.where(count > 0, mean, np.nan), rtol=1e-9)
        np.testing.assert_allclose(shown.clock, (DISCOUNTS[drawn.leader] ** np.arange(t)).sum(), rtol=1e-9)
        np.testing.assert_array_equal(shown.index, drawn.draw)
    assert bool(twin.outcomes) == (name != "all lost")


def test_rewards_on_another_range_teach_the_same():
    plain, other = sp.Problem(N, BUDGET), sp.Problem(N, BUDGET, reward_range=(LOW, HIGH))
    draws, policy, rng = np.random.default_rng(3), sp.policies.DiscountedTS(), sp.Rng(1)
    states = [policy.init(problem, rng.at(sp.rng.Purpose.START)) for problem in (plain, other)]
    for _ in range(30):
        x, share = draws.permutation(N) < BUDGET, draws.uniform(size=N)
        rewards = [np.where(x, share, 0.0), np.where(x, LOW + (HIGH - LOW) * share, 0.0)]
        for k, z in enumerate(rewards):
            states[k] = policy.update(policy.played(states[k], x), feedback(x, z, age=0), rng)
    one, two = (explained(policy, state, rng) for state in states)
    np.testing.assert_allclose(two.index, LOW + (HIGH - LOW) * one.index, rtol=1e-9)
    np.testing.assert_allclose(two.mean, LOW + (HIGH - LOW) * one.mean, rtol=1e-9)


def many_of_one(rounds, flying, learners=4000):
    """The same history in many replications: two arms, the first observed in every round, then pulls in flight."""
    policy, rng = sp.policies.DiscountedTS(), sp.Rng(5, np.arange(learners))
    state = policy.init(sp.Problem(2, 1), rng.at(sp.rng.Purpose.START), (learners,))
    x = np.broadcast_to([True, False], (learners, 2))
    for t in range(rounds):
        z = np.where(x, float(t % 4 == 0), 0.0)
        state = policy.update(policy.played(state, x), feedback(x, z, age=0), rng)
    for _ in range(flying):
        state = policy.played(state, x)
    return policy, state, drawn_means(policy, state, rng.at(sp.rng.Purpose.CHOICE, rounds + flying + 1))


def test_the_discount_is_drawn_in_proportion_to_the_likelihood():
    _, state, drawn = many_of_one(40, 0)
    odds = np.exp(state.candidates.evidence[0] - state.candidates.evidence[0].max())
    counted = np.bincount(drawn.leader, minlength=len(DISCOUNTS))
    assert stats.chisquare(counted, len(drawn.leader) * odds / odds.sum()).pvalue > 1e-3


@pytest.mark.parametrize("flying", [0, 25])
def test_draws_follow_the_posterior_narrowed_by_the_pulls_in_flight(flying):
    _, _, drawn = many_of_one(40, flying)
    for leader in np.unique(drawn.leader):
        rows = drawn.leader == leader
        mean, seen, pulls = (leaf[rows][0] for leaf in (drawn.mean, drawn.seen, drawn.flying))
        assert (pulls[0] > 0) == (flying > 0)
        narrow = np.sqrt((seen + 2) / (seen + 2 + pulls))
        for arm in range(2):
            whole = mean[arm] + (drawn.draw[rows, arm] - mean[arm]) / narrow[arm]
            prior = mean[arm] * (seen[arm] + 2)
            assert stats.kstest(whole, stats.beta(prior, seen[arm] + 2 - prior).cdf).pvalue > 1e-4
    np.testing.assert_allclose(drawn.mean[:, 1], 0.5)  # nothing is known of the other arm


def expected_memory(rewards):
    """The mean memory, in rounds, of the discounts that one arm's rewards leave."""
    policy, rng = sp.policies.DiscountedTS(), sp.Rng(0)
    state = policy.init(sp.Problem(1, 1), rng)
    for z in rewards:
        state = policy.update(policy.played(state, np.array([True])), feedback([True], [z], age=0), rng)
    odds = np.exp(state.candidates.evidence - state.candidates.evidence.max())
    return float((odds / odds.sum() / (1 - DISCOUNTS)).sum())


@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_what_changes_often_is_forgotten_fast_and_what_stays_is_kept(law):
    draws = np.random.default_rng(12)
    steady, restless = np.full(3000, 0.3), np.where(np.arange(3000) // 100 % 2, 0.9, 0.1)
    memory = {}
    for name, means in (("steady", steady), ("restless", restless)):
        beta = draws.beta(4 * means, 4 * (1 - means))
        memory[name] = expected_memory(beta if law == "beta" else draws.uniform(size=3000) < means)
    assert memory["restless"] < 100 < 1000 < memory["steady"]


@pytest.mark.long
def test_lost_feedback_holds_no_arm_back_for_good():
    """An arm in flight that is never observed: its draw narrows, and is as wide as ever once the pulls have faded."""
    policy, rng = sp.policies.DiscountedTS(), sp.Rng(6, np.arange(500))
    state = policy.init(sp.Problem(2, 1), rng.at(sp.rng.Purpose.START), (500,))
    lost, idle = (np.broadcast_to(x, (500, 2)) for x in ([True, False], [False, False]))
    for _ in range(60):
        state = policy.played(state, lost)
    narrow = drawn_means(policy, state, rng.at(sp.rng.Purpose.CHOICE, 61)).draw[:, 0].std()
    for _ in range(40_000):
        state = policy.played(state, idle)
    wide = drawn_means(policy, state, rng.at(sp.rng.Purpose.CHOICE, 40_061)).draw[:, 0].std()
    assert narrow < 0.3 * np.sqrt(1 / 12)
    assert wide == pytest.approx(np.sqrt(1 / 12), rel=0.1)

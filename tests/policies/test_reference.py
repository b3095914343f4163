"""The reference points: uniform random sets, the oracle, and the delayed oracle."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import spillover as sp

ENVIRONMENT = sp.SyntheticSEM(n_arms=6, budget=2, edge_density=0.2, horizon=60, changes=(20, 21, 45))


def play(policy, delay, replications=5, environment=ENVIRONMENT, seed=1):
    """All decisions, (rounds, replications, n), and the worlds they were made in."""
    rng = sp.Rng(seed, np.arange(replications))
    world = environment.draw(rng.at(sp.rng.Purpose.WORLD), (replications,))
    player = policy.for_problem(world.problem, world)
    return np.array([r.x for r in sp.rounds(player, world, delay, rng, (replications,))]), world


def best_by_hand(world, t):
    """The s arms with the highest w_i beta_i."""
    total = np.ones(6) @ np.linalg.inv(np.eye(6) - world.adjacency(t))
    score = total * world.means(t)
    best = np.zeros(score.shape, bool)
    for row, values in zip(best, score, strict=True):
        row[np.argsort(-values)[:2]] = True
    return best


def test_random_sets_are_uniform_and_of_full_size():
    n, budget, learners = 5, 2, 4000
    environment = sp.SyntheticSEM(n_arms=n, budget=budget, horizon=2, changes=())
    decisions, _ = play(sp.Uniform(), 0, learners, environment)
    assert (decisions.sum(axis=-1) == budget).all()
    sets = list(combinations(range(n), budget))
    index = np.array([[[row[list(s)].all() for s in sets] for row in x] for x in decisions]).argmax(axis=-1)
    for day in index:
        assert stats.chisquare(np.bincount(day, minlength=len(sets))).pvalue > 1e-3
    table = np.zeros((len(sets), len(sets)))
    np.add.at(table, (index[0], index[1]), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-3  # rounds are independent


def test_the_oracle_plays_the_best_set_and_has_no_regret():
    decisions, world = play(sp.policies.Oracle(), 0)
    for t in range(1, 61):
        np.testing.assert_array_equal(decisions[t - 1], best_by_hand(world, t))
    run = sp.simulate(sp.policies.Oracle(), ENVIRONMENT, 7, replications=6, seed=3)
    assert not run.regret.any()
    assert (run.optimality_ratio == 1).all()


@pytest.mark.parametrize("late", [0, 1, 7, 30])
def test_the_delayed_oracle_plays_what_was_best(late):
    decisions, world = play(sp.policies.DelayedOracle(), late)
    for t in range(late + 2, 61):
        np.testing.assert_array_equal(decisions[t - 1], best_by_hand(world, t - 1 - late))


def test_the_delayed_oracle_plays_random_sets_while_blind():
    late, learners = 4, 3000
    decisions, _ = play(sp.policies.DelayedOracle(), late, learners)
    blind = decisions[: late + 1]
    assert (blind.sum(axis=-1) == 2).all()
    for x in blind:
        sets = [int((x[:, a] & x[:, b]).sum()) for a, b in combinations(range(6), 2)]
        assert stats.chisquare(sets).pvalue > 1e-4
    random, _ = play(sp.Uniform(), late, learners)
    np.testing.assert_array_equal(blind, random[: late + 1])  # the same streams


def test_the_delayed_oracle_follows_the_latest_round_it_has_heard_of():
    delays = np.full(60, np.nan)
    delays[[9, 19, 29]] = 5, 0, 2  # rounds 10, 20 and 30 arrive at the end of rounds 15, 20 and 32; nothing else does
    decisions, world = play(sp.policies.DelayedOracle(), sp.RecordedDelay(delays))
    for t in range(16, 61):
        latest = 10 if t <= 20 else 20 if t <= 32 else 30
        np.testing.assert_array_equal(decisions[t - 1], best_by_hand(world, latest))


def test_learners_with_different_delays_are_each_on_their_own():
    delays = np.array([[3] * 60, [11] * 60])
    decisions, world = play(sp.policies.DelayedOracle(), sp.RecordedDelay(delays), 2)
    for k, late in enumerate((3, 11)):
        for t in range(late + 2, 61):
            np.testing.assert_array_equal(decisions[t - 1, k], best_by_hand(world, t - 1 - late)[k])


@pytest.mark.parametrize("policy", [sp.policies.Oracle(), sp.policies.DelayedOracle()])
def test_an_oracle_without_a_world_says_so(policy):
    state = policy.init(sp.Problem(3, 1), sp.Rng(0))
    with pytest.raises(ValueError, match=r"world = None in .*Oracle: must be a drawn world"):
        policy.select(state, sp.Rng(0))

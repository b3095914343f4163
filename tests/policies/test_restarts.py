"""Restarts: the likelihood-ratio test, what an alarm forgets, forced exploration, and twins with the whole history."""

from typing import Any

import numpy as np
import pytest
from numba import guvectorize, njit
from scipy import stats

import spillover as sp
from spillover import kernels
from spillover.kernels.averages import likelihood_ratio, note_and_test
from spillover.policies import CUCB, GLRCUCB, GLRSEMUCB, SEMUCB
from spillover.policies.restarts import BUCKETS, empty_history
from spillover.state import leaves
from tests.reference import rivals_reference as reference
from tests.reference.ndcsem_reference import initialisation_faults
from tests.support import explained, feedback, sparse

N, BUDGET = 4, 2
WEIGHTS = np.array([1.0, 2.5, 1.2, 1.7])
SCALES: dict[str, tuple[sp.Problem, dict[str, Any]]] = {
    "declared": (
        sp.Problem(N, BUDGET, reward_range=(0.0, 1.5), overall_range=(0.1, 1.5)),
        {"overall_range": (0.1, 1.5)},
    ),
    "undeclared": (sp.Problem(N, BUDGET, reward_range=(0.0, 1.5)), {}),
    "known graph": (
        sp.Problem(N, BUDGET, reward_range=(0.0, 1.5), weights=WEIGHTS),
        {"weights": WEIGHTS, "reward_range": (0.0, 1.5)},
    ),
}


# --- the test for a change -------------------------------------------------------------------------------------------


@njit
def statistic(counts, totals, used, unit):
    return likelihood_ratio(counts, totals, used, unit, 0.0)


@guvectorize(
    ["void(f8[:,:], f8[:,:], i8[:], b1[:], f8[:], f8, f8, b1, b1[:])"],
    "(n,b),(n,b),(n),(n),(n),(),(),()->()",
    writable_args=("counts", "totals", "used"),
)
def detect_change(counts, totals, used, x, reward, unit, level, arrived, alarm):
    alarm[0] = arrived and note_and_test(counts, totals, used, x, reward, unit, level)


def watched(rewards, unit=1.0, level=0.5):
    """Feed one arm's rewards; yields (alarm, n, statistic) after each."""
    history = empty_history(1, ())
    buckets = history.counts, history.totals, history.used
    for reward in rewards:
        alarm = detect_change(*buckets, np.array([True]), np.array([reward]), unit, level, True)
        yield bool(alarm), history.counts.sum(), statistic(history.counts[0], history.totals[0], history.used[0], unit)


def sample(kind, seed, size):
    rng = np.random.default_rng(seed)
    level = np.where(np.arange(size) < size // 3, 0.2, 0.7)
    return {
        "bernoulli": (rng.random(size) < level).astype(float),
        "stationary": (rng.random(size) < 0.4).astype(float),
        "beta": rng.beta(4 * level, 4 * (1 - level)),
        "uniform": rng.random(size),
        "zeros": np.zeros(size),
        "ones": np.ones(size),
        "one 1": (np.arange(size) == size // 2).astype(float),
        "step": (np.arange(size) >= size // 2).astype(float),
    }[kind]


KINDS = ("bernoulli", "stationary", "beta", "uniform", "zeros", "ones", "one 1", "step")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [1.0, 7.5])
def test_statistic_is_exact_while_each_observation_has_a_bucket(kind, unit):
    assert BUCKETS == 64
    rewards = sample(kind, 3, BUCKETS)
    for k, (alarm, n, ratio) in enumerate(watched(rewards * unit, unit), 1):
        exact = reference.change_statistic(rewards[:k])
        assert n == k
        assert ratio == pytest.approx(exact, rel=1e-9, abs=1e-9)
        threshold = reference.change_threshold(k, 0.5)
        if abs(exact - threshold) > 1e-6:
            assert alarm == (exact > threshold)
    if kind in ("bernoulli", "beta", "step"):
        assert exact > 5


@pytest.mark.parametrize("kind", KINDS)
def test_statistic_is_never_larger_than_exact_and_hardly_smaller(kind):
    rewards = sample(kind, 5, 400)
    shares = []
    for k, (alarm, n, ratio) in enumerate(watched(rewards), 1):
        assert n == k
        if k > BUCKETS and k % 7 == 0:
            exact = reference.change_statistic(rewards[:k])
            assert ratio <= exact + 1e-9 * max(exact, 1.0)
            assert not alarm or exact > reference.change_threshold(k, 0.5) - 1e-9
            if exact > 3:
                shares.append(ratio / exact)
    assert min(shares, default=1.0) > 0.85
    assert len(shares) >= 10 or kind not in ("bernoulli", "beta", "step")


def test_the_newest_borders_stay_fine():
    """However long the history, the last observation has a bucket of its own, and all of them are counted."""
    history = empty_history(1, ())
    buckets = history.counts, history.totals, history.used
    rng = np.random.default_rng(0)
    total = 0.0
    for k in range(1, 2000):
        reward = rng.random()
        total += reward
        detect_change(*buckets, np.array([True]), np.array([reward]), 1.0, 1e-3, True)
        used = int(history.used[0])
        assert history.counts[0, used - 1] == 1
        assert history.counts[0, :used].sum() == k
        assert (np.diff(history.counts[0, :used]) <= 0).all()
    assert history.totals[0, : history.used[0]].sum() == pytest.approx(total, rel=1e-12)


def alarms(levels, runs, level, seed, law="bernoulli"):
    """First alarm of each of `runs` histories with the given means, or 0; all of them at once."""
    rng = np.random.default_rng(seed)
    history = empty_history(1, (runs,))
    buckets = history.counts, history.totals, history.used
    first = np.zeros(runs, int)
    for k, mean in enumerate(levels, 1):
        if law == "bernoulli":
            rewards = (rng.random((runs, 1)) < mean).astype(float)
        else:
            rewards = rng.beta(4 * mean, 4 * (1 - mean), (runs, 1))
        alarm = detect_change(*buckets, np.ones((runs, 1), bool), rewards, 1.0, level, first == 0)
        first[alarm] = k
    return first


@pytest.mark.parametrize(("mean", "law"), [(0.5, "bernoulli"), (0.1, "bernoulli"), (0.9, "beta")])
def test_false_alarms_are_rarer_than_the_level(mean, law):
    """Level 0.2, 300 histories of 600 stationary rewards: at most a fifth of them alarm, within Monte-Carlo error."""
    level, runs = 0.2, 300
    count = (alarms(np.full(600, mean), runs, level, seed=1, law=law) > 0).sum()
    assert stats.binomtest(int(count), runs, level, alternative="greater").pvalue > 1e-3


def test_the_level_matters():
    """A test at a level beyond all sense alarms on stationary data; that is what makes the other ones tests."""
    assert (alarms(np.full(300, 0.5), 200, 300.0, seed=1) > 0).mean() > 0.5


@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_a_change_is_found_soon(law):
    """From 0.2 to 0.8 after 150 rewards at level 1e-3: no alarm before, and one within 60 rewards."""
    first = alarms(np.r_[np.full(150, 0.2), np.full(60, 0.8)], 200, 1e-3, seed=2, law=law)
    assert (first > 150).mean() >= 0.99
    assert np.median(first) - 150 <= 25


def test_a_small_change_is_found_too():
    """From 0.5 to 0.7 after 1000 rewards: the exact test finds it after 250 rewards, and always within 700."""
    first = alarms(np.r_[np.full(1000, 0.5), np.full(700, 0.7)], 60, 1e-3, seed=2)
    assert (first > 1000).mean() >= 0.95


def test_a_fall_is_found_like_a_rise():
    rise = alarms(np.r_[np.full(100, 0.2), np.full(40, 0.8)], 200, 1e-3, seed=2)
    fall = alarms(np.r_[np.full(100, 0.8), np.full(40, 0.2)], 200, 1e-3, seed=3)
    assert abs(np.median(rise) - np.median(fall)) <= 3


# --- GLR-CUCB --------------------------------------------------------------------------------------------------------


def changing(seed, high=1.5, change=35):
    """z is nearly 0 or nearly `high`, by arm, the other way round from round `change` on; y spills over a little."""
    rng = np.random.default_rng(seed)
    spread = np.linalg.inv(np.eye(N) - np.triu(np.full((N, N), 0.1), 1))

    def outcome(t, x):
        good = np.array([True, False, True, False]) != (t >= change)
        b = high * np.where(good, rng.uniform(0.8, 1.0, N), rng.uniform(0.0, 0.1, N))
        z = np.where(x, b, 0.0)
        return z, spread @ z

    return outcome


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("way", reference.WAYS)
def test_slow_twin_agrees_at_every_round(way, scale):
    problem, known = SCALES[scale]
    clear = alarmed = 0
    for seed in (1, 2):
        policy = GLRCUCB(false_alarms=0.1, forced=0.0, knows_graph="weights" in known)
        twin = reference.SlowGLRCUCB(N, BUDGET, 0.1, **known)
        delay = reference.delays(seed)[way]
        for t, state, x in reference.play_beside(policy, problem, delay, changing(seed), 90, twin.observe_at, seed):
            index = twin.index(t)
            assert state.detector.restart == twin.restart
            np.testing.assert_allclose(policy.indices(state, sp.Rng(0)), index, rtol=1e-10, err_msg=f"round {t}")
            assert reference.top_sets_fault(x, twin.scores(index), BUDGET) == ""
            clear += reference.is_clear(twin.scores(index), BUDGET)
        alarmed += len(twin.alarms)
        assert twin.closest > 1e-6  # no alarm hung on rounding
        assert twin.longest < BUCKETS
    assert alarmed >= 2
    assert clear >= 20


def test_without_alarms_and_forcing_it_is_cucb():
    environment = sp.SyntheticSEM(n_arms=6, budget=2, horizon=200, changes=())
    quiet = GLRCUCB(false_alarms=1e-300, forced=0.0)
    one, other = (sp.simulate(policy, environment, 3, replications=4) for policy in (CUCB(), quiet))
    np.testing.assert_array_equal(one.regret, other.regret)


# --- forced exploration ----------------------------------------------------------------------------------------------


def played_by(policy, problem, rounds, seed=0):
    """Decisions of a policy without feedback, (rounds, n)."""
    rng = sp.Rng(seed)
    state = policy.init(problem, rng.at(sp.rng.Purpose.START))
    decisions = []
    for t in range(1, rounds + 1):
        decisions.append(policy.select(state, rng.at(sp.rng.Purpose.CHOICE, t)).x)
        state = policy.played(state, decisions[-1])
    return np.array(decisions)


@pytest.mark.parametrize(("n", "rate", "cycle"), [(5, 0.1, 50), (5, 0.3, 16), (3, 1.0, 3), (10, 0.01, 1000)])
def test_each_arm_has_its_turn_once_a_cycle(n, rate, cycle):
    arms = np.empty(n)
    turns = kernels.forced_arm(arms, np.arange(3 * cycle), rate)
    for k in range(3):
        ours = turns[k * cycle : (k + 1) * cycle]
        assert sorted(ours[ours >= 0]) == list(range(n))
    assert (kernels.forced_arm(arms, np.arange(100), 0.0) == -1).all()


def test_a_forced_round_plays_its_arm_in_a_random_set():
    """Every arm was seen to be worthless but the first two: without forcing these would be played for ever."""
    n, draws = 5, 3000
    policy = GLRCUCB(forced=0.1)
    state = policy.init(sp.Problem(n, 2, overall_range=(0.0, 1.0)), sp.Rng(0), (draws,))
    x, y = np.ones((draws, n), bool), np.tile([0.8, 0.8, 0.0, 0.0, 0.0], (draws, 1))
    for _ in range(100):
        state = policy.update(policy.played(state, x), feedback(x, np.zeros_like(y), y), sp.Rng(0))
    for turn in range(n + 3):  # round 100 starts a cycle of 50
        chosen = policy.select(state, sp.Rng(turn, np.arange(draws))).x
        assert (chosen.sum(axis=-1) == 2).all()
        if turn < n:
            assert chosen[:, turn].all()
            others = np.delete(chosen, turn, axis=1).sum(axis=0)
            assert stats.chisquare(others).pvalue > 1e-3
        else:
            assert chosen[:, :2].all()
        state = policy.played(state, chosen)


def test_the_cycle_starts_anew_after_an_alarm():
    policy = GLRCUCB(forced=0.1)
    state = policy.init(sp.Problem(4, 1, overall_range=(0.0, 1.0)), sp.Rng(0))
    state = state._replace(rounds=np.array(123), detector=state.detector._replace(restart=np.array(121)))
    assert policy.select(state, sp.Rng(0)).x.tolist() == [False, False, True, False]


def test_forcing_finds_a_change_of_an_idle_arm():
    means = np.array([[0.8, 0.7, 0.1, 0.1], [0.8, 0.7, 0.95, 0.95]])
    world = sp.FixedSEM(adjacency=np.zeros((4, 4)), means=means, budget=2, horizon=1500, changes=(700,))
    late = []
    for policy in (GLRCUCB(forced=0.1, false_alarms=0.01), CUCB()):
        regret = sp.simulate(policy, world, replications=6).regret
        late.append((regret[:, -1] - regret[:, 1100]).mean())
    assert late[0] < 0.6 * late[1]


# --- GLR-SEM-UCB -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", reference.WAYS)
def test_slow_sem_twin_agrees_at_every_round(way):
    policy = GLRSEMUCB(false_alarms=0.1, forced=0.0, graph=sparse(0.05))
    problem = sp.Problem(N, BUDGET, True, (-0.2, 2.0))
    clear = alarmed = 0
    for seed in (1, 2):
        twin = reference.SlowSEMUCB(N, BUDGET, 0.05, level=0.1, reward_range=(-0.2, 2.0))
        delay = reference.delays(seed)[way]
        game = reference.play_beside(policy, problem, delay, changing(seed, 2.0), 140, twin.observe_at, seed)
        for t, state, x in game:
            shown, index = explained(policy, state), twin.index(t)
            assert state.detector.restart == twin.restart
            np.testing.assert_allclose(shown.index, index, rtol=1e-10, err_msg=f"round {t}")
            weights = shown.weights
            if (found := twin.graph()) is not None:
                np.testing.assert_allclose(shown.adjacency, found[0], atol=1e-6)
            if t > N:
                assert reference.top_sets_fault(x, weights * index, BUDGET, near=1e-5) == ""
                clear += reference.is_clear(weights * index, BUDGET, near=1e-5)
        alarmed += len(twin.alarms)
        assert twin.closest > 1e-6
    assert alarmed >= 1
    assert clear >= 60


def test_the_means_are_forgotten_and_the_graph_is_kept():
    """The same history for SEM-UCB: its graph, and its means without the restart."""
    policy, plain = GLRSEMUCB(false_alarms=0.01, forced=0.0, graph=sparse(0.1)), SEMUCB(graph=sparse(0.1))
    problem = sp.Problem(3, 2)
    state, other = policy.init(problem, sp.Rng(0), (2,)), plain.init(problem, sp.Rng(0), (2,))
    rng = np.random.default_rng(0)
    total = np.linalg.inv(np.eye(3) - np.array([[0, 0.5, 0], [0, 0, 0.6], [0, 0, 0]]))
    for t in range(1, 61):
        x = np.stack([rng.permutation(3) < 2, rng.permutation(3) < 2])
        b = rng.uniform(0.0, 0.2, (2, 3))
        b[1] += 0.8 * (t > 30)
        piece = feedback(x, x * b, (x * b) @ total.T)
        state = policy.update(policy.played(state, x), piece, sp.Rng(0))
        other = plain.update(plain.played(other, x), piece, sp.Rng(0))
        for name, leaf in leaves(state.graph).items():
            np.testing.assert_array_equal(leaf, leaves(other.graph)[name], err_msg=name)
        if state.detector.restart[1] == t:
            assert np.isnan(explained(policy, state).mean[1]).all()
            assert (policy.indices(state, sp.Rng(0))[1] == np.inf).all()
            assert not state.detector.used[1].any()
    assert state.detector.restart[0] == 0
    assert 32 <= state.detector.restart[1] <= 45
    np.testing.assert_array_equal(state.averages.counts[0], other.averages.counts[0])
    assert (explained(policy, state).mean[1] > 0.75).all()
    assert (explained(plain, other).mean[1] < 0.75).all()
    assert (explained(policy, state).adjacency[:, 0, 1] > 0.1).all()


def test_the_initialisation_comes_before_forcing():
    n, budget = 5, 2
    played = played_by(GLRSEMUCB(forced=1.0), sp.Problem(n, budget), 3 * n)
    assert initialisation_faults(played[:n], budget) == []
    for k in range(n, 3 * n):
        assert played[k, k % n]  # with a rate of 1 every round is some arm's turn
        assert played[k].sum() == budget

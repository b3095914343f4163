"""CTS: posteriors and decisions against a twin that is handed the same draws, and the law of its decisions."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.policies import CTS
from spillover.state import leaves
from spillover.testing import check_policy
from tests.reference import rivals_reference as reference

N, BUDGET = 4, 2
WEIGHTS = np.array([1.0, 2.5, 1.2, 1.7])
SCALES: dict[str, tuple[sp.Problem, dict[str, Any]]] = {
    "declared": (sp.Problem(N, BUDGET, overall_range=(0.0, 1.5)), {"overall_range": (0.0, 1.5)}),
    "shifted": (sp.Problem(N, BUDGET, overall_range=(-0.5, 0.5)), {"overall_range": (-0.5, 0.5)}),
    "known graph": (
        sp.Problem(N, BUDGET, reward_range=(-0.2, 1.5), weights=WEIGHTS),
        {"weights": WEIGHTS, "reward_range": (-0.2, 1.5)},
    ),
}


def feedback(x, y, z=None, arrived=True):
    x = np.asarray(x, bool)
    batch = x.shape[:-1]
    rewards = np.zeros(x.shape) if z is None else np.asarray(z, float)
    return sp.Feedback(x, rewards, np.asarray(y, float), np.zeros(batch, int), np.full(batch, arrived))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("way", reference.WAYS)
def test_slow_twin_agrees_at_every_round(way, scale):
    problem, known = SCALES[scale]
    policy, twin, seed = CTS(knows_graph="weights" in known), reference.SlowCTS(N, BUDGET, **known), 5
    rng = sp.Rng(seed)

    def observe(now, played_at, x, z, y):
        twin.observe(played_at, x, z, y)
        twin.observe_draw(rng.at(sp.rng.Purpose.LEARNING, played_at).uniform(N))

    outcome = reference.spilling(N, seed, *problem.reward_range)
    for t, state, x in reference.play_beside(policy, problem, reference.delays(4)[way], outcome, 120, observe, seed):
        a, b = twin.posterior()
        np.testing.assert_array_equal(state.successes, a)
        np.testing.assert_array_equal(state.failures, b)
        theta = rng.at(sp.rng.Purpose.CHOICE, t).beta(a, b)
        assert reference.top_sets_fault(x, twin.scores(theta), BUDGET) == ""
        assert x.sum() == min(BUDGET, (twin.scores(theta) > 0).sum())
    assert a.sum() > 10
    assert b.sum() > 30


def test_an_outcome_becomes_a_bernoulli_draw_with_its_mean():
    draws = 40_000
    policy = CTS()
    state = policy.init(sp.Problem(4, 4, overall_range=(1.0, 3.0)), sp.Rng(0), (draws,))
    x = np.tile([True, True, True, False], (draws, 1))
    state = policy.update(
        policy.played(state, x), feedback(x, np.tile([1.5, 1.0, 9.0, 2.0], (draws, 1))), sp.Rng(1, np.arange(draws))
    )
    assert abs((state.successes[:, 0] - 1).mean() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / draws)
    assert (state.successes[:, 1] == 1).all()  # the lowest reward never counts
    assert (state.successes[:, 2] == 2).all()  # the highest, and what is above it, always
    assert (state.successes[:, 3] == 1).all()  # not played
    assert (state.failures[:, 3] == 1).all()
    np.testing.assert_array_equal((state.successes + state.failures)[:, :3], 3)


def test_outcomes_are_drawn_independently_for_arms_and_learners():
    draws = 20_000
    policy = CTS()
    state = policy.init(sp.Problem(2, 2, overall_range=(0.0, 1.0)), sp.Rng(0), (draws,))
    x = np.ones((draws, 2), bool)
    state = policy.update(policy.played(state, x), feedback(x, np.full((draws, 2), 0.5)), sp.Rng(2, np.arange(draws)))
    table = np.zeros((2, 2))
    np.add.at(table, tuple((state.successes - 1).astype(int).T), 1)
    assert stats.chisquare(table.ravel()).pvalue > 1e-3


def test_one_draw_an_arm_and_the_best_are_chosen():
    """The chances of each set, against Beta draws of NumPy."""
    policy, draws = CTS(), 60_000
    problem = sp.Problem(4, 2, overall_range=(0.0, 1.0))
    state = policy.init(problem, sp.Rng(0), (draws,))
    a, b = np.array([3.0, 5.0, 1.0, 2.0]), np.array([2.0, 4.0, 1.0, 4.0])
    state = state._replace(successes=np.tile(a, (draws, 1)), failures=np.tile(b, (draws, 1)))
    x = policy.select(state, sp.Rng(3, np.arange(draws))).x
    theta = np.random.default_rng(0).beta(a, b, (4 * draws, 4))
    theirs = np.argsort(np.argsort(-theta, axis=1), axis=1) < 2
    patterns = [np.bincount(chosen @ [1, 2, 4, 8], minlength=16) for chosen in (x, theirs)]
    seen = patterns[1] > 0
    assert seen.sum() == 6
    assert not patterns[0][~seen].any()
    assert stats.chi2_contingency([patterns[0][seen], patterns[1][seen]]).pvalue > 1e-3


def test_told_weights_rank_the_draws():
    """P(w_1 theta_1 > w_2 theta_2) for uniform draws and w = (1, 2) is 1/4."""
    policy, draws = CTS(knows_graph=True), 40_000
    state = policy.init(sp.Problem(2, 1, weights=[1.0, 2.0]), sp.Rng(0), (draws,))
    share = policy.select(state, sp.Rng(6, np.arange(draws))).x[:, 0].mean()
    assert abs(share - 0.25) < 4 * math.sqrt(0.25 * 0.75 / draws)


def test_at_first_all_sets_are_equally_likely():
    policy, draws = CTS(), 20_000
    state = policy.init(sp.Problem(5, 2, overall_range=(0.0, 1.0)), sp.Rng(0), (draws,))
    x = policy.select(state, sp.Rng(1, np.arange(draws))).x
    counts = np.bincount(x @ (2 ** np.arange(5)), minlength=32)
    assert (counts > 0).sum() == 10
    assert stats.chisquare(counts[counts > 0]).pvalue > 1e-3


def test_decisions_are_drawn_anew_each_round():
    policy, rng = CTS(), sp.Rng(9)
    state = policy.init(sp.Problem(6, 3, overall_range=(0.0, 1.0)), rng)
    sets = {tuple(policy.select(state, rng.at(sp.rng.Purpose.CHOICE, t)).x) for t in range(100)}
    assert len(sets) >= 18  # of 20


def test_what_has_not_arrived_changes_nothing():
    policy = CTS()
    state = policy.init(sp.Problem(3, 2, overall_range=(0.0, 1.0)), sp.Rng(0))
    before = {name: leaf.copy() for name, leaf in leaves(state).items()}
    after = policy.update(state, feedback([1, 1, 0], [np.nan, 1.0, 0.0], arrived=False), sp.Rng(0))
    for name, leaf in leaves(after).items():
        np.testing.assert_array_equal(leaf, before[name])


def test_the_order_of_arrival_does_not_matter():
    """The draw that turns an outcome into 0 or 1 belongs to its round of play."""
    policy, rng = CTS(), sp.Rng(3)
    y = np.random.default_rng(0).random((30, 3))
    states = []
    for order in (range(30), range(29, -1, -1)):
        state = policy.init(sp.Problem(3, 3, overall_range=(0.0, 1.0)), rng)
        for _ in range(30):
            state = policy.played(state, np.ones(3, bool))
        for k in order:
            state = policy.update(state, feedback([1, 1, 1], y[k]), rng.at(sp.rng.Purpose.LEARNING, k + 1))
        states.append(state)
    np.testing.assert_array_equal(states[0].successes, states[1].successes)
    assert (states[0].successes + states[0].failures == 32).all()


def test_contract():
    check_policy(CTS())


@pytest.mark.parametrize("knows_graph", [False, True])
def test_live_equals_its_row_of_a_batch(knows_graph):
    policy, environment = CTS(knows_graph=knows_graph), sp.SyntheticSEM(horizon=120, changes=(60,))
    delay = sp.LossyDelay(sp.GeometricDelay(5), 0.2)
    many = sp.simulate(policy, environment, delay, replications=5, seed=2)
    alone = sp.simulate(policy, environment, delay, replications=1, seed=2, first=3)
    np.testing.assert_array_equal(many.regret[3:4], alone.regret)


MEANS = np.array([0.9, 0.8, 0.75, 0.7, 0.5, 0.45, 0.4, 0.3, 0.2, 0.1])


@pytest.mark.long
def test_regret_of_a_plain_bandit_problem():
    """Bernoulli rewards, no delay, no graph, no drift: as much regret as an independent implementation."""
    runs, horizon = 100, 3000
    plain = reference.plain_regret(reference.cts_scores, MEANS, 4, horizon, runs, seed=7)
    world = sp.FixedSEM(adjacency=np.zeros((10, 10)), means=MEANS, budget=4, horizon=horizon)
    run = sp.simulate(CTS(), world, replications=runs)
    error = math.hypot(plain.std(ddof=1), run.final_regret.std(ddof=1)) / math.sqrt(runs)
    assert abs(run.final_regret.mean() - plain.mean()) <= 3.5 * error
    assert error < 0.08 * plain.mean()
    assert run.final_regret.mean() < 0.05 * horizon * (MEANS[:4].sum() - 0.4 * MEANS.sum())


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (sp.Problem(2, 1), r"overall_range = None in the problem: must be \(low, high\) for CTS, as past draws"),
        (sp.Problem(2, 1, overall_range=(2.0, 1.0)), r"overall_range = \(2.0, 1.0\): must be a pair \(low, high\)"),
        (sp.Problem(2, 5, overall_range=(0.0, 1.0)), "budget = 5: must be at most n_arms = 2"),
    ],
)
def test_errors_name_the_argument(problem, message):
    with pytest.raises(ValueError, match=message):
        CTS().init(problem, sp.Rng(0))


def test_told_the_graph_it_needs_no_overall_range():
    CTS(knows_graph=True).init(sp.Problem(2, 1, weights=[1.0, 2.0]), sp.Rng(0))


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (feedback([1, 0], [np.inf, 0]), r"y = \[inf  ?0\.\], with x = \[1 0\]: must be finite"),
        (
            feedback([1, 0], [1, 1], z=[-1, 0]),
            r"z = \[-1\. +0\.\], .*: must be inside the problem's reward_range \[0, 1\]",
        ),
        (feedback([1, 0], [1, 1], z=[0, 1]), r"z = \[0\. 1\.\], .*: must be 0 for every arm that was not played"),
    ],
)
def test_errors_name_what_is_wrong_with_feedback(piece, message):
    policy = CTS()
    state = policy.init(sp.Problem(2, 1, overall_range=(0.0, 1.0)), sp.Rng(0))
    with pytest.raises(ValueError, match=message):
        policy.update(policy.played(state, piece.x), piece, sp.Rng(0))

"""FTRL: its optimisation against other solvers, its sampler against the marginals, the policy against a plain twin."""

import math

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import boolean, float64, guvectorize, int64, uint64

import spillover as sp
from spillover.kernels import ftrl
from spillover.kernels.decorators import EIGHT
from spillover.kernels.drawing import take_sample
from spillover.policies.sampling import FTRL, entropy_weight
from spillover.rng import Rng
from spillover.state import leaves
from spillover.types import Problem
from tests.reference import ftrl_reference as reference
from tests.support import feedback as feedback_of

SATURATED = 36.0  # logits above this are those of an x that rounds to 1


@guvectorize([(float64[:], float64, int64, float64, float64[:], float64[:])], "(n),(),(),()->(n),(n)")
def hybrid_marginals(losses, rate, budget, mixture, marginals, logits):
    """The marginals, and their logits, which give 1 - x where x rounds to 1."""
    n = losses.shape[0]
    room = np.empty((ftrl.blocks(n), ftrl.ROWS, EIGHT))
    ftrl.marginals_into(losses, rate, budget, mixture, marginals, room)
    for i in range(n):
        v = room[i // EIGHT, ftrl.EXCESS, i % EIGHT]
        logits[i] = -math.log(4.0 * v * (1.0 + v)) if v > 0.0 else math.inf


@guvectorize([(float64[:], int64, uint64[:], uint64, uint64, uint64, boolean[:])], "(n),(),(k),(),(),()->(n)")
def systematic_sample(marginals, budget, key, call, at_round, purpose, x):
    take_sample(marginals, budget, key, call, at_round, purpose, np.empty(x.shape[0], np.int64), x)


def solve(losses, rate, budget, mixture=None):
    losses = np.asarray(losses, float)
    mixture = entropy_weight(losses.shape[-1], budget) if mixture is None else mixture
    return hybrid_marginals(losses, rate, budget, mixture)


def violations(losses, rate, budget, mixture, logits):
    """How far each arm's derivative is from the multiplier, relative to 1 + |L_i|; 0 for all at the optimum."""
    border = np.argsort(losses, kind="stable")[budget - 1]
    needed = losses - losses[border] + reference.height(logits[border], mixture) / rate
    off = np.abs(needed - reference.height(logits, mixture) / rate)
    # where x rounds to 1 the logit only has to be large enough: no double is nearer to the exact x
    full = needed <= reference.height(SATURATED, mixture) / rate
    off[full & (logits > SATURATED)] = 0.0
    return off / (1.0 + np.abs(losses))


@st.composite
def problems(draw):
    """Losses up to 1e8 in clusters, ties and magnitudes of all kinds."""
    n = draw(st.integers(2, 30))
    value = st.one_of(st.floats(0, 1e8), st.floats(0, 10), st.sampled_from([0.0, 1.0, 1e4, 1e8, 1e8 + 1.0]))
    losses = np.array(draw(st.lists(value, min_size=n, max_size=n)))
    return losses, 1.0 / math.sqrt(draw(st.integers(1, 10**6))), draw(st.integers(1, n - 1))


@given(problems())
def test_optimality_conditions(problem):
    losses, rate, budget = problem
    mixture = entropy_weight(len(losses), budget)
    x, logits = solve(losses, rate, budget)
    assert abs(x.sum() - budget) <= 1e-10
    assert (x > 0).all()
    assert (x <= 1).all()
    assert violations(losses, rate, budget, mixture, logits).max() <= 1e-9


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=12), st.data())
def test_losses_beyond_all_bounds(losses, data):
    budget = data.draw(st.integers(1, len(losses) - 1))
    rate = data.draw(st.floats(1e-6, 1))
    x, logits = solve(losses, rate, budget)
    assert np.isfinite(x).all()
    assert np.isfinite(logits).all()
    assert (x > 0).all()
    assert abs(x.sum() - budget) <= 1e-10


@pytest.mark.parametrize("n", [100, 1000])
def test_many_arms(n):
    rng = np.random.default_rng(n)
    for budget in (1, n // 10, n // 2, n - 1):
        losses = rng.uniform(0, 300, n)
        x, logits = solve(losses, 0.1, budget)
        assert abs(x.sum() - budget) <= 1e-10
        assert violations(losses, 0.1, budget, entropy_weight(n, budget), logits).max() <= 1e-9


def test_all_arms():
    assert (solve(np.array([3.0, 1e8, -5.0]), 1.0, 3)[0] == 1.0).all()
    assert (solve(np.array([[2.0], [7.0]]), 1.0, 1)[0] == 1.0).all()


def test_equal_losses_share_equally():
    np.testing.assert_allclose(solve(np.full(7, 1e6), 0.3, 3)[0], 3 / 7, rtol=1e-14)


def test_only_differences_matter():
    losses = np.array([4.0, 1.0, 2.5, 0.0, 9.0])
    np.testing.assert_array_equal(solve(losses, 0.5, 2)[0], solve(losses + 2.0**20, 0.5, 2)[0])


@pytest.mark.parametrize("seed", range(4))
def test_against_bisection(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    budget = int(rng.integers(1, n))
    losses = 10 ** rng.uniform(-2, rng.uniform(0, 8), n)
    rate = 10 ** rng.uniform(-3, 0)
    mixture = entropy_weight(n, budget)
    expected = reference.marginals(losses, rate, budget, mixture)
    np.testing.assert_allclose(solve(losses, rate, budget)[0], expected, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("mixture", [0.002, 0.02, 0.1])
@pytest.mark.parametrize("losses", [[0.0, 1.0], [0.0, 1.0, 10.0, 1000.0], np.arange(12.0), [1.0, 1e8 + 1.0]])
def test_mixtures_for_which_arms_and_multiplier_are_solved_in_turn(losses, mixture):
    """Below about 0.03; FTRL's own are larger."""
    for budget in range(1, len(losses)):
        x, logits = solve(losses, 1.0, budget, mixture)
        assert abs(x.sum() - budget) <= 1e-14 * len(losses)
        assert violations(np.asarray(losses), 1.0, budget, mixture, logits).max() <= 1e-12


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_marginals_and_logits_agree(scale):
    x, logits = solve(np.random.default_rng(5).exponential(scale, (200, 9)), 1.0, 4)
    np.testing.assert_allclose(x, 1.0 / (1.0 + np.exp(-logits)), rtol=1e-13)


@pytest.mark.parametrize("seed", range(8))
def test_against_a_general_convex_solver(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    budget = int(rng.integers(1, n))
    losses = rng.uniform(0, 10 ** rng.uniform(0, 2), n)
    rate = 1.0 / math.sqrt(rng.integers(1, 1000))
    mixture = entropy_weight(n, budget)
    x = cvxpy.Variable(n)
    objective = rate * (losses @ x) + cvxpy.sum(-cvxpy.sqrt(x) - mixture * cvxpy.entr(1 - x))
    problem = cvxpy.Problem(cvxpy.Minimize(objective), [cvxpy.sum(x) == budget])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    found = solve(losses, rate, budget)[0]
    theirs = x.value
    np.testing.assert_allclose(found, theirs, atol=2e-5)
    x.value = found
    assert objective.value <= problem.value + 1e-8


def test_entropy_weight():
    assert entropy_weight(10, 5) == entropy_weight(10, 6) == entropy_weight(10, 10) == 1.0
    assert entropy_weight(10, 9) == pytest.approx(1 / math.sqrt(math.log(10)))


# --- the sampler -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "marginals", [[0.4] * 5, [0.999, 0.5, 0.3, 0.2, 0.001], [1.0, 1.0, 0.5, 0.25, 0.25], [1.0] * 5]
)
def test_sampler_has_its_marginals(marginals):
    p, draws = np.array(marginals), 200_000
    budget = round(p.sum())
    x = systematic_sample(p, budget, *Rng(3, np.arange(draws)).address())
    assert (x.sum(axis=-1) == budget).all()
    error = np.abs(x.mean(axis=0) - p)
    assert (error <= 5 * np.sqrt(p * (1 - p) / draws)).all()


def test_sampler_in_random_order_plays_all_pairs():
    x = systematic_sample(np.full(6, 0.5), 3, *Rng(1, np.arange(20_000)).address())
    together = x.astype(float).T @ x
    assert (together > 0).all()  # in a fixed order some pairs would never be drawn


@given(problems(), st.integers(0, 2**32))
def test_always_exactly_the_budget(problem, seed):
    losses, rate, budget = problem
    x, _ = solve(losses, rate, budget)
    rng = Rng(seed, np.arange(50))
    for p in (x, x * (1 - 1e-10 / budget), np.minimum(x * (1 + 1e-10 / budget), 1.0)):
        chosen = systematic_sample(p, budget, *rng.address())
        assert (chosen.sum(axis=-1) == budget).all()


def test_sum_that_falls_short_still_fills_the_set():
    x = systematic_sample(np.array([0.5, 0.1, 0.0]), 2, *Rng(0, np.arange(1000)).address())
    assert (x == [True, True, False]).all()


# --- the policy ------------------------------------------------------------------------------------------------------


def feedback(x, y, p, z=None):
    return feedback_of(x, z=np.zeros(np.shape(x)) if z is None else z, y=y, probability=p)


def state_after(policy, problem, *pieces):
    state = policy.init(problem, Rng(0))
    for piece in pieces:
        state = policy.update(policy.played(state, piece.x), piece, Rng(0))
    return state


def test_losses_grow_by_importance_weighted_losses():
    problem = Problem(3, 2, overall_range=(-1.0, 3.0))
    p = np.array([0.5, 0.8, 0.7])
    state = state_after(FTRL(), problem, feedback([1, 0, 1], y=[0.0, 2.0, 3.5], p=p))
    np.testing.assert_allclose(state.losses, [2 * 0.75 / 0.5, 0, 0])  # r = 1/4, unplayed, clipped to 1
    later = FTRL().update(state, feedback([0, 1, 1], y=[0.0, 1.0, -7.0], p=p), Rng(0))
    np.testing.assert_allclose(later.losses, [3.0, 2 * 0.5 / 0.8, 2 / 0.7])


def test_time_is_the_round_being_decided():
    policy = FTRL()
    state = state_after(
        policy, Problem(3, 1, overall_range=(0, 1)), feedback([1, 0, 0], y=[0, 0, 0], p=np.full(3, 1 / 3))
    )
    expected = reference.marginals(state.losses, 1 / math.sqrt(2), 1, 1.0)
    np.testing.assert_allclose(policy.indices(state, Rng(0)), expected, rtol=1e-10)


def test_undeclared_range_rescales_the_past():
    rng = np.random.default_rng(0)
    x = rng.random((40, 4)) < 0.5
    y = rng.exponential(3.0, (40, 4)) * rng.choice([1, -1], (40, 4), p=[0.8, 0.2])
    p = rng.uniform(0.1, 1, (40, 4))
    state = state_after(FTRL(), Problem(4, 2), *(feedback(a, y=b, p=c) for a, b, c in zip(x, y, p, strict=True)))
    largest = y[x].max()
    expected = (x * 2 * (1 - np.maximum(y, 0) / largest) / p).sum(axis=0)
    np.testing.assert_allclose(state.losses, expected, rtol=1e-12)
    assert state.scale.unit == largest


def test_no_reward_yet_leaves_no_scale():
    state = state_after(FTRL(), Problem(2, 1), feedback([1, 0], y=[0, 5.0], p=np.array([0.5, 0.5])))
    assert state.losses.tolist() == [4.0, 0.0]  # 5.0 is not of a played arm


def test_knows_graph_learns_from_weighted_instantaneous_rewards():
    problem = Problem(3, 2, reward_range=(0, 2), weights=np.array([1.0, 4.0, 2.0]))
    p = np.array([0.5, 0.5, 1.0])
    state = state_after(FTRL(knows_graph=True), problem, feedback([1, 1, 0], y=[9, 9, 9], p=p, z=[2.0, 1.0, 0.0]))
    np.testing.assert_allclose(state.losses, [4 * (1 - 0.25), 4 * (1 - 0.5), 0])


extremes = st.one_of(st.floats(-1e40, 1e40), st.sampled_from([0.0, 1e-320, 1.0, 1e40]))
chances = st.one_of(st.floats(5e-324, 1.0), st.floats(0.05, 1.0))


@given(st.data(), st.booleans(), st.integers(1, 4))
def test_no_feedback_makes_it_fall_over(data, declared, budget):
    """Whoever plays what with whatever probability: finite, and exactly s arms."""
    policy = FTRL()
    problem = Problem(4, budget, overall_range=(-1.0, 2.0) if declared else None)
    state = policy.init(problem, Rng(0))
    for t in range(data.draw(st.integers(1, 8))):
        choice = policy.select(state, Rng(t))
        assert choice.x.sum() == budget
        assert np.isfinite(choice.probability).all()
        x = data.draw(st.lists(st.booleans(), min_size=4, max_size=4))
        y = data.draw(st.lists(extremes, min_size=4, max_size=4))
        memo = np.array(data.draw(st.lists(chances, min_size=4, max_size=4)))
        state = policy.update(policy.played(state, np.array(x)), feedback(x, y=y, p=memo), Rng(t))
        assert all(np.isfinite(leaf).all() for leaf in leaves(state).values())


MEANS = np.array([0.9, 0.8, 0.75, 0.7, 0.5, 0.45, 0.4, 0.3, 0.2, 0.1])


def test_same_history_same_probabilities():
    """The plain implementation and the policy, fed the same decisions and rewards."""
    plain = reference.PlainFTRL(10, 4, runs=3, seed=0)
    policy = FTRL()
    state = policy.init(Problem(10, 4, overall_range=(0.0, 1.0)), Rng(0), (3,))
    rewards = np.random.default_rng(1)
    for _ in range(400):
        x = plain.play()
        np.testing.assert_allclose(policy.indices(state, Rng(0)), plain.x, rtol=1e-7, atol=1e-9)
        y = (rewards.random((3, 10)) < MEANS).astype(float)
        plain.learn(x, 1 - 2 * y)
        state = policy.update(policy.played(state, x), feedback(x, y=y, p=plain.x), Rng(0))


@pytest.mark.long
def test_regret_of_a_plain_bandit_problem():
    """Bernoulli rewards, no delay, no graph, no drift: as much regret as an independent implementation."""
    runs, horizon = 40, 1000
    plain = reference.PlainFTRL(10, 4, runs, seed=7)
    rewards = np.random.default_rng(8)
    regret = np.zeros(runs)
    for _ in range(horizon):
        x = plain.play()
        regret += MEANS[:4].sum() - x @ MEANS
        plain.learn(x, 1.0 - 2.0 * (rewards.random((runs, 10)) < MEANS))
    world = sp.FixedSEM(adjacency=np.zeros((10, 10)), means=MEANS, budget=4, horizon=horizon)
    run = sp.simulate(FTRL(), world, replications=runs)
    error = math.hypot(regret.std(ddof=1), run.final_regret.std(ddof=1)) / math.sqrt(runs)
    assert abs(run.final_regret.mean() - regret.mean()) <= 4 * error
    uniform = horizon * (MEANS[:4].sum() - 0.4 * MEANS.sum())
    assert run.final_regret.mean() < 0.15 * uniform
    # logarithmic, not linear: the second half costs much less than the first
    assert (run.regret[:, -1] - run.regret[:, 499]).mean() < 0.6 * run.regret[:, 499].mean()


@pytest.mark.parametrize(
    ("policy", "problem", "piece", "message"),
    [
        (FTRL(knows_graph=True), Problem(2, 1), None, "weights = None"),
        (FTRL(knows_graph=True), Problem(2, 1, weights=np.array([-1.0, 0.0])), None, "above 0 for at least one arm"),
        (
            FTRL(),
            Problem(2, 1),
            feedback([1, 0], y=[1, 1], p=None),
            "probability = None: must be the probabilities",
        ),
        (
            FTRL(),
            Problem(2, 1),
            feedback([1, 0], y=[1, 1], p=np.array([0.0, 1.0])),
            "probability = .*: must be the probabilities",
        ),
        (
            FTRL(),
            Problem(2, 1),
            feedback([1, 0], y=[1, 1], p=np.array([np.nan, 1.0])),
            "probability = .*: must be",
        ),
        (FTRL(), Problem(2, 1), feedback([1, 0], y=[1, 1], p=np.full(3, 0.5)), r"of shape \(2,\)"),
        (FTRL(), Problem(2, 1), feedback([1, 0], y=[np.nan, 1], p=np.full(2, 0.5)), "must be finite"),
        (FTRL(), Problem(2, 1), feedback([1, 0], y=[1, 1], p=np.full(2, 0.5), z=[7, 0]), "reward_range"),
    ],
)
def test_errors_name_the_argument(policy, problem, piece, message):
    with pytest.raises(ValueError, match=message):
        state_after(policy, problem, *([] if piece is None else [piece]))

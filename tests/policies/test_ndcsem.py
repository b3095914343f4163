"""NDC-SEM against its slow twin, in every way that feedback can arrive."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.types import Checked
from tests.properties import examples
from tests.reference import graph_reference
from tests.reference.ndcsem_reference import SlowNDCSEM, choose, initialisation_faults
from tests.sampling import every
from tests.support import explained, feedback, sparse

N, BUDGET = 4, 2
SPARSITY = 0.1
SETTINGS: dict[str, Any] = {"discount": 0.9, "exploration": 0.05, "graph": sparse(SPARSITY)}
DELAYS: dict[str, Any] = {
    "none": sp.ConstantDelay(0),
    "constant": sp.ConstantDelay(3),
    "longer than the initialisation": sp.ConstantDelay(9),
    "uniform": sp.UniformDelay(0, 6),
    "geometric": sp.GeometricDelay(2.5),
    "recorded": sp.RecordedDelay(np.r_[np.arange(25)[::-1], np.zeros(25)]),
    "lost": sp.LossyDelay(sp.UniformDelay(0, 4), 0.4),
    "all lost": sp.LossyDelay(sp.ConstantDelay(0), 1.0),
}


def world_and_streams(seed, law="beta", acyclic=True, horizon=50, batch=()):
    environment: Any
    if acyclic:
        environment = sp.SyntheticSEM(
            n_arms=N, budget=BUDGET, edge_density=0.3, horizon=horizon, changes=(20,), law=law
        )
    else:
        a = np.array([[0, 0.4, 0, 0.3], [0, 0, 0.5, 0], [0.2, 0, 0, 0.1], [0, 0, 0.3, 0]])
        environment = sp.FixedSEM(
            adjacency=a, means=[0.3, 0.8, 0.5, 0.6], budget=BUDGET, horizon=horizon, law=law, acyclic=False
        )
    rng = sp.Rng(seed, 0 if not batch else np.arange(batch[0]))
    return environment.draw(rng.at(sp.rng.Purpose.WORLD), batch), rng


def same_learner(left, right):
    """Bit for bit, all that was learned."""
    a, b = sp.state.leaves(left), sp.state.leaves(right)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def compare(shown, twin, t):
    """One explanation against the slow twin; returns the scores that the choice must follow."""
    held = twin.holds(t)
    np.testing.assert_allclose(shown.mean, held.mean, rtol=1e-10)
    np.testing.assert_allclose(shown.count, held.count, rtol=1e-10)
    np.testing.assert_allclose(shown.clock, held.clock, rtol=1e-10)
    np.testing.assert_allclose(shown.index, held.index, rtol=1e-9)
    Z, Y = twin.history()
    violation, infeasible = graph_reference.worst_conditions(
        Z, Y, shown.adjacency, twin.penalty, twin.allowed, twin.bound
    )
    assert violation <= 1e-8
    assert infeasible <= 1e-9
    found = graph_reference.objective(Z, Y, shown.adjacency, twin.penalty)
    assert found == pytest.approx(held.objective, rel=1e-8, abs=1e-8)
    np.testing.assert_allclose(shown.weights, graph_reference.total_effects(shown.adjacency), rtol=1e-9)
    np.testing.assert_allclose(shown.score, shown.weights * shown.index, rtol=1e-12)
    if not graph_reference.unique_minimiser(Y, twin.allowed):
        return shown.score  # several graphs are as good: follow the one that it holds
    stray = max(1e-6, 1e-7 * np.linalg.cond(Y[:, 1:].T @ Y[:, 1:]))  # of conditions that hold to 1e-8
    if stray > 1e-3:  # a tolerance that says nothing
        return shown.score
    np.testing.assert_allclose(shown.adjacency, held.adjacency, atol=stray)
    np.testing.assert_allclose(shown.weights, held.weights, atol=10 * stray)
    return held.score


@pytest.mark.parametrize("acyclic", [True, False])
@pytest.mark.parametrize("name", every(3, DELAYS))
def test_slow_twin_agrees_at_every_round(name, acyclic):
    for law in ("bernoulli", "beta"):
        delay = DELAYS[name]
        world, rng = world_and_streams(5, law, acyclic)
        policy = sp.NDCSEM(**SETTINGS)
        twin = SlowNDCSEM(N, BUDGET, SETTINGS["discount"], SETTINGS["exploration"], SPARSITY, acyclic)
        under_way: list = []
        score, clear = np.zeros(N), 0
        for t, x, outcome, state in sp.rounds(policy, world, delay, rng, ()):
            if t > N:
                chosen, margin = choose(score, BUDGET)  # as of the end of the round before
                if margin > 1e-3:
                    assert set(np.flatnonzero(x)) == chosen
                    clear += 1
                assert x.sum() <= BUDGET
            late = int(delay.draw(t, rng.at(sp.rng.Purpose.DELAY, t)))
            under_way.append((late + t if late != sp.delays.NEVER else late, t, x, outcome.z, outcome.y))
            for arrival, played_at, *outcome in under_way:
                if arrival == t:
                    twin.observe(played_at, *outcome)
            score = compare(explained(policy, state), twin, t + 1)
        assert clear >= 20 or name == "all lost"
        if name == "all lost":
            assert not twin.outcomes


def test_the_first_rounds_follow_the_initialisation_matrix():
    for seed in range(30):
        world, rng = world_and_streams(seed)
        played = [x for _, x, _, _ in sp.rounds(sp.NDCSEM(), world, 0, rng, ())]
        assert initialisation_faults(played[:N], BUDGET) == []


# --- order of arrival ------------------------------------------------------------------------------------------------


def played_log(seed, rounds, n=5, budget=2, law="beta", acyclic=True):
    """A log of rounds played at random; (rounds, n) each."""
    rng = np.random.default_rng(seed)
    a = np.where(
        graph_reference.allowed_edges(n, acyclic), rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4), 0
    )
    a *= 0.9 / max(0.9, a.sum(axis=1).max())
    x = np.zeros((rounds, n), bool)
    for t in range(rounds):
        x[t, rng.permutation(n)[:budget]] = True
    b = rng.uniform(size=(rounds, n))
    z = x * (b if law == "beta" else b < 0.5)
    return x, z.astype(float), np.linalg.solve(np.eye(n) - a, z.T.astype(float)).T


def learn_in_order(policy, problem, log, order, rounds=None):
    """Play the whole log, then learn its rounds in the given order."""
    rounds = len(log[0]) if rounds is None else rounds
    state = policy.init(problem, sp.Rng(0))
    for x in log[0]:
        state = policy.played(state, x)
    for _ in range(rounds - len(log[0])):
        state = policy.played(state, np.zeros(problem.n_arms, bool))
    for k in order:
        state = policy.update(state, feedback(log[0][k], log[1][k], log[2][k], age=rounds - (k + 1)), sp.Rng(0))
    return state


def correlations(graph):
    """C = (Y - Z) Y', from what is kept of it: Q = C - A G."""
    return graph.residual + graph.adjacency @ graph.gram


@given(
    seed=st.integers(0, 2**32 - 1),
    rounds=st.integers(1, 40),
    discount=st.sampled_from([0.5, 0.9, 0.999]),
    acyclic=st.booleans(),
    data=st.data(),
)
@examples(12)
def test_any_order_of_arrival_is_the_same(seed, rounds, discount, acyclic, data):
    log = played_log(seed, rounds, law="beta" if seed % 2 else "bernoulli", acyclic=acyclic)
    order = data.draw(st.permutations(range(rounds)))[: data.draw(st.integers(1, rounds))]
    policy, problem = sp.NDCSEM(discount=discount, exploration=0.1, graph=sparse(0.05)), sp.Problem(5, 2, acyclic)
    one = learn_in_order(policy, problem, log, sorted(order))
    two = learn_in_order(policy, problem, log, order)
    shown, other = explained(policy, one), explained(policy, two)
    np.testing.assert_allclose(shown.mean, other.mean, rtol=1e-12)
    np.testing.assert_allclose(shown.count, other.count, rtol=1e-12)
    np.testing.assert_allclose(shown.index, other.index, rtol=1e-12)
    assert shown.clock == other.clock
    scale = one.graph.gram.max()
    np.testing.assert_allclose(one.graph.gram, two.graph.gram, rtol=1e-12, atol=1e-14 * scale)
    np.testing.assert_allclose(correlations(one.graph), correlations(two.graph), rtol=0, atol=1e-12 * max(scale, 1))
    seen = np.sort(order)
    penalty, allowed = graph_reference.penalties(5, 0.05), graph_reference.allowed_edges(5, acyclic)
    values = [graph_reference.objective(log[1][seen], log[2][seen], s.adjacency, penalty) for s in (shown, other)]
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-9)
    if graph_reference.unique_minimiser(log[2][seen], allowed):
        stray = 1e-7 * np.linalg.cond(log[2][seen].T @ log[2][seen])  # of conditions that hold to 1e-8
        if stray < 1e-3:
            np.testing.assert_allclose(shown.adjacency, other.adjacency, atol=stray)


def test_discounted_by_the_time_of_the_action_not_of_the_arrival():
    policy, problem = sp.NDCSEM(discount=0.5, exploration=0.0), sp.Problem(2, 1)
    state = policy.init(problem, sp.Rng(0))
    for _ in range(4):
        state = policy.played(state, np.array([True, False]))
    state = policy.update(state, feedback([1, 0], [1.0, 0], [1.0, 0], age=0), sp.Rng(0))  # of round 4
    state = policy.update(state, feedback([1, 0], [0.0, 0], [0.0, 0], age=3), sp.Rng(0))  # of round 1, later
    shown = explained(policy, state)
    assert shown.count[0] == pytest.approx(1 + 0.5**3)
    assert shown.mean[0] == pytest.approx(1 / (1 + 0.5**3))
    assert shown.clock == pytest.approx(1 + 0.5 + 0.25 + 0.125)


# --- the index -------------------------------------------------------------------------------------------------------


def test_an_arm_never_observed_has_an_infinite_index():
    policy = sp.NDCSEM(exploration=0.0)
    log = played_log(1, 3, budget=1)
    shown = explained(policy, learn_in_order(policy, sp.Problem(5, 2), log, range(3)))
    never = ~log[0].any(axis=0)
    assert never.any()
    np.testing.assert_array_equal(np.isinf(shown.index), never)
    np.testing.assert_array_equal(np.isnan(shown.mean), never)
    np.testing.assert_array_equal(shown.count == 0, never)


@pytest.mark.parametrize("exploration", [0.0, 1e-10, 1.0])
def test_an_arm_whose_count_has_faded_keeps_its_mean_and_is_explored_like_a_new_one(exploration):
    policy, problem = sp.NDCSEM(discount=0.5, exploration=exploration), sp.Problem(3, 2)
    log = (np.array([[1, 1, 0]], bool), np.array([[0.75, 0, 0]]), np.array([[0.75, 0, 0]]))
    shown = explained(policy, learn_in_order(policy, problem, log, [0], rounds=3000))
    assert shown.mean[0] == 0.75
    assert shown.mean[1] == 0.0
    if exploration == 0:
        np.testing.assert_array_equal(shown.index, [0.75, 0.0, np.inf])
        np.testing.assert_array_equal(shown.chosen[2], True)
    else:
        np.testing.assert_array_equal(shown.index, np.inf)


@pytest.mark.parametrize("width", [1.0, 1e-3, 1e6])
def test_an_arm_is_forgotten_when_its_bonus_is_a_million_times_the_range(width):
    """Just before that its index is finite, and far above those of all others."""
    policy, problem = sp.NDCSEM(discount=0.5, exploration=1.0), sp.Problem(2, 1, reward_range=(0.0, width))
    log = (np.array([[1, 0]], bool), np.array([[0.5 * width, 0]]), np.array([[0.5 * width, 0]]))
    found = [explained(policy, learn_in_order(policy, problem, log, [0], rounds=t)).index[0] for t in range(30, 50)]
    finite = [index for index in found if np.isfinite(index)]
    assert 0 < len(finite) < len(found)
    assert finite == found[: len(finite)] == sorted(finite)
    assert 5e5 * width < finite[-1] <= 1e6 * width + 0.5 * width


def test_underflow_does_not_spoil_a_late_observation():
    # an arm observed at round 1 and again at round 3000: the old observation has no weight left, the new one has all
    policy, problem = sp.NDCSEM(discount=0.5, exploration=0.01), sp.Problem(2, 1)
    x = np.zeros((3000, 2), bool)
    x[0, 0] = x[-1, 0] = True
    z = np.zeros((3000, 2))
    z[0, 0], z[-1, 0] = 1.0, 0.25
    for order in ([0, 2999], [2999, 0]):
        shown = explained(policy, learn_in_order(policy, problem, (x, z, z), order))
        assert shown.mean[0] == 0.25
        assert shown.count[0] == 1.0


def test_the_logarithm_starts_at_one():
    # discount 0.3 and one round: m = 1, log 1 = 0; the clock never counts as less than one round
    policy, problem = sp.NDCSEM(discount=0.3, exploration=10.0), sp.Problem(2, 1)
    log = (np.array([[1, 0]], bool), np.array([[0.5, 0]]), np.array([[0.5, 0]]))
    shown = explained(policy, learn_in_order(policy, problem, log, [0]))
    assert shown.clock == 1.0
    assert shown.index[0] == 0.5
    start = explained(policy, policy.init(problem, sp.Rng(0)))
    assert start.clock == 0.0
    assert np.isinf(start.index).all()


# --- choices ---------------------------------------------------------------------------------------------------------


def test_arms_without_a_positive_score_are_not_taken():
    policy, problem = sp.NDCSEM(exploration=0.0), sp.Problem(3, 2)
    x = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]], bool)
    z = np.array([[0.0, 0, 0], [0, 0.5, 0], [0, 0.5, 0]])
    shown = explained(policy, learn_in_order(policy, problem, (x, z, z), range(3)))
    np.testing.assert_array_equal(shown.chosen, [False, True, False])


def test_an_override_is_what_counts():
    policy, problem = sp.NDCSEM(**SETTINGS), sp.Problem(4, 2)
    state = policy.init(problem, sp.Rng(1))
    twin = SlowNDCSEM(4, 2, SETTINGS["discount"], SETTINGS["exploration"], SPARSITY)
    x, z, y = played_log(8, 12, n=4)
    for t in range(1, 13):
        proposed = policy.select(state, sp.Rng(1).at(sp.rng.Purpose.CHOICE, t)).x
        assert proposed.sum() <= 2
        state = policy.played(state, x[t - 1])  # a person decided otherwise
        state = policy.update(state, feedback(x[t - 1], z[t - 1], y[t - 1], age=0), sp.Rng(1))
        twin.observe(t, x[t - 1], z[t - 1], y[t - 1])
        compare(explained(policy, state), twin, t + 1)
    assert state.rounds == 12


def test_an_explanation_is_the_callers_own():
    policy, problem, rng = sp.NDCSEM(**SETTINGS), sp.Problem(5, 2), sp.Rng(7)
    state = learn_in_order(policy, problem, played_log(2, 12), range(0, 12, 2))
    before, shown = sp.state.copy_state(state), explained(policy, state, rng)
    for part in (shown.adjacency, shown.weights, shown.clock):
        part[...] = 7.0
    same_learner(before, state)


# --- batches and grids -----------------------------------------------------------------------------------------------


def test_a_cell_of_a_grid_is_the_single_run():
    environment = sp.SyntheticSEM(n_arms=N, budget=BUDGET, edge_density=0.3, horizon=60, changes=(20,))
    discount, exploration = np.array([[0.8], [0.99]]), np.array([[1e-10, 0.01, 1.0]])
    sparsity = np.array([[1e-3], [1.0]])
    grid = sp.NDCSEM(discount=discount, exploration=exploration, graph=sparse(sparsity))
    run = sp.simulate(grid, environment, sp.UniformDelay(0, 5), replications=4, seed=2, record=10)
    assert run.regret.shape == (2, 3, 4, 60)
    for i in range(2):
        for j in range(3):
            cell = sp.NDCSEM(
                discount=float(discount[i, 0]),
                exploration=float(exploration[0, j]),
                graph=sparse(float(sparsity[i, 0])),
            )
            single = sp.simulate(cell, environment, sp.UniformDelay(0, 5), replications=4, seed=2, record=10)
            np.testing.assert_array_equal(run.payoff[i, j], single.payoff)
            np.testing.assert_array_equal(run.regret[i, j], single.regret)
            np.testing.assert_array_equal(run.graph_error[i, j], single.graph_error)
            assert run.adjacency is not None
            np.testing.assert_array_equal(run.adjacency[i, j], single.adjacency)


def test_what_is_said_to_be_checked_is_refused_all_the_same_if_it_cannot_be() -> None:
    policy, problem, rng = sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), sp.Rng(0)
    state = policy.played(policy.init(problem, rng), np.array([True, False]))
    z = np.array([5.0, 0.0])
    outcome = Checked(np.array([True, False]), z, z, np.array(0), np.array(True))
    with pytest.raises(ValueError, match="reward_range"):
        policy.update(state, outcome, rng)


def test_the_papers_printed_parameters_by_delay():
    for delay, exploration in ((50, 1e-10), (200, 1e-6), (400, 1e-18)):
        policy = sp.NDCSEM.printed(delay)
        assert (policy.discount, policy.exploration) == (0.985, exploration)
        assert (policy.unit, policy.graph.sparsity) == (1.0, 1e-3)
    with pytest.raises(ValueError, match="delay = 100: must be one of 50, 200, 400"):
        sp.NDCSEM.printed(100)

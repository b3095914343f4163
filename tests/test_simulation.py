"""The game protocol: every measure of a run recomputed by hand from its rounds, and the same run however it is cut."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spillover as sp
from tests.support import explained

ENVIRONMENT = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.3, horizon=60, changes=(20, 41))
POLICY = sp.NDCSEM(discount=0.95, exploration=0.01)
SEED, REPLICATIONS = 7, 4


def played(policy, environment, delay, replications=REPLICATIONS, seed=SEED):
    """The rounds behind a simulation, with the worlds they are played in."""
    rng = sp.Rng(seed, np.arange(replications))
    world = environment.draw(rng.at(sp.rng.Purpose.WORLD), (replications,))
    player = policy.for_problem(world.problem, world)
    log = [
        (t, x.copy(), outcome, sp.state.copy_state(state))
        for t, x, outcome, state in sp.rounds(player, world, delay, rng, (replications,))
    ]
    return world, log


def sets(n, budget):
    """All feasible decisions."""
    return [np.isin(np.arange(n), chosen) for size in range(budget + 1) for chosen in combinations(range(n), size)]


def payoff_by_hand(world, t, k, x):
    """mu_t(x) = 1'(I - A)^-1 F diag(beta_t) x."""
    n = len(x)
    spread = np.linalg.inv(np.eye(n) - world.adjacency(t)[k])
    return float(np.ones(n) @ spread @ np.diag(world.gain[k]) @ np.diag(world.means(t)[k]) @ x)


@pytest.mark.parametrize("delay", [sp.ConstantDelay(0), sp.ConstantDelay(6), sp.GeometricDelay(4.0)])
@pytest.mark.parametrize("policy", [POLICY, sp.Uniform(), sp.policies.DelayedOracle()])
def test_regret_and_payoff_by_hand(policy, delay):
    run = sp.simulate(policy, ENVIRONMENT, delay, replications=REPLICATIONS, seed=SEED)
    world, log = played(policy, ENVIRONMENT, delay)
    for k in range(REPLICATIONS):
        regret = 0.0
        for t, x, outcome, _ in log:
            best = max(payoff_by_hand(world, t, k, choice) for choice in sets(5, 2))
            regret += best - payoff_by_hand(world, t, k, x[k])
            assert run.regret[k, t - 1] == pytest.approx(regret, abs=1e-10)
            assert run.payoff[k, t - 1] == pytest.approx(outcome.y[k].sum(), abs=1e-12)
    assert (np.diff(run.regret, axis=-1) >= -1e-12).all()
    np.testing.assert_array_equal(run.final_regret, run.regret[:, -1])
    by_hand = [[run.payoff[k, : t + 1].mean() for t in range(60)] for k in range(REPLICATIONS)]
    np.testing.assert_allclose(run.average_payoff, by_hand)
    np.testing.assert_array_equal(run.blind_regret(7), run.regret[:, 6])


def test_optimality_ratio_by_hand():
    run = sp.simulate(POLICY, ENVIRONMENT, 3, replications=REPLICATIONS, seed=SEED)
    world, log = played(POLICY, ENVIRONMENT, 3)
    assert run.optimality_ratio.shape == (REPLICATIONS, 3)
    for k in range(REPLICATIONS):
        for period, (first, last) in enumerate([(1, 19), (20, 40), (41, 60)]):
            hits = total = 0
            for t, x, _, _ in log[first - 1 : last]:
                best = max(sets(5, 2), key=lambda choice: payoff_by_hand(world, t, k, choice))
                hits += int((x[k] & best).sum())
                total += int(best.sum())
            assert run.optimality_ratio[k, period] == pytest.approx(hits / total)


def test_any_optimal_set_counts_where_arms_tie():
    # arms 1 and 2 are equally good, arms 3 to 5 too: of the optimal sets {1, 2, one of 3-5} the nearest counts
    environment = sp.FixedSEM(
        adjacency=np.zeros((5, 5)), means=[0.8, 0.8, 0.5, 0.5, 0.5], budget=3, horizon=40, law="beta"
    )
    run = sp.simulate(sp.Uniform(), environment, replications=3, seed=1)
    world, log = played(sp.Uniform(), environment, 0, 3, 1)
    optimal = [np.isin(np.arange(5), (0, 1, k)) for k in (2, 3, 4)]
    for k in range(3):
        hits = sum(max(int((x[k] & best).sum()) for best in optimal) for _, x, _, _ in log)
        assert run.optimality_ratio[k, 0] == pytest.approx(hits / (3 * 40))
    for x in ([1, 1, 0, 0, 1], [1, 1, 0, 1, 0]):
        assert (world.matches(1, np.array(x, bool)) == 3).all()
    assert (world.matches(1, np.array([0, 0, 1, 1, 1], bool)) == 1).all()


def test_graph_error_and_what_is_recorded():
    run = sp.simulate(POLICY, ENVIRONMENT, 3, replications=REPLICATIONS, seed=SEED, record=[60, 5, 17, 17])
    world, log = played(POLICY, ENVIRONMENT, 3)
    np.testing.assert_array_equal(run.recorded, [5, 17, 60])
    for column, t in enumerate(run.recorded):
        for k in range(REPLICATIONS):
            estimate = explained(POLICY, log[t - 1][3]).adjacency[k]
            error = sum((estimate[i, j] - world.adjacency(t)[k, i, j]) ** 2 for i in range(5) for j in range(5)) / 25
            assert run.graph_error[k, column] == pytest.approx(error, rel=1e-12)
    np.testing.assert_array_equal(run.adjacency, explained(POLICY, log[-1][3]).adjacency)
    every = sp.simulate(POLICY, ENVIRONMENT, 3, replications=2, record=25)
    np.testing.assert_array_equal(every.recorded, [25, 50])
    none = sp.simulate(POLICY, ENVIRONMENT, 3, replications=2, record=[])
    assert none.graph_error.shape == (2, 0)


def test_a_policy_without_a_graph_has_no_graph_error():
    run = sp.simulate(sp.Uniform(), ENVIRONMENT, replications=2, record=20)
    assert run.adjacency is None
    assert np.isnan(run.graph_error).all()
    assert run.to_frame().graph_error.isna().all()


def test_the_world_of_a_replication_does_not_depend_on_the_policy():
    world, log = played(POLICY, ENVIRONMENT, 3)
    other, other_log = played(sp.Uniform(), ENVIRONMENT, sp.GeometricDelay(2.0))
    np.testing.assert_array_equal(world.adjacency(1), other.adjacency(1))
    for (t, x, outcome, _), (_, x2, outcome2, _) in zip(log, other_log, strict=True):
        np.testing.assert_array_equal(world.means(t), other.means(t))
        both = x & x2
        np.testing.assert_array_equal(outcome.z[both], outcome2.z[both])


@pytest.mark.parametrize("policy", [POLICY, sp.NDCSEM(graph="self-tuned"), sp.Uniform(), sp.policies.DelayedOracle()])
@pytest.mark.parametrize("delay", [sp.ConstantDelay(0), sp.UniformDelay(0, 9), sp.LossyDelay(sp.ConstantDelay(2), 0.3)])
def test_blocks_are_the_whole_run(policy, delay):
    whole = sp.simulate(policy, ENVIRONMENT, delay, replications=7, seed=SEED, record=15)
    parts = [
        sp.simulate(policy, ENVIRONMENT, delay, first=first, replications=size, seed=SEED, record=15)
        for first, size in ((0, 3), (3, 1), (4, 3))
    ]
    for measure in ("regret", "payoff", "optimality_ratio", "graph_error"):
        joined = np.concatenate([getattr(part, measure) for part in parts])
        np.testing.assert_array_equal(getattr(whole, measure), joined, err_msg=measure)
    frames = pd.concat([part.to_frame() for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(whole.to_frame(), frames)


def test_reproducible_and_seeds_differ():
    one, two, other = (sp.simulate(POLICY, ENVIRONMENT, 4, replications=3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.regret, two.regret)
    np.testing.assert_array_equal(one.payoff, two.payoff)
    assert (one.payoff != other.payoff).any()


def test_progress_changes_nothing():
    quiet = sp.simulate(POLICY, ENVIRONMENT, 4, replications=2)
    shown = sp.simulate(POLICY, ENVIRONMENT, 4, replications=2, progress=True)
    np.testing.assert_array_equal(quiet.regret, shown.regret)


def test_delays_as_people_write_them():
    runs = [
        sp.simulate(POLICY, ENVIRONMENT, delay, replications=2).payoff
        for delay in (3, np.int64(3), sp.ConstantDelay(3), [3] * 60, np.full(60, 3.0), np.full((2, 60), 3))
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(runs[0], run)


def test_without_delay_feedback_is_there_the_next_round():
    _, log = played(POLICY, ENVIRONMENT, 0, 1)
    for t, _, _, state in log:
        assert explained(POLICY, state).count.sum() > 0
        np.testing.assert_allclose(state.graph.gram[0], sum(np.outer(o.y[0], o.y[0]) for _, _, o, _ in log[:t]))


def test_intervals_over_replications():
    run = sp.simulate(POLICY, ENVIRONMENT, 4, replications=12, record=20)
    for measure in ("regret", "payoff", "optimality_ratio", "graph_error", "final_regret", "average_payoff"):
        values = getattr(run, measure)
        found = run.interval(measure)
        low, high = stats.t.interval(0.95, 11, loc=values.mean(axis=0), scale=stats.sem(values, axis=0))
        np.testing.assert_allclose(found.mean, values.mean(axis=0), err_msg=measure)
        varies = np.ptp(values, axis=0) > 0
        np.testing.assert_allclose(np.asarray(found.low)[varies], low[varies], err_msg=measure)
        np.testing.assert_allclose(np.asarray(found.high)[varies], high[varies], err_msg=measure)
    grid = sp.NDCSEM(discount=np.array([0.9, 0.99, 0.999]))
    run = sp.simulate(grid, ENVIRONMENT, 4, replications=5)
    assert run.interval().mean.shape == (3, 60)
    np.testing.assert_allclose(run.interval("final_regret").mean, run.regret[:, :, -1].mean(axis=1))


def test_tidy_frame():
    run = sp.simulate(POLICY, ENVIRONMENT, 4, replications=3, record=20, first=5)
    frame = run.to_frame()
    assert list(frame.columns) == ["replication", "round", "period", "regret", "payoff", "graph_error"]
    assert len(frame) == 3 * 60
    assert not frame.duplicated(["replication", "round"]).any()
    for row in frame.to_dict("records"):
        k, t = int(row["replication"]) - 5, int(row["round"])
        assert row["regret"] == run.regret[k, t - 1]
        assert row["payoff"] == run.payoff[k, t - 1]
        assert row["period"] == 1 + (t >= 20) + (t >= 41)
        if t % 20 == 0:
            assert row["graph_error"] == run.graph_error[k, t // 20 - 1]
        else:
            assert np.isnan(row["graph_error"])
    sparse = run.to_frame(every=25)
    assert sorted(sparse["round"].unique()) == [25, 50, 60]


def test_tidy_frame_of_a_grid():
    grid = sp.NDCSEM(discount=np.array([[0.9], [0.99]]), exploration=np.array([[0.0, 0.1, 1.0]]))
    run = sp.simulate(grid, ENVIRONMENT, 4, replications=2)
    frame = run.to_frame(every=30)
    assert list(frame.columns[:3]) == ["grid_0", "grid_1", "replication"]
    assert len(frame) == 2 * 3 * 2 * 2
    for row in frame.to_dict("records"):
        i, j, k, t = (int(row[name]) for name in ("grid_0", "grid_1", "replication", "round"))
        assert row["regret"] == run.regret[i, j, k, t - 1]


# --- small and empty worlds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "environment",
    [
        sp.SyntheticSEM(n_arms=3, budget=1, horizon=1, changes=()),
        sp.SyntheticSEM(n_arms=1, budget=1, horizon=5, changes=()),
        sp.SyntheticSEM(n_arms=4, budget=4, horizon=10, changes=(5,)),
        sp.SyntheticSEM(n_arms=4, budget=2, horizon=10, changes=(10,)),
        sp.SyntheticSEM(n_arms=4, budget=2, edge_density=0.0, horizon=10, changes=()),
        sp.FixedSEM(adjacency=[[0.0]], means=[1.0], budget=1, horizon=3),
    ],
)
@pytest.mark.parametrize(
    "policy", [POLICY, sp.NDCSEM(graph="self-tuned"), sp.Uniform(), sp.policies.Oracle(), sp.policies.DelayedOracle()]
)
def test_worlds_at_the_edge(environment, policy):
    for delay in (0, 2):
        run = sp.simulate(policy, environment, delay, replications=2, record=1)
        assert np.isfinite(run.regret).all()
        assert ((run.optimality_ratio >= 0) & (run.optimality_ratio <= 1)).all()


def test_rewards_that_are_all_zero():
    environment = sp.FixedSEM(adjacency=np.zeros((3, 3)), means=[0.0, 0.0, 0.0], budget=2, horizon=30)
    for policy in (
        POLICY,
        sp.NDCSEM(graph="self-tuned"),
        sp.Uniform(),
        sp.policies.Oracle(),
        sp.policies.DelayedOracle(),
    ):
        run = sp.simulate(policy, environment, 2, replications=2)
        assert not run.regret.any()
        assert not run.payoff.any()
        assert (run.optimality_ratio == 1).all()


# --- replay ----------------------------------------------------------------------------------------------------------


def test_replay_holds_what_the_simulated_learner_held():
    rng = sp.Rng(SEED)
    world = ENVIRONMENT.draw(rng.at(sp.rng.Purpose.WORLD))
    held, log = [explained(POLICY, POLICY.init(world.problem, rng.at(sp.rng.Purpose.START)), rng)], []
    delay = sp.GeometricDelay(3.0)
    for _, x, outcome, state in sp.rounds(POLICY, world, delay, rng, ()):
        log.append((x, outcome.z, outcome.y))
        held.append(explained(POLICY, state, rng))
    x, z, y = (np.array(part) for part in zip(*log, strict=True))
    shown = list(sp.replay(POLICY, world.problem, x, z, y, delay=delay, seed=SEED))
    assert len(shown) == 61
    for one, two in zip(shown, held, strict=True):
        for name in ("mean", "count", "clock", "index", "adjacency", "weights", "score", "chosen"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for t in range(60):
        np.testing.assert_array_equal(shown[t].chosen, x[t])  # it chose them


def test_replay_of_an_empty_log_holds_nothing():
    empty = np.zeros((0, 4))
    (shown,) = sp.replay(POLICY, sp.Problem(4, 2), empty, empty, empty)
    assert np.isinf(shown.index).all()
    assert (shown.weights == 1).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_was_played_is_kept_if_asked_for(threads):
    kept = sp.simulate(
        POLICY, ENVIRONMENT, 3, replications=REPLICATIONS, seed=SEED, threads=threads, decisions=True
    ).decisions
    _, log = played(POLICY, ENVIRONMENT, sp.ConstantDelay(3))
    np.testing.assert_array_equal(kept, np.stack([x for _, x, _, _ in log], axis=-2))
    assert sp.simulate(POLICY, ENVIRONMENT, 3, replications=2).decisions is None


def test_learning_beats_chance():
    environment = sp.SyntheticSEM(horizon=2000, changes=(1000,))
    learned = sp.simulate(sp.NDCSEM(), environment, 50, replications=100)
    chance = sp.simulate(sp.Uniform(), environment, 50, replications=100)
    assert learned.interval("final_regret").high < 0.5 * chance.interval("final_regret").low

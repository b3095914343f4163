"""CUCB and its discounted form against twins that keep the whole history."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.policies import CTS, CUCB, DiscountedCUCB
from tests.reference import rivals_reference as reference
from tests.support import feedback

N, BUDGET, ROUNDS = 5, 2, 80
WEIGHTS = np.array([1.0, 2.5, 1.2, 1.7, 2.0])
# (problem, what the twin knows of it)
SCALES: dict[str, tuple[sp.Problem, dict[str, Any]]] = {
    "declared": (sp.Problem(N, BUDGET, overall_range=(0.0, 2.5)), {"overall_range": (0.0, 2.5)}),
    "shifted": (sp.Problem(N, BUDGET, overall_range=(-0.5, 4.5)), {"overall_range": (-0.5, 4.5)}),
    "undeclared": (sp.Problem(N, BUDGET), {}),
    "known graph": (
        sp.Problem(N, BUDGET, reward_range=(-0.2, 1.5), weights=WEIGHTS),
        {"weights": WEIGHTS, "reward_range": (-0.2, 1.5)},
    ),
}


def compare(policy, twin, problem, way, seed, rounds=ROUNDS):
    """Index and decision of every round; returns how many decisions left no choice."""
    low, high = problem.reward_range
    outcome = reference.spilling(N, seed, low, high, change=rounds // 2)
    clear = 0
    game = reference.play_beside(policy, problem, reference.delays(seed)[way], outcome, rounds, twin.observe_at, seed)
    for t, state, x in game:
        index = twin.index(t)
        np.testing.assert_allclose(
            policy.indices(state, sp.Rng(0)), index, rtol=1e-10, atol=1e-12, err_msg=f"round {t}"
        )
        assert reference.top_sets_fault(x, twin.scores(index), BUDGET) == ""
        clear += reference.is_clear(twin.scores(index), BUDGET)
    assert len(twin.outcomes) >= rounds // 3
    return clear


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("way", reference.WAYS)
def test_slow_twin_agrees_at_every_round(way, scale):
    problem, known = SCALES[scale]
    clear = sum(
        compare(CUCB(knows_graph="weights" in known), reference.SlowCUCB(N, BUDGET, **known), problem, way, seed)
        for seed in (1, 2)
    )
    assert clear >= 25


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("way", reference.WAYS)
def test_slow_discounted_twin_agrees_at_every_round(way, scale):
    problem, known = SCALES[scale]
    clear = 0
    for discount in (0.9, 0.99):
        policy = DiscountedCUCB(discount=discount, knows_graph="weights" in known)
        clear += compare(policy, reference.SlowDiscountedCUCB(N, BUDGET, discount, **known), problem, way, seed=3)
    assert clear >= 10


# --- ties ------------------------------------------------------------------------------------------------------------


def test_ties_at_the_border_only():
    """One arm clearly best, three tied for the second place, one clearly worst."""
    policy, draws = CUCB(), 6000
    state = policy.init(sp.Problem(5, 2, overall_range=(0.0, 1.0)), sp.Rng(0), (draws,))
    everything = np.ones((draws, 5), bool)
    for _ in range(500):
        state = policy.played(state, everything)
        state = policy.update(state, feedback(everything, y=np.tile([0.3, 0.5, 0.3, 0.1, 0.3], (draws, 1))), sp.Rng(0))
    x = policy.select(state, sp.Rng(5, np.arange(draws))).x
    assert x[:, 1].all()
    assert not x[:, 3].any()
    assert stats.chisquare(x[:, [0, 2, 4]].sum(axis=0)).pvalue > 1e-3


# --- batches ---------------------------------------------------------------------------------------------------------


# --- a plain stochastic problem --------------------------------------------------------------------------------------

MEANS = np.array([0.9, 0.8, 0.75, 0.7, 0.5, 0.45, 0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize(
    ("policy", "scores", "runs", "precise", "share"),
    [
        (CUCB(), reference.cucb_scores, 40, 0.05, 0.3),
        pytest.param(CTS(), reference.cts_scores, 100, 0.08, 0.05, marks=pytest.mark.long),
    ],
)
def test_regret_of_a_plain_bandit_problem(policy, scores, runs, precise, share):
    """Bernoulli rewards, no delay, no graph, no drift: as much regret as an independent implementation."""
    horizon = 3000
    plain = reference.plain_regret(scores, MEANS, 4, horizon, runs, seed=7)
    world = sp.FixedSEM(adjacency=np.zeros((10, 10)), means=MEANS, budget=4, horizon=horizon)
    run = sp.simulate(policy, world, replications=runs)
    error = math.hypot(plain.std(ddof=1), run.final_regret.std(ddof=1)) / math.sqrt(runs)
    assert abs(run.final_regret.mean() - plain.mean()) <= 3.5 * error
    assert error < precise * plain.mean()
    assert run.final_regret.mean() < share * horizon * (MEANS[:4].sum() - 0.4 * MEANS.sum())


def test_the_discount_pays_when_the_world_changes():
    means = np.array([np.linspace(0.9, 0.1, 6), np.linspace(0.1, 0.9, 6)])
    world = sp.FixedSEM(adjacency=np.zeros((6, 6)), means=means, budget=2, horizon=2000, changes=(1500,))
    regrets = [sp.simulate(policy, world, replications=8).regret for policy in (CUCB(), DiscountedCUCB(discount=0.99))]
    late = [(regret[:, -1] - regret[:, 1498]).mean() for regret in regrets]
    assert late[1] < 0.7 * late[0]


# --- errors ----------------------------------------------------------------------------------------------------------

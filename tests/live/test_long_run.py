"""Learners that run for very long, or see the same for ever: finite, sensible, and no larger than at the start."""

import gc
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.core.batches import learns_histories
from spillover.state import leaves
from spillover.types import Feedback
from tests.live.learners import LIVE, PROBLEM, learner_of, problem_for
from tests.sampling import few_or_many, often

OFTEN = ("ndc-sem", "switching-sem", "cts", "discounted-ts")  # in `make test`; the others in `make test-long`
EACH = often(OFTEN, LIVE)
HISTORY = [name for name in EACH if "ftrl" not in str(name)]  # it learns from its own draws only


def reported(problem: sp.Problem, z: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    if problem.observes == "both":
        return {"z": z, "y": y}
    return {"y": float(y.sum()) if problem.observes == "payoff" else y}


def assert_finite(learner: sp.Learner) -> None:
    """No NaN; infinite only what is so from the start (impossible edges), and likelihood ratios."""
    start = leaves(sp.Learner(learner.policy, learner.problem, seed=1).state)
    for name, leaf in leaves(learner.state).items():
        assert not np.isnan(leaf).any(), name
        assert np.isfinite(leaf[np.isfinite(start[name])]).all() or name.endswith("ratio"), name


def after_history(name: str, x: np.ndarray, z: np.ndarray, y: np.ndarray, problem: sp.Problem) -> sp.Learner:
    """A learner that has seen a history, in large steps (`catch_up`), as `spillover next` learns one."""
    learner = sp.Learner(sp.policies.POLICIES[name](), problem, seed=1)
    policy: Any = learner.policy
    state, count = learner.state, len(x)
    if problem.observes != "both":
        z = np.full_like(z, np.nan)
    if problem.observes == "payoff":
        y = np.concatenate([y.sum(axis=1, keepdims=True), np.zeros_like(y[:, 1:])], axis=1)
    ages, arrived = np.zeros(count, np.int64), np.ones(count, np.bool_)
    past = learns_histories(policy)
    state = past.catch_up(state, Feedback(x, z, y, ages, arrived), 1, learner.rng)
    learner.state = past.solve(state)
    learner.rounds = count
    return learner


# --- one learner, round after round ---------------------------------------------------------------------------------


def sizes(learner: sp.Learner) -> tuple[int, int]:
    """Bytes of the learner, and blocks of memory that the process uses."""
    gc.collect()
    return len(pickle.dumps(learner)), sys.getallocatedblocks()


def assert_no_larger(before: tuple[int, int], after: tuple[int, int]) -> None:
    """But for the digits of larger numbers."""
    assert after[0] < before[0] + 100
    assert after[1] < before[1] + 10_000


@pytest.mark.parametrize(
    ("policy", "rounds"),
    [
        (sp.NDCSEM(), 3_000),
        pytest.param(sp.NDCSEM(), 2_000_000, marks=pytest.mark.long),
        pytest.param(sp.SwitchingSEM(), 300_000, marks=pytest.mark.long),
    ],
)
def test_a_learner_stays_as_small_as_it_is(policy, rounds):
    """With outcomes that arrive three rounds late."""
    learner = sp.Learner(policy, PROBLEM, seed=1)
    z = np.random.default_rng(0).uniform(size=(1000, 4))
    for k in range(rounds):
        x = learner.choose()
        learner.play()
        if k >= 3:
            given = np.where(learner.waiting[k - 2].x, z[k % 1000], 0.0)
            learner.report(k - 2, given, given)
        if k == rounds // 3:
            before = sizes(learner)
    assert_no_larger(before, sizes(learner))
    assert x.sum() == 2
    assert learner.pending == [rounds - 2, rounds - 1, rounds]
    assert_finite(learner)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in LIVE if name != "ndc-sem"])
def test_every_learner_stays_as_small_as_it_is(name):
    learner, draws = learner_of(name), np.random.default_rng(0)
    for k in range(20_000):
        x = learner.choose()
        z = np.where(x, draws.uniform(size=4), 0.0)
        learner.report(learner.play(), **reported(learner.problem, z, z))
        if k == 5_000:
            before = sizes(learner)
    assert_no_larger(before, sizes(learner))
    assert_finite(learner)


# --- what can happen to arms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HISTORY)
@pytest.mark.parametrize("rounds", few_or_many(3_000, 100_000))
def test_an_arm_that_is_not_played_for_long(name, rounds):
    """It has a finite or infinite score, never an absurd one, and whoever explores tries it again."""
    problem = problem_for(name)._replace(n_arms=3, budget=1, weights=(1.0, 1.0, 1.0))
    x = np.tile([True, False, False], (rounds, 1))
    x[:9] = np.eye(3, dtype=bool)[np.arange(9) % 3]
    z = np.where(x, 0.5 + 0.1 * np.sin(np.arange(rounds))[:, None], 0.0)
    learner = after_history(name, x, z, z, problem)
    assert_finite(learner)
    assert learner.choose().sum() == 1
    if learner.policy.traits.explains:
        score = learner.explain().score
        assert not np.isnan(score).any()
        assert (np.abs(score[np.isfinite(score)]) < 1e8).all()


@pytest.mark.long
@pytest.mark.parametrize("name", ["ndc-sem", "switching-sem", "sem-ucb", "instrumental-sem", "discounted-ts"])
def test_an_arm_that_is_not_played_for_a_million_rounds(name):
    problem = problem_for(name)._replace(n_arms=3, budget=1, weights=None)
    rounds = 1_000_000
    x = np.tile([True, False, False], (rounds, 1))
    x[:9] = np.eye(3, dtype=bool)[np.arange(9) % 3]
    z = np.where(x, 0.5, 0.0)
    learner = after_history(name, x, z, z, problem)
    assert_finite(learner)
    assert learner.choose().sum() == 1
    score = learner.explain().score
    assert not np.isnan(score).any()
    assert (np.abs(score[np.isfinite(score)]) < 1e8).all()


@pytest.mark.parametrize("exploring", [sp.NDCSEM(), sp.NDCSEM(pending=True), sp.policies.SuperArmUCB()])
def test_forgotten_arms_count_as_never_observed_and_are_tried(exploring):
    problem = sp.Problem(n_arms=3, budget=1)
    learner = sp.Learner(exploring, problem)
    for k in range(6_000):
        x = np.eye(3)[k % 3] if k < 9 else np.array([1.0, 0.0, 0.0])
        learner.report(learner.play(x), 0.5 * x, 0.5 * x)
    tried = np.zeros(3)
    for _ in range(4):
        x = learner.choose()
        tried += x
        learner.report(learner.play(), 0.5 * x, 0.5 * x)
    assert (tried[1:] >= 1).all()
    if exploring.traits.explains and exploring.traits.quantity == sp.NDCSEM().traits.quantity:
        assert np.isfinite(learner.explain().score).all()  # once they are known again


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("level", [0.0, 1.0])
def test_all_rewards_alike(name, level):
    """All 0, or all 1: nothing to learn, and nothing to divide by."""
    learner = learner_of(name)
    for _ in range(120):
        x = learner.choose()
        assert x.sum() <= 2
        z = level * x
        learner.report(learner.play(), **reported(learner.problem, z, z))
    assert_finite(learner)
    if learner.policy.traits.explains:
        learner.reasons()


@pytest.mark.parametrize("name", HISTORY)
def test_arms_that_are_always_together(name):
    """Arms 0 and 1 always or never: no data can tell them apart, but the pair is known to be the better one."""
    problem, count = problem_for(name), 600
    first = np.arange(count) % 2 == 0
    x = np.where(first[:, None], [True, True, False, False], [False, False, True, True])
    noise = np.random.default_rng(2).normal(0.0, 0.02, (count, 4))
    z = np.where(x, np.where(first[:, None], 0.8, 0.2) + np.clip(noise, -0.1, 0.1), 0.0)
    learner = after_history(name, x, z, z, problem)
    assert_finite(learner)
    x = learner.choose()
    assert x.sum() == 2
    if name not in ("super-arm-ucb", "random"):  # one still explores pairs, the other always does
        np.testing.assert_array_equal(x, [True, True, False, False])


@pytest.mark.parametrize("name", EACH)
def test_spill_over_that_nearly_never_ends(name):
    """A cycle with a spectral radius of 0.999: an arm's weight is about 1,000."""
    a = np.zeros((4, 4))
    a[0, 1] = a[1, 0] = 0.999
    weights = np.linalg.inv(np.eye(4) - a)
    problem = problem_for(name)._replace(acyclic=False, overall_range=(0.0, 4000.0), weights=weights.sum(axis=0))
    learner, draws = sp.Learner(sp.policies.POLICIES[name](), problem, seed=1), np.random.default_rng(1)
    for _ in range(150):
        x = learner.choose()
        z = np.where(x, draws.uniform(0.4, 0.6, size=4), 0.0)
        learner.report(learner.play(), **reported(problem, z, weights @ z))
    assert_finite(learner)
    if learner.policy.traits.explains:
        score = learner.explain().score
        assert not np.isnan(score).any()
    if learner.policy.traits.learns_graph and problem.observes == "both":
        np.testing.assert_array_equal(learner.choose(), [True, True, False, False])
    assert learner.choose().sum() == 2

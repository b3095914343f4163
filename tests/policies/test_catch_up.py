"""Catching up on many rounds at once: the state that playing and hearing of one after the other leaves."""

import copy
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.history.replay import deferred, takes_many
from spillover.state import copy_state, leaves
from spillover.types import Feedback

N, BUDGET = 6, 2
GRAPHS = ("sparse", "payoff", "instrument", "adaptive", "none")
POLICIES: dict[str, Any] = {
    **{f"switching, {graph}": sp.SwitchingSEM(graph=graph) for graph in GRAPHS},
    **{f"ndc-sem, {graph}": sp.NDCSEM(graph=graph, discount=0.9) for graph in GRAPHS},
    "ndc-sem, pending": sp.NDCSEM(pending=True, discount=0.9),
    "sem-ucb": sp.SEMUCB(),
    "switching, signed": sp.SwitchingSEM(signed=True),
}


def solves_nothing(policy):
    """Catching up solves for no graph: what it is compared with must not either."""
    quick = deferred(policy)
    if quick is policy:
        quick = copy.copy(policy)
        learner = copy.copy(policy.learner)
        object.__setattr__(learner, "solve", lambda graph: graph)
        vars(quick)["learner"] = learner
    return quick


def rounds_of(seed, count, lost=0.2):
    draw = np.random.default_rng(seed)
    x = draw.permuted(np.tile(np.arange(N) < BUDGET, (count, 1)), axis=1)
    x[0] = False  # a round in which nothing was played
    z = np.where(x, draw.uniform(-1.0, 3.0, (count, N)), 0.0)
    y = z @ np.triu(draw.uniform(0, 0.5, (N, N))) + draw.normal(0, 0.1, (count, N))
    return Feedback(x, z, y, np.zeros(count, np.int64), draw.uniform(size=count) > lost)


def lived(policy, state, rounds):
    rng = sp.Rng(0)
    for x, z, y, arrived in zip(rounds.x, rounds.z, rounds.y, rounds.arrived, strict=True):
        state = policy.played(state, x)
        if arrived:
            state = policy.update(state, Feedback(x, z, y, np.array(0), np.array(True), rounds.memo), rng)
    return state


@pytest.mark.parametrize("count", [1, 150])
@pytest.mark.parametrize("name", POLICIES)
def test_at_once_as_one_by_one(name, count):
    policy = POLICIES[name]
    quick = solves_nothing(policy)
    problem = sp.Problem(N, BUDGET, acyclic=False, reward_range=(-1.0, 3.0))
    state = lived(quick, policy.init(problem, sp.Rng(0)), rounds_of(1, 40))
    late = rounds_of(2, 1, lost=-1.0)
    outcome = Feedback(late.x[0], late.z[0], late.y[0], np.array(35), np.array(True))
    state = quick.update(state, outcome, sp.Rng(0))
    state = state._replace(graph=policy.learner.solve(state.graph))
    rounds = rounds_of(3, count)._replace(memo=policy.select(state, sp.Rng(0)).memo)
    expected = leaves(lived(quick, copy_state(state), rounds))
    for field, leaf in leaves(policy.catch_up(state, rounds)).items():
        np.testing.assert_allclose(leaf, expected[field], rtol=1e-7, atol=1e-9, err_msg=field)
        assert (leaf.dtype, leaf.shape) == (expected[field].dtype, expected[field].shape), field


@pytest.mark.parametrize("name", POLICIES)
def test_no_rounds_change_nothing(name):
    policy = POLICIES[name]
    state = lived(policy, policy.init(sp.Problem(N, BUDGET, reward_range=(-1.0, 3.0)), sp.Rng(0)), rounds_of(1, 10))
    before = leaves(copy_state(state))
    some = rounds_of(2, 1)
    none = Feedback(some.x[:0], some.z[:0], some.y[:0], some.age[:0], some.arrived[:0])
    after = leaves(policy.catch_up(state, none))
    assert all(np.array_equal(after[field], leaf, equal_nan=True) for field, leaf in before.items())


@pytest.mark.parametrize("name", ["switching, adaptive", "ndc-sem, sparse"])
def test_rounds_that_cannot_be_are_refused(name):
    policy = POLICIES[name]
    state = policy.init(sp.Problem(N, BUDGET, reward_range=(-1.0, 3.0)), sp.Rng(0))
    rounds = rounds_of(3, 20, lost=-1.0)
    rounds.z[7, rounds.x[7]] = 3.5
    with pytest.raises(ValueError, match=r"z of row 7 = .*3\.5.*must be .*\[-1, 3\]"):
        policy.catch_up(state, rounds)


def test_a_policy_with_an_update_of_its_own_is_told_round_by_round():
    class Mine(sp.NDCSEM):
        def update(self, state, feedback, rng):
            return super().update(state, feedback, rng)

    assert [takes_many(policy) for policy in (sp.NDCSEM(), sp.SwitchingSEM())] == [True, True]
    assert [takes_many(policy) for policy in (Mine(), sp.CUCB())] == [False, False]

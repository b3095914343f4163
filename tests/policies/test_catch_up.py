"""Catching up on many rounds in one call leaves the state that learning them one after the other leaves."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import learn_rounds
from spillover.core.batches import learns_histories
from spillover.graph import AdaptiveGraph
from spillover.history import read_history
from spillover.history.replay import replay_history
from spillover.rng import Purpose
from spillover.state import copy_state, leaves
from spillover.types import Feedback
from tests.sampling import every, often

N, BUDGET = 6, 2
GRAPHS = ("sparse", "payoff", "instrument", "adaptive", "none")
POLICIES: dict[str, Any] = {
    **{f"switching, {graph}": sp.SwitchingSEM(graph=graph) for graph in GRAPHS},
    **{f"ndc-sem, {graph}": sp.NDCSEM(graph=graph, discount=0.9) for graph in GRAPHS},
    "ndc-sem, pending": sp.NDCSEM(pending=True, discount=0.9),
    "sem-ucb": sp.SEMUCB(),
    "switching, signed": sp.SwitchingSEM(graph=AdaptiveGraph(signed=True)),
}
EACH = often(["switching, adaptive", "ndc-sem, sparse", "ndc-sem, pending", "sem-ucb"], POLICIES)


def rounds_of(seed, count, lost=0.2):
    draw = np.random.default_rng(seed)
    x = draw.permuted(np.tile(np.arange(N) < BUDGET, (count, 1)), axis=1)
    x[0] = False  # a round in which nothing was played
    z = np.where(x, draw.uniform(-1.0, 3.0, (count, N)), 0.0)
    y = z @ np.triu(draw.uniform(0, 0.5, (N, N))) + draw.normal(0, 0.1, (count, N))
    return Feedback(x, z, y, np.zeros(count, np.int64), draw.uniform(size=count) > lost)


def lived(policy, state, rounds):
    """One round after the other."""
    return learn_rounds(policy, state, rounds, 1, sp.Rng(0), learns_histories(policy).learn)


def updated(policy, state, rounds):
    rng = sp.Rng(0)
    for x, z, y, arrived in zip(rounds.x, rounds.z, rounds.y, rounds.arrived, strict=True):
        state = policy.played(state, x)
        if arrived:
            state = policy.update(state, Feedback(x, z, y, np.array(0), np.array(True), memo=rounds.memo), rng)
    return state


@pytest.mark.parametrize("count", [1, 150])
@pytest.mark.parametrize("name", EACH)
def test_at_once_as_one_by_one(name, count):
    policy = POLICIES[name]
    problem = sp.Problem(N, BUDGET, acyclic=False, reward_range=(-1.0, 3.0))
    state = lived(policy, policy.init(problem, sp.Rng(0)), rounds_of(1, 40))
    late = rounds_of(2, 1, lost=-1.0)
    outcome = Feedback(late.x[0], late.z[0], late.y[0], np.array(35), np.array(True))
    past = learns_histories(policy)
    state = past.solve(past.learn(state, outcome, sp.Rng(0)))
    rounds = rounds_of(3, count)._replace(memo=policy.select(state, sp.Rng(0)).memo)
    expected = leaves(lived(policy, copy_state(state), rounds))
    for field, leaf in leaves(learns_histories(policy).catch_up(state, rounds, 41, sp.Rng(0))).items():
        np.testing.assert_allclose(leaf, expected[field], rtol=1e-7, atol=1e-9, err_msg=field)
        assert (leaf.dtype, leaf.shape) == (expected[field].dtype, expected[field].shape), field


@pytest.mark.parametrize("name", EACH)
def test_no_rounds_change_nothing(name):
    policy = POLICIES[name]
    state = lived(policy, policy.init(sp.Problem(N, BUDGET, reward_range=(-1.0, 3.0)), sp.Rng(0)), rounds_of(1, 10))
    before = leaves(copy_state(state))
    some = rounds_of(2, 1)
    none = Feedback(some.x[:0], some.z[:0], some.y[:0], some.age[:0], some.arrived[:0])
    after = leaves(learns_histories(policy).catch_up(state, none, 11, sp.Rng(0)))
    assert all(np.array_equal(after[field], leaf, equal_nan=True) for field, leaf in before.items())


@pytest.mark.parametrize("name", ["switching, adaptive", "ndc-sem, sparse"])
def test_rounds_that_cannot_be_are_refused(name):
    policy = POLICIES[name]
    state = policy.init(sp.Problem(N, BUDGET, reward_range=(-1.0, 3.0)), sp.Rng(0))
    rounds = rounds_of(3, 20, lost=-1.0)
    rounds.z[7, rounds.x[7]] = 3.5
    with pytest.raises(ValueError, match=r"z of row 7 = .*3\.5.*must be .*\[-1, 3\]"):
        learns_histories(policy).catch_up(state, rounds, 1, sp.Rng(0))


@pytest.mark.parametrize("name", [*EACH, "cucb", "discounted-ts", "glr-sem-ucb"])
def test_learning_and_solving_is_updating(name):
    policy: Any = POLICIES.get(name) or sp.policies.POLICIES[name]()
    problem = sp.Problem(N, BUDGET, acyclic=False, reward_range=(-1.0, 3.0))
    rounds = rounds_of(4, 30)
    solved = policy.init(problem, sp.Rng(0))
    for row in range(len(rounds.x)):
        one = Feedback(*(leaf[row : row + 1] for leaf in rounds[:5]))
        solved = learns_histories(policy).solve(lived(policy, solved, one))
    expected = leaves(updated(policy, policy.init(problem, sp.Rng(0)), rounds))
    for field, leaf in leaves(solved).items():
        np.testing.assert_array_equal(leaf, expected[field], err_msg=field)


@pytest.mark.parametrize("base", [sp.NDCSEM, sp.SwitchingSEM, sp.policies.CUCB])
def test_an_update_of_its_own_takes_effect_in_histories(base: Any) -> None:
    class Deaf(base):  # type: ignore[misc]
        def update(self, state, feedback, rng):
            return state

    rows = {"round": [1, 1, 2, 2, 3, 3], "arm": ["a", "b"] * 3, "chosen": [1, 0, 0, 1, 1, 0]}
    history = read_history(rows | {"z": [0.9, 0, 0, 0.4, 0.8, 0], "y": [0.9, 0.3, 0.3, 0.4, 0.8, 0.3]})
    for policy, deaf in ((base(), False), (Deaf(), True)):
        learner = replay_history(policy, history, budget=1)
        unheard = policy.init(learner.problem, learner.rng.at(Purpose.START))
        for x in history.x:
            unheard = policy.played(unheard, x)
        assert deaf == all(np.array_equal(leaf, leaves(unheard)[name]) for name, leaf in leaves(learner.state).items())


@pytest.mark.parametrize("graph", ["payoff", "instrument"])
@pytest.mark.parametrize("make", every(2, [sp.NDCSEM, sp.SwitchingSEM]))
def test_a_graph_that_cannot_wait_is_solved_for_once_a_round(make, graph, monkeypatch):
    policy, solved = make(graph=graph), []
    kind = type(policy.graph)
    whole = kind.solve

    def counted(self, graph):
        solved.append(graph)
        return whole(self, graph)

    monkeypatch.setattr(kind, "solve", counted)
    sp.simulate(policy, sp.SyntheticSEM(horizon=30, changes=()), 0)
    assert len(solved) == 30


class Halved(sp.NDCSEM):
    """Learns half of every outcome."""

    def update(self, state, feedback, rng):
        return super().update(state, feedback._replace(z=feedback.z / 2, y=feedback.y / 2), rng)


class Doubtful(sp.SwitchingSEM):
    """Plays twice what it is given, as far as it knows."""

    def played(self, state, x):
        return super().played(super().played(state, x), x)


@pytest.mark.parametrize(("policy", "base"), [(Halved(), sp.NDCSEM()), (Doubtful(), sp.SwitchingSEM())])
def test_a_history_is_learned_by_a_subclasses_own_functions(policy, base):
    problem = sp.Problem(N, BUDGET, acyclic=False, reward_range=(-1.0, 3.0))
    found, expected, others = (
        leaves(catch_up(each.init(problem, sp.Rng(0)), rounds_of(5, 20), 1, sp.Rng(0)))
        for each, catch_up in (
            (policy, learns_histories(policy).catch_up),
            (policy, partial(learn_rounds, policy)),
            (base, learns_histories(base).catch_up),
        )
    )
    assert all(np.array_equal(found[name], leaf, equal_nan=True) for name, leaf in expected.items())
    assert any(not np.array_equal(found[name], leaf, equal_nan=True) for name, leaf in others.items())

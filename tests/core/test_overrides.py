"""A function that a subclass, a mixin or an assignment replaces takes effect, compiled or not."""

from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.core.batches import learns_histories
from spillover.rng import Purpose
from spillover.types import Feedback
from tests.core.explorers import CompiledExplorer, Explorer

WORLD = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=30, changes=())
KINDS: dict[str, type[Explorer]] = {"plain": Explorer, "compiled": CompiledExplorer}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def first_arms(self, s, turn, x):
    """Play the first arms."""
    for i in range(s.budget):
        x[i] = True


def learn_nothing(self, s, lesson, turn):
    """Learn nothing but that there was an outcome."""
    s.surprise += 1.0


class FirstArms:
    decide = first_arms


def decisions(policy: Any) -> Any:
    """Of a simulation; those of a live learner are the same as long as nothing is reported."""
    run = sp.simulate(policy, WORLD, 3, replications=2, seed=1)
    learner, live = sp.Learner(policy, sp.Problem(n_arms=5, budget=2), seed=1), []
    for _ in range(5):
        live.append(learner.choose())
        learner.play()
    return run.regret, np.array(live)


@each_kind
def test_a_decision_is_replaced_by_a_subclass_a_mixin_or_an_assignment(kind, monkeypatch) -> None:
    class BySubclass(kind):
        def decide(self, s, turn, x):
            for i in range(s.budget):
                x[i] = True

    class ByMixin(FirstArms, kind):
        pass

    usual, own = decisions(kind()), decisions(BySubclass())
    assert (own[1] == [True, True, False, False, False]).all()
    assert (own[0] != usual[0]).any()
    found = [decisions(ByMixin())]
    monkeypatch.setattr(Explorer, "decide", first_arms)
    found.append(decisions(kind()))
    for regret, live in found:
        np.testing.assert_array_equal(regret, own[0])
        np.testing.assert_array_equal(live, own[1])


@each_kind
def test_what_is_learned_can_be_replaced(kind, monkeypatch) -> None:
    monkeypatch.setattr(kind, "learn_outcome", learn_nothing)
    monkeypatch.setattr(kind, "note_play", None)
    learner = sp.Learner(kind(), sp.Problem(n_arms=3, budget=1))
    for _ in range(4):
        round = learner.play()
        learner.report(round, np.zeros(3), np.zeros(3))
    assert (learner.state.rounds, learner.state.surprise, learner.state.clock) == (4, 4.0, 0.0)
    assert not learner.state.means.counts.any()


@each_kind
@pytest.mark.parametrize("name", ["select", "played", "update"])
def test_a_replaced_function_of_the_contract_takes_effect(kind, name) -> None:
    calls = []

    class Own(kind):
        pass

    def counted(self, *given):
        calls.append(name)
        return getattr(super(Own, self), name)(*given)

    setattr(Own, name, counted)
    run = sp.simulate(Own(), WORLD, 0, replications=2, seed=1)
    assert len(calls) == WORLD.horizon
    np.testing.assert_array_equal(run.regret, sp.simulate(kind(), WORLD, 0, replications=2, seed=1).regret)
    calls.clear()
    learner = sp.Learner(Own(), sp.Problem(n_arms=3, budget=1))
    for _ in range(4):
        learner.report(learner.play(), np.zeros(3), np.zeros(3))
    assert len(calls) == 4


@each_kind
def test_a_history_is_learned_by_the_functions_that_were_replaced(kind) -> None:
    calls = []

    class Own(kind):
        memos = 0
        remember = None
        learn_outcome = learn_nothing

        def update(self, state, feedback, rng):
            calls.append("update")
            return super().update(state, feedback, rng)

    x, z = np.eye(3, dtype=np.bool_), 0.5 * np.eye(3)
    history = Feedback(x, z, z, np.zeros(3, np.int64), np.ones(3, np.bool_))
    state = Own().init(sp.Problem(n_arms=3, budget=1), sp.Rng(0).at(Purpose.START))
    state = learns_histories(Own()).catch_up(state, history, 1, sp.Rng(0))
    assert len(calls) == 3
    assert (state.rounds, state.surprise) == (3, 3.0)

"""A function that a subclass, a mixin or an assignment replaces takes effect in every use of a policy."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import Delay, learn_rounds
from spillover.core.batches import learns_histories
from spillover.delays import BadNewsDelay, GeometricDelay
from spillover.graph.adaptive import AdaptiveGraph
from spillover.graph.learner import GraphLearner, GraphTraits
from spillover.graph.sparse import SparseGraph
from spillover.policies.ndcsem import BoundedMeans
from spillover.rng import Purpose
from spillover.types import Feedback

WORLD = sp.SyntheticSEM(horizon=120, changes=(60,))
N = WORLD.draw(sp.Rng(0)).problem.n_arms


def reversed_index(self: Any, s: Any, turn: Any, found: Any) -> None:
    """Prefer the worst arms."""
    for i in range(found.shape[0]):
        count = s.averages.counts[i]
        found[i] = 2.0 - s.averages.sums[i] / count if count > 0 else 3.0


def no_weights(learner: Any, graph: Any) -> Any:
    """Learn no graph at all."""
    graph.adjacency[...] = 0.0
    graph.weights[...] = 1.0
    return graph


class Reversed:
    index = reversed_index


@dataclass(frozen=True, kw_only=True)
class BySubclass(sp.NDCSEM):
    index = reversed_index


@dataclass(frozen=True, kw_only=True)
class ByMixin(Reversed, sp.NDCSEM):
    pass


def regret(policy: Any) -> Any:
    return sp.simulate(policy, WORLD, 5, replications=3, seed=4).final_regret


def live_decisions(policy: Any) -> Any:
    """The decisions of a live learner, whose outcomes arrive at once."""
    world = WORLD.draw(sp.Rng(4).at(Purpose.WORLD))
    learner, found = sp.Learner(policy, world.problem, seed=4), []
    for t in range(1, 60):
        found.append(learner.choose())
        learner.play()
        outcome = world.play(t, found[-1], sp.Rng(4).at(Purpose.WORLD, t))
        learner.report(t, outcome.z, outcome.y)
    return np.array(found)


def history() -> Feedback:
    world, rng = WORLD.draw(sp.Rng(4).at(Purpose.WORLD)), np.random.default_rng(4)
    x = np.array([rng.permutation(N) < world.problem.budget for _ in range(40)])
    outcomes = [world.play(t, one, sp.Rng(4).at(Purpose.WORLD, t)) for t, one in enumerate(x, 1)]
    z, y = (np.array([getattr(one, name) for one in outcomes]) for name in "zy")
    return Feedback(x, z, y, np.zeros(40, np.int64), np.ones(40, np.bool_))


def learned(policy: Any, catch_up: Any) -> Any:
    state = policy.init(WORLD.draw(sp.Rng(4)).problem, sp.Rng(4).at(Purpose.START))
    return learns_histories(policy).solve(catch_up(state, history(), 1, sp.Rng(4)))


def test_a_subclass_and_a_mixin_take_effect():
    usual, own = regret(sp.NDCSEM()), regret(BySubclass())
    assert (own != usual).all()
    np.testing.assert_array_equal(regret(ByMixin()), own)
    np.testing.assert_array_equal(live_decisions(ByMixin()), live_decisions(BySubclass()))
    assert (live_decisions(BySubclass()) != live_decisions(sp.NDCSEM())).any()


@pytest.mark.parametrize("kind", [sp.NDCSEM, BoundedMeans])
def test_an_assignment_takes_effect(kind, monkeypatch):
    own, live = regret(BySubclass()), live_decisions(BySubclass())
    monkeypatch.setattr(kind, "index", reversed_index)
    np.testing.assert_array_equal(regret(sp.NDCSEM()), own)
    np.testing.assert_array_equal(live_decisions(sp.NDCSEM()), live)


@pytest.mark.parametrize("graph", ["sparse", "adaptive"])
def test_a_graph_learner_with_its_own_solution_takes_effect(graph, monkeypatch):
    kind: Any = {"sparse": SparseGraph, "adaptive": AdaptiveGraph}[graph]
    solve = kind.solve
    policy = sp.NDCSEM() if graph == "sparse" else sp.SwitchingSEM()
    usual = regret(policy)
    calls = []

    def counted(learner: Any, state: Any) -> Any:
        calls.append(graph)
        return solve(learner, state)

    monkeypatch.setattr(kind, "solve", counted)
    np.testing.assert_allclose(regret(policy), usual)  # the same arithmetic, round by round
    assert len(calls) >= WORLD.horizon - 6


@pytest.mark.parametrize("kind", [SparseGraph, AdaptiveGraph])
def test_a_history_is_absorbed_by_a_graph_learner_that_was_replaced(kind, monkeypatch):
    name = "absorb"
    original, calls = getattr(kind, name), []

    def counted(self: Any, *given: Any) -> Any:
        calls.append(name)
        return original(self, *given)

    monkeypatch.setattr(kind, name, counted)
    player = sp.NDCSEM() if kind is SparseGraph else sp.SwitchingSEM()
    learned(player, learns_histories(player).catch_up)
    assert len(calls) == 40


def test_a_graph_learner_that_uses_what_was_expected_learns_a_history_by_it():
    @dataclass(frozen=True, kw_only=True)
    class Instrumented(GraphLearner):
        traits = GraphTraits(deferrable=True)

        def init(self, problem, batch=()):
            return SparseGraph().init(problem, batch)

        def absorb(self, graph, z, y, weight, played_at, expected=None, memo=None):
            graph.gram[...] += expected
            return graph

        def solve(self, graph):
            return no_weights(self, graph)

    player = sp.SwitchingSEM(graph=Instrumented())
    state = learned(player, learns_histories(player).catch_up)
    np.testing.assert_allclose(
        state.graph.gram,
        learned(player, partial(learn_rounds, player, learn=learns_histories(player).learn)).graph.gram,
    )
    assert (state.graph.gram > 0).any()


def test_a_delay_that_draws_in_its_own_way_says_what_its_draws_are_like():
    with pytest.raises(TypeError, match=r"^Growing\.stationary: must be defined in the same class as draw$"):

        class Growing(GeometricDelay):
            def draw(self, t, rng, batch=()):
                return super().draw(t, rng, batch) + t

    with pytest.raises(TypeError, match=r"^Twice\.foreseeable: must be defined in the same class as draw_given$"):

        class Twice(BadNewsDelay):
            def draw_given(self, t, x, z, rng, batch=()):
                return 2 * super().draw_given(t, x, z, rng, batch)

    class Later(GeometricDelay):
        stationary = False

        def draw(self, t, rng, batch=()):
            return super().draw(t, rng, batch) + t

    assert isinstance(Later(3.0), Delay)

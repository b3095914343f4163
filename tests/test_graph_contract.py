"""The contract of graph learners: the package's learners keep it, and every check can fail."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from spillover.graph import GRAPHS, AdaptiveGraph, GraphLearner, InstrumentGraph, PayoffWeights, SparseGraph
from spillover.testing import check_graph_learner
from spillover.testing.graphs import GRAPH_CHECKS, USUAL
from tests.own_parts import load
from tests.sampling import every

RidgeGraph: Any = load("my_graph").RidgeGraph
GLOBAL = np.random.default_rng(0)
LEARNERS: dict[str, Any] = {
    **{name: learner() for name, learner in GRAPHS.items()},
    "sparse, signed": SparseGraph(signed=True),
    "payoff, signed": PayoffWeights(signed=True),
    "instrument, signed": InstrumentGraph(signed=True),
    "adaptive, signed": AdaptiveGraph(signed=True),
    "adaptive, tuned": AdaptiveGraph(sparsity="auto"),
}


@pytest.mark.parametrize("name", every(2, LEARNERS))
def test_our_learners_keep_the_contract(name):
    check_graph_learner(LEARNERS[name])


@dataclass(kw_only=True)
class NotFrozen(GraphLearner):
    def init(self, problem, batch=()):
        return RidgeGraph().init(problem, batch)

    def absorb(self, graph, z, y, weight, played_at):
        return RidgeGraph().absorb(graph, z, y, weight, played_at)

    def solve(self, graph):
        return RidgeGraph().solve(graph)


@dataclass(frozen=True, kw_only=True)
class NotDerived:
    ridge: float = 1.0


@dataclass(frozen=True, kw_only=True)
class NoPromise(RidgeGraph):
    order_free = None


@dataclass(frozen=True, kw_only=True)
class GrowingType(RidgeGraph):
    def init(self, problem, batch=()):
        graph = super().init(problem, batch)
        return graph._replace(cross=graph.cross.astype(int))


@dataclass(frozen=True, kw_only=True)
class SharedLeaf(RidgeGraph):
    def init(self, problem, batch=()):
        return super().init(problem, batch)._replace(possible=np.ones(problem.n_arms, bool))


@dataclass(frozen=True, kw_only=True)
class InfiniteWeights(RidgeGraph):
    def solve(self, graph):
        graph = super().solve(graph)
        return graph._replace(weights=np.where(graph.weights > 1.2, np.inf, graph.weights))


@dataclass(frozen=True, kw_only=True)
class NarrowGain(RidgeGraph):
    def gain(self, graph):
        return graph.weights[..., :1]


@dataclass(frozen=True, kw_only=True)
class LongGram(RidgeGraph):
    def signals(self, graph):
        return {"gram": graph.weights}


@dataclass(frozen=True, kw_only=True)
class Loops(RidgeGraph):
    def solve(self, graph):
        graph = super().solve(graph)
        return graph._replace(adjacency=graph.adjacency + 0.1 * np.eye(graph.weights.shape[-1]))


@dataclass(frozen=True, kw_only=True)
class Harms(RidgeGraph):
    def solve(self, graph):
        graph = super().solve(graph)
        return graph._replace(adjacency=-graph.adjacency)


@dataclass(frozen=True, kw_only=True)
class LearnsAfterAll(RidgeGraph):
    learns = False


@dataclass(frozen=True, kw_only=True)
class SometimesAMemo(RidgeGraph):
    def remember(self, graph):
        return graph.weights if (graph.gram > 0).any() else None


@dataclass(frozen=True, kw_only=True)
class SharedMemo(RidgeGraph):
    def remember(self, graph):
        return np.zeros(3) if graph.weights.ndim > 1 else np.zeros(1)


@dataclass(frozen=True, kw_only=True)
class RememberLearns(RidgeGraph):
    def remember(self, graph):
        graph.gram[...] += 1.0


@dataclass(frozen=True, kw_only=True)
class AbsorbErases(RidgeGraph):
    def absorb(self, graph, z, y, weight, played_at):
        after = super().absorb(graph, z, y, weight, played_at)
        z[...] = 0.0
        return after


@dataclass(frozen=True, kw_only=True)
class Drawing(RidgeGraph):
    def solve(self, graph):
        graph = super().solve(graph)
        return graph._replace(weights=graph.weights + 1e-9 * GLOBAL.uniform(size=graph.weights.shape))


@dataclass(frozen=True, kw_only=True)
class Diary(RidgeGraph):
    pages: list = field(default_factory=list)

    def solve(self, graph):
        self.pages.append(1)
        graph = super().solve(graph)
        return graph._replace(weights=graph.weights + 1e-9 * len(self.pages))


@dataclass(frozen=True, kw_only=True)
class ShrinksTheProblem(RidgeGraph):
    def init(self, problem, batch=()):
        graph = super().init(problem, batch)
        if problem.overall_range is not None:
            problem.overall_range[...] *= 0.5
        return graph


@dataclass(frozen=True, kw_only=True)
class Crowd(RidgeGraph):
    """Every learner learns a little from the others of its batch."""

    def solve(self, graph):
        graph = super().solve(graph)
        rows = graph.weights.reshape(-1, graph.weights.shape[-1])
        return graph._replace(weights=0.9 * graph.weights + 0.1 * rows.mean(axis=0))


@dataclass(frozen=True, kw_only=True)
class Impatient(RidgeGraph):
    """Counts an outcome that has not arrived."""

    def absorb(self, graph, z, y, weight, played_at):
        return super().absorb(graph, z, y, np.ones_like(weight), played_at)


@dataclass(frozen=True, kw_only=True)
class Fades(RidgeGraph):
    """Weights outcomes by the order of their arrival."""

    def absorb(self, graph, z, y, weight, played_at):
        fading = np.where(np.asarray(weight, float) > 0, 0.8, 1.0)[..., None, None]
        faded = graph._replace(gram=fading * graph.gram, cross=fading * graph.cross)
        return super().absorb(faded, z, y, weight, played_at)


@dataclass(frozen=True, kw_only=True)
class GridThatMatters(RidgeGraph):
    def solve(self, graph):
        graph = super().solve(graph)
        return graph._replace(weights=graph.weights + 0.01 * np.ndim(self.ridge))


@dataclass(frozen=True, kw_only=True)
class GridOnTheWrongAxis(RidgeGraph):
    def solve(self, graph):
        graph = super().solve(graph)
        return graph._replace(weights=graph.weights + 0.0 * np.asarray(self.ridge)[..., None, None])


@dataclass(frozen=True, kw_only=True)
class NeedsTwoArms(RidgeGraph):
    def solve(self, graph):
        graph = super().solve(graph)
        return graph._replace(weights=graph.weights + 0.0 * graph.weights[..., [1]])


@dataclass(frozen=True, kw_only=True)
class NeedsAnOrder(RidgeGraph):
    def init(self, problem, batch=()):
        if not problem.acyclic:
            raise ValueError("no order, no graph")
        return super().init(problem, batch)


@dataclass(frozen=True, kw_only=True)
class NeedsRewards(RidgeGraph):
    def gain(self, graph):
        total = graph.gram.sum(axis=(-1, -2))
        unsure = np.where(graph.adjacency.any(axis=(-1, -2)) | (graph.weights.shape[-1] != 3), 1.0, total)
        with np.errstate(invalid="ignore"):
            return np.ones_like(graph.weights) * (unsure / unsure)[..., None]


@dataclass(frozen=True, kw_only=True)
class SmoothedOverSolutions(RidgeGraph):
    """Moves half of the way to the solution whenever it is solved for."""

    deferrable = True

    def solve(self, graph):
        before = graph.weights.copy()
        graph = super().solve(graph)
        return graph._replace(weights=(before + graph.weights) / 2)


BROKEN = [
    (SmoothedOverSolutions, "check_learner_deferral", "solving once after many outcomes estimates something else"),
    (NotFrozen, "check_learner_form", "not frozen"),
    (NotDerived, "check_learner_form", "it is no GraphLearner"),
    (NoPromise, "check_learner_form", "order_free is None"),
    (lambda: RidgeGraph(ridge=np.ones(2)), "check_learner_form", r"\['ridge'\] hold arrays"),
    (GrowingType, "check_learner_state", "after round 1 .*graph.cross: .*int64.* at first, .*float64"),
    (SharedLeaf, "check_learner_state", r"graph.possible has shape \(5,\) for a batch \(3,\)"),
    (InfiniteWeights, "check_learner_estimates", "weights is not finite"),
    (NarrowGain, "check_learner_estimates", r"after round 0 with batch \(\) gain has shape \(1,\)"),
    (LongGram, "check_learner_estimates", r"gram has shape \(5,\)"),
    (Loops, "check_learner_estimates", "there is an edge 0.1 that cannot be"),
    (Harms, "check_learner_estimates", "an edge is -"),
    (LearnsAfterAll, "check_learner_estimates", "weights are .*leave them at 1"),
    (SometimesAMemo, "check_learner_estimates", "remember gave .* and None"),
    (SharedMemo, "check_learner_estimates", r"remember gave \(3,\)"),
    (RememberLearns, "check_learner_pure", r"remember changed the graph in round 1: gram\["),
    (AbsorbErases, "check_learner_pure", r"changed an outcome in round 1: z\["),
    (Drawing, "check_learner_pure", "equal graphs and outcomes gave two graphs in round 1"),
    (Diary, "check_learner_pure", "equal graphs and outcomes gave two graphs in round 1"),
    (ShrinksTheProblem, "check_learner_pure", "init changed the problem: overall_range"),
    (Crowd, "check_learner_rows", r"learner \(0,\) of a batch \(6,\) differs"),
    (Impatient, "check_learner_silence", r"weight 0 changed the graph in round 1: gram\["),
    (Fades, "check_learner_order", "outcomes that came backwards gave another graph"),
    (GridThatMatters, "check_learner_grid", "cell 0 of a grid of equal ridge differs"),
    (GridOnTheWrongAxis, "check_learner_grid", "differs from the single learner"),
    (NeedsTwoArms, "check_learner_edges", "with one arm: IndexError"),
    (NeedsAnOrder, "check_learner_edges", "with a cycle: ValueError: no order, no graph"),
    (NeedsRewards, "check_learner_edges", "with rewards that are all zero: .*gain is not finite"),
]


@pytest.mark.parametrize(("make", "check", "message"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_broken_learner_is_caught_by_its_check(make, check, message):
    checks = {function.__name__: function for function in GRAPH_CHECKS}
    with pytest.raises(AssertionError, match=message):
        checks[check](make(), USUAL, 0)
    with pytest.raises(AssertionError, match=r"\[check_learner_\w+\]$"):
        check_graph_learner(make())


def test_every_check_has_something_that_it_catches():
    assert {check for _, check, _ in BROKEN} == {function.__name__ for function in GRAPH_CHECKS}


@dataclass(frozen=True, kw_only=True)
class HonestFades(Fades):
    order_free = False


def test_an_honest_learner_is_excused_from_order():
    check_graph_learner(HonestFades())


def test_a_message_names_the_learner_the_numbers_the_remedy_and_the_check():
    with pytest.raises(AssertionError) as caught:
        check_graph_learner(NarrowGain())
    text = str(caught.value)
    assert text.startswith("NarrowGain: after round 0 with batch () gain has shape (1,).")
    assert text.endswith("To fix it: return (*batch, n). [check_learner_estimates]")

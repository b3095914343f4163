"""The contract of graph learners: the package's learners keep it, and every check can fail."""

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest

from spillover.graph import GRAPHS, AdaptiveGraph, GraphLearner, InstrumentGraph, PayoffWeights, SparseGraph
from spillover.graph.learner import GraphTraits
from spillover.testing import check_graph_learner
from spillover.testing.graphs import GRAPH_CHECKS, USUAL
from tests.own_parts import load
from tests.sampling import every
from tests.testing.sound import broken, demand_caught, first, then

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


def solving(change, **fields):
    """A learner that does something to each solution; `change` gets the learner and the graph."""
    return broken(RidgeGraph, solve=then("solve", lambda self, graph, *_: change(self, graph), RidgeGraph), **fields)


def with_weights(change):
    """The same for the weights alone."""
    return solving(lambda self, graph: graph._replace(weights=change(self, graph.weights)))


def starting(change):
    return broken(RidgeGraph, init=then("init", lambda self, graph, *given: change(graph, *given), RidgeGraph))


@dataclass(kw_only=True)
class NotFrozen(GraphLearner):
    init, absorb, solve = RidgeGraph.init, RidgeGraph.absorb, RidgeGraph.solve


@dataclass(frozen=True, kw_only=True)
class NotDerived:
    ridge: float = 1.0


NoPromise = broken(RidgeGraph, traits=GraphTraits(order_free=cast(Any, None)))
LearnsAfterAll = broken(RidgeGraph, traits=GraphTraits(learns=False))
GrowingType = starting(lambda graph, *_: graph._replace(cross=graph.cross.astype(int)))
SharedLeaf = starting(lambda graph, problem, *_: graph._replace(possible=np.ones(problem.n_arms, bool)))
InfiniteWeights = with_weights(lambda self, weights: np.where(weights > 1.2, np.inf, weights))
NarrowGain = broken(RidgeGraph, gain=lambda self, graph: graph.weights[..., :1])
LongGram = broken(RidgeGraph, signals=lambda self, graph: {"gram": graph.weights})
Loops = solving(lambda self, graph: graph._replace(adjacency=graph.adjacency + 0.1 * np.eye(graph.weights.shape[-1])))
Harms = solving(lambda self, graph: graph._replace(adjacency=-graph.adjacency))
SometimesAMemo = broken(RidgeGraph, remember=lambda self, graph: graph.weights if (graph.gram > 0).any() else None)
SharedMemo = broken(RidgeGraph, remember=lambda self, graph: np.zeros(3 if graph.weights.ndim > 1 else 1))
RememberLearns = broken(RidgeGraph, remember=lambda self, graph: graph.gram.fill(1.0))
AbsorbErases = broken(RidgeGraph, absorb=then("absorb", lambda self, after, graph, z, *_: erase(z, after), RidgeGraph))
Drawing = with_weights(lambda self, weights: weights + 1e-9 * GLOBAL.uniform(size=weights.shape))
ShrinksTheProblem = starting(lambda graph, problem, *_: halve_range(problem, graph))
# every learner learns a little from the others of its batch
Crowd = with_weights(lambda self, weights: 0.9 * weights + 0.1 * weights.reshape(-1, weights.shape[-1]).mean(axis=0))
GridThatMatters = with_weights(lambda self, weights: weights + 0.01 * np.ndim(self.ridge))
GridOnTheWrongAxis = with_weights(lambda self, weights: weights + 0.0 * np.asarray(self.ridge)[..., None, None])
NeedsTwoArms = with_weights(lambda self, weights: weights + 0.0 * weights[..., [1]])
NeedsAnOrder = broken(RidgeGraph, init=first("init", lambda self, problem, *_: demand_an_order(problem), RidgeGraph))


def erase(z, after):
    z[...] = 0.0
    return after


def halve_range(problem, graph):
    if problem.overall_range is not None:
        problem.overall_range[...] *= 0.5
    return graph


def demand_an_order(problem):
    if not problem.acyclic:
        raise ValueError("no order, no graph")


@dataclass(frozen=True, kw_only=True)
class Diary(RidgeGraph):
    pages: list = field(default_factory=list)

    def solve(self, graph):
        self.pages.append(1)
        graph = super().solve(graph)
        return graph._replace(weights=graph.weights + 1e-9 * len(self.pages))


@dataclass(frozen=True, kw_only=True)
class Impatient(RidgeGraph):
    """Counts an outcome that has not arrived."""

    def absorb(self, graph, z, y, weight, *told):
        return super().absorb(graph, z, y, np.ones_like(weight), *told)


@dataclass(frozen=True, kw_only=True)
class Fades(RidgeGraph):
    """Weights outcomes by the order of their arrival."""

    def absorb(self, graph, z, y, weight, *told):
        fading = np.where(np.asarray(weight, float) > 0, 0.8, 1.0)[..., None, None]
        faded = graph._replace(gram=fading * graph.gram, cross=fading * graph.cross)
        return super().absorb(faded, z, y, weight, *told)


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

    traits = GraphTraits(deferrable=True)

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


@pytest.mark.parametrize(
    ("make", "check", "message"), BROKEN, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_broken_learner_is_caught_by_its_check(make, check, message):
    demand_caught(make, check, message, GRAPH_CHECKS, check_graph_learner, USUAL, 0)


def test_every_check_has_something_that_it_catches():
    assert {check for _, check, _ in BROKEN} == {function.__name__ for function in GRAPH_CHECKS}


@dataclass(frozen=True, kw_only=True)
class HonestFades(Fades):
    traits = GraphTraits(order_free=False)


def test_an_honest_learner_is_excused_from_order():
    check_graph_learner(HonestFades())


def test_a_message_names_the_learner_the_numbers_the_remedy_and_the_check():
    with pytest.raises(AssertionError) as caught:
        check_graph_learner(NarrowGain())
    text = str(caught.value)
    assert text.startswith("Broken: after round 0 with batch () gain has shape (1,).")
    assert text.endswith("To fix it: return (*batch, n). [check_learner_estimates]")

"""The graph learners by name."""

from collections.abc import Callable
from typing import Any

from spillover import validate
from spillover.graph.adaptive import AdaptiveGraph
from spillover.graph.instrument import InstrumentGraph
from spillover.graph.learner import GraphLearner
from spillover.graph.none import NoGraph
from spillover.graph.payoff import PayoffWeights
from spillover.graph.sparse import SparseGraph
from spillover.graph.tuned import SelfTunedGraph

GRAPHS: dict[str, Callable[..., GraphLearner]] = {
    "sparse": SparseGraph,
    "self-tuned": SelfTunedGraph,
    "payoff": PayoffWeights,
    "instrument": InstrumentGraph,
    "adaptive": AdaptiveGraph,
    "none": NoGraph,
}


def as_graph_learner(given: Any) -> GraphLearner:
    """A graph learner from its name, or the graph learner itself.

    >>> as_graph_learner("payoff")
    PayoffWeights(signed=False, unit_gain=False)
    """
    if isinstance(given, GraphLearner):
        return given
    accepted = f"one of {', '.join(GRAPHS)}, or a GraphLearner such as SparseGraph(sparsity=0.01)"
    validate.require(isinstance(given, str) and given in GRAPHS, "graph", given, accepted)
    return GRAPHS[given]()

"""The graph learners by name."""

from collections.abc import Callable
from typing import Any

from spillover.graph.adaptive import AdaptiveGraph
from spillover.graph.candidates import CandidateGraph
from spillover.graph.core import NoGraph
from spillover.graph.k_class import KClassGraph
from spillover.graph.learner import GraphLearner
from spillover.graph.regression import InstrumentGraph, PayoffWeights
from spillover.graph.sparse import DenseGraph, SparseGraph
from spillover.graph.tuned import PaperTunedGraph, SelfTunedGraph
from spillover.registry import Registry

BUILT_IN: dict[str, Callable[..., GraphLearner]] = {
    "sparse": SparseGraph,
    "self-tuned": SelfTunedGraph,
    "payoff": PayoffWeights,
    "instrument": InstrumentGraph,
    "adaptive": AdaptiveGraph,
    "none": NoGraph,
    "candidates": CandidateGraph,
    "dense": DenseGraph,
    "k-class": KClassGraph,
    "paper-tuned": PaperTunedGraph,
}
GRAPHS = Registry("graph", "spillover.graphs", GraphLearner, BUILT_IN)


def as_graph_learner(given: Any) -> GraphLearner:
    """A graph learner from its name (module:Class for your own), or the graph learner itself.

    >>> as_graph_learner("payoff")
    PayoffWeights(signed=False, unit_gain=False)
    """
    if isinstance(given, GraphLearner):
        return given
    maker = GRAPHS.find(given, "graph")
    try:
        return maker()
    except TypeError as error:  # it has parameters without a default
        raise ValueError(f"graph = {given!r}: must be given with its parameters: {error}") from None

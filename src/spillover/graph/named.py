"""From the parameters of a policy to the learner that they ask for."""

from collections.abc import Callable
from typing import Any

from spillover import validate
from spillover.graph.adaptive import AdaptiveGraph
from spillover.graph.instrument import InstrumentGraph
from spillover.graph.learner import GraphLearner
from spillover.graph.none import NoGraph
from spillover.graph.payoff import PayoffWeights
from spillover.graph.sparse import ROW_BOUND, SparseGraph
from spillover.graph.tuned import SelfTunedGraph


def sparse_learner(sparsity: Any, **shared: Any) -> GraphLearner:
    """The paper's learner, at a given sparsity or one chosen online."""
    if isinstance(sparsity, str):
        validate.require(sparsity == "auto", "sparsity", sparsity, 'a finite number >= 0, or "auto"')
        return SelfTunedGraph(**shared)
    return SparseGraph(sparsity=sparsity, **shared)


def payoff_learner(signed: bool, required: Any, forbidden: Any, **unused: Any) -> GraphLearner:
    for name, edges in (("required", required), ("forbidden", forbidden)):
        validate.require(edges is None, name, edges, 'None for graph="payoff", which learns no edges')
    return PayoffWeights(signed=signed)


def instrument_learner(signed: bool, required: Any, forbidden: Any, **unused: Any) -> GraphLearner:
    return InstrumentGraph(signed=signed, required=required, forbidden=forbidden)


GRAPHS: dict[str, Callable[..., GraphLearner]] = {
    "sparse": sparse_learner,
    "payoff": payoff_learner,
    "instrument": instrument_learner,
    "adaptive": AdaptiveGraph,
    "none": lambda **unused: NoGraph(),
}


def graph_learner(
    sparsity: Any,
    row_bound: float = ROW_BOUND,
    required: Any = None,
    forbidden: Any = None,
    *,
    graph: Any = "sparse",
    signed: bool = False,
) -> GraphLearner:
    """The learner of that name with these parameters, or the learner that is given itself."""
    accepted = f"one of {', '.join(GRAPHS)}, or a learner with init, absorb and solve"
    if not isinstance(graph, str):
        validate.require(isinstance(graph, GraphLearner) and not isinstance(graph, type), "graph", graph, accepted)
        validate.require(signed is False, "signed", signed, "False where the learner itself is given")
        learner: GraphLearner = graph
        return learner
    validate.require(graph in GRAPHS, "graph", graph, accepted)
    validate.require(isinstance(signed, bool), "signed", signed, "True or False")
    shared = {"row_bound": row_bound, "required": required, "forbidden": forbidden, "signed": signed}
    return GRAPHS[graph](sparsity=sparsity, **shared)

"""Graph learners, which estimate adjacency and weights from outcomes; they are interchangeable."""

from spillover.graph.adaptive import AdaptiveGraph, EvidenceSummary, evidence
from spillover.graph.adaptive_state import CANDIDATES, AdaptiveState
from spillover.graph.candidates import CandidateEdges, CandidateGraph
from spillover.graph.edges import ROW_BOUND, edge_mask, impossible_edges
from spillover.graph.instrument import InstrumentGraph, InstrumentState
from spillover.graph.k_class import KClassGraph, KClassState
from spillover.graph.learner import MANY_ARMS, GraphLearner, GraphTraits
from spillover.graph.none import EmptyGraph, NoGraph
from spillover.graph.paper_tuned import HELD_OUT_KEPT, PaperTunedGraph, PaperTunedState
from spillover.graph.payoff import PayoffGraph, PayoffWeights
from spillover.graph.registry import GRAPHS, as_graph_learner
from spillover.graph.sparse import DenseGraph, Graph, SparseGraph
from spillover.graph.tuned import (
    AUTO_GRID,
    HELD_OUT_EVERY,
    HELD_OUT_PHASE,
    SelfTunedGraph,
    TunedGraph,
    largest_near_best,
)

__all__ = [
    "AUTO_GRID",
    "CANDIDATES",
    "GRAPHS",
    "HELD_OUT_EVERY",
    "HELD_OUT_KEPT",
    "HELD_OUT_PHASE",
    "MANY_ARMS",
    "ROW_BOUND",
    "AdaptiveGraph",
    "AdaptiveState",
    "CandidateEdges",
    "CandidateGraph",
    "DenseGraph",
    "EmptyGraph",
    "EvidenceSummary",
    "Graph",
    "GraphLearner",
    "GraphTraits",
    "InstrumentGraph",
    "InstrumentState",
    "KClassGraph",
    "KClassState",
    "NoGraph",
    "PaperTunedGraph",
    "PaperTunedState",
    "PayoffGraph",
    "PayoffWeights",
    "SelfTunedGraph",
    "SparseGraph",
    "TunedGraph",
    "as_graph_learner",
    "edge_mask",
    "evidence",
    "impossible_edges",
    "largest_near_best",
]

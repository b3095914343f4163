"""Graph learners, which estimate adjacency and weights from outcomes; they are interchangeable."""

from spillover.graph.adaptive import CANDIDATES, AdaptiveGraph, AdaptiveState, EvidenceSummary, evidence
from spillover.graph.candidates import CandidateEdges, CandidateGraph
from spillover.graph.core import EmptyGraph, NoGraph
from spillover.graph.edges import ROW_BOUND, edge_mask, impossible_edges
from spillover.graph.k_class import KClassGraph, KClassState
from spillover.graph.learner import MANY_ARMS, GraphLearner, GraphTraits
from spillover.graph.registry import GRAPHS, as_graph_learner
from spillover.graph.regression import InstrumentGraph, InstrumentState, PayoffGraph, PayoffWeights
from spillover.graph.sparse import DenseGraph, Graph, SparseGraph
from spillover.graph.tuned import (
    AUTO_GRID,
    HELD_OUT_EVERY,
    HELD_OUT_KEPT,
    HELD_OUT_PHASE,
    PaperTunedGraph,
    PaperTunedState,
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

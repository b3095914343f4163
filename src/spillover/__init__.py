"""Choose s of N actions every round when outcomes arrive late, the world drifts, and actions spill over.

The most common names are here; everything else is in the namespaces `policies`, `graph`, `environments`, `delays`,
`constraints`, `simulation`, `metrics`, `theory`, `state` and `rng`.
"""

from spillover import constraints, delays, environments, graph, metrics, policies, rng, simulation, state, theory
from spillover.contracts import Policy
from spillover.delays import ConstantDelay, GeometricDelay, LossyDelay, RecordedDelay, UniformDelay
from spillover.environments import FixedSEM, SyntheticSEM
from spillover.evaluation import evaluate
from spillover.graph import AdaptiveGraph, CandidateGraph, SparseGraph
from spillover.learners import Learners
from spillover.live import Learner
from spillover.policies import NDCSEM, SEMUCB, Constrained, InstrumentalSEM, SwitchingSEM, Uniform
from spillover.recommendation import next_decision
from spillover.rng import Rng
from spillover.simulation import Run, replay, rounds, simulate
from spillover.simulation.comparison import PairedComparison, compare
from spillover.types import Choice, Explanation, Feedback, Outcome, Problem

__version__ = "0.1.0"

__all__ = [
    "NDCSEM",
    "SEMUCB",
    "AdaptiveGraph",
    "CandidateGraph",
    "Choice",
    "ConstantDelay",
    "Constrained",
    "Explanation",
    "Feedback",
    "FixedSEM",
    "GeometricDelay",
    "InstrumentalSEM",
    "Learner",
    "Learners",
    "LossyDelay",
    "Outcome",
    "PairedComparison",
    "Policy",
    "Problem",
    "RecordedDelay",
    "Rng",
    "Run",
    "SparseGraph",
    "SwitchingSEM",
    "SyntheticSEM",
    "Uniform",
    "UniformDelay",
    "compare",
    "constraints",
    "delays",
    "environments",
    "evaluate",
    "graph",
    "metrics",
    "next_decision",
    "policies",
    "replay",
    "rng",
    "rounds",
    "simulate",
    "simulation",
    "state",
    "theory",
]

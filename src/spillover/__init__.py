"""Choose s of N actions every round when outcomes arrive late, the world drifts, and actions spill over.

What most people start with is in `__all__`. Further names are here for convenience (`sp.UniformDelay`); everything is
in the namespaces `policies`, `graph`, `environments`, `delays`, `constraints`, `simulation`, `metrics`, `theory`,
`state` and `rng`.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spillover import constraints, delays, environments, graph, metrics, policies, rng, simulation, state, theory
    from spillover.contracts import Policy
    from spillover.contracts import Traits as Traits
    from spillover.delays import ConstantDelay as ConstantDelay
    from spillover.delays import GeometricDelay as GeometricDelay
    from spillover.delays import LossyDelay as LossyDelay
    from spillover.delays import RecordedDelay as RecordedDelay
    from spillover.delays import UniformDelay as UniformDelay
    from spillover.environments import FixedSEM, SyntheticSEM
    from spillover.evaluation.evaluate import evaluate
    from spillover.graph import AdaptiveGraph as AdaptiveGraph
    from spillover.graph import CandidateGraph as CandidateGraph
    from spillover.graph import SparseGraph as SparseGraph
    from spillover.learner import Learner, Learners
    from spillover.policies import NDCSEM, SwitchingSEM
    from spillover.policies import SEMUCB as SEMUCB
    from spillover.policies import Constrained as Constrained
    from spillover.policies import InstrumentalSEM as InstrumentalSEM
    from spillover.policies import Uniform as Uniform
    from spillover.recommendation import next_decision
    from spillover.rng import Rng
    from spillover.simulation import Run as Run
    from spillover.simulation import replay, rounds, simulate
    from spillover.simulation.comparison import Comparisons as Comparisons
    from spillover.simulation.comparison import PairedComparison as PairedComparison
    from spillover.simulation.comparison import compare
    from spillover.simulation.comparison import compare_across as compare_across
    from spillover.types import Choice as Choice
    from spillover.types import Explanation as Explanation
    from spillover.types import Feedback as Feedback
    from spillover.types import Outcome as Outcome
    from spillover.types import Problem

__version__ = "0.1.0"

SOURCES = {  # of the names: each is loaded when it is first used
    "contracts": "Policy Traits",
    "delays": "ConstantDelay GeometricDelay LossyDelay RecordedDelay UniformDelay",
    "environments": "FixedSEM SyntheticSEM",
    "evaluation": "evaluate",
    "graph": "AdaptiveGraph CandidateGraph SparseGraph",
    "learner": "Learner Learners",
    "policies": "NDCSEM SEMUCB Constrained InstrumentalSEM SwitchingSEM Uniform",
    "recommendation": "next_decision",
    "rng": "Rng",
    "simulation": "Run replay rounds simulate",
    "simulation.comparison": "Comparisons PairedComparison compare compare_across",
    "types": "Choice Explanation Feedback Outcome Problem",
}
MODULE_OF = {name: f"spillover.{module}" for module, names in SOURCES.items() for name in names.split()}

__all__ = [
    "NDCSEM",
    "FixedSEM",
    "Learner",
    "Learners",
    "Policy",
    "Problem",
    "Rng",
    "SwitchingSEM",
    "SyntheticSEM",
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


def __getattr__(name: str) -> Any:
    if name in MODULE_OF:
        found = getattr(import_module(MODULE_OF[name]), name)
    elif not name.startswith("_") and find_spec(f"spillover.{name}") is not None:
        found = import_module(f"spillover.{name}")
    else:
        raise AttributeError(f"module 'spillover' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULE_OF, *__all__})

"""Choose s of N actions every round when outcomes arrive late, the world drifts, and actions spill over.

What most people start with is in `__all__`. Further names are here for convenience (`sp.UniformDelay`); everything is
in the namespaces `policies`, `graph`, `environments`, `delays`, `constraints`, `simulation`, `metrics`, `theory`,
`state` and `rng`.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from spillover import constraints, delays, environments, graph, metrics, policies, rng, simulation, state
from spillover.contracts import Policy
from spillover.contracts import Traits as Traits
from spillover.delays import ConstantDelay as ConstantDelay
from spillover.delays import GeometricDelay as GeometricDelay
from spillover.delays import LossyDelay as LossyDelay
from spillover.delays import RecordedDelay as RecordedDelay
from spillover.delays import UniformDelay as UniformDelay
from spillover.environments import FixedSEM, SyntheticSEM
from spillover.graph import AdaptiveGraph as AdaptiveGraph
from spillover.graph import CandidateGraph as CandidateGraph
from spillover.graph import SparseGraph as SparseGraph
from spillover.learner.many import Learners
from spillover.learner.one import Learner
from spillover.policies import NDCSEM, SwitchingSEM
from spillover.policies import SEMUCB as SEMUCB
from spillover.policies import Constrained as Constrained
from spillover.policies import InstrumentalSEM as InstrumentalSEM
from spillover.policies import Uniform as Uniform
from spillover.rng import Rng
from spillover.simulation import Run as Run
from spillover.simulation import replay, rounds, simulate
from spillover.types import Choice as Choice
from spillover.types import Explanation as Explanation
from spillover.types import Feedback as Feedback
from spillover.types import Outcome as Outcome
from spillover.types import Problem

if TYPE_CHECKING:
    from spillover import theory
    from spillover.evaluation.evaluate import evaluate
    from spillover.recommendation import next_decision
    from spillover.simulation.comparison import Comparisons as Comparisons
    from spillover.simulation.comparison import PairedComparison as PairedComparison
    from spillover.simulation.comparison import compare
    from spillover.simulation.comparison import compare_across as compare_across

__version__ = "0.1.0"

LOADED_LATER = {  # when they are first used: what a simulation or a learner does not need
    "Comparisons": "spillover.simulation.comparison:Comparisons",
    "PairedComparison": "spillover.simulation.comparison:PairedComparison",
    "assessment": "spillover.assessment",
    "compare": "spillover.simulation.comparison:compare",
    "compare_across": "spillover.simulation.comparison:compare_across",
    "evaluate": "spillover.evaluation:evaluate",
    "evaluation": "spillover.evaluation",
    "experiments": "spillover.experiments",
    "history": "spillover.history",
    "next_decision": "spillover.recommendation:next_decision",
    "recommendation": "spillover.recommendation",
    "theory": "spillover.theory",
}

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
    if name in LOADED_LATER:
        return resolve_name(LOADED_LATER[name])
    raise AttributeError(f"module 'spillover' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *LOADED_LATER})

"""The policies."""

from spillover.contracts import Policy, Traits
from spillover.policies.constrained import Constrained
from spillover.policies.cucb import CUCB, DiscountedCUCB, SlidingWindowCUCB, SuperArmUCB
from spillover.policies.discounted_ts import DiscountedTS
from spillover.policies.graph_policy import GraphPolicy, MeansOnGraph, MeansState
from spillover.policies.instrumental import InstrumentalSEM
from spillover.policies.ndcsem import NDCSEM, SEMUCB, AblatedNDCSEM
from spillover.policies.payoff_regression import PayoffRegression
from spillover.policies.reference import DelayedOracle, Oracle, Uniform
from spillover.policies.registry import POLICIES, find_policy
from spillover.policies.restarts import GLRCUCB, GLRSEMUCB
from spillover.policies.sampling import CTS, FTRL
from spillover.policies.switching import SwitchingSEM

__all__ = [
    "CTS",
    "CUCB",
    "FTRL",
    "GLRCUCB",
    "GLRSEMUCB",
    "NDCSEM",
    "POLICIES",
    "SEMUCB",
    "AblatedNDCSEM",
    "Constrained",
    "DelayedOracle",
    "DiscountedCUCB",
    "DiscountedTS",
    "GraphPolicy",
    "InstrumentalSEM",
    "MeansOnGraph",
    "MeansState",
    "Oracle",
    "PayoffRegression",
    "Policy",
    "SlidingWindowCUCB",
    "SuperArmUCB",
    "SwitchingSEM",
    "Traits",
    "Uniform",
    "find_policy",
]

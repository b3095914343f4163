"""The policies, one file each."""

from spillover.contracts import Policy, Traits
from spillover.policies.ablations import AblatedNDCSEM
from spillover.policies.constrained import Constrained
from spillover.policies.cts import CTS
from spillover.policies.cucb import CUCB, DiscountedCUCB
from spillover.policies.discounted_ts import DiscountedTS
from spillover.policies.ftrl import FTRL
from spillover.policies.graph_policy import GraphPolicy, MeansOnGraph, MeansState
from spillover.policies.instrumental import InstrumentalSEM
from spillover.policies.ndcsem import NDCSEM
from spillover.policies.payoff_regression import PayoffRegression
from spillover.policies.reference import DelayedOracle, Oracle, Uniform
from spillover.policies.registry import POLICIES, find_policy
from spillover.policies.restarts import GLRCUCB, GLRSEMUCB
from spillover.policies.semucb import SEMUCB
from spillover.policies.superarms import SuperArmUCB
from spillover.policies.switching import SwitchingSEM
from spillover.policies.window import SlidingWindowCUCB

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

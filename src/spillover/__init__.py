"""Choose s of N actions every round when outcomes arrive late, the world drifts, and actions spill over."""

from spillover.delays import NEVER, ConstantDelay, GeometricDelay, LossyDelay, RecordedDelay, UniformDelay
from spillover.environments import ConstrainedSEM, FixedSEM, Instance, SyntheticSEM, example_graph
from spillover.live import Learner
from spillover.metrics import mean_interval
from spillover.policies import (
    CTS,
    CUCB,
    FTRL,
    GLRCUCB,
    GLRSEMUCB,
    NDCSEM,
    POLICIES,
    SEMUCB,
    Constrained,
    DelayedOracle,
    DiscountedCUCB,
    DiscountedTS,
    Oracle,
    SlidingWindowCUCB,
    SwitchingSEM,
    Uniform,
)
from spillover.rng import Purpose, Rng
from spillover.simulation import Run, replay, rounds, simulate
from spillover.state import copy_state, load_state, save_state, take_learner
from spillover.theory import regret_bound
from spillover.types import Choice, Explanation, Feedback, Outcome, Problem

__version__ = "0.1.0"

__all__ = [
    "CTS",
    "CUCB",
    "FTRL",
    "GLRCUCB",
    "GLRSEMUCB",
    "NDCSEM",
    "NEVER",
    "POLICIES",
    "SEMUCB",
    "Choice",
    "ConstantDelay",
    "Constrained",
    "ConstrainedSEM",
    "DelayedOracle",
    "DiscountedCUCB",
    "DiscountedTS",
    "Explanation",
    "Feedback",
    "FixedSEM",
    "GeometricDelay",
    "Instance",
    "Learner",
    "LossyDelay",
    "Oracle",
    "Outcome",
    "Problem",
    "Purpose",
    "RecordedDelay",
    "Rng",
    "Run",
    "SlidingWindowCUCB",
    "SwitchingSEM",
    "SyntheticSEM",
    "Uniform",
    "UniformDelay",
    "copy_state",
    "example_graph",
    "load_state",
    "mean_interval",
    "regret_bound",
    "replay",
    "rounds",
    "save_state",
    "simulate",
    "take_learner",
]

"""Why these arms: an explanation taken apart into parts, paths, swaps and health signals."""

from spillover.reasons.decision import ArmReason, Reasons, Swap, reasons
from spillover.reasons.health import Pending, Signal, health
from spillover.reasons.paths import Path, Ways, layers

__all__ = [
    "ArmReason",
    "Path",
    "Pending",
    "Reasons",
    "Signal",
    "Swap",
    "Ways",
    "health",
    "layers",
    "reasons",
]

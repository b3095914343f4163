"""Effects of choices on outcomes: a Bayesian regression that finds trends, later effects and changes by evidence."""

from spillover.regression.effects import PARTS, Effects, estimate_effects
from spillover.regression.structure import Structure

__all__ = ["PARTS", "Effects", "Structure", "estimate_effects"]

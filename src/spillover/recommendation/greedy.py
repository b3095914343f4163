"""The decision by what is known alone, without exploration."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spillover.constraints import Constraint
from spillover.constraints.search import EFFORT, searched_set
from spillover.types import BoolArray, Explanation

ABOVE_NOTHING = 1e-3  # of the range of effects: what the worst of relative effects counts more than choosing nothing


def known_arms(explanation: Explanation) -> BoolArray:
    """Arms with data."""
    return np.asarray(np.isfinite(explanation.mean) & (explanation.count > 0))


def by_knowledge(
    explanation: Explanation,
    budget: int,
    constraints: Sequence[Constraint] = (),
    *,
    arms: Sequence[str] | None = None,
    effort: int = EFFORT,
    relative: bool = False,
) -> Explanation:
    """The same estimates with the exploration bonus left out, and the set that is best by them.

    relative: whether effects are known only relative to each other, so that none is a reason to choose fewer arms.
    """
    mean = np.where(known_arms(explanation), explanation.mean, 0.0)  # an arm without data is worth nothing yet
    effects = explanation.weights * mean
    lowest = float(effects.min()) - ABOVE_NOTHING * float(np.ptp(effects)) - 1e-300 if relative else 0.0
    chosen, more = searched_set(effects - lowest, budget, constraints, arms=arms, effort=effort)
    could_gain = more if constraints else None
    return replace(explanation, index=mean, score=effects, chosen=chosen, plan="", could_gain=could_gain)

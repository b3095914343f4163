"""The decision by what is known alone, without exploration."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spillover.constraints import Constraint
from spillover.set_search import EFFORT, searched_set
from spillover.types import Array, BoolArray, Explanation


def known_effects(explanation: Explanation) -> Array:
    """The expected total effect of each arm, without exploration; 0 for an arm without data."""
    known = np.isfinite(explanation.mean) & (explanation.count > 0)
    return np.where(known, explanation.weights * np.where(known, explanation.mean, 0.0), 0.0)


def by_knowledge(
    explanation: Explanation,
    budget: int,
    constraints: Sequence[Constraint] = (),
    *,
    arms: Sequence[str] | None = None,
    effort: int = EFFORT,
) -> Explanation:
    """The same estimates with the exploration bonus left out, and the set that is best by them."""
    effects = known_effects(explanation)
    chosen, more = searched_set(effects, budget, constraints, arms=arms, effort=effort)
    index = np.where(np.isfinite(explanation.mean) & (explanation.count > 0), explanation.mean, 0.0)
    could_gain = more if constraints else None
    return replace(explanation, index=index, score=effects, chosen=chosen, plan="", could_gain=could_gain)


def known_arms(explanation: Explanation) -> BoolArray:
    return np.asarray(np.isfinite(explanation.mean) & (explanation.count > 0))

"""The decision by what is known alone, without exploration."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spillover.constraints import Constraint
from spillover.set_search import EFFORT, best_set, searched_set
from spillover.types import Array, BoolArray, Explanation

MOST_SEARCHED = 200  # arms up to which it is searched whether each can be chosen


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


def possible_arms(
    constraints: Sequence[Constraint], budget: int, arms: Sequence[str], effort: int = EFFORT
) -> BoolArray | None:
    """The arms that some feasible set contains; None if that may be all of them, or if there are too many to look."""
    if not constraints or len(arms) > MOST_SEARCHED:
        return None
    alone = best_set(np.eye(len(arms)), budget, constraints, arms=arms, effort=effort)
    return np.asarray(np.diagonal(alone))


def known_arms(explanation: Explanation) -> BoolArray:
    return np.asarray(np.isfinite(explanation.mean) & (explanation.count > 0))

"""The decision by what is known alone, without exploration."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spillover.constraints import Constraint
from spillover.set_search import EFFORT, best_set, searched_set
from spillover.types import BoolArray, Explanation

MOST_SEARCHED = 200  # arms up to which it is searched whether each can be chosen


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
) -> Explanation:
    """The same estimates with the exploration bonus left out, and the set that is best by them."""
    mean = np.where(known_arms(explanation), explanation.mean, 0.0)  # an arm without data is worth nothing yet
    effects = explanation.weights * mean
    chosen, more = searched_set(effects, budget, constraints, arms=arms, effort=effort)
    could_gain = more if constraints else None
    return replace(explanation, index=mean, score=effects, chosen=chosen, plan="", could_gain=could_gain)


def possible_arms(
    constraints: Sequence[Constraint], budget: int, arms: Sequence[str], effort: int = EFFORT
) -> BoolArray | None:
    """The arms that some feasible set contains; None if that may be all of them, or if there are too many to look."""
    if not constraints or len(arms) > MOST_SEARCHED:
        return None
    alone = best_set(np.eye(len(arms)), budget, constraints, arms=arms, effort=effort)
    return np.asarray(np.diagonal(alone))

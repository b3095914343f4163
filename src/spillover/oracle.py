"""From scores to a feasible set of arms."""

import numpy as np

from spillover import kernels
from spillover.rng import Rng
from spillover.types import Array, BoolArray, IntArray


def top_arms(scores: Array, budget: int | IntArray, rng: Rng) -> BoolArray:
    """The at most `budget` arms with the highest positive scores; ties are broken uniformly at random.

    The payoff is linear in the decision, so this is the exact maximiser of eq. Optimization-x.

    >>> top_arms(np.array([0.1, np.inf, -1.0, 0.3]), 2, Rng(0)).astype(int)
    array([0, 1, 0, 1])
    """
    return np.asarray(kernels.top_arms(scores, budget, *rng.address()))

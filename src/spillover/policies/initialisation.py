"""The initialisation matrix H: n decisions that play every arm, in varying combinations."""

import numpy as np

from spillover.rng import Rng
from spillover.types import Batch, BoolArray, IntArray

START = "at the start every arm is tried, alone and with others"  # the reason in explanations


def initialisation(n_arms: int, budget: int, rng: Rng, batch: Batch = ()) -> BoolArray:
    """The first n decisions, `(*batch, n, n)`, row t for round t + 1 (H transposed).

    Round i plays arm i and the arms before it: all of them if they fit the budget, otherwise a random budget - 1.

    >>> initialisation(4, 2, Rng(0))[:2].astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0]])
    """
    plan = np.zeros((*batch, n_arms, n_arms), np.bool_)
    for i in range(n_arms):
        plan[..., i, i] = True
        if i < budget:
            plan[..., i, :i] = True
        elif budget > 1:
            drawn = np.broadcast_to(rng.permutation(i)[..., : budget - 1], (*batch, budget - 1))
            np.put_along_axis(plan[..., i, :], drawn, True, axis=-1)
    return plan


def follow_plan(plan: BoolArray, rounds: IntArray, x: BoolArray) -> BoolArray:
    """The decision of the initialisation matrix in the first n rounds, then x."""
    n = x.shape[-1]
    starting = rounds < n
    if not starting.any():
        return x
    row = np.minimum(rounds, n - 1)[..., None, None]
    planned = np.take_along_axis(plan, row, axis=-2)[..., 0, :]
    return np.where(starting[..., None], planned, x)

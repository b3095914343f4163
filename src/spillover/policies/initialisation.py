"""The initialisation: decisions fixed in advance that play every arm.

The paper has a matrix H of n decisions, in which arms are played in varying combinations. With many arms that takes too
long: a sweep plays each arm once, in ceil(n / s) rounds.
"""

from typing import Any

import numpy as np

from spillover.core import inner
from spillover.graph import MANY_ARMS
from spillover.rng import Rng
from spillover.types import Batch, BoolArray, IntArray

START = "at the start every arm is tried, alone and with others"  # the reason in explanations
STARTS = ("auto", "paper", "sweep")


def start_plan(start: str, n_arms: int, budget: int, rng: Rng, batch: Batch = ()) -> BoolArray | IntArray:
    """The plan of the first rounds: `initialisation` or `sweep`; "auto" is the paper's unless there are many arms."""
    if start == "paper" or (start == "auto" and n_arms <= MANY_ARMS):
        return initialisation(n_arms, budget, rng, batch)
    return sweep(n_arms, budget, rng, batch)


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


def sweep(n_arms: int, budget: int, rng: Rng, batch: Batch = ()) -> IntArray:
    """The round of each arm, `(*batch, n)`, from 0: as many random arms a round as the budget allows, each arm once.

    >>> np.bincount(sweep(5, 2, Rng(0)))
    array([2, 2, 1])
    """
    return np.array(np.broadcast_to(rng.permutation(n_arms), (*batch, n_arms)) // budget)


@inner
def follows_plan(plan: Any, rounds: Any, budget: Any, x: Any) -> bool:
    """Fill in the decision of the plan of one learner, if it decides the coming round; return whether it does."""
    if plan.ndim == 1:
        decides = rounds * budget < plan.shape[0]
        if decides:
            for i in range(x.shape[0]):
                x[i] = plan[i] == rounds
        return decides  # type: ignore[no-any-return]
    decides = rounds < plan.shape[0]
    if decides:
        for i in range(x.shape[0]):
            x[i] = plan[rounds, i]
    return decides  # type: ignore[no-any-return]


def is_sweep(plan: BoolArray | IntArray, rounds: IntArray) -> bool:
    """A sweep has one number for each arm, the matrix a row for each round."""
    return plan.ndim == rounds.ndim + 1


def starting(plan: BoolArray | IntArray, rounds: IntArray) -> BoolArray:
    """Whether the plan decides the next round, `(*batch,)`."""
    length = plan.max(axis=-1) + 1 if is_sweep(plan, rounds) else plan.shape[-1]
    return np.asarray(rounds < length)

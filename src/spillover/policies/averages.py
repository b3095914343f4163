"""Discounted averages of the arms' rewards, pulls in flight, and the decisions with which policies start.

Pulls in flight need no list of rounds: they are the discounted number of all pulls minus that of the pulls whose
outcome has arrived, both discounted from the round of the action. A pull whose outcome never arrives stays in flight
but fades like all others, so that its arm is tried again.

The paper starts with a matrix H of n decisions, in which arms are played in varying combinations. With many arms that
takes too long: a sweep plays each arm once, in ceil(n / s) rounds.
"""

import math
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from spillover import kernels
from spillover.core import inner
from spillover.graph import MANY_ARMS
from spillover.rng import Rng
from spillover.types import Amount, Array, Batch, BoolArray, Feedback, Finite, IntArray, Round

LAGS = np.empty(2048)  # as many powers of a discount are stored in a table


class Averages(NamedTuple):
    """Sums and counts of each arm as of its stamp, so that they never underflow."""

    sums: Finite  # (*batch, n): discounted rewards
    counts: Amount  # (*batch, n): discounted observations; 0 only for an arm never observed
    stamps: Round  # (*batch, n): the latest of the arm's rounds that has arrived


class Discounted:
    """What compiled functions use of a policy's discount."""

    discount: Any

    @cached_property
    def log_discount(self) -> Array:
        return log_of(self.discount)

    @cached_property
    def powers(self) -> Array:
        """The weight of a reward after so many rounds."""
        return np.asarray(kernels.discount_tables(self.discount, LAGS)[0])

    @cached_property
    def growths(self) -> Array:
        """The growth of a bonus after so many rounds without an observation."""
        return np.asarray(kernels.discount_tables(self.discount, LAGS)[1])


def empty_averages(n_arms: int, batch: Batch) -> Averages:
    line = (*batch, n_arms)
    return Averages(np.zeros(line), np.zeros(line), np.zeros(line, np.int64))


def log_of(discount: Any) -> Array:
    """The logarithm of a discount, or of a grid of them, with the same bits on every processor."""
    return np.array([math.log(each) for each in np.ravel(discount)]).reshape(np.shape(discount))


def means(known: Averages) -> Array:
    """The averages; NaN for an arm never observed."""
    return mean_of(known.sums, known.counts)


def mean_of(sums: Array, counts: Array) -> Array:
    """sums / counts; NaN where nothing was counted."""
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def counts_now(known: Averages, now: IntArray, discount: Any) -> Array:
    """The discounted counts as of now."""
    return np.asarray(known.counts * np.asarray(discount)[..., None] ** (now[..., None] - known.stamps))


class Pulls(NamedTuple):
    """Discounted pulls of each arm as of its stamp, whether or not their outcomes have arrived."""

    counts: Amount  # (*batch, n)
    stamps: Round  # (*batch, n): the latest of the arm's rounds


class NoPulls(NamedTuple):
    """For a policy that does not count pulls: no arrays, and nothing on disk."""


def empty_pulls(n_arms: int, batch: Batch) -> Pulls:
    line = (*batch, n_arms)
    return Pulls(np.zeros(line), np.zeros(line, np.int64))


def in_flight(known: Averages, pulls: Pulls, now: IntArray, discount: Any) -> Array:
    """The discounted pulls whose outcomes have not arrived, as of now."""
    played = pulls.counts * np.asarray(discount)[..., None] ** (now[..., None] - pulls.stamps)
    return np.asarray(np.maximum(played - counts_now(known, now, discount), 0.0))


AS_DATED: Final = -1  # for kernels: no delay is assumed


def for_kernels(assumed_delay: int | None) -> int:
    """An assumed delay, or none, as a whole number."""
    return AS_DATED if assumed_delay is None else assumed_delay


def date_of(played_at: IntArray, assumed_delay: int | None, rounds: IntArray) -> IntArray:
    """The rounds in which outcomes are taken to have been played, after so many rounds: none before the first.

    >>> date_of(np.array([3, 8]), None, np.array(20)), date_of(np.array([3, 8]), 15, np.array(20))
    (array([3, 8]), array(5))
    """
    return played_at if assumed_delay is None else np.asarray(np.maximum(rounds - assumed_delay, 1))


def dated(feedback: Feedback, assumed_delay: int | None, rounds: IntArray) -> Feedback:
    """Feedback of the age that it is taken to have, after so many rounds."""
    if assumed_delay is None:
        return feedback
    return feedback._replace(age=np.minimum(assumed_delay, rounds - 1))


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

"""Compares candidate graphs, and no graph, by how well they predict the payoff."""

from typing import Any, NamedTuple

import numpy as np

from spillover import kernels
from spillover.types import Amount, Array, Batch, BoolArray, Finite, IntArray


class Evidence(NamedTuple):
    """Discounted sums over the arrivals; the last candidate is no graph."""

    errors: Amount  # (*batch, candidates): squared errors of the payoff
    lead: Finite  # (*batch, candidates): error of the first candidate minus that of this one
    doubt: Amount  # (*batch, candidates): squares of the lead, for its variance
    cross: Finite  # (*batch, candidates): payoff times prediction
    power: Amount  # (*batch, candidates): prediction squared
    observed: Amount  # (*batch,): arrivals


def empty_evidence(candidates: int, batch: Batch) -> Evidence:
    errors, lead, doubt, cross, power = (np.zeros((*batch, candidates)) for _ in range(5))
    return Evidence(errors, lead, doubt, cross, power, np.zeros(batch))


def judge_candidates(held: Evidence, memo: Any, z: Array, y: Array, arrived: BoolArray) -> Evidence:
    """Compare a payoff with the predictions of the weights in `memo`, and of weights of 1; rewrites its argument.

    Each prediction is multiplied by a factor fitted to earlier arrivals: only the ranking matters for decisions. A memo
    of zeros is none: there was too little data by then.
    """
    *sums, count = held
    kernels.judge_candidates(*sums, count[..., None], memo, z, y, arrived)
    return held


def judge_given_x(held: Evidence, one: Array, other: Array, expected: Array, y: Array, arrived: BoolArray) -> Evidence:
    """Compare a payoff with what two sets of weights predict of it from what was expected of z; rewrites the first."""
    *sums, count = held
    kernels.judge_given_x(*sums, count[..., None], one, other, expected, y, arrived)
    return held


def best_candidate(held: Evidence) -> IntArray:
    """The candidate to use: the first one, unless others are clearly better.

    If several are, by more than rounding or a penalty can explain, the first whose error is close to the lowest.
    """
    return np.asarray(kernels.best_candidate(held.errors, held.lead, held.doubt, held.power))

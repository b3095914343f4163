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


def update_evidence(held: Evidence, predicted: Array, payoff: Array, observed: BoolArray) -> Evidence:
    """Compare a payoff with each candidate's prediction; rewrites its argument.

    Each prediction is multiplied by a factor fitted to earlier arrivals: only the ranking matters for decisions.
    """
    *sums, count = held
    kernels.update_evidence(*sums, count[..., None], predicted, payoff, observed)
    return held


def best_candidate(held: Evidence) -> IntArray:
    """The candidate to use: the first one, unless others are clearly better.

    If several are, by more than rounding or a penalty can explain, the first whose error is close to the lowest.
    """
    return np.asarray(kernels.best_candidate(held.errors, held.lead, held.doubt, held.power))


def predicted_payoff(memo: Any, z: Array) -> Array:
    """w'z for the weights of every candidate, and for weights of 1."""
    with_graph = np.vecdot(memo, z[..., None, :])
    return np.concatenate([with_graph, z.sum(axis=-1, keepdims=True)], axis=-1)

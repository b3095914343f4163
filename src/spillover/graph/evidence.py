"""Compares candidate graphs, and no graph, by how well they predict the payoff."""

from typing import Any, NamedTuple

import numpy as np

from spillover.types import Amount, Array, Batch, BoolArray, Finite, IntArray

MEMORY = 0.99  # share of the evidence that remains after an arrival
CLEAR = 2.0  # standard errors by which a candidate must be better than the first to replace it
NEAR = 0.01  # errors that differ by less than this share of the error without a graph count as equal
ROUNDING = 1e-9  # and so do errors below this share of the squared prediction
LARGEST = 1e75  # errors are clipped to this, because their fourth powers are summed
NEGLIGIBLE = 1e-200  # smaller sums of squares are not divided by


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
    """Compare a payoff with each candidate's prediction.

    Each prediction is multiplied by a factor fitted to earlier arrivals: only the ranking matters for decisions.
    """
    factor = np.divide(held.cross, held.power, out=np.ones_like(held.cross), where=held.power > NEGLIGIBLE)
    miss = np.clip(payoff[..., None] - factor * predicted, -LARGEST, LARGEST) ** 2
    lead = miss[..., :1] - miss
    row, left = observed[..., None], np.where(observed, MEMORY, 1.0)
    kept = left[..., None]
    return Evidence(
        errors=kept * held.errors + row * miss,
        lead=kept * held.lead + row * lead,
        doubt=kept**2 * held.doubt + row * lead**2,
        cross=kept * held.cross + row * (payoff[..., None] * predicted),
        power=kept * held.power + row * predicted**2,
        observed=np.asarray(left * held.observed + observed),
    )


def best_candidate(held: Evidence) -> IntArray:
    """The candidate to use: the first one, unless others are clearly better.

    If several are, by more than rounding or a penalty can explain, the first whose error is close to the lowest.
    """
    alike = NEAR * held.errors[..., -1:] + ROUNDING * held.power[..., -1:]
    clear = (held.lead > CLEAR * np.sqrt(held.doubt)) & (held.lead > alike)
    clear[..., 0] = ~clear[..., 1:].any(axis=-1)
    errors = np.where(clear, held.errors, np.inf)
    near = errors <= errors.min(axis=-1, keepdims=True) + alike
    return np.asarray(near.argmax(axis=-1))


def predicted_payoff(memo: Any, z: Array) -> Array:
    """w'z for the weights of every candidate, and for weights of 1."""
    with_graph = np.vecdot(memo, z[..., None, :])
    return np.concatenate([with_graph, z.sum(axis=-1, keepdims=True)], axis=-1)

"""Which of several graphs helps to decide, and whether any does: by the payoff that each foretold."""

from typing import Any, NamedTuple

import numpy as np

from spillover.types import Array, Batch, BoolArray, IntArray

MEMORY = 0.99  # how much of the evidence is left after an arrival
CLEAR = 2.0  # standard errors by which a candidate must be better than the first to be used in its place
NEAR = 0.01  # errors that differ by less than this share of the error without a graph are alike
ROUNDING = 1e-9  # and so are errors below this share of what was foretold
LARGEST = 1e75  # errors beyond it count as this: their fourth powers are summed, and would overflow
NEGLIGIBLE = 1e-200  # sums of squares below it are too small to divide by


class Evidence(NamedTuple):
    """Discounted sums over the arrivals; the last candidate is to have no graph."""

    errors: Array  # (*batch, candidates): squared errors of the payoff
    lead: Array  # (*batch, candidates): by how much they are less than the first candidate's
    doubt: Array  # (*batch, candidates): squares of that, the variance of the lead
    cross: Array  # (*batch, candidates): payoff times what was foretold
    power: Array  # (*batch, candidates): what was foretold, squared
    heard: Array  # (*batch,): arrivals


def no_evidence(candidates: int, batch: Batch) -> Evidence:
    errors, lead, doubt, cross, power = (np.zeros((*batch, candidates)) for _ in range(5))
    return Evidence(errors, lead, doubt, cross, power, np.zeros(batch))


def weigh(held: Evidence, foretold: Array, payoff: Array, heard: BoolArray) -> Evidence:
    """Take in what each candidate foretold of a payoff, by the weights that it held when the round was played.

    Each is granted a factor of its own, fitted to the arrivals before: a decision needs the ranking, not the level.
    """
    factor = np.divide(held.cross, held.power, out=np.ones_like(held.cross), where=held.power > NEGLIGIBLE)
    miss = np.clip(payoff[..., None] - factor * foretold, -LARGEST, LARGEST) ** 2
    lead = miss[..., :1] - miss
    row, left = heard[..., None], np.where(heard, MEMORY, 1.0)
    kept = left[..., None]
    return Evidence(
        errors=kept * held.errors + row * miss,
        lead=kept * held.lead + row * lead,
        doubt=kept**2 * held.doubt + row * lead**2,
        cross=kept * held.cross + row * (payoff[..., None] * foretold),
        power=kept * held.power + row * foretold**2,
        heard=np.asarray(left * held.heard + heard),
    )


def best_candidate(held: Evidence) -> IntArray:
    """Of those that are clearly better than the first candidate, the first whose error is near the least.

    The first candidate itself if none is clearly better, by more than rounding or a penalty can make up.
    """
    alike = NEAR * held.errors[..., -1:] + ROUNDING * held.power[..., -1:]
    clear = (held.lead > CLEAR * np.sqrt(held.doubt)) & (held.lead > alike)
    clear[..., 0] = ~clear[..., 1:].any(axis=-1)
    errors = np.where(clear, held.errors, np.inf)
    near = errors <= errors.min(axis=-1, keepdims=True) + alike
    return np.asarray(near.argmax(axis=-1))


def foretell(memo: Any, z: Array) -> Array:
    """w'z for the weights of every candidate, and for weights of 1."""
    told = np.vecdot(memo, z[..., None, :])
    return np.concatenate([told, z.sum(axis=-1, keepdims=True)], axis=-1)

"""Which of several graphs helps to decide, and whether any does: by the payoff that each foretold."""

from typing import Any, NamedTuple

import numpy as np

from spillover.types import Array, Batch, BoolArray, IntArray

MEMORY = 0.99  # how much of the evidence is left after an arrival
NEAR = 0.01  # errors that differ by less than this share of the error without a graph are alike


class Evidence(NamedTuple):
    """Discounted sums over the arrivals; the last candidate is to have no graph."""

    errors: Array  # (*batch, candidates): squared errors of the payoff
    cross: Array  # (*batch, candidates): payoff times what was foretold
    power: Array  # (*batch, candidates): what was foretold, squared
    count: Array  # (*batch,): arrivals


def no_evidence(candidates: int, batch: Batch) -> Evidence:
    return Evidence(*(np.zeros((*batch, candidates)) for _ in range(3)), np.zeros(batch))


def weigh(held: Evidence, foretold: Array, payoff: Array, heard: BoolArray) -> Evidence:
    """Take in what each candidate foretold of a payoff, by the weights that it held when the round was played.

    Each is granted a factor of its own, fitted to the arrivals before: a decision needs the ranking, not the level.
    """
    factor = np.divide(held.cross, held.power, out=np.ones_like(held.cross), where=held.power > 0)
    miss = (payoff[..., None] - factor * foretold) ** 2
    new = (miss, payoff[..., None] * foretold, foretold**2, heard)
    rows = (heard[..., None], heard[..., None], heard[..., None], heard)
    return Evidence(*(np.where(row, MEMORY * old + add, old) for row, old, add in zip(rows, held, new, strict=True)))


def best_candidate(held: Evidence) -> IntArray:
    """The first whose error is near the least; the first of all while nothing was heard."""
    least = held.errors.min(axis=-1, keepdims=True)
    near = held.errors <= least + NEAR * held.errors[..., -1:]
    return np.asarray(near.argmax(axis=-1))


def foretell(memo: Any, z: Array) -> Array:
    """w'z for the weights of every candidate, and for weights of 1."""
    told = np.vecdot(memo, z[..., None, :])
    return np.concatenate([told, z.sum(axis=-1, keepdims=True)], axis=-1)

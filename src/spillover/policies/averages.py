"""Discounted averages of the arms' rewards, and pulls in flight: played, but without an outcome so far.

Pulls in flight need no list of rounds: they are the discounted number of all pulls minus that of the pulls whose
outcome has arrived, both discounted from the round of the action. A pull whose outcome never arrives stays in flight
but fades like all others, so that its arm is tried again.
"""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels
from spillover.types import Amount, Array, Batch, Finite, IntArray, Round

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

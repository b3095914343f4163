"""Pulls in flight: played, but without an outcome so far.

No list of rounds is needed: it is the discounted number of all pulls minus that of the pulls whose outcome has arrived,
both discounted from the round of the action. A pull whose outcome never arrives stays in flight but fades like all
others, so that its arm is tried again.
"""

from typing import Any, NamedTuple

import numpy as np

from spillover.policies.averages import Averages, counts_now
from spillover.types import Amount, Array, Batch, IntArray, Round


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

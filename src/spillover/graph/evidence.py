"""Compares candidate graphs, and no graph, by how well they predict the payoff."""

from typing import NamedTuple

import numpy as np

from spillover.types import Amount, Batch, Finite


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

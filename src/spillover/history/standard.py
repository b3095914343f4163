"""Context on a standard scale: mean 0 and standard deviation 1 over the rounds that were played."""

from typing import NamedTuple

import numpy as np

from spillover.history.record import History
from spillover.types import Array

CONSTANT = 1e-12  # standard deviation, relative to the size of the values, of a column that does not vary


class StandardContext(NamedTuple):
    """Context that a policy learns from, and what to decide with."""

    names: tuple[str, ...]
    values: Array  # (rounds, k)
    following: Array  # (k,): of the round to decide
    dropped: tuple[str, ...]  # columns that do not vary


def standard_context(history: History) -> StandardContext | None:
    """The context of a history, standardised; None if there is none, or none that varies."""
    if history.context is None or not len(history.context):
        return None
    values = np.asarray(history.context, float)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    varies = deviation > CONSTANT * np.maximum(np.abs(values).max(axis=0, initial=0.0), CONSTANT)
    names = np.array(history.context_names, object)
    if not varies.any():
        return None
    following = mean if history.next_context is None else np.asarray(history.next_context, float)
    scaled = (values[:, varies] - mean[varies]) / deviation[varies]
    next_scaled = (following[varies] - mean[varies]) / deviation[varies]
    return StandardContext(tuple(names[varies]), scaled, next_scaled, tuple(names[~varies]))

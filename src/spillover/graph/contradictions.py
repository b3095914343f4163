"""Test the assumptions by the regression of y on z: the declared order, positive edges, equal units of z and y."""

import math
from typing import Any

import numpy as np

from spillover.core.compiled import inner
from spillover.graph.instrument import UNKNOWN, InstrumentState
from spillover.graph.regression import FLOOR, RIDGE, Regression, floor_of
from spillover.types import Array, BoolArray

MARGIN = 3.0  # standard errors above the usual bar of an edge: chance alone then hardly ever contradicts
FEWEST_FREE = 10.0  # degrees of freedom, besides one for each arm, before anything is said


def effects_against_order(graph: InstrumentState) -> BoolArray:
    """Total effects of earlier arms on later ones that clearly exist, (*batch, n, n): entry (i, j) with j < i.

    If causes come after effects, total effects are upper triangular, as the graph is.
    """
    known = graph.regression
    backwards = np.tri(known.effects.shape[-1], k=-1, dtype=np.bool_)
    clear = np.abs(known.effects) > bar(graph) * standard_errors(known)
    return np.asarray(clear & backwards & observed(known)[..., None, :])


def negative_effects(graph: InstrumentState) -> BoolArray:
    """Total effects that are clearly negative, (*batch, n, n), though positive edges have positive total effects."""
    known = graph.regression
    return np.asarray((known.effects < -bar(graph) * standard_errors(known)) & observed(known)[..., None, :])


@inner
def lowers_outcomes(g: Any) -> Any:
    """Whether there are any `negative_effects`."""
    known, n = g.regression, g.weights.shape[0]
    if known.freedom < n + FEWEST_FREE:
        return False
    for j in range(n):
        square = 0.0
        for k in range(n):
            square += known.root[j, k] ** 2
        if square * known.ridge < UNKNOWN:
            for i in range(n):
                variance = max(known.scatter[i, i] / known.freedom, FLOOR / RIDGE * known.ridge)
                if known.effects[i, j] < -(g.gain_bars[0] + MARGIN) * math.sqrt(variance * square):
                    return True
    return False


def own_slopes(graph: InstrumentState) -> Array:
    """The slope of each arm's y on its own z, (*batch, n): 1 unless it clearly differs from 1, NaN if not known."""
    known = graph.regression
    slopes, errors = (np.diagonal(part, axis1=-2, axis2=-1) for part in (known.effects, standard_errors(known)))
    clear = np.abs(slopes - 1.0) > bar(graph)[..., 0] * errors
    return np.where(observed(known), np.where(clear, slopes, 1.0), np.nan)


def bar(graph: InstrumentState) -> Array:
    """Standard errors that an effect must exceed, (*batch, 1, 1)."""
    return graph.gain_bars[..., :1, None] + MARGIN


def standard_errors(known: Regression) -> Array:
    """Of every total effect, (*batch, n, n)."""
    noise = np.diagonal(known.scatter, axis1=-2, axis2=-1) / np.maximum(known.freedom, 1.0)[..., None]
    variance = np.maximum(noise, floor_of(known)[..., None])
    return np.asarray(np.sqrt(variance[..., :, None] * (known.root**2).sum(axis=-1)[..., None, :]))


def observed(known: Regression) -> BoolArray:
    """Arms that the rounds separate from others, (*batch, n); none while there are few rounds."""
    separate = (known.root**2).sum(axis=-1) * known.ridge[..., None] < UNKNOWN
    enough = known.freedom >= known.effects.shape[-1] + FEWEST_FREE
    return np.asarray(separate & enough[..., None])

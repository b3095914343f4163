"""A warning where own rewards and outcomes of a table are in different units."""

from collections.abc import Iterator

import numpy as np

from spillover.assessment.data import MOST_ARMS
from spillover.assessment.findings import WARNING, Finding
from spillover.history import History
from spillover.reasons.health import unit_factor, unit_sentence
from spillover.types import Array

FEWEST_FREE = 10  # degrees of freedom
ERRORS = 6.0  # standard errors from 1: of a few hundred arms none reaches them by chance
EXACT = 1e-9  # of the spread of an outcome: smaller residuals are rounding


def different_units(history: History) -> Iterator[Finding]:
    """Whether one unit of an arm's z goes with far more or far less than one unit of its own y."""
    if history.observes != "both" or not history.has_overall or len(history.arms) > MOST_ARMS:
        return
    factor = unit_factor(table_slopes(history))
    if factor is not None:
        yield Finding("units-differ", WARNING, unit_sentence(factor))


def table_slopes(history: History) -> Array:
    """Least squares of each arm's y on all z and a constant: its own slope, as `reasons.units.unit_factor` takes it."""
    n = len(history.arms)
    rows = history.arrived & np.isfinite(history.y).all(axis=1) & np.isfinite(history.z).all(axis=1)
    if rows.sum() < n + 1 + FEWEST_FREE:
        return np.full(n, np.nan)
    z, y = history.z[rows], history.y[rows]
    design = np.column_stack([z, np.ones(len(z))])
    size = np.maximum(np.abs(design).max(axis=0), np.finfo(float).tiny)
    scaled = design / size
    fitted, _, rank, _ = np.linalg.lstsq(scaled, y, rcond=None)
    inverse = np.linalg.pinv(scaled, rcond=np.finfo(float).eps * len(z))  # not of its square, which may be negative
    residual = np.square(y - scaled @ fitted).sum(axis=0) / max(len(z) - int(rank), 1)
    noise = np.maximum(residual, np.square(EXACT * np.abs(y).max(axis=0)))
    slopes = np.diagonal(fitted[:n]) / size[:n]
    error = np.sqrt(noise * np.square(inverse[:n]).sum(axis=1)) / size[:n]
    separate = np.isclose((inverse @ scaled).diagonal()[:n], 1.0, atol=1e-6)
    clear = np.abs(slopes - 1.0) > ERRORS * error
    return np.where(separate, np.where(clear, slopes, 1.0), np.nan)

"""Measures of the study: rewards by several scoring rules, predictions, forced choices, clustered intervals."""

from typing import NamedTuple

import numpy as np

from spillover import validate
from spillover.metrics import Interval, mean_interval
from spillover.types import Array, BoolArray, IntArray
from spillover_studies.covid.worlds import spectral_radius

SCORES = {
    "own": "own final graph (as in the paper)",
    "common": "common graph",
    "moving": "common graph that moves with the shift",
    "specific": "region-specific cases, no graph",
    "recorded": "recorded cases in the chosen regions",
}


def clustered_interval(values: Array, axis: int = 0) -> Interval:
    """Mean and 95% interval of (shifts, seeds, ...), clustered by shift: seeds of one shift are not independent.

    Each shift counts once, with the mean of its seeds.

    >>> clustered_interval(np.array([[1.0, 3.0], [4.0, 4.0]])).mean.item()
    3.0
    """
    values = np.asarray(values, float)
    validate.require(values.ndim >= 2, "shape of values", values.shape, "(shifts, seeds, ...)")
    return mean_interval(values.mean(axis=axis + 1), axis=axis)


def weights_of(adjacency: Array) -> Array:
    """w = 1'(I - A)^-1, (*batch, n); NaN where the spectral radius is 1 or more and the spill-over infinite."""
    adjacency = np.asarray(adjacency, float)
    n = adjacency.shape[-1]
    known = np.asarray(np.isfinite(adjacency).all(axis=(-2, -1)))
    safe = np.where(known[..., None, None], adjacency, 0.0)
    good = known & has_finite_spread(safe)
    safe = np.where(good[..., None, None], safe, 0.0)
    transposed = np.swapaxes(np.eye(n) - safe, -1, -2)
    weights = np.linalg.solve(transposed, np.ones((*safe.shape[:-1], 1)))[..., 0]
    return np.where(good[..., None], weights, np.nan)


ROUNDING = 1e-9  # far more than that of a sum


def has_finite_spread(adjacency: Array) -> BoolArray:
    """Whether the spectral radius is below 1, (*batch,). No norm is below it, so most need no eigenvalues."""
    sizes = np.abs(adjacency)
    norm = np.minimum(sizes.sum(axis=-1).max(axis=-1), sizes.sum(axis=-2).max(axis=-1))
    found = np.asarray(norm < 1 - ROUNDING)
    found[~found] = spectral_radius(adjacency[~found]) < 1
    return found


class Rulers(NamedTuple):
    """The weights of the scoring rules; each broadcasts to (*batch, days, n)."""

    common: Array  # weights of the graph of the unmasked, shifted data of all days
    moving: Array  # weights of the graph before the shift, shifted along with the regions


def cumulative_rewards(z: Array, y: Array, x: BoolArray, own: Array, rulers: Rulers) -> dict[str, Array]:
    """Cumulative reward over the days by every scoring rule, (*batch, days) each, in cases.

    z, y, x: (*batch, days, n). own: (*batch, n), weights of the policy's own final graph. The estimated overall reward
    of a day is w'z = 1'(I - A)^-1 z.
    """
    daily = {
        "own": (z * own[..., None, :]).sum(axis=-1),
        "common": (z * rulers.common).sum(axis=-1),
        "moving": (z * rulers.moving).sum(axis=-1),
        "specific": z.sum(axis=-1),
        "recorded": (y * x).sum(axis=-1),
    }
    return {name: np.cumsum(values, axis=-1) for name, values in daily.items()}


def since(cumulative: Array, day: int) -> Array:
    """The increase of a cumulative curve (*batch, days) from `day` (included) to the last day.

    >>> since(np.array([1.0, 3.0, 6.0, 10.0]), 3).item()
    7.0
    """
    return np.asarray(cumulative[..., -1] - cumulative[..., day - 2])


def predict_from_all(adjacency: Array, z: Array, y: Array) -> Array:
    """A y + z: every region from the same day's cases of all the others; (*batch, n)."""
    return np.asarray(np.matmul(adjacency, y[..., None])[..., 0] + z)


def predict_from_specific(adjacency: Array, z: Array) -> Array:
    """(I - A)^-1 z: from the specific cases of the chosen regions only; NaN if the spill-over is infinite."""
    weights = weights_of(adjacency)  # NaN marks what cannot be solved
    good = np.asarray(np.isfinite(weights).all(axis=-1))
    safe = np.where(good[..., None, None], adjacency, 0.0)
    found = np.linalg.solve(np.eye(z.shape[-1]) - safe, z[..., None])[..., 0]
    return np.where(good[..., None], found, np.nan)


def last_values(y: Array, days: IntArray, delay: int) -> Array:
    """The naive forecast of each day: the latest y that had arrived at decision time; (*batch, len(days), n).

    delay 0 is yesterday's value. NaN where nothing had arrived.
    """
    source = np.asarray(days, int) - 2 - delay
    found = y[..., np.maximum(source, 0), :]
    return np.where((source >= 0)[:, None], found, np.nan)


def absolute_error(predicted: Array, true: Array) -> Array:
    """Mean absolute error over the regions, in cases per region; (*batch, days)."""
    return np.asarray(np.abs(predicted - true).mean(axis=-1))


def forced_choices(x: BoolArray, delay: int) -> BoolArray:
    """Chosen regions without any outcome: their index is infinite, so there was no choice.

    x: (*batch, days, n); the n days of the initialisation come first and are not marked here.
    """
    days, n = x.shape[-2:]
    played = np.maximum.accumulate(x, axis=-2)
    known = np.zeros_like(x)
    known[..., delay + 1 :, :] = played[..., : days - delay - 1, :]  # day t knows days up to t - 1 - delay
    later = (np.arange(1, days + 1) > n)[:, None]
    return np.asarray(x & ~known & later)


def top_regions(values: Array, count: int) -> BoolArray:
    """The `count` largest of the last axis, as a mask; the first of equal ones."""
    order = np.argsort(-np.asarray(values, float), axis=-1, kind="stable")
    mask = np.zeros(np.shape(values), np.bool_)
    np.put_along_axis(mask, order[..., :count], True, axis=-1)
    return mask

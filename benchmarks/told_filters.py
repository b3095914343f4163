"""Filters of the means for a policy that is told how they move, for `benchmarks.told`.

A filter has the means of all arms of all worlds, (worlds, n), and E[(m - level)+] of each uncertain mean m.
"""

from typing import Any, Protocol

import numpy as np

from spillover import kernels
from spillover.core.compiled import entry
from spillover.kernels.drifting import drifting_arrival, drifting_forecast
from spillover.policies.switching_state import DRIFT_SCALE, DRIFT_VARIANCE, empty_drift
from spillover.types import Array, BoolArray, IntArray

POINTS = 21  # of the grid for each of the two levels between which a mean moves


class Filter(Protocol):
    def learn(self, t: int, seen: BoolArray, rewards: Array) -> None:
        """Learn the rewards of the arms that are seen of round t, the latest that has arrived."""

    def forecast(self, t: int) -> None:
        """Turn to the coming round."""

    @property
    def mean(self) -> Array:
        """The expected mean of each arm in that round."""

    def excess(self, level: Array) -> Array:
        """E[(m - level)+] in that round."""


class KnownCourse:
    """Means on half a cosine between levels that are redrawn in known rounds: the exact posterior, on a grid.

    In a period, the mean of round t is (1 - share) a + share b, where a and b are the levels at its two ends.
    """

    def __init__(self, worlds: int, n: int, ends: IntArray) -> None:
        self.ends, self.period = ends, 0
        self.levels = (np.arange(POINTS) + 0.5) / POINTS
        self.posterior = np.full((worlds, n, POINTS, POINTS), POINTS**-2.0)

    def share(self, t: int) -> tuple[int, float]:
        period = int(self.ends[1:-1].searchsorted(t, side="right"))
        part = (t - self.ends[period]) / (self.ends[period + 1] - self.ends[period])
        return period, float(1.0 - np.cos(np.pi * part)) / 2.0

    def mean_of_levels(self, share: float) -> Array:
        return (1.0 - share) * self.levels[:, None] + share * self.levels

    def begun(self) -> Array:
        """The posterior of a new period's levels: it begins at the end of the last one, and ends anywhere."""
        return np.repeat(self.posterior.sum(axis=-2)[..., None] / POINTS, POINTS, axis=-1)

    def learn(self, t: int, seen: BoolArray, rewards: Array) -> None:
        period, share = self.share(t)
        if period > self.period:
            self.posterior, self.period = self.begun(), period
        likely = self.mean_of_levels(share)
        known = self.posterior[seen] * np.where(rewards[seen][:, None, None] > 0.5, likely, 1.0 - likely)
        self.posterior[seen] = known / known.sum(axis=(-1, -2), keepdims=True)

    def forecast(self, t: int) -> None:
        period, share = self.share(t)
        posterior = self.begun() if period > self.period else self.posterior
        of_levels = self.mean_of_levels(share).ravel()
        moments = posterior.reshape(*posterior.shape[:2], -1) @ np.stack([of_levels, of_levels**2], axis=-1)
        self.mean = moments[..., 0]
        self.deviation = np.sqrt(np.maximum(moments[..., 1] - self.mean**2, 1e-12))

    def excess(self, level: Array) -> Array:
        return np.asarray(kernels.excess_of_normal(self.mean - level, self.deviation))


@entry
def learn_drift(drift: Any, seen: Any, rewards: Any, t: Any) -> None:
    """Learn the rewards of round t, in each world."""
    unknown = np.zeros(rewards.shape[1])  # nothing else to compare with
    for w in range(seen.shape[0]):
        drifting_arrival(
            drift.track[w], drift.probability[w], drift.latest[w], seen[w], rewards[w], rewards[w], unknown, 1.0, 1.0,
            t, DRIFT_SCALE, DRIFT_VARIANCE, 0.0, 0.0,
        )  # fmt: skip


@entry
def forecast_drift(drift: Any, t: Any) -> Any:
    """Mean and standard deviation of each arm in round t, in each world."""
    mean, deviation = np.empty(drift.track.shape[:2]), np.empty(drift.track.shape[:2])
    for w in range(mean.shape[0]):
        elapsed = t - drift.latest[w, 0]
        drifting_forecast(drift.track[w], elapsed, DRIFT_SCALE, DRIFT_VARIANCE, mean[w], deviation[w])
    return mean, deviation


class Drifting:
    """SwitchingSEM's process for means that drift."""

    def __init__(self, worlds: int, n: int) -> None:
        self.drift = empty_drift(n, (worlds,))

    def learn(self, t: int, seen: BoolArray, rewards: Array) -> None:
        learn_drift(self.drift, seen, rewards, t)

    def forecast(self, t: int) -> None:
        self.mean, self.deviation = forecast_drift(self.drift, t)

    def excess(self, level: Array) -> Array:
        return np.asarray(kernels.excess_of_normal(self.mean - level, self.deviation))


class KnownChanges:
    """Means that are redrawn in known rounds, each with a known probability: two Beta distributions for each arm.

    touched: (changes, worlds, n), the probability of each arm to be redrawn; 0 or 1 if the arms are told as well.
    """

    def __init__(self, worlds: int, n: int, changes: tuple[int, ...], touched: Array) -> None:
        self.touched = dict(zip(changes, touched, strict=True))
        self.counts = np.ones((2, 2, worlds, n))  # ones and zeros; unchanged and changed
        self.changed = np.zeros((worlds, n))

    @property
    def weights(self) -> Array:
        return np.stack([1.0 - self.changed, self.changed])

    def moments(self) -> tuple[Array, Array]:
        """Mean and variance of both distributions."""
        total = self.counts.sum(axis=0)
        mean = self.counts[0] / total
        return mean, mean * (1.0 - mean) / (total + 1.0)

    def learn(self, t: int, seen: BoolArray, rewards: Array) -> None:
        if t in self.touched:  # one distribution for what was before, with the mean and variance of both
            mean, variance = self.moments()
            both = (self.weights * mean).sum(axis=0)
            spread = (self.weights * (variance + mean**2)).sum(axis=0) - both**2
            strength = np.maximum(both * (1.0 - both) / np.maximum(spread, 1e-12) - 1.0, 2.0)
            self.counts = np.ones_like(self.counts)
            self.counts[:, 0] = both * strength, (1.0 - both) * strength
            self.changed = self.touched[t]
        mean = self.counts[0] / self.counts.sum(axis=0)
        likely = self.weights * np.where(rewards > 0.5, mean, 1.0 - mean)
        self.changed = np.where(seen, likely[1] / likely.sum(axis=0), self.changed)
        self.counts += np.where(seen, np.stack([rewards, 1.0 - rewards]), 0.0)[:, None]

    def forecast(self, t: int) -> None:
        self.parts, variance = self.moments()
        self.deviations = np.sqrt(variance)
        self.mean = (self.weights * self.parts).sum(axis=0)

    def excess(self, level: Array) -> Array:
        return np.asarray((self.weights * kernels.excess_of_normal(self.parts - level, self.deviations)).sum(axis=0))

"""A simulated outbreak with the shape of the Covid-19 record and a known mobility graph: no real data."""

from datetime import date
from typing import NamedTuple

import numpy as np

from spillover import validate
from spillover.rng import Purpose, Rng
from spillover.types import Array
from spillover_studies.covid.record import DENSITY_WINDOW, REGIONS, STUDY_WINDOW, CovidRecord, days_between

# (latitude, longitude) of the regions' capitals, in the order of REGIONS
PLACES = (
    (42.35, 13.40), (40.64, 15.81), (38.91, 16.59), (40.84, 14.25), (44.49, 11.34), (45.65, 13.77), (41.89, 12.48),
    (44.41, 8.93), (45.47, 9.19), (43.62, 13.52), (41.56, 14.66), (46.50, 11.36), (46.07, 11.12), (45.07, 7.68),
    (41.13, 16.87), (39.22, 9.11), (38.12, 13.36), (43.77, 11.26), (43.11, 12.39), (45.74, 7.32), (45.43, 12.34),
)  # fmt: skip
LOCKDOWN_DAYS = days_between(date(2020, 4, 13), DENSITY_WINDOW[1])
STUDY_DAYS = days_between(date(2020, 7, 24), STUDY_WINDOW[1])
NEIGHBOURS = 3
ATTRIBUTION = "Simulated outbreak (seed {seed}): not real data, except for the names and places of the regions"


class Outbreak(NamedTuple):
    """A simulation with everything known."""

    record: CovidRecord
    adjacency: Array  # (21, 21): the mobility graph; no spill-over in the lockdown window
    specific: Array  # (days, 21): region-specific cases, which the real record does not have


def simulated_outbreak(seed: int = 0, *, noise: float = 0.0) -> tuple[CovidRecord, Array]:
    """A record with source "simulated", and its true adjacency.

    >>> record, adjacency = simulated_outbreak(seed=1)
    >>> record.source, record.cases.shape, adjacency.shape
    ('simulated', (139, 21), (21, 21))
    """
    return outbreak(seed, noise=noise)[:2]


def outbreak(seed: int = 0, *, noise: float = 0.0) -> Outbreak:
    """Simulate both windows: y = b under lockdown, y = (I - A)^-1 (b + e) in the study window.

    noise: standard deviation of e as a share of the region's mean specific cases. Cases are not rounded, so that
    without noise the model holds exactly.
    """
    validate.number("noise", noise, "a finite number >= 0", low=0, high=np.inf)
    rng = Rng(seed)
    a = mobility(rng)
    n, before, after = len(REGIONS), len(LOCKDOWN_DAYS), len(STUDY_DAYS)
    levels = 40.0 * np.exp(rng.at(Purpose.WORLD, 0).normal(n))
    shocks = np.stack([rng.at(Purpose.WORLD, 1 + d).normal(2 * n) for d in range(before + after)])
    specific = levels * np.exp(0.35 * shocks[:, :n] - 0.35**2 / 2)  # mean: levels
    driven = specific[before:] + noise * levels * shocks[before:, n:]
    cases = np.concatenate([specific[:before], np.linalg.solve(np.eye(n) - a, driven.T).T])
    places = np.array(PLACES)
    record = CovidRecord(
        days=(*LOCKDOWN_DAYS, *STUDY_DAYS),
        regions=tuple(REGIONS),
        names=tuple(REGIONS.values()),
        cases=cases,
        latitude=places[:, 0],
        longitude=places[:, 1],
        source="simulated",
        attribution=ATTRIBUTION.format(seed=seed),
    )
    return Outbreak(record, a, specific)


def mobility(rng: Rng) -> Array:
    """Each region is affected by its nearest neighbours, more by nearer ones; rows sum to 0.2 to 0.6."""
    n = len(PLACES)
    far = distances()
    near = np.argsort(far, axis=1)[:, 1 : NEIGHBOURS + 1]
    draws = rng.at(Purpose.START)
    strength = np.zeros((n, n))
    pulls = 0.5 + draws.uniform(n * NEIGHBOURS).reshape(n, NEIGHBOURS)
    np.put_along_axis(strength, near, pulls / np.take_along_axis(far, near, axis=1), axis=1)
    totals = 0.2 + 0.4 * draws.uniform(n)
    return np.asarray(totals[:, None] * strength / strength.sum(axis=1, keepdims=True))


def distances() -> Array:
    """Kilometres between the regions' capitals, on a sphere, (21, 21)."""
    north, east = np.radians(np.array(PLACES).T)
    part = np.sin((north[:, None] - north) / 2) ** 2
    part += np.cos(north[:, None]) * np.cos(north) * np.sin((east[:, None] - east) / 2) ** 2
    return np.asarray(2 * 6371.0 * np.arcsin(np.sqrt(np.clip(part, 0, 1))))

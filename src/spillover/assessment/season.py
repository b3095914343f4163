"""Seasons of dated rounds (month of the year, weekday, hour), and whether something follows them."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple

import numpy as np

from spillover.types import Array, IntArray

QUARTER = re.compile(r"(\d{4})-?Q([1-4])")
MONTH = re.compile(r"(\d{4})-(\d{2})")
FEWEST_CYCLES = 2  # a season that was seen once is a trend
FEWEST_FREEDOM = 5  # degrees of freedom that are left to judge a season by


class Season(NamedTuple):
    """What repeats: each round is in a phase (March) of a cycle (2025)."""

    name: str
    phase: IntArray  # (rounds,), from 0
    cycle: IntArray  # (rounds,), from 0


def parse_label(label: str) -> datetime | None:
    """The time of a round's label, if it is one.

    >>> parse_label("2026-Q2"), parse_label("2026-03"), parse_label("17")
    (datetime.datetime(2026, 4, 1, 0, 0), datetime.datetime(2026, 3, 1, 0, 0), None)
    """
    if quarter := QUARTER.fullmatch(label):
        return datetime(int(quarter[1]), 3 * int(quarter[2]) - 2, 1)
    if MONTH.fullmatch(label):
        label = f"{label}-01"
    try:
        return datetime.fromisoformat(label) if "-" in label else None
    except ValueError:
        return None


def seasons(labels: Sequence[str]) -> tuple[Season, ...]:
    """The seasons that the rounds may have: those with more than one phase, each seen in several cycles."""
    if not labels or parse_label(labels[0]) is None:
        return ()
    times = [parse_label(label) for label in labels]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return ()
    weeks = [time.isocalendar() for time in known]
    candidates = (
        ("month of the year", [time.month for time in known], [time.year for time in known]),
        ("weekday", [week.weekday for week in weeks], [100 * week.year + week.week for week in weeks]),
        ("hour of the day", [time.hour for time in known], [date.toordinal(time) for time in known]),
    )
    found = []
    for name, phases, cycles in candidates:
        phase, cycle = (np.unique(part, return_inverse=True)[1].astype(np.int64) for part in (phases, cycles))
        cells = len(np.unique(cycle * (phase.max() + 1) + phase))
        freedom = cells - cycle.max() - phase.max() - 1
        if phase.max() > 0 and cycle.max() + 1 >= FEWEST_CYCLES and freedom >= FEWEST_FREEDOM:
            found.append(Season(name, phase, cycle))
    return tuple(found)


class SeasonTest(NamedTuple):
    """Whether values follow a season."""

    share: float  # of the variance within cycles, adjusted for the number of phases; at most 1
    p_value: float


NO_TEST = SeasonTest(0.0, 1.0)


def follows(values: Array, season: Season) -> SeasonTest:
    """Test values (one for each round, NaN: not known) for a season.

    The values are averaged in each phase of each cycle, and phases are compared with how much the same phase differs
    from cycle to cycle. Drifts and changes that last are no season: they differ between cycles.
    """
    from scipy.special import fdtrc  # imported here, because simulations do not need SciPy

    known = np.isfinite(values)
    phases = int(season.phase.max()) + 1
    key, cell = np.unique(season.cycle[known] * phases + season.phase[known], return_inverse=True)
    if not len(key):
        return NO_TEST
    means = np.bincount(cell, values[known]) / np.bincount(cell)
    cycles = np.unique(key // phases, return_inverse=True)[1]
    rest, columns = (without_cycles(part, cycles) for part in (means[:, None], np.eye(phases)[key % phases]))
    left = rest - columns @ np.linalg.lstsq(columns, rest, rcond=1e-10)[0]
    added = int(np.linalg.matrix_rank(columns, tol=1e-8))
    freedom = len(key) - int(cycles.max()) - 1 - added
    before, after = float((rest**2).sum()), float((left**2).sum())
    if added < 1 or freedom < FEWEST_FREEDOM or before <= 1e-12 * max(float(means @ means), 1e-12):
        return NO_TEST
    noise = after / freedom
    share = 1.0 - noise / (before / (freedom + added))
    ratio = (before - after) / added / noise if noise > 1e-12 * before else np.inf
    return SeasonTest(max(share, 0.0), float(fdtrc(added, freedom, ratio)) if np.isfinite(ratio) else 0.0)


def without_cycles(values: Array, cycles: IntArray) -> Array:
    """Columns of values as deviations from their averages in each cycle."""
    sums = np.zeros((int(cycles.max()) + 1, values.shape[1]))
    np.add.at(sums, cycles, values)
    return np.asarray(values - (sums / np.bincount(cycles)[:, None])[cycles])

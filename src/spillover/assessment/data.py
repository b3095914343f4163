"""Check the arrays of an assessment, average outcomes with and without each arm, and look for seasons in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.tabular import in_columns, shared_names
from spillover.types import Array, BoolArray, IntArray

MOST_ROUNDS = 50_000  # the latest ones are enough for a regression, and cost no time
MOST_ARMS = 400  # with more, only counts and averages: the regression would take longer than the decision


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """Rounds in order along the first axis."""

    arms: tuple[str, ...]
    x: BoolArray  # (rounds, arms)
    amounts: Array  # (rounds, arms): x times the dose
    y: Array  # (rounds, outcomes); NaN where it is not known
    own: bool  # whether outcome j is that of arm j; otherwise outcomes are not those of arms
    outcomes: tuple[str, ...]
    context: Array  # (rounds, k)
    context_names: tuple[str, ...]
    rounds: tuple[str, ...]  # labels

    @cached_property
    def known(self) -> BoolArray:
        """Rounds with at least one outcome."""
        return np.asarray(np.isfinite(self.y).any(axis=1))

    @cached_property
    def complete(self) -> BoolArray:
        """Rounds with all outcomes and all of the context."""
        return np.asarray(np.isfinite(self.y).all(axis=1) & np.isfinite(self.context).all(axis=1))

    def names(self, mask: BoolArray) -> tuple[str, ...]:
        return tuple(name for name, here in zip(self.arms, mask.tolist(), strict=True) if here)

    def latest(self, most: int = MOST_ROUNDS) -> "Data":
        """The same with only the latest rounds that have outcomes."""
        rows = np.flatnonzero(self.known)[-most:]
        if len(rows) == len(self.x):
            return self
        return Data(
            arms=self.arms,
            x=self.x[rows],
            amounts=self.amounts[rows],
            y=self.y[rows],
            own=self.own,
            outcomes=self.outcomes,
            context=self.context[rows],
            context_names=self.context_names,
            rounds=tuple(self.rounds[row] for row in rows),
        )


def checked_data(
    x: Any,
    y: Any,
    *,
    dose: Any = None,
    context: Any = None,
    arms: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    context_names: Sequence[str] | None = None,
    rounds: Sequence[str] | None = None,
) -> Data:
    """The arrays as `Data`; see `assess` for the arguments."""
    arms = shared_names(x) if arms is None else arms
    context_names = shared_names(context) if context_names is None else context_names
    x, dose = in_columns("x", x, arms), in_columns("dose", dose, arms)
    y, context = (
        in_columns("y", y, arms if outcomes is None else outcomes),
        in_columns("context", context, context_names),
    )
    chosen = np.asarray(x, np.bool_)
    validate.require(chosen.ndim == 2, "shape of x", chosen.shape, "(rounds, arms)")
    count, n = chosen.shape
    values = np.asarray(y, float)
    m = n if outcomes is None else len(outcomes)
    validate.require(values.shape == (count, m), "shape of y", values.shape, f"({count}, {m}): (rounds, outcomes)")
    amounts = chosen.astype(float)
    if dose is not None:
        given = np.asarray(dose, float)
        validate.require(given.shape == chosen.shape, "shape of dose", given.shape, f"{chosen.shape}, as x")
        amounts = np.where(chosen, given, 0.0)
    added = np.zeros((count, 0)) if context is None else np.asarray(context, float)
    validate.require(
        added.ndim == 2 and len(added) == count, "shape of context", added.shape, f"({count}, k): (rounds, columns)"
    )
    return Data(
        arms=labels("arms", arms, n, "arm"),
        x=chosen,
        amounts=amounts,
        y=values,
        own=outcomes is None,
        outcomes=labels("arms", arms, n, "arm") if outcomes is None else tuple(outcomes),
        context=added,
        context_names=labels("context_names", context_names, added.shape[1], "context"),
        rounds=labels("rounds", rounds, count, ""),
    )


def labels(name: str, given: Sequence[str] | None, count: int, noun: str) -> tuple[str, ...]:
    """The names given, or numbers."""
    if given is None:
        return tuple(f"{noun} {k + 1}".strip() for k in range(count))
    validate.require(len(given) == count, f"length of {name}", len(given), str(count))
    return tuple(given)


class Comparison(NamedTuple):
    """The average outcome of the rounds with an arm and of those without it.

    >>> Comparison(chosen=3.0, others=1.0, difference=2.0, error=0.1).difference
    2.0
    """

    chosen: float
    others: float  # in the rounds without it
    difference: float
    error: float  # standard error of the difference, of two samples with variances of their own

    def to_dict(self) -> dict[str, Any]:
        names = ("when_chosen", "when_not", "difference", "standard_error")
        return {name: float(value) if np.isfinite(value) else None for name, value in zip(names, self, strict=True)}


class ArmAverages(NamedTuple):
    """Averages of one arm.

    >>> from spillover.assessment import assess
    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 5, [[3, 2], [1, 4], [3, 5], [1, 1]] * 5, arms=["web", "shop"])
    >>> found.averages[0].times, found.averages[0].own.difference
    (10, 2.0)
    """

    times: int  # how often it was chosen
    times_known: int  # and in how many of these rounds there is an outcome
    own: Comparison  # its own outcome; NaN where outcomes are not those of arms
    rest: Comparison  # the sum of all other outcomes; NaN likewise
    total: Comparison  # the sum of all outcomes


UNKNOWN = Comparison(np.nan, np.nan, np.nan, np.nan)


def arm_averages(data: Data) -> tuple[ArmAverages, ...]:
    """The averages of each arm."""
    total = data.y.sum(axis=1)  # NaN where an outcome of the round is not known
    found = []
    for j in range(len(data.arms)):
        with_arm = data.x[:, j]
        own = data.y[:, j] if data.own else None
        found.append(
            ArmAverages(
                times=int(with_arm.sum()),
                times_known=int((with_arm & (data.known if own is None else np.isfinite(own))).sum()),
                own=UNKNOWN if own is None else compare(own, with_arm),
                rest=UNKNOWN if own is None else compare(total - own, with_arm),
                total=compare(total, with_arm),
            )
        )
    return tuple(found)


def compare(values: Array, with_arm: Any) -> Comparison:
    """The averages of the known values with and without an arm."""
    known = np.isfinite(values)
    inside, outside = values[known & with_arm], values[known & ~with_arm]
    means = [float(part.mean()) if len(part) else np.nan for part in (inside, outside)]
    variances = [float(part.var(ddof=1)) / len(part) if len(part) > 1 else np.nan for part in (inside, outside)]
    return Comparison(means[0], means[1], means[0] - means[1], float(np.sqrt(sum(variances))))


QUARTER = re.compile(r"(\d{4})-?Q([1-4])")
MONTH = re.compile(r"(\d{4})-(\d{2})")
FEWEST_CYCLES = 2  # a season that was seen once is a trend
FEWEST_FREEDOM = 5  # degrees of freedom that are left to judge a season by


class Season(NamedTuple):
    """A season: each round is in a phase (March) of a cycle (2025)."""

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

"""The Covid-19 study (Section V-B): preparation of the record, and the two worlds made from it."""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.environments.world import SEMWorld
from spillover.graph import as_graph_learner
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Outcome, Problem
from spillover_studies.covid.record import DENSITY_WINDOW, REGIONS, STUDY_WINDOW, CovidRecord, days_between

BUDGET = 5
CHANGE = 40  # first day of the second period
SMOOTHING = 7  # days of the trailing mean


class Densities(NamedTuple):
    """Kernel density estimates of region-specific daily cases: a normal kernel on every day of the lockdown window."""

    centres: Array  # (45, n): recorded cases, negative ones set to 0
    bandwidth: Array  # (n,): standard deviation of the kernels
    negative_counts: int  # number of negative records


class CovidData(NamedTuple):
    """The prepared data of the study, in cases per day."""

    specific: Array  # (80, 21): b, sampled region-specific cases, 7-day trailing mean, shifted from day 40 on
    overall: Array  # (80, 21): y, recorded cases, 7-day trailing mean, shifted likewise
    unshifted_specific: Array
    unshifted_overall: Array  # A* is fitted to these
    expected: Array  # (80, 21): expected values of b
    regions: tuple[str, ...]
    days: tuple[date, ...]
    shift: int
    seed: int
    change: int
    source: str
    negative_counts: int

    def scaled(self, unit: float) -> "CovidData":
        """Express the data in units of `unit` cases."""
        names = ("specific", "overall", "unshifted_specific", "unshifted_overall", "expected")
        return self._replace(**{name: getattr(self, name) / unit for name in names})


def densities(record: CovidRecord) -> Densities:
    """Densities of region-specific cases from the days without travel between regions."""
    from scipy.stats import gaussian_kde

    counts = record.window(*DENSITY_WINDOW)
    centres = np.maximum(counts, 0.0)  # negative counts are corrections of earlier days
    flat = [name for name, spread in zip(record.regions, np.ptp(centres, axis=0), strict=True) if spread == 0]
    validate.require(not flat, "regions with the same cases on every day of the lockdown window", flat, "none")
    widths = [float(np.sqrt(gaussian_kde(column).covariance[0, 0])) for column in centres.T]
    return Densities(centres, np.array(widths), int((counts < 0).sum()))


def density_means(found: Densities) -> Array:
    """Expected region-specific cases of each region: the mean of its density, with negative draws set to 0."""
    from scipy.stats import norm

    at = found.centres / found.bandwidth
    return np.asarray((found.centres * norm.cdf(at) + found.bandwidth * norm.pdf(at)).mean(axis=0), float)


def draw_day(found: Densities, rng: Rng) -> Array:
    """Region-specific cases of one day, (*batch, n); negative draws become 0."""
    days, n = found.centres.shape
    picked = np.floor(rng.uniform(n) * days).astype(np.int64)
    draws = found.centres[picked, np.arange(n)] + found.bandwidth * rng.normal(n)
    return np.asarray(np.maximum(draws, 0.0), float)


def trailing_mean(daily: Array) -> Array:
    """7-day trailing mean over the next-to-last axis, which becomes 6 days shorter."""
    days = daily.shape[-2] - SMOOTHING + 1
    return np.asarray(np.mean([daily[..., k : k + days, :] for k in range(SMOOTHING)], axis=0))


def shifted(values: Array, shift: int, change: int = CHANGE) -> Array:
    """From day `change` on region i shows what region i + shift (cyclically) would; (..., days, n)."""
    moved = values.copy()
    moved[..., change - 1 :, :] = np.roll(values[..., change - 1 :, :], -shift, axis=-1)
    return moved


def prepare(record: CovidRecord, *, shift: int, seed: int) -> CovidData:
    """The study's data: region-specific cases sampled for 86 days, recorded cases, both smoothed and shifted.

    shift: the paper's k, from 1 to 20; 0 is a study without a change. The samples depend on the seed alone: day d is
    drawn from stream (seed, d), whatever the shift.

    >>> from spillover_studies.covid.record import simulated_outbreak
    >>> data = prepare(simulated_outbreak()[0], shift=5, seed=0)
    >>> data.specific.shape, data.days[0].isoformat(), data.days[-1].isoformat()
    ((80, 21), '2020-07-31', '2020-10-18')
    """
    validate.whole("shift", shift, 0, len(record.regions) - 1)
    found = densities(record)
    first, last = STUDY_WINDOW
    overall = trailing_mean(record.window(first - timedelta(SMOOTHING - 1), last))
    days, rng = len(overall), Rng(seed)
    daily = [draw_day(found, rng.at(Purpose.WORLD, d)) for d in range(1, days + SMOOTHING)]
    specific = trailing_mean(np.stack(daily))
    expected = np.broadcast_to(density_means(found), specific.shape)
    return CovidData(
        specific=shifted(specific, shift),
        overall=shifted(overall, shift),
        unshifted_specific=specific,
        unshifted_overall=overall,
        expected=shifted(expected, shift),
        regions=record.regions,
        days=tuple(days_between(first, last)),
        shift=int(shift),
        seed=int(seed),
        change=CHANGE,
        source=record.source,
        negative_counts=found.negative_counts,
    )


def fit_unmasked(overall: Array, specific: Array, graph: Any = "self-tuned") -> Array:
    """A*: the graph fitted to all regions on all days, (*batch, n, n); its rows satisfy the learner's bound.

    overall, specific: (*batch, days, n). graph: the learner, or its name.
    """
    shape = np.shape(overall)
    validate.require(len(shape) >= 2, "shape of overall", shape, "(*batch, days, n)")
    validate.require(np.shape(specific) == shape, "shape of specific", np.shape(specific), f"{shape}, as overall has")
    validate.number("overall", overall, "finite numbers", low=-np.inf, high=np.inf)
    validate.number("specific", specific, "finite numbers", low=-np.inf, high=np.inf)
    *batch, days, n = shape
    learner = as_graph_learner(graph)
    fitted, weight = learner.init(Problem(n, 1, acyclic=False), tuple(batch)), np.ones(batch)
    for t in range(1, days + 1):
        z, y = np.ascontiguousarray(specific[..., t - 1, :]), np.ascontiguousarray(overall[..., t - 1, :])
        fitted = learner.absorb(fitted, z, y, weight, np.full(batch, t))
    return np.array(learner.solve(fitted).adjacency)


def spectral_radius(adjacency: Array) -> Array:
    """Largest modulus of an eigenvalue, (*batch,): below 1 the spill-over is finite and weights are defined."""
    return np.asarray(np.abs(np.linalg.eigvals(adjacency)).max(axis=-1), float)


def gather(data: Any, name: str) -> Array:
    """An array of prepared data, or of a nested sequence of them, with one axis for each level."""
    if isinstance(data, CovidData):
        return np.asarray(getattr(data, name), float)
    return np.stack([gather(one, name) for one in data])


@dataclass(frozen=True, kw_only=True)
class LiteralWorld:
    """The paper's replay: z is the sampled b of the chosen regions, y the recorded cases, whatever is chosen.

    `literal_world` makes one. It has no regret: see `SemiSyntheticWorld`.
    """

    specific: Array  # (*batch, days, n): b
    overall: Array  # (*batch, days, n): y
    budget: int = BUDGET
    changes: tuple[int, ...] = (CHANGE,)
    graph_changes: tuple[int, ...] = ()
    arms: tuple[str, ...] = tuple(REGIONS)

    @property
    def horizon(self) -> int:
        return int(self.specific.shape[-2])

    @cached_property
    def problem(self) -> Problem:
        value_range = (0.0, float(max(self.specific.max(), self.overall.max())))
        return Problem(self.specific.shape[-1], self.budget, False, value_range, value_range)

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        z = np.where(x, self.specific[..., t - 1, :], 0.0)
        return Outcome(z, np.broadcast_to(self.overall[..., t - 1, :], z.shape))


def literal_world(data: Any) -> LiteralWorld:
    """The literal world of prepared data, or of a nested sequence of them: [[...], ...] has two batch axes."""
    return LiteralWorld(specific=gather(data, "specific"), overall=gather(data, "overall"))


@dataclass(frozen=True, kw_only=True)
class SemiSyntheticWorld(SEMWorld):
    """y = (I - A*)^-1 z for the graph A* of the unmasked data: here choices have effects, and regret is defined.

    `semi_synthetic_world` makes one. Regret is pseudo-regret: of expected region-specific cases.
    """

    specific: Array  # (*batch, days, n): b

    @cached_property
    def problem(self) -> Problem:
        return cases_problem(self.total, float(self.specific.max()), self.budget)

    def rewards(self, t: int, rng: Rng) -> Array:
        return self.specific[..., t - 1, :]


def cases_problem(total: Array, largest: float, budget: int) -> Problem:
    """The problem if no region has more specific cases than `largest`."""
    most = np.sort(total, axis=-1)[..., -budget:].sum(axis=-1).max()
    return Problem(total.shape[-1], budget, False, (0.0, largest), (0.0, largest * float(most)))


def semi_synthetic_world(data: Any, adjacency: Array | None = None, graph: Any = "self-tuned") -> SemiSyntheticWorld:
    """The semi-synthetic world of prepared data, or of a nested sequence of them; A* is fitted unless given."""
    if adjacency is None:
        adjacency = fit_unmasked(gather(data, "unshifted_overall"), gather(data, "unshifted_specific"), graph)
    specific, expected = gather(data, "specific"), gather(data, "expected")
    fields = world_fields(adjacency, expected[..., [0, -1], :], specific.shape[-2])
    return SemiSyntheticWorld(specific=specific, **fields)


def world_fields(adjacency: Array, levels: Array, horizon: int) -> dict[str, Any]:
    """The fields of both worlds with a graph; levels: (*batch, 2, n), expected cases before and after the change."""
    batch, n = levels.shape[:-2], levels.shape[-1]
    radius = float(spectral_radius(adjacency).max())
    validate.require(radius < 1, "spectral radius of adjacency", radius, "below 1, or the spill-over is infinite")
    return {
        "graphs": np.broadcast_to(adjacency, (*batch, n, n))[..., None, :, :],
        "gain": np.ones((*batch, n)),
        "levels": levels,
        "budget": BUDGET,
        "horizon": horizon,
        "changes": (CHANGE,),
        "graph_changes": (),
        "smooth": False,
        "law": "kernel density",
        "concentration": 1.0,
        "noise": 0.0,
        "acyclic": False,
        "arms": tuple(REGIONS),
    }


@dataclass(frozen=True, kw_only=True)
class SampledWorld(SEMWorld):
    """The semi-synthetic world that draws region-specific cases as it is played, from the streams of `prepare`.

    So replication 0 of a seed has the data that `prepare` makes from that seed.
    """

    found: Densities
    shift: int

    @cached_property
    def problem(self) -> Problem:
        # no normal draw from 53 random bits is 9 standard deviations from 0
        largest = float((self.found.centres.max(axis=0) + 9.0 * self.found.bandwidth).max())
        return cases_problem(self.total, largest, self.budget)

    def rewards(self, t: int, rng: Rng) -> Array:
        days = [draw_day(self.found, rng.at(Purpose.WORLD, t + k)) for k in range(SMOOTHING)]
        return np.roll(np.mean(days, axis=0), -self.shift * self.period(t), axis=-1)


@dataclass(frozen=True, kw_only=True)
class SemiSyntheticCovid:
    """The semi-synthetic study as an environment: every replication has its own region-specific cases.

    adjacency: A*, (21, 21); by default it is fitted to the record and the samples of `seed`.
    """

    record: CovidRecord
    shift: int = 1
    seed: int = 0
    graph: Any = "self-tuned"
    adjacency: Any = None

    def draw(self, rng: Rng, batch: Batch = ()) -> SampledWorld:
        data = prepare(self.record, shift=self.shift, seed=self.seed)
        fitted = self.adjacency is None
        a = fit_unmasked(data.unshifted_overall, data.unshifted_specific, self.graph) if fitted else self.adjacency
        levels = np.broadcast_to(data.expected[[0, -1]], (*batch, 2, len(data.regions)))
        shared = world_fields(np.asarray(a, float), levels, len(data.days))
        return SampledWorld(found=densities(self.record), shift=self.shift, **shared)

"""The Covid-19 study (Section V-B): preparation of the record, and the two worlds that replay it."""

from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.datasets import DENSITY_WINDOW, STUDY_WINDOW, CovidRecord, days_between
from spillover.environments.world import SEMWorld
from spillover.graph import ROW_BOUND, graph_learner
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, IntArray, Outcome, Problem

BUDGET = 5
CHANGE = 40  # first day of the second period
SMOOTHING = 7  # days of the trailing mean
NO_REGRET = (
    "the recorded cases do not react to what is chosen, so this world has no expected payoff, no best set and no "
    "true graph: use SemiSyntheticWorld for regret"
)


class Densities(NamedTuple):
    """Kernel density estimates of region-specific daily cases: a normal kernel on every day of the lockdown window."""

    centres: Array  # (45, n): recorded cases, negative ones at 0
    bandwidth: Array  # (n,): standard deviation of the kernels
    negative_counts: int  # how many were recorded


class CovidData(NamedTuple):
    """The prepared study, in cases a day."""

    specific: Array  # (80, 21): b, sampled region-specific cases, 7-day trailing mean, shifted from day 40 on
    overall: Array  # (80, 21): y, recorded cases, 7-day trailing mean, shifted likewise
    unshifted_specific: Array
    unshifted_overall: Array
    expected: Array  # (80, 21): expected values of b
    regions: tuple[str, ...]
    days: tuple[date, ...]
    shift: int
    seed: int
    change: int
    source: str
    negative_counts: int

    def scaled(self, unit: float) -> "CovidData":
        """The same in units of so many cases."""
        names = ("specific", "overall", "unshifted_specific", "unshifted_overall", "expected")
        return self._replace(**{name: getattr(self, name) / unit for name in names})


def densities(record: CovidRecord) -> Densities:
    """Densities of region-specific cases from the days on which nobody travelled between regions."""
    from scipy.stats import gaussian_kde

    counts = record.window(*DENSITY_WINDOW)
    centres = np.maximum(counts, 0.0)  # negative counts are corrections of earlier days
    spreads = centres.std(axis=0)
    flat = [name for name, spread in zip(record.regions, spreads, strict=True) if spread == 0]
    validate.require(not flat, "regions with the same cases on every day of the lockdown window", flat, "none")
    widths = [float(np.sqrt(gaussian_kde(column).covariance[0, 0])) for column in centres.T]
    return Densities(centres, np.array(widths), int((counts < 0).sum()))


def density_means(found: Densities) -> Array:
    """Expected region-specific cases of each region: of draws from its density with negative ones set to 0."""
    from scipy.stats import norm

    at = found.centres / found.bandwidth
    return np.asarray((found.centres * norm.cdf(at) + found.bandwidth * norm.pdf(at)).mean(axis=0), float)


def draw_day(found: Densities, rng: Rng) -> Array:
    """Region-specific cases of one day, (*batch, n); a draw below 0 is 0."""
    days, n = found.centres.shape
    picked = np.floor(rng.uniform(n) * days).astype(np.int64)
    return np.maximum(found.centres[picked, np.arange(n)] + found.bandwidth * rng.normal(n), 0.0)


def trailing_mean(daily: Array) -> Array:
    """7-day trailing mean over the next-to-last axis, which gets 6 days shorter."""
    days = daily.shape[-2] - SMOOTHING + 1
    return np.asarray(np.mean([daily[..., k : k + days, :] for k in range(SMOOTHING)], axis=0))


def shifted(values: Array, shift: int, change: int = CHANGE) -> Array:
    """From day `change` on region i shows what region i + shift (cyclically) would; (..., days, n)."""
    moved = values.copy()
    moved[..., change - 1 :, :] = np.roll(values[..., change - 1 :, :], -shift, axis=-1)
    return moved


def prepare(record: CovidRecord, *, shift: int, seed: int) -> CovidData:
    """The study's data: region-specific cases sampled for 86 days, recorded cases, both smoothed and shifted.

    The samples depend on the seed alone, not on the shift: day d is drawn from stream (seed, d).
    """
    n = len(record.regions)
    validate.whole("shift", shift, 1, n - 1)
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


def fit_unmasked(overall: Array, specific: Array, sparsity: Any = "auto", row_bound: float = ROW_BOUND) -> Array:
    """A*: the graph that all regions' cases of all days give, (*batch, n, n); no row sums to more than `row_bound`.

    overall, specific: (*batch, days, n).
    """
    *batch, days, n = np.shape(overall)
    validate.require(np.shape(specific) == np.shape(overall), "shape of specific", np.shape(specific), "overall's")
    learner = graph_learner(sparsity, row_bound)
    graph = learner.init(Problem(n, 1, acyclic=False), tuple(batch))
    weight = np.ones(tuple(batch))
    for t in range(1, days + 1):
        z, y = np.ascontiguousarray(specific[..., t - 1, :]), np.ascontiguousarray(overall[..., t - 1, :])
        graph = learner.absorb(graph, z, y, weight, np.full(tuple(batch), t))
    return np.array(learner.solve(graph).adjacency)


def spectral_radius(adjacency: Array) -> Array:
    """Largest modulus of an eigenvalue, (*batch,): below 1 the spill-over dies out and weights mean something."""
    return np.asarray(np.abs(np.linalg.eigvals(adjacency)).max(axis=-1), float)


def gather(data: Any, name: str) -> Array:
    """An array of prepared data, or of a nested sequence of them with an axis for each level."""
    if isinstance(data, CovidData):
        return np.asarray(getattr(data, name), float)
    return np.stack([gather(one, name) for one in data])


@dataclass(frozen=True, kw_only=True)
class LiteralWorld:
    """The paper's replay: z is the sampled b of the chosen regions, y the recorded cases, whatever is chosen.

    `literal_world` makes one. It plays, but has no regret: see `SemiSyntheticWorld`.
    """

    specific: Array  # (*batch, days, n): b
    overall: Array  # (*batch, days, n): y
    budget: int = BUDGET
    changes: tuple[int, ...] = (CHANGE,)

    @property
    def horizon(self) -> int:
        return int(self.specific.shape[-2])

    @cached_property
    def problem(self) -> Problem:
        limits = (0.0, float(max(self.specific.max(), self.overall.max())))
        return Problem(self.specific.shape[-1], self.budget, False, limits, limits)

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        z = np.where(x, self.specific[..., t - 1, :], 0.0)
        return Outcome(z, np.broadcast_to(self.overall[..., t - 1, :], z.shape))

    def expected(self, t: int, x: BoolArray) -> Array:
        raise NotImplementedError(NO_REGRET)

    def best(self, t: int) -> BoolArray:
        raise NotImplementedError(NO_REGRET)

    def matches(self, t: int, x: BoolArray) -> IntArray:
        raise NotImplementedError(NO_REGRET)

    def adjacency(self, t: int) -> Array:
        raise NotImplementedError(NO_REGRET)

    def weights(self, t: int) -> Array:
        raise NotImplementedError(NO_REGRET)


def literal_world(data: Any) -> LiteralWorld:
    """The literal world of prepared data, or of a nested sequence of them: [[...], ...] has two batch axes."""
    return LiteralWorld(specific=gather(data, "specific"), overall=gather(data, "overall"))


@dataclass(frozen=True, kw_only=True)
class SemiSyntheticWorld(SEMWorld):
    """y = (I - A*)^-1 z for the graph A* of the unmasked data: here choices have effects, and regret is defined."""

    specific: Array  # (*batch, days, n): b

    @cached_property
    def problem(self) -> Problem:
        return cases_problem(self.total, float(self.specific.max()), self.budget)

    def rewards(self, t: int, rng: Rng) -> Array:
        return self.specific[..., t - 1, :]


def cases_problem(total: Array, largest: float, budget: int) -> Problem:
    """What a policy is told where no region has more specific cases than `largest`."""
    most = np.sort(total, axis=-1)[..., -budget:].sum(axis=-1).max()
    return Problem(total.shape[-1], budget, False, (0.0, largest), (0.0, largest * float(most)))


def semi_synthetic_world(data: Any, adjacency: Array | None = None, sparsity: Any = "auto") -> SemiSyntheticWorld:
    """The semi-synthetic world of prepared data, or of a nested sequence of them; A* is fitted unless given."""
    if adjacency is None:
        adjacency = fit_unmasked(gather(data, "unshifted_overall"), gather(data, "unshifted_specific"), sparsity)
    specific, expected = gather(data, "specific"), gather(data, "expected")
    return SemiSyntheticWorld(specific=specific, **world_fields(adjacency, expected[..., [0, -1], :]))


def world_fields(adjacency: Array, levels: Array) -> dict[str, Any]:
    """What the worlds with a graph share; levels: (*batch, 2, n), expected cases before and after the change."""
    batch, n = levels.shape[:-2], levels.shape[-1]
    return {
        "graphs": np.broadcast_to(adjacency, (*batch, n, n))[..., None, :, :],
        "gain": np.ones((*batch, n)),
        "levels": levels,
        "budget": BUDGET,
        "horizon": 80,
        "changes": (CHANGE,),
        "graph_changes": (),
        "smooth": False,
        "law": "kernel density",
        "concentration": 1.0,
        "noise": 0.0,
        "acyclic": False,
        "arms": (),
    }

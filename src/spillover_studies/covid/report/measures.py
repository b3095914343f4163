"""Numbers that sections and claims share, and verdicts on them; only outbreaks with a known graph are simulated."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover.graph import ROW_BOUND, SparseGraph
from spillover.metrics import Interval
from spillover.report import claims
from spillover.report.claims import FAILS, HOLDS, OPEN, sign_verdict
from spillover.rng import Rng
from spillover.types import Array, BoolArray
from spillover_studies.covid import LITERAL, SEMI, CovidResults, clustered_interval, validation_days
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, SQUARED_RULE
from spillover_studies.covid.play import ONE_RUN, SEED_SETS, best_cell
from spillover_studies.covid.record import LOCKDOWN_DAYS, STUDY_WINDOW, outbreak
from spillover_studies.covid.scores import (
    absolute_error,
    last_values,
    predict_from_all,
    predict_from_specific,
    since,
    top_regions,
    weights_of,
)
from spillover_studies.covid.worlds import BUDGET, fit_unmasked, prepare, trailing_mean

CONDITIONS = ("in most single runs", "over all runs")  # of the two verdicts: the paper shows one run, not known which


def in_most_runs(true: BoolArray) -> str:
    """The verdict on single runs, such as the paper's, of a statement that is true in some of them."""
    return HOLDS if float(np.mean(true)) > 0.5 else FAILS


def level_verdict(interval: Interval, level: float) -> str:
    """Holds if the interval is above a level, fails if it is below; a value without an interval is not decided."""
    if float(interval.low) > level:
        return HOLDS
    return FAILS if float(interval.high) < level else OPEN


def half_verdict(part: Array, whole: Array) -> str:
    """Holds if a part is more than half of the whole, fails if it is less."""
    return sign_verdict(clustered_interval(part - whole / 2))


COMPARISONS = {
    "cases": ("ndc-sem", "sem-ucb"),
    "unit": ("ndc-sem-unit", "sem-ucb-unit"),
    "bonus": ("ndc-sem", "sem-ucb-unit"),
}
COMPARISON_LABELS = {
    "cases": "both in cases",
    "unit": "both on [0, 1]",
    "bonus": "NDC-SEM in cases, SEM-UCB on [0, 1]",
}
SCALE_LABELS = {"cases": "in cases", "unit": "on [0, 1]"}
OTHER_RULES = {
    BOUNDED_RULE: f"bounded graphs (effects on a region sum to at most {ROW_BOUND:g})",
    SQUARED_RULE: "λ by the squared error, 1% rule",
}
FROM_ALL, FROM_SPECIFIC = "A y + z", "(I − A)⁻¹ z"
FINAL, AT_DECISION = "final graph", "graph at decision time"
NO_GRAPH_AT_ALL = "z alone, no graph"
NAIVE, YESTERDAY = "last value known at decision time", "yesterday's value"
RECORDED = "recorded cases a day (mean of 7-day means, days 1–39)"
ADJUSTED = 44  # the first day on which an outcome of the change can be known, with a delay of 3
CHOOSING = 25  # the first day after the initialisation on which nothing is forced
FIRST_ERROR = 25  # validation days before it are in the initialisation
LATE = 61  # from this day on, the regions chosen most often are what a policy has detected


def format_ci(interval: Interval, digits: int = 0) -> str:
    """A mean with its 95% interval, or without it if nothing varies or there is only one shift."""
    mean, low, high = (float(v) for v in interval)
    if high - low > 1e-9 * max(abs(mean), 1e-9):
        return claims.format_ci(interval, digits)
    return format_number(mean, digits)


def format_number(value: float, digits: int = 0) -> str:
    return f"{float(value):,.{digits}f}".replace("-", "−")


def more_or_fewer(interval: Interval) -> str:
    """A difference in words; the interval has the sign of the words."""
    mean, low, high = (float(v) for v in interval)
    if mean >= 0:
        return f"{format_ci(interval)} more estimated cases"
    return f"{format_ci(Interval(*map(np.array, (-mean, -high, -low))))} fewer estimated cases"


@dataclass(frozen=True)
class Measured:
    """Values of all runs, (shifts, seeds), for texts: `{gain:1}` is the mean with its interval, with one decimal."""

    values: Any  # numbers, or whether something is so

    def __format__(self, digits: str) -> str:
        return format_ci(self.interval, int(digits or 0))

    @cached_property
    def interval(self) -> Interval:
        return clustered_interval(self.values)

    @property
    def words(self) -> str:
        """How many cases more or fewer it is."""
        return more_or_fewer(self.interval)

    @property
    def runs(self) -> str:
        """The number of single runs in which it is above 0."""
        return f"{int((self.values > 0).sum())} of {self.values.size} runs"

    @property
    def shifts(self) -> str:
        """The number of shifts in which the mean over the seeds is above 0."""
        return f"{int((self.values.mean(axis=1) > 0).sum())} of {len(self.values)} shifts"

    @property
    def verdict(self) -> str:
        """Whether it is above 0 over all runs."""
        return sign_verdict(self.interval)

    @property
    def one(self) -> str:
        """Whether it is above 0 in most single runs."""
        return in_most_runs(self.values > 0)


def largest_weight(study: CovidResults, name: str, rule: str = PAPER_RULE) -> Array:
    """Return the largest weight of a region-specific case in the policy's own final graph, (shifts, seeds)."""
    return np.asarray(weights_of(study.played(LITERAL, name, rule).adjacency).max(axis=-1))


def median_run(values: Array) -> tuple[int, int]:
    """The shift and the seed of the run in the middle, of two such runs the lower; values: (shifts, seeds).

    >>> median_run(np.array([[5.0, 1.0], [2.0, 3.0]]))
    (1, 0)
    """
    flat = np.argsort(values, axis=None, kind="stable")[(values.size - 1) // 2]
    shift, seed = np.unravel_index(int(flat), values.shape)
    return int(shift), int(seed)


def gain(study: CovidResults, comparison: str, score: str, rule: str = PAPER_RULE) -> Array:
    """Reward of days 40 to 80 minus that of the rival, (shifts, seeds)."""
    ours, theirs = (study.rewards(LITERAL, name, rule)[score] for name in COMPARISONS[comparison])
    return since(ours, study.about["change"]) - since(theirs, study.about["change"])


def total_gain(study: CovidResults, comparison: str, score: str, rule: str = PAPER_RULE) -> Array:
    """Reward of all days minus that of the rival, (shifts, seeds)."""
    ours, theirs = (study.rewards(LITERAL, name, rule)[score][..., -1] for name in COMPARISONS[comparison])
    return np.asarray(ours - theirs)


def daily_gains(study: CovidResults, comparison: str, score: str, rule: str = PAPER_RULE) -> tuple[Array, Array]:
    """Mean gain a day on free days before the change, and once it can be known, (shifts, seeds) each."""
    ours, theirs = (np.diff(study.rewards(LITERAL, n, rule)[score], prepend=0) for n in COMPARISONS[comparison])
    daily, change = ours - theirs, study.about["change"]
    before, after = daily[..., CHOOSING - 1 : change - 1], daily[..., ADJUSTED - 1 :]
    return np.asarray(before.mean(axis=-1)), np.asarray(after.mean(axis=-1))


def prediction_errors(study: CovidResults, name: str = "ndc-sem", rule: str = PAPER_RULE) -> dict[str, Array]:
    """Mean absolute error in cases per region on every validation day, (shifts, seeds, days), by predictor."""
    days = validation_days(len(study.days))
    found = study.played(LITERAL, name, rule)
    z, y = found.z[..., days - 1, :], found.y[..., days - 1, :]
    final = np.broadcast_to(found.adjacency[..., None, :, :], (*z.shape, z.shape[-1]))
    predicted = {
        f"{FROM_ALL}, {FINAL}": predict_from_all(final, z, y),
        f"{FROM_SPECIFIC}, {FINAL}": predict_from_specific(final, z),
        f"{FROM_ALL}, {AT_DECISION}": found.ahead_from_all,
        f"{FROM_SPECIFIC}, {AT_DECISION}": found.ahead_from_specific,
        NO_GRAPH_AT_ALL: z,
        NAIVE: last_values(found.y, days, study.plan.delay),
        YESTERDAY: last_values(found.y, days, 0),
    }
    return {label: absolute_error(values, y) for label, values in predicted.items()}


def mean_cases(study: CovidResults) -> Array:
    """Mean overall cases per region on the validation days after the initialisation, (shifts, seeds)."""
    days = validation_days(len(study.days))
    return np.asarray(study.data["overall"][..., days[days >= FIRST_ERROR] - 1, :].mean(axis=(-2, -1)))


def later_errors(errors: dict[str, Array], horizon: int) -> dict[str, Array]:
    """Mean over the validation days after the initialisation, (shifts, seeds)."""
    later = validation_days(horizon) >= FIRST_ERROR
    return {label: values[..., later].mean(axis=-1) for label, values in errors.items()}


def best_share(
    study: CovidResults, name: str, first: int = ADJUSTED, last: int | None = None, rule: str = PAPER_RULE
) -> Array:
    """Share of the five regions with the highest expected region-specific cases among the choices, (shifts, seeds).

    Of days `first` to `last`, both included.
    """
    x = study.played(LITERAL, name, rule).x
    best = top_regions(study.data["expected"], 5)
    return np.asarray((x & best)[..., first - 1 : last, :].sum(axis=-1).mean(axis=-1) / 5)


def semi_share(study: CovidResults, name: str, first: int = ADJUSTED, rule: str = PAPER_RULE) -> Array:
    """Share of the truly best five in the semi-synthetic mode, (shifts, seeds)."""
    return np.asarray(study.played(SEMI, name, rule).matches[..., first - 1 :].mean(axis=-1) / 5)


def detected(study: CovidResults, name: str, rule: str = PAPER_RULE) -> Array:
    """Count the optimal regions among the five chosen most often on days 61 to 80, (shifts, seeds).

    In the semi-synthetic mode, where the optimal set is known: weights of A* times expected region-specific cases.
    """
    chosen = top_regions(study.played(SEMI, name, rule).x[..., LATE - 1 :, :].mean(axis=-2), 5)
    best = top_regions(weights_of(study.star(rule)) * study.data["expected"][..., -1, :], 5)
    return np.asarray((chosen & best).sum(axis=-1))


def only_after(study: CovidResults, name: str, rule: str = PAPER_RULE) -> BoolArray:
    """Regions chosen from day 40 on but on no day from 25 to 39, (shifts, seeds, n)."""
    x, change = study.played(LITERAL, name, rule).x, study.about["change"]
    before = x[..., CHOOSING - 1 : change - 1, :].any(axis=-2)
    return np.asarray(x[..., change - 1 :, :].any(axis=-2) & ~before)


def chosen_days(study: CovidResults, name: str) -> tuple[Array, Array]:
    """Share of days on which each region was chosen, before and after the change, (shifts, seeds, n) each."""
    x, change = study.played(LITERAL, name).x, study.about["change"]
    before, after = x[..., CHOOSING - 1 : change - 1, :], x[..., change - 1 :, :]
    return before.mean(axis=-2), after.mean(axis=-2)


def recorded_before(study: CovidResults) -> Array:
    """Recorded cases per day before the change, (shifts, seeds, n): mean of the 7-day means of days 1 to 39."""
    return np.asarray(study.data["unshifted_overall"][..., : study.about["change"] - 1, :].mean(axis=-2))


def overlaps(study: CovidResults, rule: str = PAPER_RULE) -> dict[str, Array]:
    """Count the five top contributors that are among the five regions with most cases, before the change.

    (shifts, seeds) each. Contribution: weight times expected region-specific cases, with the graph of the unmasked data
    before the shift; and what NDC-SEM chose most often on the days before the change.
    """
    expected, overall = study.data["expected"][..., 0, :], recorded_before(study)
    contributes = top_regions(weights_of(study.star(rule)) * expected, 5)
    chosen = top_regions(chosen_days(study, "ndc-sem")[0], 5)
    most, specific = top_regions(overall, 5), top_regions(expected, 5)
    pairs = {
        "contribution and recorded cases": (contributes, most),
        "contribution and region-specific cases": (contributes, specific),
        "region-specific cases and recorded cases": (specific, most),
        "NDC-SEM's choices and recorded cases": (chosen, most),
        "NDC-SEM's choices and region-specific cases": (chosen, specific),
    }
    return {label: (a & b).sum(axis=-1) for label, (a, b) in pairs.items()}


def graph_share(study: CovidResults, rule: str = PAPER_RULE, own: bool = False) -> tuple[Array, Array]:
    """Count the five top contributors that are not among the regions with most recorded cases, (shifts, seeds).

    And how many of these would not be among the top five without the graph, by region-specific cases alone. The graph
    is A*, or NDC-SEM's own final one.
    """
    expected = study.data["expected"][..., 0, :]
    graph = study.played(LITERAL, "ndc-sem", rule).adjacency if own else study.star(rule)
    apart = top_regions(weights_of(graph) * expected, 5) & ~top_regions(recorded_before(study), 5)
    return apart.sum(axis=-1), (apart & ~top_regions(expected, 5)).sum(axis=-1)


def in_grid(study: CovidResults) -> bool:
    """Whether the paper's setting is a cell of the grid."""
    plan = study.plan
    return plan.discount in plan.discounts and plan.exploration in plan.explorations


def paper_at(study: CovidResults) -> tuple[int, int]:
    """Position of the paper's setting in the grid."""
    plan = study.plan
    return plan.discounts.index(plan.discount), plan.explorations.index(plan.exploration)


def single_ranks(study: CovidResults, scale: str, seeds: str, score: str = "own") -> Array:
    """Place of the paper's setting in the grid of each single run, (runs,): 1 is what a search on that run chooses."""
    values = study.grid(scale, seeds).rewards[score]
    above = values > values[paper_at(study)]
    return np.asarray(above.sum(axis=(0, 1)) + 1)


def all_single_ranks(study: CovidResults, scale: str) -> Array:
    """Place of the paper's setting in the grid of each run of both sets of seeds."""
    return np.concatenate([single_ranks(study, scale, seeds) for seeds in SEED_SETS])


def single_winners(study: CovidResults, scale: str) -> int:
    """Count the different cells that win on the single runs of both sets of seeds."""
    won = set()
    for seeds in SEED_SETS:
        values = study.grid(scale, seeds).rewards["own"]
        won |= set(values.reshape(-1, values.shape[-1]).argmax(axis=0).tolist())
    return len(won)


def one_run_best(study: CovidResults, scale: str) -> tuple[float, float]:
    """The cell that the paper's search chooses on the run that figures show."""
    i, j = best_cell(study.grid(scale, ONE_RUN).rewards["own"])
    return study.plan.discounts[i], study.plan.explorations[j]


def paper_cell(study: CovidResults, scale: str, seeds: str, score: str) -> tuple[int, Interval]:
    """Rank of the paper's setting by the mean over the shifts, and how much better another cell is.

    That cell is the best one on the other set of seeds: the best one on the same seeds would be better by luck alone.
    """
    values, at = study.grid(scale, seeds).rewards[score], paper_at(study)
    mean = values.mean(axis=-1)
    other = next(name for name in SEED_SETS if name != seeds)
    above = values[best_cell(study.grid(scale, other).rewards[score])] - values[at]
    return int((mean > mean[at]).sum()) + 1, clustered_interval(above[:, None])


SEEDS = (0, 1, 2)  # of the simulated outbreaks


class Recovery(NamedTuple):
    """Errors of recovering a known graph, over the simulated outbreaks."""

    measured: float  # largest error of an entry if region-specific cases are known and none is masked
    resampled: tuple[float, float]  # the same if they are resampled, as in the study: lowest, highest
    masked_rows: float  # mean sum of a row if cases of regions that were not chosen are masked
    true_rows: float


@cache
def recovery(seeds: tuple[int, ...] = SEEDS) -> Recovery:
    """Fit the graph of simulated outbreaks as the study does; always the same numbers."""
    y, b, masks, truth, drawn = [], [], [], [], []
    for seed in seeds:
        made = outbreak(seed)
        days = (STUDY_WINDOW[1] - STUDY_WINDOW[0]).days + 1
        y.append(trailing_mean(made.record.cases[len(LOCKDOWN_DAYS) :])[-days:])
        b.append(trailing_mean(made.specific[len(LOCKDOWN_DAYS) :])[-days:])
        masks.append(Rng(seed, np.arange(days)).permutation(y[0].shape[-1]) < BUDGET)
        truth.append(made.adjacency)
        drawn.append(prepare(made.record, shift=0, seed=seed).unshifted_specific)
    overall, specific, true = np.stack(y), np.stack(b), np.stack(truth)
    resampled = largest_error(fit_unmasked(overall, np.stack(drawn)) - true)
    masked = fit_unmasked(overall, specific * np.stack(masks), SparseGraph(sparsity=0.0))
    return Recovery(
        measured=float(largest_error(fit_unmasked(overall, specific, SparseGraph(sparsity=0.0)) - true).max()),
        resampled=(float(resampled.min()), float(resampled.max())),
        masked_rows=float(masked.sum(axis=-1).mean()),
        true_rows=float(true.sum(axis=-1).mean()),
    )


def largest_error(errors: Array) -> Array:
    return np.asarray(np.abs(errors).max(axis=(-2, -1)))


def excess(study: CovidResults) -> Array:
    """Share of days on which a region's sampled specific cases exceed its recorded ones, (n,); A >= 0 excludes it."""
    above = study.data["unshifted_specific"] > study.data["unshifted_overall"]
    return np.asarray(above.mean(axis=(0, 1, 2)))


def bounded_rows(study: CovidResults) -> float:
    """Share of the rows of A* that sum to the bound, if there is one."""
    rows = study.star(BOUNDED_RULE).sum(axis=-1)
    return float((rows > ROW_BOUND - 1e-6).mean())

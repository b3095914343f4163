"""Numbers that sections and claims share, computed from stored results; nothing is simulated."""

from typing import Any

import numpy as np
import pandas as pd

from spillover.graph import ROW_BOUND
from spillover.metrics import Interval
from spillover.report import claims
from spillover.types import Array, BoolArray
from spillover_studies.covid import LITERAL, SEMI, CovidResults, clustered_interval, validation_days
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, SQUARED_RULE, VARIANTS
from spillover_studies.covid.scores import (
    SCORES,
    absolute_error,
    last_values,
    predict_from_all,
    predict_from_specific,
    since,
    top_regions,
    weights_of,
)
from spillover_studies.covid.tuning import ONE_RUN, SCALES, SEED_SETS, best_cell

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


def largest_weight(study: CovidResults, name: str, rule: str = PAPER_RULE) -> Array:
    """For how many cases a region-specific case counts at most in the policy's own final graph, (shifts, seeds)."""
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


def shifts_won(values: Array) -> str:
    """In how many shifts the mean over the seeds is above 0."""
    return f"{int((values.mean(axis=1) > 0).sum())} of {len(values)} shifts"


def runs_won(values: Array | BoolArray) -> str:
    """In how many single runs a value is above 0."""
    return f"{int((values > 0).sum())} of {values.size} runs"


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
    """How many of the five regions chosen most often on days 61 to 80 are in the optimal set, (shifts, seeds).

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
    """How many of the five top contributors are among the five regions with most cases, before the change.

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
    """How many of the five top contributors are not among the regions with most recorded cases, (shifts, seeds).

    And how many of these would not be among the top five without the graph, by region-specific cases alone. The graph
    is A*, or NDC-SEM's own final one.
    """
    expected = study.data["expected"][..., 0, :]
    graph = study.played(LITERAL, "ndc-sem", rule).adjacency if own else study.star(rule)
    apart = top_regions(weights_of(graph) * expected, 5) & ~top_regions(recorded_before(study), 5)
    return apart.sum(axis=-1), (apart & ~top_regions(expected, 5)).sum(axis=-1)


def contribution_table(study: CovidResults) -> pd.DataFrame:
    """Regions by contribution, with their place by recorded cases; means over all data sets, before the shift."""
    weights = weights_of(study.star())
    expected = study.data["expected"][..., 0, :]
    mean = (0, 1)
    frame = pd.DataFrame(
        {
            "region": study.about["names"],
            RECORDED: recorded_before(study).mean(axis=mean),
            "region-specific cases a day": expected.mean(axis=mean),
            "weight": weights.mean(axis=mean),
            "contribution": (weights * expected).mean(axis=mean),
            "chosen by NDC-SEM, days 25–39": chosen_days(study, "ndc-sem")[0].mean(axis=mean),
        }
    )
    frame["place by cases"] = frame[RECORDED].rank(ascending=False).astype(int)
    frame = frame.sort_values("contribution", ascending=False, ignore_index=True)
    frame.insert(0, "place by contribution", range(1, len(frame) + 1))
    return frame


def reward_table(study: CovidResults, rule: str = PAPER_RULE) -> pd.DataFrame:
    """Every comparison by every scoring rule: gain of days 40 to 80 with its interval, and how often it is above 0."""
    rows: list[dict[str, Any]] = []
    for comparison, (_, rival) in COMPARISONS.items():
        for score, label in SCORES.items():
            values = gain(study, comparison, score, rule)
            base = since(study.rewards(LITERAL, rival, rule)[score], study.about["change"])
            interval = clustered_interval(values)
            rows.append(
                {"comparison": COMPARISON_LABELS[comparison], "scored by": label}
                | dict(zip(("gain", "low", "high"), map(float, interval), strict=True))
                | {"share of SEM-UCB's": float(values.mean() / base.mean())}
                | {"shifts won": shifts_won(values), "runs won": runs_won(values)}
            )
    return pd.DataFrame(rows)


def regret_table(study: CovidResults) -> pd.DataFrame:
    """Final regret in the semi-synthetic mode, and the share of the best five after the change."""
    rows = []
    for name in (*(v.name for v in VARIANTS), "ndc-sem-no-graph", "delayed-oracle", "random"):
        interval = clustered_interval(study.played(SEMI, name).regret[..., -1])
        share = clustered_interval(semi_share(study, name))
        rows.append(
            {"policy": name}
            | dict(zip(("regret", "low", "high"), map(float, interval), strict=True))
            | {"best five, days 44–80": float(share.mean)}
        )
    return pd.DataFrame(rows)


def payoff_table(study: CovidResults) -> pd.DataFrame:
    """Average payoff in cases a day over all 80 days, and seconds of playing all runs, of every policy."""
    days, rows = len(study.days), []
    for name in (*(v.name for v in VARIANTS), "ndc-sem-no-graph"):
        replayed = study.rewards(LITERAL, name)
        rows.append(
            {"policy": name}
            | {score: float(replayed[score][..., -1].mean()) / days for score in ("own", "common")}
            | {"semi": float(study.rewards(SEMI, name)["common"][..., -1].mean()) / days}
            | {"seconds": study.seconds(LITERAL, name)}
        )
    return pd.DataFrame(rows)


def tuning_table(study: CovidResults) -> pd.DataFrame:
    """The best cell by every criterion, and its value on the reported seed by the moving common graph."""
    plan, rows = study.plan, []
    for scale in SCALES:
        value = study.grid(scale, "reported").rewards["moving"].mean(axis=-1)
        for seeds in SEED_SETS:
            for score in ("own", "common", "moving"):
                i, j = best_cell(study.grid(scale, seeds).rewards[score])
                rows.append(
                    {
                        "scale": "cases" if scale == "cases" else "[0, 1]",
                        "seed": "first reported" if seeds == "reported" else "the other",
                        "chosen by": SCORES[score],
                        "discount γ": plan.discounts[i],
                        "exploration ξ": plan.explorations[j],
                        "value on the reported seed": float(value[i, j]),
                        "share of the grid's best": float(value[i, j] / value.max()),
                    }
                )
    return pd.DataFrame(rows)


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
    """The same over the runs of both sets of seeds."""
    return np.concatenate([single_ranks(study, scale, seeds) for seeds in SEED_SETS])


def single_winners(study: CovidResults, scale: str) -> int:
    """How many different cells win on the single runs of both sets of seeds."""
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

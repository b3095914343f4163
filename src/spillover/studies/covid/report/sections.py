"""The sections of the Covid-19 report: figures, tables and text."""

from collections.abc import Callable
from html import escape

import numpy as np
from matplotlib.axes import Axes

from spillover.report.figures.style import figure_legend, new_panels
from spillover.report.tables import html_table, spans
from spillover.studies.covid import LABELS, LITERAL, SEMI, CovidResults, clustered_interval, validation_days
from spillover.studies.covid.plan import PICTURE_SEED, VARIANTS
from spillover.studies.covid.report.cases import error_figure, prediction_panels
from spillover.studies.covid.report.curves import days_figure, days_panels, gain_figure
from spillover.studies.covid.report.map import map_figure
from spillover.studies.covid.report.measures import (
    CHOOSING,
    COMPARISON_LABELS,
    FROM_ALL,
    NAIVE,
    RECORDED,
    YESTERDAY,
    best_share,
    contribution_table,
    format_ci,
    gain,
    later_errors,
    prediction_errors,
    regret_table,
    reward_table,
)
from spillover.studies.covid.report.selection import selection_figure
from spillover.studies.covid.scores import (
    SCORES,
    forced_choices,
    last_values,
    predict_from_all,
    top_regions,
)
from spillover.studies.covid.worlds import spectral_radius

Draw = Callable[[str, Axes, str], str]
SHOWN_DAYS = (15, 35, 55, 75)  # every second one of the eight validation days


def shown_run(study: CovidResults) -> str:
    """Which run the figures of a single run show."""
    k = study.plan.shifts[study.plan.picture]
    return f"shift k = {k} (drawn from seed {PICTURE_SEED}), data set 0 of it"


def sample_size(study: CovidResults) -> str:
    return f"{len(study.plan.shifts)} shifts × {study.plan.seeds} seeds"


def estimates(study: CovidResults, draw: Draw) -> str:
    """fig:Error, and the mean errors."""
    found, at, days = study.played(LITERAL, "ndc-sem"), (study.plan.picture, 0), np.array(SHOWN_DAYS)
    z, y = found.z[at][days - 1], found.y[at][days - 1]
    panels = prediction_panels(
        y, predict_from_all(found.adjacency[at], z, y), SHOWN_DAYS, study.regions,
        naive=last_values(found.y[at], days, study.plan.delay),
    )  # fmt: skip
    first = draw(
        "error",
        panels[0],
        "Overall daily new cases (7-day mean) and the prediction A y + z on four validation days, with the graph of "
        f"NDC-SEM after the last day; {shown_run(study)}. The dots are the last values known at decision time, 4 days "
        "old. A y + z uses the same day's cases of all other regions, which are not known on that day.",
    )
    errors = {k: clustered_interval(v) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}
    second = draw(
        "prediction-error",
        error_figure(errors, (NAIVE, YESTERDAY)),
        "Mean absolute error of NDC-SEM's predictions on the validation days after the initialisation (25 to 75), "
        f"and of naive ones (hollow); mean and 95% interval over {sample_size(study)}, clustered by shift. Validation "
        "days are held out of the fit, but the final graph is fitted to the days around them; the graph at "
        "decision time is not.",
    )
    return first + second + errors_by_day(study)


def errors_by_day(study: CovidResults) -> str:
    import pandas as pd

    errors = prediction_errors(study)
    days = validation_days(len(study.days))
    rows = [
        {"predictor": label}
        | {f"day {d}": round(float(v), 1) for d, v in zip(days, values.mean(axis=(0, 1)), strict=True)}
        for label, values in errors.items()
    ]
    caption = "Mean absolute error in cases per region, by validation day"
    last = {label: f"{float(values[..., -1].mean()):,.0f}" for label, values in errors.items()}
    note = (
        f"<p>On day {days[-1]} cases double within a week. The error of the 4-day-old value is {last[NAIVE]} cases per "
        f"region. Out of sample the error of the graph is {last[f'{FROM_ALL}, graph at decision time']}, although it "
        "uses the same day's cases of all other regions; only the final graph, which is fitted to the days around it, "
        f"is close, with an error of {last[f'{FROM_ALL}, final graph']}.</p>"
        if not study.simulated
        else ""
    )
    return f'<div class="wide">{html_table(pd.DataFrame(rows), caption=caption, text=("predictor",))}</div>{note}'


def selection(study: CovidResults, draw: Draw) -> str:
    found, at = study.played(LITERAL, "ndc-sem"), (study.plan.picture, 0)
    x = found.x[at]
    ax = selection_figure(
        x, study.regions, forced=forced_choices(x, study.plan.delay), best=top_regions(study.data["expected"][at], 5)
    )
    return draw(
        "selection",
        ax,
        f"Regions chosen by NDC-SEM on each day; {shown_run(study)}. Lines: end of the initialisation (day 21), the "
        "change (day 40), and the first day on which an outcome from after the change is known (day 44). Only black "
        "cells are free choices.",
    )


def rewards(study: CovidResults, draw: Draw) -> str:
    """fig:EstCollectedOverallRew, the same by other scoring rules, and the gain by shift."""
    names = [variant.name for variant in VARIANTS]
    found = {name: study.rewards(LITERAL, name) for name in names}
    change, delay = study.about["change"], study.plan.delay
    first = draw(
        "cumulative-reward",
        days_figure({name: found[name]["own"] for name in names[:2]}, labels=LABELS, change=change),
        "Estimated cumulative overall reward w'z, scored by each policy's own final graph as in the paper, in cases; "
        f"mean and 95% band over {sample_size(study)}, clustered by shift. Delay {delay} days.",
    )
    panels = days_panels(
        {SCORES[s]: {name: found[name][s] for name in names} for s in ("own", "common", "moving", "recorded")},
        labels=LABELS,
        change=change,
        ylabel="cumulative reward (cases)",
    )
    second = draw(
        "cumulative-reward-rulers",
        panels[0],
        "The same by four scoring rules, with both policies in cases and on [0, 1] (rewards are shown in cases). "
        "Scoring by a policy's own graph favours graphs with large weights; the common graph is fitted to all regions "
        "on all days; the moving one is fitted before the shift and shifted along with the regions.",
    )
    gains = {label: gain(study, name, "common") for name, label in COMPARISON_LABELS.items()}
    third = draw(
        "gain-by-shift",
        gain_figure(gains, study.plan.shifts),
        "Reward of NDC-SEM on days 40 to 80 minus that of SEM-UCB at each shift k, by the common graph; mean and 95% "
        f"interval over {study.plan.seeds} seeds.",
    )
    table = reward_table(study)
    table["gain on days 40–80 [95%]"] = spans(
        table.rename(columns={"low": "gain_low", "high": "gain_high"}), "gain", ",.0f"
    )
    table["share of SEM-UCB's"] = [f"{v:+.1%}".replace("-", "−") for v in table["share of SEM-UCB's"]]
    columns = ["comparison", "scored by", "gain on days 40–80 [95%]", "share of SEM-UCB's", "shifts won"]
    caption = f"NDC-SEM minus SEM-UCB, over {sample_size(study)}"
    gain_table = html_table(table[columns], caption=caption, text=("comparison", "scored by"))
    return scale_words(study) + first + f'<div class="wide">{gain_table}</div>' + second + third


def scale_words(study: CovidResults) -> str:
    """Why the two scales differ: how much each policy explores before the change."""
    last = study.about["change"] - 1
    shares = "; ".join(f"{v.label} {best_share(study, v.name, CHOOSING, last).mean():.0%}" for v in VARIANTS)
    return (
        "<p>The exploration bonuses do not scale with the data. In cases, SEM-UCB's is a few cases at most: it hardly "
        "explores, and stays with what was best before the change. On [0, 1] its bonus has the scale of the data, and "
        "ξ = 0.1, which is small in cases, makes NDC-SEM explore most of the time. Share of the five regions with the "
        f"highest expected cases among the choices of days {CHOOSING} to {last}, before the change: {shares}.</p>"
    )


def regret(study: CovidResults, draw: Draw) -> str:
    names = [*(variant.name for variant in VARIANTS), "delayed-oracle", "random"]
    curves = {name: study.played(SEMI, name).regret for name in names}
    figure = draw(
        "semi-synthetic-regret",
        days_figure(curves, labels=LABELS, change=study.about["change"], ylabel="cumulative expected regret (cases)"),
        "Semi-synthetic mode: y is generated by the graph A* of the unmasked data, and only region-specific cases are "
        f"shifted, so choices have effects. Mean and 95% band over {sample_size(study)}, clustered by shift. The "
        "oracle without delay is the line at 0.",
    )
    table = regret_table(study)
    table["policy"] = [LABELS[name] for name in table["policy"]]
    table["final regret [95%]"] = spans(
        table.rename(columns={"low": "regret_low", "high": "regret_high"}), "regret", ",.0f"
    )
    table["best five, days 44–80"] = [f"{v:.0%}" for v in table["best five, days 44–80"]]
    start, blind = (clustered_interval(curves[name][..., len(study.regions) - 1]) for name in ("ndc-sem", "random"))
    words = (
        f"<p>For every policy that learns a graph, {format_ci(start)} of the regret is due to the initialisation: 21 "
        f"of the 80 days are no free choice. Random choices would have cost {format_ci(blind)} on those days.</p>"
    )
    return words + figure + html_table(table[["policy", "final regret [95%]", "best five, days 44–80"]])


def graph(study: CovidResults, draw: Draw) -> str:
    learned = study.played(LITERAL, "ndc-sem").adjacency[study.plan.picture, 0]
    unmasked = study.data["graph_unshifted"].mean(axis=(0, 1))
    cases = study.data["unshifted_overall"].mean(axis=(0, 1, 2))
    panels = new_panels(1, 2, size=(11.5, 6.2))
    titles = ("learned by NDC-SEM, after the last day", "all regions, all days, before the shift")
    for ax, adjacency, title in zip(panels, (learned, unmasked), titles, strict=True):
        map_figure(
            adjacency, study.about["latitude"], study.about["longitude"], study.regions, sizes=cases, ax=ax, title=title
        )
    figure_legend(panels)
    drawn = draw(
        "map",
        panels[0],
        f"The 25 strongest edges, regions at their coordinates. Left: NDC-SEM's final graph, {shown_run(study)}; it "
        "mixes the days before and after the shift. Right: the graph of the unmasked data, mean over all data sets. "
        "An arrow from j to i is the entry A[i, j]. "
        "An edge means that cases of two regions move together, not that one causes the other.",
    )
    return radii(study) + drawn + contributions(study)


def radii(study: CovidResults) -> str:
    """The largest spectral radii; weights are NaN where one is 1 or more."""
    graphs = {LABELS[v.name]: study.played(LITERAL, v.name).adjacency for v in VARIANTS}
    graphs |= {
        "unmasked data": study.data["graph_literal"],
        "unmasked data before the shift": study.data["graph_unshifted"],
    }
    values = "; ".join(f"{escape(name)} {float(spectral_radius(a).max()):.2f}" for name, a in graphs.items())
    return (
        f"<p>Largest spectral radius of a learned graph over {sample_size(study)}: {values}. Rows are bounded by 0.95, "
        "so all are below 1; weights of a graph with a radius of 1 or more would not be reported.</p>"
    )


def contributions(study: CovidResults) -> str:
    table = contribution_table(study)
    share = "chosen by NDC-SEM, days 25–39"
    table[share] = [f"{v:.0%}" for v in table[share]]
    for name, digits in (
        (RECORDED, 1),
        ("region-specific cases a day", 1),
        ("contribution", 1),
        ("weight", 2),
    ):
        table[name] = [f"{v:,.{digits}f}" for v in table[name]]
    caption = (
        "Regions by contribution (weight × expected region-specific cases), before the shift; means over all data sets"
    )
    return f'<div class="wide">{html_table(table, caption=caption, text=("region",))}</div>'


def summary(study: CovidResults) -> str:
    errors = {k: clustered_interval(v) for k, v in later_errors(prediction_errors(study), len(study.days)).items()}
    gains = {name: clustered_interval(gain(study, name, "common")) for name in COMPARISON_LABELS}
    ahead = errors["A y + z, graph at decision time"]
    lines = [f"<li>{escape(COMPARISON_LABELS[name])}: {format_ci(found)} cases</li>" for name, found in gains.items()]
    warning = (
        "<p><b>Simulated outbreak: none of these numbers is about a real epidemic.</b> The record was not "
        "available; this page only shows the pipeline.</p>"
        if study.simulated
        else ""
    )
    return (
        f"{warning}<p>{sample_size(study)}; 95% intervals clustered by shift. Reward of NDC-SEM on days 40 to 80 minus "
        f"that of SEM-UCB, by a common graph:</p><ul>{''.join(lines)}</ul><p>Out of sample the error of the "
        f"learned graph is {format_ci(ahead, 1)} cases per region, that of the last value known at that time "
        f"{format_ci(errors[NAIVE], 1)}.</p>"
    )

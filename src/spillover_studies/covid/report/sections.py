"""The sections of the Covid-19 report: figures, tables and text."""

from collections.abc import Callable
from html import escape

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from spillover.figures.style import figure_legend, new_panels
from spillover.report.tables import html_table, spans
from spillover.types import Array
from spillover_studies.covid import LABELS, LITERAL, SEMI, CovidResults, clustered_interval, validation_days
from spillover_studies.covid.plan import NO_GRAPH, VARIANTS
from spillover_studies.covid.report.figures import (
    days_figure,
    days_panels,
    error_figure,
    gain_figure,
    prediction_panels,
    runs_figure,
    selection_figure,
)
from spillover_studies.covid.report.measures import (
    AT_DECISION,
    CHOOSING,
    COMPARISON_LABELS,
    FINAL,
    FROM_ALL,
    NAIVE,
    NO_GRAPH_AT_ALL,
    RECORDED,
    YESTERDAY,
    best_share,
    detected,
    format_ci,
    format_mean,
    format_number,
    gain,
    later_errors,
    median_run,
    only_after,
    prediction_errors,
    runs_won,
    shifts_won,
    total_gain,
)
from spillover_studies.covid.report.schematic import schematic_figure
from spillover_studies.covid.report.tables import contribution_table, payoff_table, regret_table, reward_table
from spillover_studies.covid.report.text import sample_size, shown_run
from spillover_studies.covid.scores import (
    SCORES,
    forced_choices,
    last_values,
    predict_from_all,
    top_regions,
)
from spillover_studies.covid.worlds import spectral_radius

Draw = Callable[[str, Axes, str], str]
SHOWN_DAYS = (15, 35, 55, 75)  # every second one of the eight validation days


def estimates(study: CovidResults, draw: Draw) -> str:
    """The paper's figure of validation days, and the mean errors."""
    found, at, days = study.played(LITERAL, "ndc-sem"), (study.plan.picture, 0), np.array(SHOWN_DAYS)
    z, y = found.z[at][days - 1], found.y[at][days - 1]
    predicted, last = predict_from_all(found.adjacency[at], z, y), last_values(found.y[at], days, study.plan.delay)
    true, estimated, known = (by_region(study, values, days) for values in (y, predicted, last))
    panels = prediction_panels(true, estimated, SHOWN_DAYS, study.regions, naive=known)
    errors = later_errors(prediction_errors(study), len(study.days))
    below = errors[NAIVE] - errors[f"{FROM_ALL}, {FINAL}"]
    first = draw(
        "error",
        panels[0],
        "The paper's Fig. 3: overall daily new cases (7-day mean) and the prediction A y + z on four validation days, "
        f"with the graph of NDC-SEM after the last day; {shown_run(study)}. Names follow the data: after the shift of "
        "day 40, too, bars have the name of the region whose cases they are. The dots are the last values known at "
        "decision time, 4 days old. A y + z uses the same day's cases of all other regions, which are not known on "
        f"that day. Its error is below that of the dots in {runs_won(below)}.",
    )
    means = {label: clustered_interval(values) for label, values in errors.items()}
    second = draw(
        "prediction-error",
        error_figure(means, (NO_GRAPH_AT_ALL, NAIVE, YESTERDAY)),
        "Mean absolute error of NDC-SEM's predictions on the validation days after the initialisation (25 to 75), "
        f"and without a graph (hollow); mean and 95% interval over {sample_size(study)}, clustered by shift. "
        "Validation days are held out of the fit, but the final graph is fitted to the days around them; the graph at "
        "decision time is not.",
    )
    return first + second + errors_by_day(study)


def by_region(study: CovidResults, values: Array, days: Array) -> Array:
    """Values of the shown run, (days, n), with every region's data in its own place after the shift, too."""
    k = study.plan.shifts[study.plan.picture]
    after = (np.asarray(days) >= study.about["change"])[:, None]
    return np.where(after, np.roll(values, k, axis=-1), values)


def errors_by_day(study: CovidResults) -> str:
    errors = prediction_errors(study)
    days = validation_days(len(study.days))
    rows = [
        {"predictor": label} | {f"day {d}": f"{v:,.1f}" for d, v in zip(days, values.mean(axis=(0, 1)), strict=True)}
        for label, values in errors.items()
    ]
    caption = "Mean absolute error in cases per region, by validation day"
    last = {label: f"{float(values[..., -1].mean()):,.0f}" for label, values in errors.items()}
    total, day = study.data["unshifted_overall"].mean(axis=(0, 1, 3)), int(days[-1])
    note = (
        f"<p>On day {day} overall cases are {total[day - 1] / total[day - 8]:.1f} times those of a week before. The "
        f"error of the 4-day-old value is {last[NAIVE]} cases per region, that of the graph "
        f"{last[f'{FROM_ALL}, {AT_DECISION}']} out of sample and {last[f'{FROM_ALL}, {FINAL}']} with the final graph, "
        "which is fitted to the days around it; both use the same day's cases of all other regions.</p>"
    )
    return f'<div class="wide">{html_table(pd.DataFrame(rows), caption=caption, text=("predictor",))}</div>{note}'


def selection(study: CovidResults, draw: Draw) -> str:
    """The paper's figure of the selected regions, and in how many runs what it says of it holds."""
    found, at = study.played(LITERAL, "ndc-sem"), (study.plan.picture, 0)
    x = found.x[at]
    ax = selection_figure(
        x, study.regions, forced=forced_choices(x, study.plan.delay), best=top_regions(study.data["expected"][at], 5)
    )
    new, hits = only_after(study, "ndc-sem"), detected(study, "ndc-sem")
    here = ", ".join(region for region, chosen in zip(study.regions, new[at], strict=True) if chosen)
    figure = draw(
        "selection",
        ax,
        f"The paper's Fig. 4: regions chosen by NDC-SEM on each day; {shown_run(study)}. Lines: end of the "
        "initialisation (day 21), the change (day 40), and the first day on which an outcome from after the change is "
        "known (day 44). Only black cells are free choices. Names stay where they are, data move on day 40.",
    )
    words = (
        f"<p>In this run {int(new[at].sum())} regions are chosen only after the change (not on days 25 to 39): {here}. "
        f"That some are is so in {runs_won(new.sum(axis=-1))}. Where the optimal regions are known, in the "
        f"semi-synthetic mode, the five chosen most often on days 61 to 80 include "
        f"{format_mean(hits, 1)} of the optimal five, and all of them in {runs_won(hits == 5)}.</p>"
    )
    return figure + words


def rewards(study: CovidResults, draw: Draw) -> str:
    """The paper's figure of one run, the mean over all runs, the same by other scoring rules, and the gain by shift."""
    names = [variant.name for variant in VARIANTS]
    found = {name: study.rewards(LITERAL, name) for name in names}
    change, delay = study.about["change"], study.plan.delay
    total, late = total_gain(study, "cases", "own"), gain(study, "cases", "own")
    at = median_run(total)
    one = draw(
        "one-run-reward",
        runs_figure({name: found[name]["own"] for name in names[:2]}, at, labels=LABELS, change=change),
        "The paper's Fig. 9: trend of estimated cumulative overall reward, in cases, each policy by its own final "
        "graph. More means that the chosen regions account for more cases. Thin lines: each shift, mean of its data "
        f"sets. Thick lines: the median of all {total.size} runs by the difference at the end, "
        f"{format_number(total[at])} (shift k = {study.plan.shifts[at[0]]}, data set {at[1]}). NDC-SEM ends above "
        f"SEM-UCB in {runs_won(total)}, and gains on it after day 40 in {runs_won(late)} and {shifts_won(late)}.",
    )
    first = draw(
        "cumulative-reward",
        days_figure({name: found[name]["own"] for name in names[:2]}, labels=LABELS, change=change),
        f"The same over {sample_size(study)}: mean and 95% band, clustered by shift. Delay {delay} days.",
    )
    panels = days_panels(
        {SCORES[s]: {name: found[name][s] for name in names} for s in ("own", "common", "moving", "recorded")},
        labels=LABELS,
        change=change,
        ylabel="reward so far (cases)",
    )
    second = draw(
        "cumulative-reward-rulers",
        panels[0],
        "The same by four scoring rules, with both policies in cases and on [0, 1] (rewards are shown in cases). "
        "Scoring by a policy's own graph favours graphs with large effects; the common graph is fitted to all regions "
        "on all days; the moving one is fitted before the shift and shifted along with the regions.",
    )
    gains = {label: gain(study, name, "common") for name, label in COMPARISON_LABELS.items()}
    third = draw(
        "gain-by-shift",
        gain_figure(gains, study.plan.shifts),
        "Reward of NDC-SEM on days 40 to 80 minus that of SEM-UCB at each shift k, by the common graph; mean and 95% "
        f"interval over {study.plan.seeds} seeds.",
    )
    return scale_words(study) + one + first + gain_table(study) + second + third


def gain_table(study: CovidResults) -> str:
    """NDC-SEM minus SEM-UCB by every scoring rule."""
    table = reward_table(study)
    spanned = table.rename(columns={"low": "gain_low", "high": "gain_high"})
    table["gain on days 40–80 [95%]"] = spans(spanned, "gain", ",.0f")
    table["share of SEM-UCB's"] = [f"{v:+.1%}".replace("-", "−") for v in table["share of SEM-UCB's"]]
    columns = ["comparison", "scored by", "gain on days 40–80 [95%]", "share of SEM-UCB's", "shifts won", "runs won"]
    caption = f"Reward of NDC-SEM minus that of SEM-UCB, in cases, over {sample_size(study)}"
    return f'<div class="wide">{html_table(table[columns], caption=caption, text=("comparison", "scored by"))}</div>'


def scale_words(study: CovidResults) -> str:
    """Explain why the two scales differ, by how much each policy explores before the change."""
    last = study.about["change"] - 1
    shares = "; ".join(f"{v.label} {best_share(study, v.name, CHOOSING, last).mean():.0%}" for v in VARIANTS)
    return (
        "<p>The exploration bonuses do not scale with the data. In cases, SEM-UCB's is a few cases at most: it hardly "
        "explores, and stays with what was best before the change. On [0, 1] its bonus has the scale of the data, and "
        "ξ = 0.1, which is small in cases, makes NDC-SEM explore most of the time. Share of the five regions with the "
        f"highest expected cases among the choices of days {CHOOSING} to {last}, before the change: {shares}.</p>"
    )


def regret(study: CovidResults, draw: Draw) -> str:
    names = [*(variant.name for variant in VARIANTS), NO_GRAPH.name, "delayed-oracle", "random"]
    curves = {name: study.played(SEMI, name).regret for name in names}
    figure = draw(
        "semi-synthetic-regret",
        days_figure(curves, labels=LABELS, change=study.about["change"], ylabel="cumulative expected regret (cases)"),
        "Regret, the lower the better. Semi-synthetic mode: y is generated by the graph A* of all regions, and only "
        f"region-specific cases are shifted, so choices have effects. Mean and 95% band over {sample_size(study)}, "
        "clustered by shift. The oracle without delay is the line at 0.",
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
    unmasked = study.star().mean(axis=(0, 1))
    cases = study.data["unshifted_overall"].mean(axis=(0, 1, 2))
    panels = new_panels(2, 1, size=(6.2, 12.6))
    titles = ("learned by NDC-SEM, after the last day", "all regions, all days, before the shift")
    for ax, adjacency, title in zip(panels, (learned, unmasked), titles, strict=True):
        schematic_figure(
            adjacency, study.about["latitude"], study.about["longitude"], study.regions, shades=cases, ax=ax,
            title=title,
        )  # fmt: skip
    figure_legend(panels)
    drawn = draw(
        "graph",
        panels[0],
        "The 25 strongest effects, an arrow from j to i for A[i, j]. This is a schematic and not a map: regions lie "
        "roughly as in Italy, north at the top, but circles are moved apart and distances mean nothing. Above: "
        f"NDC-SEM's final graph, {shown_run(study)}; it mixes the days before and after the shift. Below: A*, mean "
        "over all data sets. An effect means that cases of two regions move together, not that one causes the other.",
    )
    return radii(study) + drawn + contributions(study)


def radii(study: CovidResults) -> str:
    """The largest spectral radii; weights are NaN where one is 1 or more."""
    graphs = {LABELS[v.name]: study.played(LITERAL, v.name).adjacency for v in VARIANTS}
    graphs |= {"common graph": study.common(), "A*, before the shift": study.star()}
    values = "; ".join(f"{escape(name)} {float(spectral_radius(a).max()):.2f}" for name, a in graphs.items())
    return (
        f"<p>Largest spectral radius of a learned graph over {sample_size(study)}: {values}. Nothing "
        "bounds it, as in the paper; a decision by a graph with a radius of 1 or more, whose spill-over is infinite, "
        "would be refused, and rewards by it would not be reported.</p>"
    )


def contributions(study: CovidResults) -> str:
    """The table of regions; places are written into the cells that they rank, so that a narrow page has all columns."""
    table = contribution_table(study)
    share = "chosen by NDC-SEM, days 25–39"
    frame = pd.DataFrame(
        {
            "region": [f"{place}. {name}" for place, name in zip(table.iloc[:, 0], table["region"], strict=True)],
            "recorded cases a day, 7-day means of days 1–39 (place)": [
                f"{cases:,.1f} ({place})" for cases, place in zip(table[RECORDED], table["place by cases"], strict=True)
            ],
            "region-specific cases a day": [f"{v:,.1f}" for v in table["region-specific cases a day"]],
            "weight": [f"{v:.2f}" for v in table["weight"]],
            "contribution": [f"{v:,.1f}" for v in table["contribution"]],
            share: [f"{v:.0%}" for v in table[share]],
        }
    )
    caption = (
        "Regions by contribution (weight × expected region-specific cases), before the shift; means over all data sets"
    )
    return f'<div class="wide">{html_table(frame, caption=caption, text=("region",))}</div>'


def payoff(study: CovidResults) -> str:
    """Average payoff and runtimes."""
    table, runs = payoff_table(study), len(study.plan.shifts) * study.plan.seeds
    days = len(study.days)
    frame = pd.DataFrame(
        {
            "policy": [LABELS[name] for name in table["policy"]],
            "replayed, own graph": [format_or_dash(v) for v in table["own"]],
            "replayed, common graph": [format_or_dash(v) for v in table["common"]],
            "semi-synthetic": [format_or_dash(v) for v in table["semi"]],
            "seconds": [f"{v:.1f}" for v in table["seconds"]],
            "ms per decision": [f"{1000 * v / (runs * days):.3f}" for v in table["seconds"]],
        }
    )
    caption = f"Average payoff over all {days} days, in cases a day; seconds of playing all {runs} runs on one core"
    note = (
        "<p>The average payoff is the mean over all days, the initialisation included, of the estimated cases that go "
        "back to the chosen regions; more means that the choices matter more. Without a graph all "
        "weights are 1. Seconds are measured while the study is computed and depend on the machine.</p>"
    )
    return note + f'<div class="wide">{html_table(frame, caption=caption)}</div>'


def format_or_dash(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:,.0f}"

"""The sections on the data and the tuning."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from spillover.report.figures import grid_figure, means_figure
from spillover.report.figures.style import figure_legend, new_axes
from spillover.report.tables import html_table
from spillover.studies.covid import CovidResults
from spillover.studies.covid.report.cases import recorded_panels
from spillover.studies.covid.report.measures import tuning_table
from spillover.studies.covid.report.sections import Draw, shown_run
from spillover.studies.covid.scores import top_regions


def data(study: CovidResults, draw: Draw) -> str:
    recorded = draw(
        "recorded-cases",
        recorded_panels(np.array(study.about["cases"]), study.days, study.regions)[0],
        f"Daily new cases of the 21 regions, {study.days[0]} to {study.days[-1]}, before any preparation.",
    )
    at = (study.plan.picture, 0)
    expected = study.data["expected"][at]
    ax = new_axes(7.0, 8.6)
    means_figure(expected, best=top_regions(expected, 5), names=study.regions, changes=(study.about["change"],), ax=ax)
    ax.set(xlabel="day", ylabel=f"region (each row from 0 to {expected.max():,.0f} cases)")
    rename(ax, {"in the optimal set": "the five highest", "other arms": "other regions"})
    figure_legend([ax])
    means = draw(
        "expected-cases",
        ax,
        "Expected region-specific daily cases: the means of the densities estimated on the lockdown window, changed by "
        f"the shift on day 40; {shown_run(study)}. Filled: the five highest.",
    )
    text = (
        f"<p>{study.about['negative_counts']} negative counts in the lockdown window (corrections by the "
        "authorities) are set to 0 for the densities. Region-specific cases are drawn for 86 days; both series get a "
        "7-day trailing mean, which makes neighbouring days dependent, and both are shifted from day 40 on.</p>"
    )
    return text + recorded + abbreviations(study) + means


def abbreviations(study: CovidResults) -> str:
    """The names of the regions, three in a row."""
    pairs = list(zip(study.regions, study.about["names"], strict=True))
    rows = [[text for pair in pairs[k::7] for text in pair] for k in range(7)]
    columns = [f"{what}{' ' * k}" for k in range(len(rows[0]) // 2) for what in ("short", "region")]
    return html_table(pd.DataFrame(rows, columns=columns), caption="The regions", text=columns)


def rename(ax: Axes, labels: dict[str, str]) -> None:
    """Replace labels in the legend: arms are regions here."""
    for artist in ax.collections:
        artist.set_label(labels.get(str(artist.get_label()), str(artist.get_label())))


def mark_paper(ax: Axes, study: CovidResults) -> None:
    """Mark the cell of the paper's setting, if it is in the grid."""
    plan = study.plan
    if plan.discount in plan.discounts and plan.exploration in plan.explorations:
        at = plan.explorations.index(plan.exploration), plan.discounts.index(plan.discount)
        for color, width in (("white", 3.5), ("black", 1.5)):
            ax.plot(*at, "o", markersize=9, markerfacecolor="none", markeredgecolor=color, markeredgewidth=width,
                    label="_paper", zorder=7)  # fmt: skip


def tuning(study: CovidResults, draw: Draw) -> str:
    body = ""
    for scale, label in (("cases", "in cases"), ("unit", "on [0, 1]")):
        found = study.grid(scale, "reported")
        ax = grid_figure(
            found.rewards["own"].mean(axis=-1), study.plan.discounts, study.plan.explorations,
            measure="estimated cumulative\noverall reward (cases)", smaller_is_better=False, title=f"data {label}",
        )  # fmt: skip
        mark_paper(ax, study)
        body += draw(
            f"grid-{scale}",
            ax,
            f"The paper's grid, data {label}: estimated cumulative overall reward by each cell's own final graph, "
            f"mean over {len(study.plan.shifts)} shifts on the first reported seed; λ = {found.sparsity:g}, from "
            "a third seed of each shift. ○: the paper's cell.",
        )
    table = tuning_table(study)
    best = "share of the grid's best"
    table[best] = [f"{v:.0%}" for v in table[best]]
    text = (
        "<p>As in the paper, a cell is scored on the run that is reported, by the graph that it learned itself. The "
        "table shows the value of each choice on the reported seed, scored by the graph that moves with the shift, "
        "which no cell can inflate. Each choice uses one seed of each shift: the first reported one, or one that is "
        "not reported.</p>"
    )
    paper = f"γ = {study.plan.discount:g}, ξ = {study.plan.exploration:g}"
    caption = f"The best cell by each criterion; the paper's is {paper}"
    best_cells = html_table(table, caption=caption, text=("scale", "seed", "chosen by"))
    return text + body + f'<div class="wide">{best_cells}</div>'

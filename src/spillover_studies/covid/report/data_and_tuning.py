"""The sections on the data and the tuning."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from spillover.figures import grid_figure, means_figure
from spillover.figures.style import WIDTH, figure_legend, new_axes, new_panels
from spillover.report.tables import html_table
from spillover_studies.covid import CovidResults
from spillover_studies.covid.play import ONE_RUN
from spillover_studies.covid.report.figures import recorded_panels
from spillover_studies.covid.report.measures import (
    SCALE_LABELS,
    all_single_ranks,
    in_grid,
    single_winners,
)
from spillover_studies.covid.report.sections import Draw
from spillover_studies.covid.report.tables import tuning_table
from spillover_studies.covid.report.text import shown_run
from spillover_studies.covid.scores import top_regions


def data(study: CovidResults, draw: Draw) -> str:
    recorded = draw(
        "recorded-cases",
        recorded_panels(np.array(study.about["cases"]), study.days, study.regions)[0],
        f"The paper's Fig. 7: daily new cases of the 21 regions, {study.days[0]} to {study.days[-1]}, before any "
        "preparation.",
    )
    at = (study.plan.picture, 0)
    expected = study.data["expected"][at]
    ax = new_axes(6.2, 8.6)
    means_figure(expected, best=top_regions(expected, 5), names=study.regions, changes=(study.about["change"],), ax=ax)
    ax.set(xlabel="day", ylabel=f"region (each row from 0 to {expected.max():,.0f} cases)")
    for value in ax.texts:
        value.set_fontsize(8)  # to be read on a narrow screen
    rename(ax, {"in the optimal set": "the five highest", "other arms": "other regions"})
    figure_legend([ax])
    means = draw(
        "expected-cases",
        ax,
        "The paper's Fig. 8: expected region-specific daily cases, the means of the densities estimated on the "
        f"lockdown window, changed by the shift on day 40; {shown_run(study)}. Filled: the five highest.",
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
    return html_table(pd.DataFrame(rows, columns=columns), caption="The regions (the paper's Table II)", text=columns)


def rename(ax: Axes, labels: dict[str, str]) -> None:
    """Replace labels in the legend: arms are regions here."""
    for artist in ax.collections:
        artist.set_label(labels.get(str(artist.get_label()), str(artist.get_label())))


def tuning(study: CovidResults, draw: Draw) -> str:
    """The grid search on one run as in the paper, beside the mean over the shifts."""
    body = ""
    for scale, label in SCALE_LABELS.items():
        panels = new_panels(2, 1, size=(WIDTH, 12.4))
        grids = {
            "one run, as in the paper": study.grid(scale, ONE_RUN),
            f"mean over {len(study.plan.shifts)} shifts": study.grid(scale, "reported"),
        }
        for ax, (title, found) in zip(panels, grids.items(), strict=True):
            grid_figure(
                found.rewards["own"].mean(axis=-1), study.plan.discounts, study.plan.explorations,
                measure="estimated reward (cases)", smaller_is_better=False, title=f"{title}, data {label}", ax=ax,
                circled=(study.plan.discount, study.plan.exploration),
            )  # fmt: skip
        body += draw(
            f"grid-{scale}",
            panels[0],
            f"The paper's grid, data {label}: estimated cumulative overall reward by each cell's own final graph. "
            f"Above: {shown_run(study)}, λ chosen online as in the paper. Below: mean over the shifts, on the first "
            f"reported seed of each; λ = {study.grid_sparsity(scale):g}, from a third seed of each shift. "
            f"★: the best cell; ○: the paper's.{single_words(study, scale)}",
        )
    table = tuning_table(study)
    table["discount γ"] = [f"{v:.2f}" for v in table["discount γ"]]
    table["exploration ξ"] = [f"{v:.0e}" for v in table["exploration ξ"]]
    table["value on the reported seed"] = [f"{v:,.0f}" for v in table["value on the reported seed"]]
    best = "share of the grid's best"
    table[best] = [f"{v:.0%}" for v in table[best]]
    text = (
        "<p>The paper runs every cell on one run, the one that it reports, and takes the cell with the highest reward "
        "by the graph that the cell learned itself. One run decides little: the winning cell changes from run to run. "
        "The table shows the value of each choice on the reported seed, scored by the graph that moves with the shift, "
        "which no cell can inflate. Each choice uses one seed of each shift: the first reported one, or one that is "
        "not reported.</p>"
    )
    paper = f"γ = {study.plan.discount:g}, ξ = {study.plan.exploration:g}"
    caption = f"The best cell by each criterion, over the shifts; the paper's is {paper}"
    table = table.rename(columns={"discount γ": "γ", "exploration ξ": "ξ"})
    best_cells = html_table(table, caption=caption, text=("scale", "seed", "chosen by"))
    return text + body + f'<div class="wide">{best_cells}</div>'


def single_words(study: CovidResults, scale: str) -> str:
    """Count how often a search on a single run would choose the paper's cell."""
    if not in_grid(study):
        return ""
    ranks = all_single_ranks(study, scale)
    return (
        f" On {len(ranks)} single runs {single_winners(study, scale)} different cells win, and the paper's wins on "
        f"{int((ranks == 1).sum())}; its median place is {np.median(ranks):.0f}."
    )

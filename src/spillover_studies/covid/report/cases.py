"""Cases by region: recorded and predicted ones, and the errors of the predictions."""

import textwrap
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter, MonthLocator, date2num
from matplotlib.ticker import MaxNLocator

from spillover import validate
from spillover.figures.style import figure_legend, figure_of, hide_spines, new_axes, new_panels
from spillover.metrics import Interval
from spillover.types import Array

TRUE, PREDICTED, LAST = "#BDBDBD", "#D55E00", "#000000"


def recorded_panels(
    cases: Array, days: Sequence[date], regions: Sequence[str], *, axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """Daily new cases of every region, one panel each with its own scale (Fig. 7).

    cases: (days, regions). On one scale only Lombardia would be visible.
    """
    shape = np.shape(cases)
    validate.require(shape == (len(days), len(regions)), "shape of cases", shape, f"({len(days)}, {len(regions)})")
    columns = 3  # on a narrow screen, too, the figure can be read
    rows = -(-len(regions) // columns)
    panels = list(axes) if axes is not None else new_panels(rows, columns, size=(6.2, 1.35 * rows), sharex=True)
    at = date2num(list(days))  # type: ignore[no-untyped-call]
    for ax, name, values in zip(panels, regions, np.asarray(cases).T, strict=False):
        ax.fill_between(at, 0, values, color="#56B4E9", alpha=0.5, linewidth=0, step="mid")
        ax.plot(at, values, color="#0072B2", linewidth=1.0, drawstyle="steps-mid", label=f"_{name}")
        ax.set_title(name, fontsize="small", pad=3)
        ax.set_ylim(0, 1.08 * max(float(values.max()), 1.0))
        ax.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        ax.tick_params(labelsize=8)
        ax.xaxis.set_major_locator(MonthLocator())  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_formatter(DateFormatter("%b"))  # type: ignore[no-untyped-call]
        hide_spines(ax)
    for ax in panels[len(regions) :]:
        ax.set_visible(False)
    if axes is None:
        years = sorted({day.year for day in days})
        figure_of(panels[0]).supxlabel(
            "months (ticks on the first day), " + "–".join(map(str, years)), fontsize="small"
        )
        figure_of(panels[0]).supylabel("daily new cases (each panel has its own scale)", fontsize="small")
    return panels


def prediction_panels(
    true: Array,
    predicted: Array,
    days: Sequence[int],
    regions: Sequence[str],
    *,
    naive: Array | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """True against predicted overall cases of every region, one panel for each validation day (Fig. 3).

    true, predicted, naive: (days, regions); naive is marked by dots: what was last known of the region at that time.
    """
    true, predicted = np.asarray(true, float), np.asarray(predicted, float)
    shape = (len(days), len(regions))
    validate.require(true.shape == shape == predicted.shape, "shape of predicted", predicted.shape, str(shape))
    panels = list(axes) if axes is not None else new_panels(len(days), 1, size=(6.2, 2.5 * len(days)))
    at = np.arange(len(regions))
    for k, (ax, day) in enumerate(zip(panels, days, strict=True)):
        ax.bar(at - 0.2, true[k], width=0.4, color=TRUE, edgecolor="black", linewidth=0.5, label="true")
        ax.bar(
            at + 0.2, predicted[k], width=0.4, color=PREDICTED, edgecolor="black", linewidth=0.5, hatch="////",
            label="predicted with the learned graph",
        )  # fmt: skip
        if naive is not None:
            ax.plot(at, naive[k], ".", color=LAST, markersize=6, label="last value known at decision time")
        ax.set_xticks(at, list(regions), rotation=90, fontsize=8)
        ax.set_title(f"day {day}", fontsize="medium")
        ax.set_ylabel("cases")
        hide_spines(ax)
    if axes is None:
        figure_legend(panels)
    return panels


def error_figure(
    errors: Mapping[str, Interval],
    naive: Sequence[str],
    *,
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "mean absolute error on validation days (cases per region)",
) -> Axes:
    """Prediction errors with 95% intervals, one row for each predictor, the naive ones hollow."""
    validate.require(len(errors) > 0, "errors", errors, "at least one")
    target = ax or new_axes(6.2, 1.3 + 0.42 * len(errors))
    for row, (name, (mean, low, high)) in enumerate(errors.items()):
        color = LAST if name in naive else "#0072B2"
        at = float(mean)
        if np.isfinite(low):
            target.plot([float(low), float(high)], [row, row], color=color, linewidth=1.8, label="_interval")
        face = "white" if name in naive else color
        target.plot(at, row, marker="s", markersize=6.5, color=color, markerfacecolor=face, linestyle="", label="_mean")
        target.annotate(
            f"{at:,.1f}", (1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize="small",
            annotation_clip=False,
        )  # fmt: skip
    target.set_xlim(left=0)
    target.set_yticks(np.arange(len(errors)), [textwrap.fill(name, 24) for name in errors])
    target.set_ylim(len(errors) - 0.4, -0.6)
    target.tick_params(axis="y", length=0)
    target.set(xlabel=xlabel, title=title)
    target.grid(axis="x", color="0.9", linewidth=0.7)
    target.set_axisbelow(True)
    target.spines[["top", "right", "left"]].set_visible(False)
    return target

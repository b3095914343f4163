"""Figures of the study: curves over the days, gains, cases by region, errors of predictions, chosen regions."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.dates import DateFormatter, MonthLocator, date2num
from matplotlib.patches import Circle, FancyArrowPatch, Patch, Rectangle
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from matplotlib.transforms import Bbox

from spillover import validate
from spillover.figures.flows import Line, Page, best_bend, curves
from spillover.figures.style import (
    COLORS,
    Style,
    draw_band,
    draw_grid_lines,
    figure_legend,
    figure_of,
    hide_spines,
    new_axes,
    new_panels,
    numbered_style,
    sparse_markers,
    styles_for,
)
from spillover.metrics import Interval, mean_interval
from spillover.types import Array, BoolArray
from spillover_studies.covid import clustered_interval

# policies on [0, 1] have other colours and lines than the same policies in cases
OWN_STYLES = {
    "ndc-sem-unit": Style(COLORS[5], (0, (1.2, 1.2)), "v", "||"),
    "sem-ucb-unit": Style(COLORS[4], (0, (6, 1.5, 1.2, 1.5)), "D", "xx"),
}
REWARD = "estimated cumulative overall reward (cases)"


def covid_styles(names: Iterable[str]) -> dict[str, Style]:
    """The built-in styles, and those of policies on [0, 1]."""
    found = styles_for(names)
    return found | {name: style for name, style in OWN_STYLES.items() if name in found}


def days_figure(
    curves: Mapping[str, Array],
    *,
    labels: Mapping[str, str] | None = None,
    change: int = 40,
    ylabel: str = REWARD,
    ax: Axes | None = None,
    title: str = "",
    styles: Mapping[str, Style] | None = None,
) -> Axes:
    """One line for each policy over the days, with 95% bands clustered by shift; a vertical line at the change.

    curves: (shifts, seeds, days) by the name of the policy. Axes that are given get no legend.
    """
    validate.require(len(curves) > 0, "curves", curves, "at least one")
    styles = {**covid_styles(curves), **(styles or {})}
    target = ax or new_axes(6.2, 4.0)
    for k, (name, values) in enumerate(curves.items()):
        days, label = np.arange(1, values.shape[-1] + 1), (labels or {}).get(name, name)
        draw_band(target, days, clustered_interval(values), styles[name], label, line=k, lines=len(curves))
    finish_days(target, len(days), change, ylabel, title)
    if ax is None:
        figure_legend([target])
    return target


def finish_days(ax: Axes, days: int, change: int, ylabel: str, title: str = "") -> None:
    """The axes of curves over the days."""
    mark_change(ax, change)
    ax.set_xlim(1, days)
    ax.set(xlabel="day", ylabel=ylabel, title=title)
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    hide_spines(ax)


def runs_figure(
    curves: Mapping[str, Array],
    run: tuple[int, int],
    *,
    labels: Mapping[str, str] | None = None,
    change: int = 40,
) -> Axes:
    """A thin line for each shift, the mean of its seeds, and a thick one for a single run, for each policy.

    curves: (shifts, seeds, days) by the name of the policy; run: shift and seed of the single run.
    """
    validate.require(len(curves) > 0, "curves", curves, "at least one")
    styles, target = covid_styles(curves), new_axes(6.2, 4.6)
    for k, (name, values) in enumerate(curves.items()):
        style, label = styles[name], (labels or {}).get(name, name)
        days = np.arange(1, values.shape[-1] + 1)
        means = values.mean(axis=1)
        for row, line in enumerate(means):
            shown = f"{label}, each shift" if row == 0 else "_shift"
            target.plot(days, line, label=shown, color=style.color, alpha=0.35, linewidth=0.8)
        target.plot(
            days, values[run], label=f"{label}, median run", color=style.color, linestyle=style.linestyle,
            marker=style.marker, markersize=5, markevery=sparse_markers(len(days), k, len(curves)), linewidth=2.2,
        )  # fmt: skip
    finish_days(target, len(days), change, REWARD)
    figure_legend([target])
    return target


def days_panels(
    studies: Mapping[str, Mapping[str, Array]],
    *,
    labels: Mapping[str, str] | None = None,
    change: int = 40,
    ylabel: str = "cumulative reward (cases)",
) -> list[Axes]:
    """`days_figure` for several studies below each other, each on its own scale; the mapping's keys are the titles."""
    validate.require(len(studies) > 0, "studies", studies, "at least one")
    styles = covid_styles(name for curves in studies.values() for name in curves)
    panels = new_panels(len(studies), 1, size=(6.2, 2.9 * len(studies)))
    for ax, (title, drawn) in zip(panels, studies.items(), strict=True):
        days_figure(drawn, labels=labels, change=change, ylabel=ylabel, ax=ax, title=title, styles=styles)
    figure_legend(panels)
    return panels


def mark_change(ax: Axes, change: int) -> None:
    """A dotted line at the change of the regions, as in the paper."""
    ax.axvline(change, color="0.35", linewidth=1.1, linestyle=":", zorder=0, label=f"change, day {change}")


def gain_figure(gains: Mapping[str, Array], shifts: Sequence[int]) -> Axes:
    """The gain at each shift k, mean and 95% interval over the seeds; one series for each comparison.

    gains: (shifts, seeds) by the name of the comparison.
    """
    validate.require(len(gains) > 0, "gains", gains, "at least one")
    target = new_axes(6.2, 4.4)
    target.axhline(0, color="black", linewidth=1.0, label="_zero", zorder=1)
    for k, (name, values) in enumerate(gains.items()):
        shape, style = np.shape(values), numbered_style(k)
        validate.require(shape[0] == len(shifts), f"shape of gains[{name!r}]", shape, f"({len(shifts)}, seeds)")
        mean, low, high = mean_interval(values, axis=1)
        target.errorbar(
            np.asarray(shifts) + 0.22 * (k - (len(gains) - 1) / 2), mean, yerr=np.nan_to_num([mean - low, high - mean]),
            label=name, color=style.color, marker=style.marker, markersize=5, linestyle="",
            capsize=2, elinewidth=1.1,
        )  # fmt: skip
    target.set_xticks(list(shifts)[:: max(1, len(shifts) // 10)])
    target.set(xlabel="shift k", ylabel="gain of NDC-SEM over SEM-UCB,\ndays 40 to 80 (cases)")
    target.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    draw_grid_lines(target, "y")
    hide_spines(target)
    figure_legend([target])
    return target


def rules_figure(
    measures: Mapping[str, Mapping[str, Mapping[str, Array]]], *, labels: Mapping[str, str] | None = None
) -> list[Axes]:
    """Each policy under each rule, mean and 95% interval clustered by shift, one panel for each measure.

    measures: (shifts, seeds) by the title of the measure, the name of the rule and that of the policy.
    """
    validate.require(len(measures) > 0, "measures", measures, "at least one")
    names = list(next(iter(next(iter(measures.values())).values())))
    size = (6.2, (1.0 + 0.5 * len(names)) * len(measures))
    panels = new_panels(len(measures), 1, size=size)
    for ax, (title, rules) in zip(panels, measures.items(), strict=True):
        for k, (rule, policies) in enumerate(rules.items()):
            style = numbered_style(k)
            mean, low, high = np.array([clustered_interval(policies[name]) for name in names]).T
            ax.errorbar(
                mean, np.arange(len(names)) + 0.24 * (k - (len(rules) - 1) / 2),
                xerr=np.nan_to_num([mean - low, high - mean]), label=rule, color=style.color, marker=style.marker,
                markersize=5.5, linestyle="", capsize=2, elinewidth=1.2,
            )  # fmt: skip
        ax.set_yticks(np.arange(len(names)), [(labels or {}).get(name, name) for name in names])
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(6))
        ax.set(xlabel=title)
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        draw_grid_lines(ax, "x")
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
    figure_legend(panels)
    return panels


TRUE, PREDICTED, LAST = "#BDBDBD", "#D55E00", "#000000"


def recorded_panels(cases: Array, days: Sequence[date], regions: Sequence[str]) -> list[Axes]:
    """Daily new cases of every region, one panel each with its own scale (Fig. 7).

    cases: (days, regions). On one scale only Lombardia would be visible.
    """
    shape = np.shape(cases)
    validate.require(shape == (len(days), len(regions)), "shape of cases", shape, f"({len(days)}, {len(regions)})")
    columns = 3  # on a narrow screen, too, the figure can be read
    rows = -(-len(regions) // columns)
    panels = new_panels(rows, columns, size=(6.2, 1.35 * rows), sharex=True)
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
    figure, years = figure_of(panels[0]), sorted({day.year for day in days})
    figure.supxlabel("months (ticks on the first day), " + "–".join(map(str, years)), fontsize="small")
    figure.supylabel("daily new cases (each panel has its own scale)", fontsize="small")
    return panels


def prediction_panels(
    true: Array, predicted: Array, days: Sequence[int], regions: Sequence[str], *, naive: Array
) -> list[Axes]:
    """True against predicted overall cases of every region, one panel for each validation day (Fig. 3).

    true, predicted, naive: (days, regions); naive is marked by dots: what was last known of the region at that time.
    """
    true, predicted = np.asarray(true, float), np.asarray(predicted, float)
    shape = (len(days), len(regions))
    validate.require(true.shape == shape == predicted.shape, "shape of predicted", predicted.shape, str(shape))
    panels = new_panels(len(days), 1, size=(6.2, 2.5 * len(days)))
    at = np.arange(len(regions))
    for k, (ax, day) in enumerate(zip(panels, days, strict=True)):
        ax.bar(at - 0.2, true[k], width=0.4, color=TRUE, edgecolor="black", linewidth=0.5, label="true")
        ax.bar(
            at + 0.2, predicted[k], width=0.4, color=PREDICTED, edgecolor="black", linewidth=0.5, hatch="////",
            label="predicted with the learned graph",
        )  # fmt: skip
        ax.plot(at, naive[k], ".", color=LAST, markersize=6, label="last value known at decision time")
        ax.set_xticks(at, list(regions), rotation=90, fontsize=8)
        ax.set_title(f"day {day}", fontsize="medium")
        ax.set_ylabel("cases")
        hide_spines(ax)
    figure_legend(panels)
    return panels


def error_figure(errors: Mapping[str, Interval], naive: Sequence[str]) -> Axes:
    """Prediction errors with 95% intervals, one row for each predictor, the naive ones hollow."""
    validate.require(len(errors) > 0, "errors", errors, "at least one")
    target = new_axes(6.2, 1.3 + 0.42 * len(errors))
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
    target.set(xlabel="mean absolute error on validation days (cases per region)")
    draw_grid_lines(target, "x")
    target.spines[["top", "right", "left"]].set_visible(False)
    return target


CHOSEN, STARTING, FORCED, BEST = "#1A1A1A", "#B5B5B5", "#E69F00", "#0072B2"


def selection_figure(
    x: BoolArray,
    regions: Sequence[str],
    *,
    forced: BoolArray,
    best: BoolArray | None = None,
    starting: int = 21,
    lines: Sequence[int] = (21, 40, 44),
) -> Axes:
    """Regions x days, one rectangle for each chosen region (Fig. 4).

    x, forced, best: (days, regions). Grey: days of the initialisation. Orange, hatched: forced choices of regions
    without any outcome. Black: free choices. Blue frames: the optimal set. lines: last day of the initialisation, day
    of the change, first day on which an outcome from after the change can be known.
    """
    shape = np.shape(x)
    validate.require(shape[1:] == (len(regions),), "shape of x", shape, f"(days, {len(regions)})")
    days = shape[0]
    target = new_axes(6.2, 1.9 + 0.19 * len(regions))
    first = np.arange(1, days + 1)[:, None] <= starting
    kinds = ((x & first, STARTING, ""), (x & forced & ~first, FORCED, "/////"), (x & ~forced & ~first, CHOSEN, ""))
    for mask, color, hatch in kinds:
        boxes = [Rectangle((t + 0.57, i - 0.43), 0.86, 0.86) for t, i in np.argwhere(mask)]
        target.add_collection(
            PatchCollection(boxes, facecolor=color, edgecolor="black", linewidth=0.2, hatch=hatch, label="_kind")
        )
    if best is not None:
        outline(target, best)
    for day in lines:
        target.axvline(day + (0.5 if day == starting else -0.5), color="#D55E00", linewidth=1.3, linestyle="--")
    target.set_xlim(0.4, days + 0.6)
    target.set_ylim(len(regions) - 0.4, -0.6)
    target.set_yticks(np.arange(len(regions)), list(regions), fontsize=8)
    target.set_xticks(sorted({1, 10, 30, 55, 70, days, *lines}))
    target.set(xlabel="day")
    target.tick_params(axis="y", length=0)
    hide_spines(target)
    add_legend(target, best is not None)
    return target


def outline(ax: Axes, best: BoolArray) -> None:
    """A frame around each period in which a region is one of the best."""
    for i in range(best.shape[1]):
        padded = np.concatenate([[0], best[:, i].astype(np.int8), [0]])
        starts, ends = np.flatnonzero(np.diff(padded) == 1), np.flatnonzero(np.diff(padded) == -1)
        for start, end in zip(starts, ends, strict=True):
            frame: dict[str, Any] = {"fill": False, "edgecolor": BEST, "linewidth": 1.6, "zorder": 4, "label": "_best"}
            ax.add_patch(Rectangle((start + 0.5, i - 0.5), float(end - start), 1, **frame))


def add_legend(ax: Axes, with_best: bool) -> None:
    entries = [
        Patch(facecolor=CHOSEN, edgecolor="black", label="chosen"),
        Patch(facecolor=STARTING, edgecolor="black", label="initialisation: no free choice"),
        Patch(facecolor=FORCED, edgecolor="black", hatch="/////", label="forced: no outcome of the region yet"),
    ]
    if with_best:
        label = "the five with the highest expected region-specific cases"
        entries.append(Patch(facecolor="white", edgecolor=BEST, linewidth=1.6, label=label))
    figure = figure_of(ax)
    figure.legend(handles=entries, loc="outside lower center", ncols=1, frameon=False, fontsize="small")


EDGE = "#D55E00"
RADIUS = 20.0  # of a circle, in the units of the schematic: it holds a short name
GAP = 26.0  # between the rims of two circles: room for arrows
WIDTH = 520.0  # of the schematic
STEPS = 400  # of moving circles apart


def schematic_figure(
    adjacency: Array,
    latitude: Array,
    longitude: Array,
    regions: Sequence[str],
    *,
    shades: Array | None = None,
    strongest: int = 25,
    shade_label: str = "mean daily cases",
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """Regions in circles roughly where they lie, the strongest edges as arrows from j to i, wider for larger weights.

    adjacency: (n, n), adjacency[i, j] the effect of region j on region i. shades: (n,), darker circles for larger
    values. Names are in the circles and arrows bend around circles, so no arrow crosses a name where there is a way.
    """
    n = len(regions)
    found = np.asarray(adjacency, float)
    validate.require(found.shape == (n, n), "shape of adjacency", found.shape, f"({n}, {n})")
    place = places(np.asarray(latitude, float), np.asarray(longitude, float))
    target = ax or new_axes(6.2, 6.8)
    values = np.zeros(n) if shades is None else np.asarray(shades, float)
    scale = ScalarMappable(Normalize(0, max(float(values.max()), 1e-9)), "Blues")
    circles = [
        Circle((float(x), float(y)), RADIUS, facecolor=scale.to_rgba(value), edgecolor="0.25", zorder=3)
        for (x, y), value in zip(place, values, strict=True)
    ]
    for circle, name, value in zip(circles, regions, values, strict=True):
        target.add_patch(circle)
        color = "white" if value > 0.6 * scale.norm.vmax else "black"  # type: ignore[operator]
        x, y = circle.center
        target.text(x, y, name, ha="center", va="center", fontsize=8, color=color, zorder=4)
    draw_arrows(target, found, place, circles, strongest)
    low, high = frame_of(place).get_points()
    target.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), title=title)
    target.set_aspect("equal")
    target.set_axis_off()
    count = min(strongest, int((found > 0).sum()))
    target.plot([], [], color=EDGE, linewidth=2, label=f"the {count} strongest effects, wider for stronger ones")
    if shades is not None:
        bar = figure_of(target).colorbar(scale, ax=target, label=shade_label, shrink=0.5, pad=0.01)
        bar.outline.set_visible(False)
    if ax is None:
        figure_legend([target])
    return target


def frame_of(place: Array) -> Bbox:
    """The frame around all circles, with room for arrows."""
    margin = RADIUS + GAP
    return Bbox([place.min(axis=0) - margin, place.max(axis=0) + margin])


def places(latitude: Array, longitude: Array) -> Array:
    """Place circles, (n, 2): as on a map, then moved apart until none overlap."""
    place = np.column_stack([longitude * np.cos(np.radians(latitude.mean())), latitude])
    extent = np.ptp(place, axis=0)
    place = (place - place.min(axis=0)) * WIDTH / max(float(extent[0]), 1e-9)
    for _ in range(STEPS):
        apart = place[:, None] - place
        far = np.hypot(apart[..., 0], apart[..., 1])
        np.fill_diagonal(far, np.inf)
        short = np.maximum(2 * RADIUS + GAP - far, 0.0)
        if not short.any():
            break
        push = 0.5 * short / np.maximum(far, 1e-9)
        place = place + (push[..., None] * apart).sum(axis=1)
    return np.asarray(place)


def draw_arrows(ax: Axes, found: Array, place: Array, circles: Sequence[Circle], strongest: int) -> None:
    """The strongest edges, the strongest first: the later ones bend around what is there."""
    page = Page(place, np.full(len(place), RADIUS), (), frame_of(place))
    heaviest = max(float(found.max()), 1e-9)
    drawn: list[Line] = []
    for flat in np.argsort(found, axis=None, kind="stable")[::-1][:strongest]:
        i, j = (int(k) for k in np.unravel_index(int(flat), found.shape))
        if found[i, j] <= 0:
            break
        width = 0.6 + 2.4 * found[i, j] / heaviest
        # an edge and its reverse bend to different sides
        bend = best_bend((j, i), 0.12, width, page, drawn, one_side=bool(found[j, i] > 0))
        drawn.append(Line((j, i), curves(page, (j, i), np.array([bend]))[0], width))
        ax.add_patch(
            FancyArrowPatch(
                circles[j].center,
                circles[i].center,
                patchA=circles[j],
                patchB=circles[i],
                arrowstyle="-|>",
                connectionstyle=f"arc3,rad={bend}",
                mutation_scale=6 + 2 * width,
                linewidth=width,
                color=EDGE,
                alpha=0.85,
                shrinkA=0,
                shrinkB=0,
                zorder=2,
                label=f"_A[{i},{j}]",
            )
        )

"""Curves over the days with bands over the shifts, and the gain of one policy over another by shift."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from spillover import validate
from spillover.figures.style import (
    COLORS,
    Style,
    figure_legend,
    hide_spines,
    new_axes,
    new_panels,
    numbered_style,
    sparse_markers,
    styles_for,
)
from spillover.metrics import mean_interval
from spillover.types import Array
from spillover_studies.covid import clustered_interval

# policies on [0, 1] have other colours and lines than the same policies in cases
OWN_STYLES = {
    "ndc-sem-unit": Style(COLORS[5], (0, (1.2, 1.2)), "v", "||"),
    "sem-ucb-unit": Style(COLORS[4], (0, (6, 1.5, 1.2, 1.5)), "D", "xx"),
}


def covid_styles(names: Iterable[str]) -> dict[str, Style]:
    """The built-in styles, and those of policies on [0, 1]."""
    found = styles_for(names)
    return found | {name: style for name, style in OWN_STYLES.items() if name in found}


def days_figure(
    curves: Mapping[str, Array],
    *,
    labels: Mapping[str, str] | None = None,
    change: int = 40,
    ylabel: str = "estimated cumulative overall reward (cases)",
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
        style = styles[name]
        mean, low, high = clustered_interval(values)
        days = np.arange(1, len(mean) + 1)
        target.plot(
            days, mean, label=(labels or {}).get(name, name), color=style.color, linestyle=style.linestyle,
            marker=style.marker, markersize=4.5, markevery=sparse_markers(len(mean), k, len(curves)), linewidth=1.6,
        )  # fmt: skip
        target.fill_between(days, low, high, color=style.color, alpha=0.18, linewidth=0)
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
    ylabel: str = "estimated cumulative overall reward (cases)",
    ax: Axes | None = None,
) -> Axes:
    """A thin line for each shift, the mean of its seeds, and a thick one for a single run, for each policy.

    curves: (shifts, seeds, days) by the name of the policy; run: shift and seed of the single run.
    """
    validate.require(len(curves) > 0, "curves", curves, "at least one")
    styles, target = covid_styles(curves), ax or new_axes(6.2, 4.6)
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
    finish_days(target, len(days), change, ylabel)
    if ax is None:
        figure_legend([target])
    return target


def days_panels(
    studies: Mapping[str, Mapping[str, Array]],
    *,
    labels: Mapping[str, str] | None = None,
    change: int = 40,
    ylabel: str = "cumulative reward (cases)",
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """`days_figure` for several studies below each other, each on its own scale; the mapping's keys are the titles."""
    validate.require(len(studies) > 0, "studies", studies, "at least one")
    styles = covid_styles(name for curves in studies.values() for name in curves)
    panels = list(axes) if axes is not None else new_panels(len(studies), 1, size=(6.2, 2.9 * len(studies)))
    for ax, (title, curves) in zip(panels, studies.items(), strict=True):
        days_figure(curves, labels=labels, change=change, ylabel=ylabel, ax=ax, title=title, styles=styles)
    if axes is None:
        figure_legend(panels)
    return panels


def mark_change(ax: Axes, change: int) -> None:
    """A dotted line at the change of the regions, as in the paper."""
    ax.axvline(change, color="0.35", linewidth=1.1, linestyle=":", zorder=0, label=f"change, day {change}")


def gain_figure(
    gains: Mapping[str, Array],
    shifts: Sequence[int],
    *,
    labels: Mapping[str, str] | None = None,
    ylabel: str = "gain of NDC-SEM over SEM-UCB,\ndays 40 to 80 (cases)",
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """The gain at each shift k, mean and 95% interval over the seeds; one series for each comparison.

    gains: (shifts, seeds) by the name of the comparison.
    """
    validate.require(len(gains) > 0, "gains", gains, "at least one")
    target = ax or new_axes(6.2, 4.4)
    target.axhline(0, color="black", linewidth=1.0, label="_zero", zorder=1)
    for k, (name, values) in enumerate(gains.items()):
        shape, style = np.shape(values), numbered_style(k)
        validate.require(shape[0] == len(shifts), f"shape of gains[{name!r}]", shape, f"({len(shifts)}, seeds)")
        mean, low, high = mean_interval(values, axis=1)
        target.errorbar(
            np.asarray(shifts) + 0.22 * (k - (len(gains) - 1) / 2), mean, yerr=np.nan_to_num([mean - low, high - mean]),
            label=(labels or {}).get(name, name), color=style.color, marker=style.marker, markersize=5, linestyle="",
            capsize=2, elinewidth=1.1,
        )  # fmt: skip
    target.set_xticks(list(shifts)[:: max(1, len(shifts) // 10)])
    target.set(xlabel="shift k", ylabel=ylabel, title=title)
    target.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    target.grid(axis="y", color="0.9", linewidth=0.7)
    target.set_axisbelow(True)
    hide_spines(target)
    if ax is None:
        figure_legend([target])
    return target


def rules_figure(
    measures: Mapping[str, Mapping[str, Mapping[str, Array]]],
    *,
    labels: Mapping[str, str] | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Each policy under each rule, mean and 95% interval clustered by shift, one panel for each measure.

    measures: (shifts, seeds) by the title of the measure, the name of the rule and that of the policy.
    """
    validate.require(len(measures) > 0, "measures", measures, "at least one")
    names = list(next(iter(next(iter(measures.values())).values())))
    size = (6.2, (1.0 + 0.5 * len(names)) * len(measures))
    panels = list(axes) if axes is not None else new_panels(len(measures), 1, size=size)
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
        ax.grid(axis="x", color="0.9", linewidth=0.7)
        ax.set_axisbelow(True)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
    if axes is None:
        figure_legend(panels)
    return panels

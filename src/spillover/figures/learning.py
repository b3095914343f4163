"""Figures of learning: the optimality ratio in each stationary period, and the error of the graph over time."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.ticker import PercentFormatter

from spillover import validate
from spillover.figures.style import (
    WIDTH,
    Style,
    draw_band,
    figure_legend,
    hide_spines,
    mark_changes,
    new_axes,
    new_panels,
    numbered_style,
    styles_for,
)
from spillover.metrics import mean_interval

if TYPE_CHECKING:
    from spillover.experiments import Record


def ratio_figure(
    records: Sequence["Record"],
    *,
    ax: Axes | None = None,
    title: str = "",
    styles: Mapping[str, Style] | None = None,
) -> Axes:
    """Optimality ratio of each stationary period with 95% intervals, as bars grouped by period (Fig. 6).

    >>> from spillover.experiments import example_results
    >>> ax = ratio_figure(example_results().records(delay="2"))
    >>> ax.get_ylabel()
    'optimality ratio'
    """
    validate.require(len(records) > 0, "records", records, "at least one")
    styles = {**styles_for(r.policy for r in records), **(styles or {})}
    target = ax or new_axes(WIDTH, 3.4)
    edges = [1, *records[0].changes, records[0].horizon + 1]
    periods = np.arange(len(edges) - 1)
    width = 0.8 / len(records)
    for k, record in enumerate(records):
        style = styles[record.policy]
        mean, low, high = mean_interval(record.optimality_ratio)
        target.bar(
            periods + (k - (len(records) - 1) / 2) * width,
            mean,
            width=0.92 * width,
            yerr=np.nan_to_num([mean - low, high - mean]),
            label=record.label,
            facecolor="white" if style.color == "#000000" else style.color,  # or its hatch would not show
            hatch=style.hatch,
            edgecolor="black",
            linewidth=0.7,
            error_kw={"capsize": min(4.0, 30 * width), "elinewidth": 1.2, "ecolor": "black"},
        )
    ranges = [f"{first}–{end - 1}" for first, end in pairwise(edges)]
    target.set_xticks(periods, ranges)
    target.set_ylim(0, 1.02)
    target.yaxis.set_major_formatter(PercentFormatter(1.0))
    target.set(xlabel="stationary period (rounds)", ylabel="optimality ratio", title=title)
    hide_spines(target)
    if ax is None:
        figure_legend([target])
    return target


def ratio_panels(
    studies: Mapping[str, Sequence["Record"]],
    *,
    axes: Sequence[Axes] | None = None,
    styles: Mapping[str, Style] | None = None,
) -> list[Axes]:
    """`ratio_figure` for several studies, one below the other; the mapping's keys are the titles.

    >>> from spillover.experiments import example_results
    >>> results = example_results()
    >>> len(ratio_panels({f"D = {delay}": results.records(delay=delay) for delay in ("2", "6")}))
    2
    """
    validate.require(len(studies) > 0, "studies", studies, "at least one")
    styles = {**styles_for(r.policy for records in studies.values() for r in records), **(styles or {})}
    count = len(studies)
    panels = list(axes) if axes is not None else new_panels(count, 1, size=(WIDTH, 2.1 * count + 0.5), sharex=True)
    for ax, (title, records) in zip(panels, studies.items(), strict=True):
        ratio_figure(records, ax=ax, title=title, styles=styles)
        ax.label_outer()
    if axes is None:
        figure_legend(panels)
    return panels


def graph_error_figure(
    records: Sequence["Record"],
    *,
    labels: Mapping[str, str] | None = None,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """Mean squared error of the learned graph over time on a log scale, with 95% bands; one line for each delay.

    labels: what to call the delays (default: "D = " and their name). Records of several policies get one line each.

    >>> from spillover.experiments import example_results
    >>> ax = graph_error_figure(example_results().records(policy="ndc-sem"))
    >>> ax.get_yscale()
    'log'
    """
    kept = [r for r in records if np.isfinite(r.graph_error).any()]
    validate.require(len(kept) > 0, "records", [r.label for r in records], "some with an estimate of the graph")
    policies = styles_for(r.policy for r in kept)
    several = len(policies) > 1
    delays = list(dict.fromkeys(r.delay for r in kept))
    target = ax or new_axes(WIDTH, 3.6)
    floor = np.inf
    for k, record in enumerate(kept):
        # the policy's colour, the paler the later its delay is in the list; line and marker are the delay's
        nth = delays.index(record.delay)
        style = numbered_style(nth)._replace(color=paler(policies[record.policy].color, nth / max(len(delays), 2)))
        name = (labels or {}).get(record.delay, f"D = {record.delay}")
        mean, low, high = mean_interval(record.graph_error)
        if np.isfinite(mean).any():
            floor = min(floor, np.nanmin(np.where(mean > 0, mean, np.nan)))
        # the interval of a small mean may reach below 0, which a log scale cannot show: it is cut near the lowest mean
        shown = np.where(mean > 0, mean, np.nan), np.maximum(low, mean / 10), high
        label = f"{record.label}, {name}" if several else name
        draw_band(target, record.rounds, shown, style, label, line=k, lines=len(kept))
    mark_changes(target, kept[0].changes)
    target.set_yscale("log")
    if np.isfinite(floor):
        target.set_ylim(bottom=floor / 2)
    target.set_xlim(0, kept[0].horizon)
    target.set(xlabel="round", ylabel="mean squared error of the graph", title=title)
    hide_spines(target)
    if ax is None:
        figure_legend([target])
    return target


def paler(color: str, share: float) -> str:
    """A colour mixed with up to two thirds of white."""
    mixed = np.array(to_rgb(color)) * (1 - 0.66 * share) + 0.66 * share
    return to_hex((mixed[0], mixed[1], mixed[2]))

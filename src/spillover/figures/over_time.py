"""Figures of runs over time: regret, payoff, the optimality ratio of each period, errors of the graph, means."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from spillover import validate
from spillover.figures.style import (
    WIDTH,
    Style,
    as_written,
    draw_band,
    figure_legend,
    hide_spines,
    mark_changes,
    new_axes,
    new_panels,
    numbered_style,
    styles_for,
)
from spillover.formatting import printable
from spillover.metrics import HasRegret, mean_interval
from spillover.types import Array, BoolArray, IntArray

if TYPE_CHECKING:
    from spillover.experiments import Record


def finished(target: Axes, alone: bool) -> Axes:
    """Hide the frame; axes that stand alone get a legend."""
    hide_spines(target)
    if alone:
        figure_legend([target])
    return target


def from_zero(target: Axes) -> None:
    """An axis of regret; a line at 0, such as the oracle's, is not covered by the frame."""
    top = max(target.dataLim.ymax, 1e-12)
    target.set_ylim(-0.02 * top, 1.05 * top)
    target.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def stacked(
    studies: Mapping[str, Any],
    axes: Sequence[Axes] | None,
    height: float,
    draw: Callable[[Any, Axes, str], Axes],
    *,
    one_scale: bool = False,
) -> list[Axes]:
    """Draw several studies, one below the other; the mapping's keys are the titles."""
    count = len(studies)
    panels = list(axes) if axes is not None else new_panels(count, 1, size=(WIDTH, height * count + 0.5), sharex=True)
    for ax, (title, records) in zip(panels, studies.items(), strict=True):
        draw(records, ax, title)
    top = max(ax.get_ylim()[1] for ax in panels)
    for ax in panels:
        if one_scale:
            ax.set_ylim(-0.02 * top, top)
        ax.label_outer()
    if axes is None:
        figure_legend(panels)
    return panels


def regret_figure(
    records: Sequence[HasRegret],
    *,
    ax: Axes | None = None,
    title: str = "",
    styles: Mapping[str, Style] | None = None,
) -> Axes:
    """Cumulative expected regret with 95% bands, one line per policy; vertical lines at changes (Fig. 2).

    records: runs (`simulate`), comparisons (`compare`) or stored records, also mixed.
    Axes that are given get no legend: `figure_legend` makes one for several of them.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=50, changes=())
    >>> runs = [sp.simulate(policy, world, 5, replications=2) for policy in (sp.NDCSEM(), sp.Uniform())]
    >>> [line.get_label() for line in regret_figure(runs).get_lines()]
    ['NDCSEM', 'Uniform']
    """
    validate.require(len(records) > 0, "records", records, "at least one")
    curves = [curve for record in records for curve in record.regret_curves()]
    styles = {**styles_for(curve.policy for curve in curves), **(styles or {})}
    target = ax or new_axes(WIDTH, 3.6)
    for k, curve in enumerate(curves):
        found, label = mean_interval(curve.regret), as_written(curve.label)
        draw_band(target, curve.rounds, found, styles[curve.policy], label, line=k, lines=len(curves))
    mark_changes(target, curves[0].changes)
    target.set_xlim(0, max(int(curve.rounds[-1]) for curve in curves))
    from_zero(target)
    target.set(xlabel="round", ylabel="cumulative expected regret", title=title)
    return finished(target, ax is None)


def regret_panels(
    studies: Mapping[str, Sequence[HasRegret]],
    *,
    axes: Sequence[Axes] | None = None,
    styles: Mapping[str, Style] | None = None,
) -> list[Axes]:
    """`regret_figure` for several studies, one below the other, on one scale; the mapping's keys are the titles.

    >>> from spillover.experiments import example_results
    >>> results = example_results()
    >>> len(regret_panels({f"D = {delay}": results.records(delay=delay) for delay in ("2", "6")}))
    2
    """
    validate.require(len(studies) > 0, "studies", studies, "at least one")
    curves = [curve for records in studies.values() for record in records for curve in record.regret_curves()]
    styles = {**styles_for(curve.policy for curve in curves), **(styles or {})}
    return stacked(
        studies,
        axes,
        2.5,
        lambda records, ax, title: regret_figure(records, ax=ax, title=title, styles=styles),
        one_scale=True,
    )


def delay_figure(
    records: Sequence["Record"],
    delays: Mapping[str, float],
    *,
    random: Collection[str] = (),
    ax: Axes | None = None,
    title: str = "",
    styles: Mapping[str, Style] | None = None,
) -> Axes:
    """Final regret against the mean delay, with 95% intervals, one line for each policy.

    delays: mean delay in rounds by the name of the delay. random: names of those that are drawn at random each
    round; they are hollow, without a line, and to the right of the constant one.

    >>> from spillover.experiments import example_results
    >>> ax = delay_figure(example_results().records(), {"2": 2, "6": 6})
    >>> ax.get_xlabel()
    'mean delay (rounds)'
    """
    missing = sorted({r.delay for r in records} - set(delays))
    validate.require(len(records) > 0 and not missing, "delays", dict(delays), f"a mean delay for each of {missing}")
    styles = {**styles_for(r.policy for r in records), **(styles or {})}
    target = ax or new_axes(WIDTH, 3.6)
    spread = np.ptp([delays[r.delay] for r in records]) or 1.0
    policies = list(dict.fromkeys(r.policy for r in records))
    for k, policy in enumerate(policies):
        shift = 0.008 * spread * (k - (len(policies) - 1) / 2)  # intervals at one delay stand beside each other
        own = sorted((r for r in records if r.policy == policy), key=lambda r: delays[r.delay])
        draw_delays(target, [r for r in own if r.delay not in random], delays, shift, styles[policy], hollow=False)
        shift += 0.03 * spread
        draw_delays(target, [r for r in own if r.delay in random], delays, shift, styles[policy], hollow=True)
    if any(r.delay in random for r in records):
        target.errorbar(
            [], [], yerr=[], color="0.3", marker="o", markerfacecolor="white", linestyle="",
            label="hollow: random delay of that mean",
        )  # fmt: skip
    target.set(xlabel="mean delay (rounds)", ylabel="final expected regret", title=title)
    from_zero(target)
    at = sorted({delays[r.delay] for r in records})
    if len(at) <= 8:
        target.set_xticks(at, [f"{d:g}" for d in at])
    return finished(target, ax is None)


def draw_delays(
    ax: Axes, records: Sequence["Record"], delays: Mapping[str, float], shift: float, style: Style, *, hollow: bool
) -> None:
    """Points with intervals of one policy; constant delays are joined by a line."""
    if not records:
        return
    at = np.array([delays[r.delay] for r in records]) + shift
    means, lows, highs = np.array([mean_interval(r.regret[:, -1]) for r in records]).T
    ax.errorbar(
        at,
        means,
        yerr=np.nan_to_num([means - lows, highs - means]),
        label=f"_{records[0].label} (random)" if hollow else records[0].label,
        color=style.color,
        linestyle="" if hollow else style.linestyle,
        marker=style.marker or "*",
        markersize=5.5,
        markerfacecolor="white" if hollow else style.color,
        capsize=2.5,
        linewidth=1.4,
        elinewidth=1.0,
    )


TICKS = 4


def course_figure(
    rounds: Sequence[str],
    earned: Any,
    lines: Sequence[tuple[str, tuple[Any, Any, Any]]],
    *,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """A line for what was earned up to each round, and one with a band for each of `lines`: name, (mean, low, high).

    >>> ax = course_figure(["a", "b"], [1.0, 2.0], [("other", ([1.5, 3.0], [1.0, 2.5], [2.0, 3.5]))])
    >>> [line.get_label() for line in ax.get_lines()]
    ['earned', 'other']
    """
    validate.require(len(rounds) == len(earned) > 0, "rounds", rounds, "one label for each number that was earned")
    target = ax or new_axes(WIDTH, 3.2)
    places = np.arange(len(rounds))
    target.plot(places, earned, color="black", linewidth=1.6, label="earned")
    for k, (name, (mean, low, high)) in enumerate(lines):
        style = numbered_style(k)  # by position: here some policies with the same colour stand side by side
        target.fill_between(places, low, high, color=style.color, alpha=0.2, linewidth=0)
        target.plot(places, mean, color=style.color, linestyle=style.linestyle, linewidth=1.6, label=printable(name))
    shown = np.unique(np.linspace(0, len(rounds) - 1, min(TICKS, len(rounds))).astype(int))
    target.set_xticks(shown, [printable(rounds[k]) for k in shown])
    target.set(xlabel="round", ylabel="payoff up to the round", title=title)
    target.legend(frameon=False)
    return target


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
    return finished(target, ax is None)


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
    return stacked(
        studies, axes, 2.1, lambda records, ax, title: ratio_figure(records, ax=ax, title=title, styles=styles)
    )


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
    return finished(target, ax is None)


def paler(color: str, share: float) -> str:
    """A colour mixed with up to two thirds of white."""
    mixed = np.array(to_rgb(color)) * (1 - 0.66 * share) + 0.66 * share
    return to_hex((mixed[0], mixed[1], mixed[2]))


BEST, REST = "#56B4E9", "#E0E0E0"


def means_figure(
    means: Array,
    *,
    best: BoolArray | None = None,
    names: Sequence[str] | None = None,
    changes: Sequence[int] = (),
    values: bool = True,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """Expected instantaneous reward of every arm over time, one row for each arm (Fig. 5).

    means: (rounds, n), row t - 1 for round t. Ten lines in one panel are hard to follow, more so in grey; so each arm
    has its own row, from 0 to 1 (or the largest mean). best: (rounds, n), the arms of the optimal set, filled darker.
    values: write each mean into its period, where there is room.

    >>> means = np.repeat([[0.8, 0.2], [0.3, 0.9]], 10, axis=0)
    >>> ax = means_figure(means, names=["web", "radio"], changes=[11])
    >>> ax.get_xlabel()
    'round'
    """
    means = np.asarray(means, float)
    validate.require(means.ndim == 2 and means.size > 0, "shape of means", means.shape, "(rounds, arms)")
    rounds, n = means.shape
    names = tuple(names) if names is not None else tuple(str(i + 1) for i in range(n))
    validate.require(len(names) == n, "names", names, f"one for each of the {n} arms")
    target = ax or new_axes(WIDTH, max(2.6, 1.1 + 0.4 * n))
    top = max(1.0, float(np.nanmax(means)))
    for i in range(n):
        steps = step_starts(means[:, i], best[:, i] if best is not None else None)
        draw_row(target, i, means[:, i] / top * 0.86, steps, best[:, i] if best is not None else None)
        if values:
            write_values(target, i, means[:, i], steps, top)
    mark_changes(target, changes)
    target.set_xlim(1, rounds + 1)
    target.set_ylim(n - 0.02, -0.06)
    target.set_yticks(np.arange(n) + 0.57, names)
    target.tick_params(axis="y", length=0)
    scale = "each row from 0 to 1" if top == 1.0 else f"each row from 0 to {top:.3g}"
    target.set(xlabel="round", ylabel=f"arm ({scale})", title=title)
    target.spines[["top", "right", "left"]].set_visible(False)
    if ax is None:
        figure_legend([target])
    return target


def step_starts(mean: Array, best: BoolArray | None) -> IntArray:
    """Indices at which the mean of an arm, or its membership in the optimal set, changes."""
    moved = np.diff(mean) != 0
    if best is not None:
        moved |= np.diff(best.astype(np.int8)) != 0
    return np.concatenate([[0], np.flatnonzero(moved) + 1])


def draw_row(ax: Axes, row: int, heights: Array, steps: IntArray, best: BoolArray | None) -> None:
    """The step line of an arm over its base line, filled down to it."""
    edges = np.append(steps, len(heights)) + 1  # round t reaches from t to t + 1
    level = np.append(heights[steps], heights[-1])
    base = row + 0.96
    ax.hlines(base, 1, len(heights) + 1, color="0.75", linewidth=0.6, zorder=1)
    taken = np.append(best[steps], best[-1]) if best is not None else np.zeros(len(edges), np.bool_)
    for mask, color, label in ((~taken, REST, "other arms"), (taken, BEST, "in the optimal set")):
        if mask[:-1].any():
            entry = "_" + label if best is None or in_legend(ax, label) else label
            ax.fill_between(
                edges, base, np.where(mask, base - level, base), step="post", color=color, lw=0, label=entry
            )
    ax.step(edges, base - level, where="post", color="0.1", linewidth=1.3, label=f"_arm {row}", zorder=3)


def in_legend(ax: Axes, label: str) -> bool:
    return label in ax.get_legend_handles_labels()[1]


def write_values(ax: Axes, row: int, mean: Array, steps: IntArray, top: float) -> None:
    """Write the mean in the middle of each period that is wide enough."""
    ends = np.append(steps[1:], len(mean))
    for start, end in zip(steps, ends, strict=True):
        if end - start >= 0.08 * len(mean):
            level = 0.86 * mean[start] / top
            line = row + 0.96 - level
            inside = level > 0.46  # below the line where there is room for it, else above
            ax.text(
                (start + end) / 2 + 1, line + (0.07 if inside else -0.07),
                f"{mean[start]:.2f}" if top <= 10 else f"{mean[start]:.0f}",
                ha="center", va="top" if inside else "bottom", fontsize=7.5, zorder=4,
            )  # fmt: skip

"""Forest plots of paired differences, and ratios to a reference, with their confidence intervals."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator, StrMethodFormatter

from spillover import validate
from spillover.figures.style import WIDTH, Style, draw_grid_lines, figure_legend, new_axes, styles_for


class Difference(NamedTuple):
    """A mean of paired differences with its 95% interval.

    >>> Difference("NDC-SEM minus random", -120.0, -150.0, -90.0).clear  # the interval excludes 0
    True
    """

    label: str
    mean: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def forest_figure(
    differences: Sequence[Difference],
    *,
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "difference in final expected regret (below 0: less regret)",
    wrap: int = 56,
) -> Axes:
    """Label, mean and 95% interval of each difference, a line at zero; filled where the interval excludes 0.

    The label is above its interval, so that both have the width of the figure.

    >>> ax = forest_figure([Difference("NDC-SEM minus random", -120.0, -150.0, -90.0)], title="less regret")
    >>> ax.get_title()
    'less regret'
    """
    validate.require(len(differences) > 0, "differences", differences, "at least one")
    labels = [textwrap.fill(f"{d.label}: {format_difference(d, differences)}", wrap) for d in differences]
    heights = np.array([0.8 + 0.45 * (1 + label.count("\n")) for label in labels])
    tops = np.cumsum(heights) - heights
    target = ax or new_axes(WIDTH, 1.2 + 0.32 * heights.sum())
    target.axvline(0, color="black", linewidth=1.0, zorder=1, label="_zero")
    for top, height, label, difference in zip(tops, heights, labels, differences, strict=True):
        y = top + height - 0.42
        color = "#0072B2" if difference.clear else "#6E6E6E"
        target.plot([difference.low, difference.high], [y, y], color=color, linewidth=1.8, label="_interval", zorder=2)
        target.plot(
            difference.mean, y, marker="s", markersize=6.5, color=color, linestyle="", label="_mean", zorder=3,
            markerfacecolor=color if difference.clear else "white",
        )  # fmt: skip
        target.annotate(
            label, (0.01, top + 0.1), xycoords=("axes fraction", "data"), va="top", fontsize="small", zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )  # fmt: skip
    target.set_yticks([])
    target.set_ylim(heights.sum(), 0)
    target.set(xlabel=xlabel, title=title)
    target.margins(x=0.08)
    target.spines[["top", "right", "left"]].set_visible(False)
    draw_grid_lines(target, "x")
    return target


def format_difference(difference: Difference, others: Sequence[Difference]) -> str:
    """Mean and interval with as many decimals as the largest of all differences needs."""
    largest = max((abs(v) for d in others for v in d[1:] if np.isfinite(v)), default=1.0)
    decimals = int(np.clip(2 - np.floor(np.log10(max(largest, 1e-9))), 0, 6))
    mean, low, high = (f"{v:+,.{decimals}f}".replace("-", "−") for v in difference[1:])
    return mean if not np.isfinite(difference.low) else f"{mean}  [{low}, {high}]"


TICKS = np.array([0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000])


class Ratio(NamedTuple):
    """The ratio of a policy's regret to the reference's in one setting, with its 95% interval.

    >>> Ratio("D = 50", "ndc-sem", "NDC-SEM", mean=1.8, low=1.6, high=2.0).mean
    1.8
    """

    row: str  # the setting
    policy: str
    label: str
    mean: float
    low: float
    high: float


def ratios_figure(
    ratios: Sequence[Ratio],
    *,
    ax: Axes | None = None,
    title: str = "",
    reference: str = "delayed oracle",
    styles: Mapping[str, Style] | None = None,
    wrap: int = 19,
) -> Axes:
    """Ratios with their intervals on a logarithmic scale, one row for each setting; a line at 1 is the reference.

    Axes that are given get no legend: `figure_legend` makes one for several of them.

    >>> ax = ratios_figure([Ratio("D = 50", "ndc-sem", "NDC-SEM", 1.8, 1.6, 2.0)])
    >>> ax.get_xscale()
    'log'
    """
    drawn = [r for r in ratios if np.isfinite(r.mean) and r.mean > 0]
    validate.require(len(drawn) > 0, "ratios", ratios, "at least one that is a number above 0")
    styles = {**styles_for(r.policy for r in drawn), **(styles or {})}
    rows, policies = (list(dict.fromkeys(names)) for names in ([r.row for r in drawn], [r.policy for r in drawn]))
    target = ax or new_axes(WIDTH, 1.3 + (0.16 + 0.1 * len(policies)) * len(rows))
    for k in range(1, len(rows), 2):
        target.axhspan(k - 0.5, k + 0.5, color="0.95", linewidth=0, zorder=0)
    target.axvline(1.0, color="black", linewidth=1.0, zorder=1, label=f"1: the {reference}")
    for k, policy in enumerate(policies):
        shift = 0.76 * ((k + 0.5) / len(policies) - 0.5)
        own = [r for r in drawn if r.policy == policy]
        draw_policy(target, own, [rows.index(r.row) + shift for r in own], styles[policy])
    target.set_yticks(range(len(rows)), [wrapped(row, wrap) for row in rows])
    target.set_ylim(len(rows) - 0.5, -0.5)
    target.tick_params(axis="y", length=0)
    scale_to(target, drawn)
    target.set(xlabel=f"final expected regret over that of\nthe {reference} (logarithmic)", title=title)
    target.spines[["top", "right", "left"]].set_visible(False)
    if ax is None:
        figure_legend([target])
    return target


def wrapped(text: str, width: int) -> str:
    """Text in lines; what belongs together, such as D = 50, stays on one."""
    return textwrap.fill(text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"), width)


def draw_policy(ax: Axes, ratios: Sequence[Ratio], at: Sequence[float], style: Style) -> None:
    """The points of one policy."""
    means, lows, highs = np.array([r[3:] for r in ratios]).T
    ax.errorbar(
        means,
        at,
        xerr=np.nan_to_num([np.minimum(means - lows, 0.999 * means), highs - means]),  # a logarithm ends at 0
        label=ratios[0].label,
        color=style.color,
        marker=style.marker or "o",
        markersize=7.5 if style.marker == "*" else 5.0,
        linestyle="",
        elinewidth=1.5,
        zorder=3,
    )


def scale_to(ax: Axes, ratios: Sequence[Ratio]) -> None:
    """A logarithmic axis with plain numbers at the ticks."""
    values = [1.0, *(v for r in ratios for v in r[3:] if np.isfinite(v) and v > 0.05)]
    low, high = 0.88 * min(values), 1.1 * max(values)
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.set_xticks([tick for tick in TICKS if low <= tick <= high])
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.grid(axis="x", color="0.85", linewidth=0.7, zorder=0)
    ax.set_axisbelow(True)

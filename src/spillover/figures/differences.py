"""Forest plot: paired differences with their confidence intervals, one row each."""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from spillover import validate
from spillover.figures.style import WIDTH, new_axes


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
    target.grid(axis="x", color="0.9", linewidth=0.7)
    target.set_axisbelow(True)
    return target


def format_difference(difference: Difference, others: Sequence[Difference]) -> str:
    """Mean and interval with as many decimals as the largest of all differences needs."""
    largest = max((abs(v) for d in others for v in d[1:] if np.isfinite(v)), default=1.0)
    decimals = int(np.clip(2 - np.floor(np.log10(max(largest, 1e-9))), 0, 6))
    mean, low, high = (f"{v:+,.{decimals}f}".replace("-", "−") for v in difference[1:])
    return mean if not np.isfinite(difference.low) else f"{mean}  [{low}, {high}]"

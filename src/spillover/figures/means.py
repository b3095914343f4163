"""The mean of each arm over time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from spillover import validate
from spillover.figures.style import WIDTH, figure_legend, mark_changes, new_axes
from spillover.types import Array, BoolArray, IntArray

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

"""The regions chosen on each day."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from spillover import validate
from spillover.figures.style import figure_of, new_axes
from spillover.types import BoolArray

CHOSEN, STARTING, FORCED, BEST = "#1A1A1A", "#B5B5B5", "#E69F00", "#0072B2"


def selection_figure(
    x: BoolArray,
    regions: Sequence[str],
    *,
    forced: BoolArray,
    best: BoolArray | None = None,
    starting: int = 21,
    lines: Sequence[int] = (21, 40, 44),
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """Regions x days, one rectangle for each chosen region (Fig. 4).

    x, forced, best: (days, regions). Grey: days of the initialisation. Orange, hatched: forced choices of regions
    without any outcome. Black: free choices. Blue frames: the optimal set. lines: last day of the initialisation, day
    of the change, first day on which an outcome from after the change can be known.
    """
    shape = np.shape(x)
    validate.require(shape[1:] == (len(regions),), "shape of x", shape, f"(days, {len(regions)})")
    days = shape[0]
    target = ax or new_axes(6.2, 1.9 + 0.19 * len(regions))
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
    target.set(xlabel="day", title=title)
    target.tick_params(axis="y", length=0)
    target.spines[["top", "right"]].set_visible(False)
    if ax is None:
        add_legend(target, best is not None)
    return target


def outline(ax: Axes, best: BoolArray) -> None:
    """A frame around each period in which a region is one of the best."""
    for i in range(best.shape[1]):
        padded = np.concatenate([[0], best[:, i].astype(np.int8), [0]])
        starts, ends = np.flatnonzero(np.diff(padded) == 1), np.flatnonzero(np.diff(padded) == -1)
        for start, end in zip(starts, ends, strict=True):
            ax.add_patch(
                Rectangle(
                    (start + 0.5, i - 0.5),
                    float(end - start),
                    1,
                    fill=False,
                    edgecolor=BEST,
                    linewidth=1.6,
                    zorder=4,
                    label="_best",
                )
            )


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

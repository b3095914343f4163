"""The learned graph on a map: regions at their coordinates."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch

from spillover import validate
from spillover.report.figures.style import figure_legend, new_axes
from spillover.types import Array

EDGE, NODE = "#D55E00", "#0072B2"


def map_figure(
    adjacency: Array,
    latitude: Array,
    longitude: Array,
    regions: Sequence[str],
    *,
    sizes: Array | None = None,
    strongest: int = 25,
    size_label: str = "area of a circle: mean daily cases",
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """Regions at their coordinates, the strongest edges as arrows from j to i, wider for larger weights.

    adjacency: (n, n), adjacency[i, j] the effect of region j on region i. sizes: (n,), areas of the circles.
    """
    n = len(regions)
    found = np.asarray(adjacency, float)
    validate.require(found.shape == (n, n), "shape of adjacency", found.shape, f"({n}, {n})")
    target = ax or new_axes(6.6, 7.4)
    place = np.column_stack([longitude, latitude])
    areas = np.full(n, 60.0) if sizes is None else 25 + 400 * np.asarray(sizes, float) / max(float(np.max(sizes)), 1e-9)
    order = np.argsort(found, axis=None)[::-1][:strongest]
    heaviest = max(float(found.max()), 1e-9)
    for flat in order[::-1]:
        i, j = (int(k) for k in np.unravel_index(int(flat), found.shape))
        if found[i, j] > 0:
            draw_arrow(target, place[j], place[i], 0.5 + 2.6 * found[i, j] / heaviest, (areas[j], areas[i]), (i, j))
    label = size_label if sizes is not None else "_regions"
    target.scatter(
        place[:, 0],
        place[:, 1],
        s=areas,
        color=NODE,
        alpha=0.75,
        edgecolor="white",
        linewidth=0.8,
        zorder=3,
        label=label,
    )
    for name, (x, y), (dx, dy) in zip(regions, place, label_offsets(place), strict=True):
        target.annotate(
            name, (x, y), (dx, dy), textcoords="offset points", ha="center", va="center", fontsize=8, zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.75},
        )  # fmt: skip
    count = min(strongest, int((found > 0).sum()))
    target.plot(
        [], [], color=EDGE, linewidth=2, label=f"the {count} strongest edges, from j to i (width: weight A[i, j])"
    )
    target.set_aspect(1 / np.cos(np.radians(np.mean(latitude))))
    target.margins(0.09)
    target.set(xlabel="longitude (°E)", ylabel="latitude (°N)", title=title)
    target.spines[["top", "right"]].set_visible(False)
    if ax is None:
        figure_legend([target])
    return target


def draw_arrow(
    ax: Axes, start: Array, end: Array, width: float, areas: tuple[float, float], edge: tuple[int, int]
) -> None:
    """A slightly bent arrow, so that an edge and its reverse do not overlap."""
    ax.add_patch(
        FancyArrowPatch(
            (float(start[0]), float(start[1])),
            (float(end[0]), float(end[1])),
            arrowstyle="-|>",
            connectionstyle="arc3,rad=0.16",
            mutation_scale=6 + 2 * width,
            linewidth=width,
            color=EDGE,
            alpha=0.75,
            shrinkA=np.sqrt(areas[0]) / 2,
            shrinkB=np.sqrt(areas[1]) / 2,
            zorder=2,
            label=f"_A[{edge[0]},{edge[1]}]",
        )
    )


def label_offsets(place: Array) -> list[tuple[float, float]]:
    """Offsets of names in points, away from the nearest other region."""
    offsets = []
    for k, here in enumerate(place):
        others = np.delete(place, k, axis=0)
        away = here - others[np.argmin(((others - here) ** 2).sum(axis=1))]
        length = max(float(np.hypot(*away)), 1e-9)
        x, y = 15 * away / length
        offsets.append((float(x), float(np.sign(y) * max(abs(y), 9) if abs(x) < 10 else y)))
    return offsets

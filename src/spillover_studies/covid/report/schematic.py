"""The learned graph as a schematic of the regions: north is up, but distances are not to scale."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.transforms import Bbox

from spillover import validate
from spillover.figures.flows import Line, Page, best_bend, curves
from spillover.figures.style import figure_legend, figure_of, new_axes
from spillover.types import Array

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

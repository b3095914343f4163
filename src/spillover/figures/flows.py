"""The graph in the figure of a decision: arms as circles in a layout, flows as arrows that avoid them."""

import textwrap
from collections.abc import Sequence, Set
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike

from spillover.figures.style import COLORS, LONG_NAME, NAMED_NODES, as_written, figure_of, short_names
from spillover.reasons import ArmReason, layers
from spillover.types import Array

Places = dict[int, tuple[float, float]]
ZIGZAG = (0.5, 0.82, 0.18, 0.66, 0.34)  # heights of arms alone in their column, so that arrows do not overlap
IN_A_ROW = 8  # arms without any edge


class Flow(NamedTuple):
    """An edge that is drawn."""

    cause: int
    effect: int
    amount: float  # the flow if the chosen arms are played
    weight: float


def places(nodes: Sequence[int], adjacency: Array, apart: float = 0.16) -> Places:
    """Positions in the unit square; `adjacency` has the edges that are drawn, and arms without one are below it.

    apart: the distance between rows of arms without an edge.
    """
    joined = [j for j in nodes if adjacency[j, nodes].any() or adjacency[nodes, j].any()]
    alone = [j for j in nodes if j not in joined]
    found = rows_below(alone, -apart - 0.02 if joined else 0.5, apart)
    if not joined:
        return found
    inner = adjacency[np.ix_(joined, joined)]
    depth = layers(inner)
    drawn = ring(len(joined)) if depth is None else columns(depth.tolist(), inner)
    return found | dict(zip(joined, drawn, strict=True))


def rows_below(alone: Sequence[int], top: float, apart: float) -> Places:
    """Rows of arms that have no edge."""
    wide = min(IN_A_ROW, max(len(alone), 1))
    return {j: ((k % wide + 0.5) / wide, top - apart * (k // wide)) for k, j in enumerate(alone)}


def ring(n: int) -> list[tuple[float, float]]:
    """The first at the top, then clockwise."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    return [(0.5 + 0.5 * float(np.cos(a)), 0.5 + 0.5 * float(np.sin(a))) for a in angles]


def columns(depth: Sequence[int], edges: Array) -> list[tuple[float, float]]:
    """One column for each layer, with arms near those that affect them, so that few arrows cross."""
    last = max(depth)
    height = dict.fromkeys(range(len(depth)), 0.5)
    for layer in range(last + 1):
        members = [j for j, d in enumerate(depth) if d == layer]
        pull = {j: np.mean([height[int(k)] for k in np.flatnonzero(edges[j])] or [0.5]) for j in members}
        members.sort(key=lambda j: -float(pull[j]))
        for k, j in enumerate(members):
            height[j] = column_height(k, len(members), layer, last)
    return [(d / max(last, 1), height[j]) for j, d in enumerate(depth)]


def column_height(k: int, many: int, layer: int, last: int) -> float:
    """The height of the k-th of `many` arms from above; neighbouring columns are shifted."""
    if many == 1:
        return ZIGZAG[layer % len(ZIGZAG)] if last > 1 else 0.5
    shift = (layer % 2 - 0.5) * 0.4 / many
    return 1.0 - (k + 0.5) / many + shift


POINTS = np.linspace(0, 1, 41)  # positions along a curve
BENDS = (0.0, 0.07, 0.14, 0.2, 0.27, 0.35, 0.45, 0.55, 0.7)  # to both sides
GAP = 3.0  # pixels between a curve and circles other than its ends
TOUCHED = 100.0  # cost of a pixel too near to a circle: more than any bend
ON_A_NAME = 0.2  # cost of crossing a name
ON_ARROWS = 1.0  # cost of a curve that lies entirely on others


class Page(NamedTuple):
    """Circles and names on the page, in pixels."""

    centres: Array  # (arms, 2), of the circles
    radii: Array
    names: Sequence[Bbox]
    frame: Bbox  # nothing may leave it


class Line(NamedTuple):
    """A curve that is drawn."""

    ends: tuple[int, int]
    points: Array  # (n, 2)
    width: float  # pixels


def quadratic(start: Array, control: Array, end: Array, parts: ArrayLike = POINTS) -> Array:
    """The points of a curve at these parts of it, from 0 to 1."""
    t = np.asarray(parts)[:, None]
    return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end)


def curves(page: Page, ends: tuple[int, int], rads: Array) -> Array:
    """(rads, points, 2): between two arms with these bends."""
    start, end = page.centres[list(ends)]
    across, up = end - start
    control = (start + end) / 2 + rads[:, None] * np.array([up, -across])
    return quadratic(start, control[:, None], end)


def best_bend(
    ends: tuple[int, int],
    first: float,
    width: float,
    page: Page,
    others: Sequence[Line] = (),
    *,
    one_side: bool = False,
) -> float:
    """The slightest bend that avoids all circles except those at its ends, or touches them least.

    Bends that cross few names and do not lie on the `others` are preferred.
    first: the bend that is used if no other one is better. one_side: bend to the side of `first` only.
    """
    both = [first, *(sign * rad for rad in BENDS for sign in (1.0, -1.0))]
    rads = np.array([rad for rad in both if not one_side or rad * first > 0])
    found = curves(page, ends, rads)
    cost = TOUCHED * (too_near(found, ends, width, page) + outside(found, width, page.frame))
    cost += ON_A_NAME * sum(
        (within(found, box.padded(width / 2)).any(axis=1) for box in page.names), np.zeros(len(rads))
    )
    cost += ON_ARROWS * on_others(found, ends, width, others)
    gentle = np.abs(rads)
    gentle[0] = 0.0
    return float(rads[np.argmin(cost + gentle)])


def distances(found: Array, points: Array) -> Array:
    """(curves, their points, points)."""
    across, up = (found[:, :, None, k] - points[:, k] for k in (0, 1))
    return np.asarray(np.sqrt(across * across + up * up))


def too_near(found: Array, ends: tuple[int, int], width: float, page: Page) -> Array:
    """Measure in pixels how much each curve comes too near to circles that are not its own."""
    away = distances(found, page.centres).min(axis=1)
    short = np.maximum(page.radii + width / 2 + GAP - away, 0.0)
    short[:, list(ends)] = 0.0
    return np.asarray(short.sum(axis=1))


def outside(found: Array, width: float, frame: Bbox) -> Array:
    """Measure in pixels how far each curve leaves the frame."""
    low, high = frame.get_points() + width / 2 * np.array([[1], [-1]])
    return np.asarray(np.maximum(np.maximum(low - found, found - high), 0.0).max(axis=(1, 2)))


def within(found: Array, box: Bbox) -> Array:
    """Mark the points that are in a box."""
    low, high = box.get_points()
    return np.asarray(((found > low) & (found < high)).all(axis=-1))


def on_others(found: Array, ends: tuple[int, int], width: float, others: Sequence[Line]) -> Array:
    """The share of each curve that lies on others; curves with the same end may meet near it."""
    covered = np.zeros(found.shape[:2], bool)
    for line in others:
        inner = np.abs(POINTS - 0.5) < 0.4
        if line.ends[1] == ends[1]:
            inner &= np.arange(len(POINTS)) < len(POINTS) // 2
        away = distances(found[:, inner], line.points).min(axis=2)
        covered[:, inner] |= away < (width + line.width) / 2 + 1
    return np.asarray(covered.mean(axis=1))


NAME_WIDTH = 13  # letters of a line of a name in the graph
LEVEL = 0.25  # slope below which an arrow counts as horizontal
NAMED_EDGES = 12
AMOUNTS_AT = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)  # positions along an arrow where its amount may be written
NEGLIGIBLE = 0.01  # amounts below this share of the largest are not written
STRONG_ARROWS = 10  # that others must not cover
SIDE_BY_SIDE = 0.12  # share of the width of the graph: names of nearer arms overlap at the same height
NAMED_MARGINS = (0.32, 0.32)  # below and above the graph, whose height is 1 and more
NUMBERED_MARGINS = (0.1, 0.12)
WIDTH = 290.0  # least width of the graph in points
TITLES = 0.8  # height of titles and margins in inches
LEAST_CIRCLE = 22.0  # least diameter in points if names fit between circles; with less room arms are numbered
TAKEN: dict[str, Any] = {"facecolor": "#56B4E9", "edgecolor": "black", "linewidth": 2.2}
OTHERS: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.5", "linewidth": 1.2}


class Drawing(NamedTuple):
    """Parts that are adjusted after everything else has its place on the page."""

    arrows: dict[Flow, FancyArrowPatch]  # the strongest first
    sizes: dict[int, float]  # of the circles, in square points
    names: dict[int, Annotation]  # empty where arms are numbered


def places_of(nodes: Sequence[int], drawn: Sequence[Flow], n: int) -> Places:
    """Positions of the arms; rows of arms without an edge leave room for names between them."""
    edges = np.zeros((n, n))
    for flow in drawn:
        edges[flow.effect, flow.cause] = 1.0
    return places(nodes, edges, 0.36 if len(nodes) <= NAMED_NODES else 0.16)


def least_distance(where: Places, height: float, margins: tuple[float, float]) -> float:
    """The least distance between two arms in points, in a figure of this height."""
    heights = [y for _, y in where.values()]
    unit = 72 * (height - TITLES) / (max(heights) - min(heights) + sum(margins))
    pairs = combinations(where.values(), 2)
    return min((float(np.hypot(WIDTH * (x - x1), unit * (y - y1))) for (x, y), (x1, y1) in pairs), default=WIDTH)


def draw_graph(
    ax: Axes, nodes: Sequence[ArmReason], drawn: Sequence[Flow], where: Places, numbers: dict[int, int]
) -> Drawing:
    """Arms as circles, larger for higher scores; arrows, wider for larger flows.

    numbers: of the arms; empty if there is room for names.
    """
    below, over = margins = NUMBERED_MARGINS if numbers else NAMED_MARGINS
    room = least_distance(where, float(figure_of(ax).get_size_inches()[1]), margins)
    sizes = node_sizes(nodes, 0.9 * room if numbers else room - name_room(nodes))
    above = set() if numbers else named_above(drawn, where)
    arrows = draw_flows(ax, drawn, where, sizes)
    draw_nodes(ax, nodes, where, sizes)
    names = {} if numbers else write_names(ax, nodes, where, sizes, above)
    for arm, number in numbers.items():
        ax.text(*where[arm], str(number), ha="center", va="center", fontsize=8, zorder=4)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    heights = [y for _, y in where.values()]
    ax.margins(x=0.1)
    ax.set_ylim(min(heights) - below, max(heights) + (over if above else NUMBERED_MARGINS[1]))
    ax.set_title("spill-over of the chosen arms", fontsize="medium")
    return Drawing(arrows, sizes, names)


def name_room(shown: Sequence[ArmReason]) -> float:
    """Points that names need below circles, at most."""
    return 4.0 + 10.0 * max(len(textwrap.wrap(arm.arm, NAME_WIDTH)) for arm in shown)


def named_above(drawn: Sequence[Flow], where: Places) -> set[int]:
    """Arms with most arrows below and no arm above them: their names fit above."""
    found = set()
    for arm, (x, y) in where.items():
        ends = [flow.effect if flow.cause == arm else flow.cause for flow in drawn if arm in (flow.cause, flow.effect)]
        rises = [where[other][1] - y for other in ends]
        free = not any(abs(x - x1) < SIDE_BY_SIDE and 0 < y1 - y < 0.5 for x1, y1 in where.values())
        if free and sum(rise < 0 for rise in rises) > sum(rise > 0 for rise in rises):
            found.add(arm)
    return found


def scale_limit(shown: Sequence[ArmReason]) -> float:
    """Return where the axis ends: infinite or very large scores must not squeeze the others."""
    sizes = np.array([abs(arm.score) for arm in shown if np.isfinite(arm.score) and arm.score != 0])
    if not len(sizes):
        return 1.0
    return 1.12 * float(sizes[sizes <= 50 * np.median(sizes)].max())


def node_sizes(shown: Sequence[ArmReason], widest: float) -> dict[int, float]:
    """Areas in square points, proportional to scores above a least size; no circle is wider than `widest`."""
    limit = scale_limit(shown)
    least, most = (170.0, 620.0) if len(shown) > NAMED_NODES else (190.0, 1000.0)
    most = min(most, widest**2)
    least = min(least, 0.5 * most)
    return {arm.position: least + (most - least) * float(np.clip(arm.score / limit, 0, 1)) for arm in shown}


def draw_nodes(ax: Axes, shown: Sequence[ArmReason], where: Places, sizes: dict[int, float]) -> None:
    for taken in (True, False):
        some = [arm for arm in shown if arm.chosen == taken]
        if not some:
            continue
        x, y = zip(*(where[arm.position] for arm in some), strict=True)
        look = TAKEN if taken else OTHERS
        ax.scatter(x, y, s=[sizes[arm.position] for arm in some], zorder=3, **look)
        # a separate marker for the legend, where circles of these sizes would not fit
        label = "chosen (size: score)" if taken else "not chosen"
        ax.scatter([], [], s=70, label=label, **look)


def write_names(
    ax: Axes, shown: Sequence[ArmReason], where: Places, sizes: dict[int, float], above: Set[int]
) -> dict[int, Annotation]:
    written = {}
    for arm, name in zip(shown, short_names([arm.arm for arm in shown], LONG_NAME), strict=True):
        written[arm.position] = ax.annotate(
            as_written(textwrap.fill(name, NAME_WIDTH)), where[arm.position], (0, 0), textcoords="offset points",
            ha="center", fontsize=8, zorder=6, fontweight="bold" if arm.chosen else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8},
        )  # fmt: skip
        put_name(written[arm.position], sizes[arm.position], above=arm.position in above)
    return written


def put_name(name: Annotation, size: float, *, above: bool) -> None:
    """Place a name above or below a circle of this size."""
    away = np.sqrt(size) / 2 + 3
    name.xyann = (0, away if above else -away)
    name.set_verticalalignment("bottom" if above else "top")


def draw_flows(ax: Axes, drawn: Sequence[Flow], where: Places, sizes: dict[int, float]) -> dict[Flow, FancyArrowPatch]:
    """Arrows, straight for now; thin and grey without a flow, dashed for negative flows."""
    largest = max((abs(flow.amount) for flow in drawn), default=0.0)
    arrows = {}
    for flow in drawn:
        strength = abs(flow.amount) / largest if largest else 0.0
        color, line, _ = flow_look(flow)
        arrow = FancyArrowPatch(
            where[flow.cause], where[flow.effect], arrowstyle="-|>",
            shrinkA=np.sqrt(sizes[flow.cause]) / 2 + 1, shrinkB=np.sqrt(sizes[flow.effect]) / 2 + 1,
            linewidth=0.7 + 4.3 * strength, mutation_scale=8 + 8 * strength, color=color, linestyle=line,
            alpha=0.9 if flow.amount else 0.7, zorder=2 if flow.amount else 1,
        )  # fmt: skip
        arrow.set_capstyle("butt")
        ax.add_patch(arrow)
        arrows[flow] = arrow
    for color, line, label in dict.fromkeys(flow_look(flow) for flow in drawn):
        ax.plot([], [], color=color, linestyle=line, linewidth=2.0, label=label)
    return arrows


def flow_look(flow: Flow) -> tuple[str, str, str]:
    """Colour, line style and label."""
    if flow.amount == 0:
        return "0.75", "-", "(almost) no flow"
    if flow.amount > 0:
        return COLORS[1], "-", "positive flow (width: amount)"
    return "black", "--", "negative flow (width: amount)"


def preferred_bend(flow: Flow, where: Places, *, mutual: bool) -> float:
    """Arrows between the same two arms bend to opposite sides. Long ones bend more: away from others that begin at the
    same arm, or, if they are horizontal, towards the middle, where there is room.
    """
    (x0, y0), (x1, y1) = where[flow.cause], where[flow.effect]
    across, up = x1 - x0, y1 - y0
    if mutual or np.hypot(across, up) < 0.5:
        return 0.14
    if abs(up) > LEVEL * abs(across):
        return -0.2 if up > 0 else 0.2
    heights = [y for _, y in where.values()]
    above = y0 + y1 >= min(heights) + max(heights)
    return 0.2 if above == (across > 0) else -0.2


def finish_graph(ax: Axes, drawing: Drawing, where: Places) -> None:
    """Bend the arrows, move names away from arrows, and write the amounts.

    Bends are in coordinates of the page, not of the axes, so this comes after everything else has its place.
    """
    figure_of(ax).draw_without_rendering()
    bend_arrows(ax, drawing, where)
    move_names(ax, drawing)
    if len(drawing.arrows) <= NAMED_EDGES:
        write_amounts(ax, drawing)


def bend_arrows(ax: Axes, drawing: Drawing, where: Places) -> None:
    """Bend strong arrows first; the others avoid them."""
    pixels = figure_of(ax).dpi / 72
    row = {arm: k for k, arm in enumerate(where)}
    page = Page(
        centres=ax.transData.transform(list(where.values())),
        radii=np.array([np.sqrt(drawing.sizes[arm]) / 2 * pixels for arm in where]),
        names=[name.get_window_extent() for name in drawing.names.values()],
        frame=ax.bbox,
    )
    pairs = {(flow.cause, flow.effect) for flow in drawing.arrows}
    strong: list[Line] = []
    for flow, arrow in drawing.arrows.items():
        ends, width = (row[flow.cause], row[flow.effect]), arrow.get_linewidth() * pixels
        mutual = (flow.effect, flow.cause) in pairs
        rad = best_bend(ends, preferred_bend(flow, where, mutual=mutual), width, page, strong, one_side=mutual)
        arrow.set_connectionstyle("arc3", rad=rad)
        if len(strong) < STRONG_ARROWS:
            strong.append(Line(ends, curves(page, ends, np.array([rad]))[0], width))


def move_names(ax: Axes, drawing: Drawing) -> None:
    """Move names to the other side of their circles if fewer arrows and nothing else are there."""
    corners = [corners_of(arrow) for arrow in drawing.arrows.values()]
    lines = [quadratic(start, control, end) for start, control, end, *_ in corners]
    heads = [Bbox([some[3:].min(axis=0), some[3:].max(axis=0)]) for some in corners]
    arms = [box.padded(-1) for box in circles(ax)]
    low, high = ax.bbox.intervaly
    boxes = {arm: name.get_window_extent() for arm, name in drawing.names.items()}
    for arm, name in drawing.names.items():
        taken = arms + [box for other, box in boxes.items() if other != arm]
        above = name.get_verticalalignment() == "bottom"
        now = touched(boxes[arm], lines, heads)
        if not now:
            continue
        put_name(name, drawing.sizes[arm], above=not above)
        box = name.get_window_extent()
        free = not box.count_overlaps(taken) and low <= box.y0 and box.y1 <= high
        if free and touched(box, lines, heads) < now:
            boxes[arm] = box
        else:
            put_name(name, drawing.sizes[arm], above=above)


def touched(box: Bbox, lines: Sequence[Array], heads: Sequence[Bbox]) -> int:
    """Count the arrows that a box covers; heads count more."""
    return sum(bool(within(line, box).any()) for line in lines) + 2 * box.count_overlaps(heads)


def corners_of(arrow: FancyArrowPatch) -> Array:
    """Page coordinates of the start, the control point and the end of the line, then of the corners of the head."""
    return np.asarray(arrow.get_transform().transform(arrow.get_path().vertices)[:6], float)  # the last one closes it


def write_amounts(ax: Axes, drawing: Drawing) -> None:
    """Write the flows on the arrows, unless they are negligible or would cover something else."""
    taken = [text.get_window_extent() for text in (*ax.texts, ax.title)] + circles(ax)
    largest = max((abs(flow.amount) for flow in drawing.arrows), default=0.0)
    for flow in [flow for flow in drawing.arrows if abs(flow.amount) > NEGLIGIBLE * largest]:
        start, control, end = corners_of(drawing.arrows[flow])[:3]
        for x, y in ax.transData.inverted().transform(quadratic(start, control, end, AMOUNTS_AT)):
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
            text = ax.text(x, y, f"{flow.amount:.2g}", ha="center", va="center", fontsize=7.5, zorder=5, bbox=box)
            extent = text.get_window_extent()
            if not extent.count_overlaps(taken):
                taken.append(extent)
                break
            text.remove()


def circles(ax: Axes) -> list[Bbox]:
    """The bounding boxes of the circles, in coordinates of the page."""
    found = []
    for marks in [marks for marks in ax.collections if isinstance(marks, PathCollection)]:
        centres = ax.transData.transform(np.asarray(marks.get_offsets()).reshape(-1, 2))  # empty for legend markers
        for (x, y), size in zip(centres, marks.get_sizes(), strict=False):
            half = np.sqrt(size) / 2 * figure_of(ax).dpi / 72
            found.append(Bbox.from_extents(x - half, y - half, x + half, y + half))
    return found

"""The graph as in the paper (Fig. 1): arms on a line, red arcs for A, blue inputs from below."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.path import Path

from spillover import validate
from spillover.figures.style import WIDTH, Dashes, figure_legend, new_panels
from spillover.types import Array

RADIUS = 0.3
NAMED_INPUTS = 12
SMALL = 5  # arms, up to which there is room for A[i,j] on an arc
Place = tuple[float, float]
RIGHT, MISSED, FALSE = "right", "missed", "false"
INPUT = "#0072B2"


class EdgeStyle(NamedTuple):
    color: str
    linestyle: Dashes
    mark: str  # a marker on the arc: colour alone is not enough in grey
    label: str


EDGE_STYLES = {
    RIGHT: EdgeStyle("#D55E00", "-", "", "edge (width: weight)"),
    MISSED: EdgeStyle("#555555", (0, (2.5, 2)), "x", "missed: in the true graph only"),
    FALSE: EdgeStyle("#000000", "-", "D", "false: in the learned graph only"),
}


class Edge(NamedTuple):
    """An effect of arm `cause` on arm `effect` (from 0), that is A[effect, cause]."""

    cause: int
    effect: int
    weight: float
    kind: str = RIGHT


def edges_of(adjacency: Array, truth: Array | None = None, threshold: float = 0.05) -> list[Edge]:
    """The edges with a weight above the threshold, including missed edges of the true graph.

    >>> edges_of(np.array([[0, 0.5], [0, 0]]))
    [Edge(cause=1, effect=0, weight=0.5, kind='right')]
    """
    found = np.asarray(adjacency, float)
    n = len(found)
    validate.require(found.shape == (n, n), "shape of adjacency", found.shape, "(n, n)")
    real = found if truth is None else np.asarray(truth, float)
    validate.require(real.shape == found.shape, "shape of truth", real.shape, f"{found.shape}, as the adjacency's")
    edges = []
    for i, j in np.argwhere((found > threshold) | (real > threshold)):
        kind = RIGHT if min(found[i, j], real[i, j]) > threshold else MISSED if real[i, j] > threshold else FALSE
        edges.append(Edge(int(j), int(i), float(real[i, j] if kind == MISSED else found[i, j]), kind))
    return edges


def graph_figure(
    adjacency: Array,
    *,
    truth: Array | None = None,
    names: Sequence[str] | None = None,
    threshold: float = 0.05,
    weights: bool | None = None,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """One graph: arcs above run to the left (causes have the higher index), those below to the right.

    truth: the true graph, to mark false and missed edges. weights: write them on the arcs
    (default: up to 20 edges).

    >>> ax = graph_figure(np.array([[0, 0.5], [0, 0]]), names=["shops", "web"], title="web moves shops")
    >>> ax.get_title()
    'web moves shops'
    """
    edges = edges_of(adjacency, truth, threshold)
    n = len(adjacency)
    names = tuple(names) if names is not None else tuple(str(i + 1) for i in range(n))
    validate.require(len(names) == n, "names", names, f"one for each of the {n} arms")
    target = ax or new_panels(size=graph_size(n, edges))[0]
    heaviest = max((abs(e.weight) for e in edges), default=1.0)
    draw_nodes(target, names, edges)
    taken: list[Place] = []
    for edge in sorted(edges, key=lambda e: abs(e.cause - e.effect)):
        curve = arc(edge)
        draw_edge(target, edge, curve, 0.7 + 1.6 * abs(edge.weight) / heaviest, taken, n)
        if weights if weights is not None else len(edges) <= 20:
            write_weight(target, edge, curve, taken, n)
    add_labels(target, {e.kind for e in edges})
    target.set_xlim(-0.7, n - 0.3)
    target.set_ylim(extent(n, edges))
    target.set_aspect("equal")
    target.set_axis_off()
    target.set_title(title, fontsize="medium")
    if ax is None:
        figure_legend([target])
    return target


def graph_pair(
    truth: Array,
    learned: Array,
    *,
    names: Sequence[str] | None = None,
    threshold: float = 0.05,
    axes: Sequence[Axes] | None = None,
    titles: tuple[str, str] = ("true graph", "learned graph"),
) -> list[Axes]:
    """The true graph and the learned one, one below the other.

    >>> truth = np.array([[0, 0.5], [0, 0]])
    >>> above, below = graph_pair(truth, 0.9 * truth)
    >>> below.get_title().splitlines()
    ['learned graph', 'edges above 0.05: 1 right, 0 missed, 0 false']
    """
    n = len(truth)
    everything = edges_of(learned, truth, threshold)
    if axes is None:
        width, tall = graph_size(n, everything)
        panels = new_panels(2, size=(width, 2 * tall + 0.5))  # the second title has two lines
    else:
        panels = list(axes)
    validate.require(len(panels) == 2, "axes", axes, "two")
    kinds = [e.kind for e in everything]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (RIGHT, MISSED, FALSE))
    graph_figure(truth, names=names, threshold=threshold, ax=panels[0], title=titles[0])
    graph_figure(
        learned, truth=truth, names=names, threshold=threshold, ax=panels[1],
        title=f"{titles[1]}\nedges above {threshold:g}: {counts}",
    )  # fmt: skip
    for panel in panels:  # one scale for both
        panel.set_ylim(extent(n, everything))
    if axes is None:
        figure_legend(panels)
    return panels


def graph_size(n: int, edges: Sequence[Edge]) -> tuple[float, float]:
    """Size in inches with small margins: as wide as other figures, wider where the names of the arms need it."""
    unit = float(np.clip((WIDTH - 0.2) / (n + 0.4), 0.46, 0.8))
    low, high = extent(n, edges)
    return max(3.6, unit * (n + 0.4) + 0.2), unit * (high - low) + 0.6


def input_depth(n: int, edges: Sequence[Edge]) -> float:
    """Return where the inputs start: below all arcs where they have a name, else close to their arm."""
    below = max((height(e) for e in edges if e.cause < e.effect), default=0.0)
    return -max(1.15, RADIUS + below + 0.4) if n <= NAMED_INPUTS else -0.85


def extent(n: int, edges: Sequence[Edge]) -> tuple[float, float]:
    """From the lowest to the highest point of the drawing."""
    above = max((height(e) for e in edges if e.cause > e.effect), default=0.0)
    below = max((height(e) for e in edges if e.cause < e.effect), default=0.0)
    return min(input_depth(n, edges), -RADIUS - below) - 0.25, RADIUS + above + 0.25


def height(edge: Edge) -> float:
    """Return how far an arc rises above its nodes: less than proportionally, or long ones would leave the page."""
    return float(0.6 * abs(edge.cause - edge.effect) ** 0.75)


def arc(edge: Edge) -> Path:
    """A cubic from the rim of the cause to that of the effect, above when it runs to the left, below to the right."""
    side = 1.0 if edge.cause > edge.effect else -1.0
    # long arcs leave at the top, short ones at the side, so that arcs of one arm do not overlap
    lean = 0.9 * RADIUS * abs(edge.cause - edge.effect) ** -0.7 * np.sign(edge.effect - edge.cause)
    rim = side * np.sqrt(RADIUS**2 - lean**2)
    start = np.array([edge.cause + lean, rim])
    end = np.array([edge.effect - lean, rim])
    rise = np.array([0.0, side * height(edge) * 4 / 3])
    pull = 0.15 * (end - start)
    return Path([start, start + rise + pull, end + rise - pull, end], [Path.MOVETO, *[Path.CURVE4] * 3])


def point_on(curve: Path, share: float) -> Place:
    """The point of a cubic at a share of its parameter."""
    a, b, c, d = np.asarray(curve.vertices, float)
    rest = 1 - share
    x, y = rest**3 * a + 3 * rest**2 * share * b + 3 * rest * share**2 * c + share**3 * d
    return float(x), float(y)


def draw_edge(ax: Axes, edge: Edge, curve: Path, width: float, taken: list[Place], n: int) -> None:
    style = EDGE_STYLES[edge.kind]
    arrow = FancyArrowPatch(
        path=curve, arrowstyle="-|>", mutation_scale=7 + 2 * width, linewidth=width, color=style.color,
        linestyle=style.linestyle, zorder=2.0 if edge.kind == RIGHT else 2.5,
        label=f"_A[{edge.effect + 1},{edge.cause + 1}]",
    )  # fmt: skip
    arrow.set_capstyle("butt")
    ax.add_patch(arrow)
    if style.mark:
        x, y = free_place(curve, (0.3, 0.7, 0.22, 0.78), taken, n) or point_on(curve, 0.3)
        ax.plot(
            x, y, marker=style.mark, markersize=7, color=style.color, markeredgewidth=2.0, zorder=5,
            label=f"_{edge.kind}", linestyle="",
        )  # fmt: skip
        taken.append((x, y))


def free_place(curve: Path, shares: Sequence[float], taken: Sequence[Place], n: int) -> Place | None:
    """The first of some positions on an arc where nothing is written yet."""
    wide, tall = (0.66, 0.45) if n <= SMALL else (0.62, 0.3)  # of what is written there
    for share in shares:
        x, y = point_on(curve, share)
        if all(abs(x - u) > wide or abs(y - v) > tall for u, v in taken):
            return x, y
    return None


def write_weight(ax: Axes, edge: Edge, curve: Path, taken: list[Place], n: int) -> None:
    """Write the weight on its arc, unless it would cover something else."""
    place = free_place(curve, (0.5, 0.42, 0.58, 0.64, 0.36, 0.7), taken, n)
    if place is None:
        return
    text = f"A[{edge.effect + 1},{edge.cause + 1}]\n{edge.weight:.2f}" if n <= SMALL else f"{edge.weight:.2f}"
    ax.text(
        *place, text, ha="center", va="center", fontsize=7, color=EDGE_STYLES[edge.kind].color, zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )  # fmt: skip
    taken.append(place)


def draw_nodes(ax: Axes, names: Sequence[str], edges: Sequence[Edge]) -> None:
    """Arms on a line, with inputs below; the inputs of many arms have no names."""
    n = len(names)
    depth = input_depth(n, edges)
    short = max(map(len, names)) <= 2 and n <= SMALL
    size = min(7.2, 21 / max(map(len, names)))
    for i, name in enumerate(names):
        ax.add_patch(Circle((i, 0), RADIUS, facecolor="white", edgecolor="0.45", linewidth=1.6, zorder=3))
        ax.text(i, 0, f"y[{name}]" if short else name, ha="center", va="center", fontsize=size, zorder=4)
        start = (i, depth + (0.17 if n <= NAMED_INPUTS else 0.0))
        arrow = FancyArrowPatch(
            start, (i, -RADIUS), arrowstyle="-|>", mutation_scale=7, linewidth=1.0, color=INPUT,
            shrinkA=0, shrinkB=0, zorder=1, label="_input",
        )  # fmt: skip
        ax.add_patch(arrow)
        if n <= NAMED_INPUTS:
            ax.text(i, depth, f"z[{name}]", ha="center", va="center", fontsize=7.2, color=INPUT, zorder=6)


def add_labels(ax: Axes, kinds: set[str]) -> None:
    """Entries for the legend, for the kinds of edges in the graph."""
    for kind in (RIGHT, MISSED, FALSE):
        if kind in kinds:
            style = EDGE_STYLES[kind]
            ax.plot([], [], linewidth=2.0, label=style.label, color=style.color, ls=style.linestyle, marker=style.mark)
    ax.plot([], [], color=INPUT, linewidth=1.0, label="instantaneous reward z of the arm itself")

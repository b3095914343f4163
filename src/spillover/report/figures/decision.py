"""One decision as a picture: who passes how much on to whom, and what each arm's score is made of."""

import textwrap
from collections.abc import Sequence, Set
from itertools import combinations, takewhile
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from spillover.reasons import ArmReason, Reasons
from spillover.report.figures.bends import Line, Page, best_bend, curves, quadratic, within
from spillover.report.figures.places import Places, places
from spillover.report.figures.style import COLORS, HATCHES, figure_legend, figure_of, new_panels, tidy
from spillover.types import Array

MOST_ARMS = 24  # in each panel
MOST_SOURCES = 12  # chosen arms that are in the graph before those that they pass something on to
MOST_EDGES = 40
FEW_EDGES = 30  # up to so many, edges that nothing passes along are drawn too
RUNNERS_UP = 4  # with a bar in any case, and so many of the last that were chosen
KEY_NAME = 20  # letters of a name below the graph
NAMED_NODES = 12  # up to so many arms there is room for names in the graph, else they are numbered
LONG_NAME = 26  # the same for longer names
NAME_WIDTH = 13  # letters of a line of a name in the graph
LEVEL = 0.25  # slope below which an arrow is level
NAMED_EDGES = 12
AMOUNTS_AT = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)  # parts of an arrow where its amount may stand
NEGLIGIBLE = 0.01  # amounts below this share of the largest are not written
STRONG_ARROWS = 10  # that others do not lie on
SIDE_BY_SIDE = 0.12  # of the width of the graph: names of arms that are nearer meet if they stand at one height
NAMED_MARGINS = (0.32, 0.32)  # below and above the graph, whose height is 1 and more
NUMBERED_MARGINS = (0.1, 0.12)
WIDTH = 290.0  # points of the graph, at least
TITLES = 0.8  # inches of the figure's height that the graph does not have
LEAST_CIRCLE = 22.0  # points across, where names stand between circles; where there is less room arms are numbered
NEXT_TO_NOTHING = 0.001  # flows below this share of the largest count as nothing
FAINT = 0.01  # edges weaker than this share of the strongest are left out
TAKEN: dict[str, Any] = {"facecolor": "#56B4E9", "edgecolor": "black", "linewidth": 2.2}
OTHERS: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.5", "linewidth": 1.2}
PARTS = (
    ("direct", "effect on itself", COLORS[0], HATCHES[0]),
    ("spilled_over", "spills over to others", COLORS[1], HATCHES[1]),
    ("exploration", "exploration", "0.8", HATCHES[2]),
)


class Flow(NamedTuple):
    """An edge that is drawn."""

    cause: int
    effect: int
    amount: float  # what passes if the chosen arms are played
    weight: float


class Drawing(NamedTuple):
    """What is moved once all has its place on the page."""

    arrows: dict[Flow, FancyArrowPatch]  # the strongest first
    sizes: dict[int, float]  # of the circles, in square points
    names: dict[int, Annotation]  # none where arms are numbered


def decision_figure(reasons: Reasons) -> Figure:
    """The graph with the chosen arms and the flows that they start, beside it the scores taken apart.

    Of many arms the scores are those of the chosen, the best and the last of them, then of the next best; the graph
    has those that pass on most and those that receive it. What is left out is said.
    """
    flows = strongest_flows(reasons)
    nodes = graph_arms(reasons)
    shown = shown_arms(reasons, nodes)
    height = max(4.2, 0.27 * len(shown) + 1.6)
    drawn = drawn_flows(reasons, flows, nodes)
    where = places_of([arm.position for arm in nodes], drawn, len(reasons.arms))
    crowded = apart(where, height, NAMED_MARGINS) < LEAST_CIRCLE + name_room(nodes)
    numbered = crowded or len(nodes) > NAMED_NODES or max(len(arm.arm) for arm in nodes) > LONG_NAME
    numbers = numbers_of(shown, nodes) if numbered else {}
    graph, bars = new_panels(1, 2, size=(12.5, height), gridspec_kw={"width_ratios": [1.15, 1]})
    draw_scores(bars, reasons, shown, numbers)
    drawing = draw_graph(graph, nodes, drawn, where, numbers)
    graph.set_xlabel(as_written(textwrap.fill(left_out(reasons, shown, nodes, drawn), 72)), fontsize="small")
    figure = figure_of(graph)
    names = [arm.arm for arm in reasons.ranked() if arm.chosen]
    plan = " (by a plan, not by the scores)" if reasons.planned else ""
    title = f"{len(names)} of {len(reasons.arms)} arms chosen{plan}: {', '.join(names) or 'none'}"
    figure.suptitle(as_written(textwrap.shorten(title, 105, placeholder=" …")), fontsize="large", fontweight="bold")
    figure_legend([graph, bars])
    settle(graph, drawing, where)
    return figure


def strongest_flows(reasons: Reasons) -> list[Flow]:
    """The edges, the largest flows first, then the others by weight; faint ones are left out."""
    if np.isnan(reasons.flows).any():
        return []
    A, flows = reasons.adjacency, reasons.flows
    heaviest = np.abs(A).max(initial=0.0)
    edges = np.argwhere(np.abs(A) > FAINT * heaviest)
    passing = np.where(np.abs(flows) < NEXT_TO_NOTHING * np.abs(flows).max(initial=0.0), 0.0, flows)
    found = [Flow(int(j), int(i), float(passing[i, j]), float(A[i, j])) for i, j in edges]
    return sorted(found, key=lambda flow: (-abs(flow.amount), -abs(flow.weight)))


def graph_arms(reasons: Reasons) -> list[ArmReason]:
    """In the order of `ranked`: the chosen arms that pass on most, then those that most passes to or from."""
    ranked = reasons.ranked()
    if len(ranked) <= MOST_ARMS:
        return ranked
    flows = np.abs(np.nan_to_num(reasons.flows))
    passed = flows.sum(axis=0)
    waiting = sorted(ranked, key=lambda arm: (not arm.chosen, -passed[arm.position]))
    kept = [arm.position for arm in waiting[:MOST_SOURCES] if arm.chosen]
    while len(kept) < MOST_ARMS:
        joined = flows[:, kept].sum(axis=1) + flows[kept].sum(axis=0)
        left = [arm.position for arm in waiting if arm.position not in kept]
        kept.append(max(left, key=lambda j: float(joined[j])))  # of equal ones the first
    return [arm for arm in ranked if arm.position in kept]


def drawn_flows(reasons: Reasons, flows: Sequence[Flow], nodes: Sequence[ArmReason]) -> list[Flow]:
    """The largest, and of each chosen arm at least one; then some that nothing passes along."""
    here = {arm.position for arm in nodes}
    inside = [flow for flow in flows if flow.cause in here and flow.effect in here]
    passing = [flow for flow in inside if flow.amount]
    firsts = {flow.cause: flow for flow in reversed(passing) if reasons.arms[flow.cause].chosen}.values()
    kept = set(list(dict.fromkeys([*sorted(firsts, key=passing.index), *passing]))[:MOST_EDGES])
    nothing = [flow for flow in inside if not flow.amount]
    return [flow for flow in passing if flow in kept] + drawn_structure(kept, nothing)


def drawn_structure(kept: Set[Flow], edges: Sequence[Flow]) -> list[Flow]:
    """Of edges that nothing passes along: some if there are few arrows, else one of each arm that would stand alone."""
    joined = {end for flow in kept for end in (flow.cause, flow.effect)}
    alone = {end: flow for flow in reversed(edges) for end in (flow.cause, flow.effect) if end not in joined}
    firsts = dict.fromkeys(alone.values())
    room = min(max(FEW_EDGES - len(kept), len(firsts)), MOST_EDGES - len(kept))
    taken = set(list(dict.fromkeys([*firsts, *edges]))[:room])
    return [flow for flow in edges if flow in taken]


def shown_arms(reasons: Reasons, nodes: Sequence[ArmReason]) -> list[ArmReason]:
    """Those with a bar, in the order of `ranked`: the chosen, the runners-up, the others in the graph, then by score.

    Of too many chosen ones the last are kept beside the best: with the runners-up they show how close it was.
    """
    ranked = reasons.ranked()
    if len(ranked) <= MOST_ARMS:
        return ranked
    chosen = [arm.position for arm in ranked if arm.chosen]
    others = [arm.position for arm in ranked if not arm.chosen]
    room = MOST_ARMS - min(RUNNERS_UP, len(others))
    if len(chosen) > room:
        chosen = chosen[: room - RUNNERS_UP] + chosen[-RUNNERS_UP:]
    wanted = [*chosen, *others[:RUNNERS_UP], *(arm.position for arm in nodes), *others]
    kept = set(list(dict.fromkeys(wanted))[:MOST_ARMS])
    return [arm for arm in ranked if arm.position in kept]


def numbers_of(shown: Sequence[ArmReason], nodes: Sequence[ArmReason]) -> dict[int, int]:
    """Of the arms in the graph: their rows among the bars, and the next numbers for those without a bar."""
    rows = dict.fromkeys(arm.position for arm in (*shown, *nodes))
    here = {arm.position for arm in nodes}
    return {position: row for row, position in enumerate(rows, start=1) if position in here}


def short(name: str, most: int) -> str:
    """A long name without its middle: names of a kind begin alike and end differently."""
    if len(name) <= most:
        return name
    tail = most // 2
    return f"{name[: most - 1 - tail].rstrip()}…{name[-tail:].lstrip()}"


def as_written(text: str) -> str:
    """Dollars are no formulas."""
    return text.replace("$", r"\$")


def row_names(names: Sequence[str]) -> list[str]:
    """Names for the bars: of few arms in two lines, of many without their middle, and all of them different."""
    if len(names) <= NAMED_NODES:
        return [textwrap.fill(text, 32) for text in short_names(names, 60)]
    return short_names(names, 30)


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Short names that are all different: where the middle is what differs, it is kept rather than the end."""
    texts = [short(name, most) for name in names]
    for text in {text for text in texts if texts.count(text) > 1}:
        alike = [k for k, other in enumerate(texts) if other == text]
        letters = zip(*(names[k] for k in alike), strict=False)
        same = sum(1 for _ in takewhile(lambda these: len(set(these)) == 1, letters))
        for k in alike:
            texts[k] = around(names[k], same, most)
    return [text if texts.count(text) == 1 else f"{text} ({k + 1})" for k, text in enumerate(texts)]


def around(name: str, place: int, most: int) -> str:
    """The beginning of a name and what stands around a place in it."""
    head, room = most // 4, most - most // 4 - 2
    start = max(place - room // 2, 0)
    if start <= head:
        return f"{name[: most - 1].rstrip()}…"
    return f"{name[:head].rstrip()}…{name[start : start + room].strip()}…"


# --- the scores ------------------------------------------------------------------------------------------------------


def draw_scores(ax: Axes, reasons: Reasons, shown: Sequence[ArmReason], numbers: dict[int, int]) -> None:
    """A bar an arm, its parts one behind the other; parts below 0 run to the left."""
    limit = scale_limit(shown)
    rows = np.arange(len(shown))
    right, left = np.zeros(len(shown)), np.zeros(len(shown))
    for name, label, color, hatch in PARTS:
        part = np.clip([getattr(arm, name) for arm in shown], -2 * limit, 2 * limit)
        start = np.where(part >= 0, right, left)
        style: dict[str, Any] = {"color": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0.6}
        ax.barh(rows, part, left=start, height=0.72, label=label, **style)
        right, left = right + np.maximum(part, 0), left + np.minimum(part, 0)
    within = [np.clip(arm.score, -limit, limit) if abs(arm.score) <= limit else np.nan for arm in shown]
    ax.plot(within, rows, "|", color="black", markersize=11, markeredgewidth=2, label="score")
    for row, arm in enumerate(shown):
        if abs(arm.score) > limit:
            write_beyond(ax, row, arm, limit)
    lowest = float(left.min(initial=0.0))
    ax.set_xlim(max(lowest, -limit) * 1.08, limit)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.axvline(0, color="0.3", linewidth=0.8)
    name_rows(ax, shown, numbers)
    ax.set_xlabel(textwrap.fill(f"score: {reasons.quantity}, exploration included", 80), fontsize="small")
    ax.set_title(score_title(reasons, shown), fontsize="medium")
    tidy(ax)


def scale_limit(shown: Sequence[ArmReason]) -> float:
    """Where the axis ends: scores without limit, or out of all proportion, do not squeeze the others."""
    sizes = np.array([abs(arm.score) for arm in shown if np.isfinite(arm.score) and arm.score != 0])
    if not len(sizes):
        return 1.0
    return 1.12 * float(sizes[sizes <= 50 * np.median(sizes)].max())


def write_beyond(ax: Axes, row: int, arm: ArmReason, limit: float) -> None:
    """What a bar that runs out of the picture stands for."""
    words = f"{arm.score:.3g}" if np.isfinite(arm.score) else "no limit: nothing known yet"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.9}
    side = "right" if arm.score > 0 else "left"
    ax.text(np.sign(arm.score) * limit * 0.97, row, words, ha=side, va="center", fontsize=8, bbox=box)


def name_rows(ax: Axes, shown: Sequence[ArmReason], numbers: dict[int, int]) -> None:
    """Names, those of the chosen arms in bold with a dot, and the line between them and the others."""
    labels = []
    texts = row_names([arm.arm for arm in shown])
    for arm, name in zip(shown, texts, strict=True):
        number = f"   {numbers[arm.position]}" if arm.position in numbers else ""
        labels.append(f"{as_written(name)}{number} {'●' if arm.chosen else '○'}")
    ax.set_yticks(range(len(shown)), labels, fontsize=8.5)
    for tick, arm in zip(ax.get_yticklabels(), shown, strict=True):
        tick.set_fontweight("bold" if arm.chosen else "normal")
    chosen = sum(arm.chosen for arm in shown)
    if 0 < chosen < len(shown):
        ax.axhline(chosen - 0.5, color="black", linewidth=1.1, linestyle=(0, (5, 3)), label="chosen above, not below")


def score_title(reasons: Reasons, shown: Sequence[ArmReason]) -> str:
    left = [arm for arm in reasons.arms if arm not in shown]
    title = "what each score is made of"
    if not left:
        return title
    groups = [("chosen", [arm for arm in left if arm.chosen]), ("not chosen", [arm for arm in left if not arm.chosen])]
    said = [f"{len(some)} {what}, at most {max(arm.score for arm in some):.3g}" for what, some in groups if some]
    return f"{title}: {len(shown)} of {len(reasons.arms)} arms\n(left out: {'; '.join(said)})"


# --- the graph -------------------------------------------------------------------------------------------------------


def places_of(nodes: Sequence[int], drawn: Sequence[Flow], n: int) -> Places:
    """Where the arms stand; rows of arms without an edge are further apart where names may stand between them."""
    edges = np.zeros((n, n))
    for flow in drawn:
        edges[flow.effect, flow.cause] = 1.0
    return places(nodes, edges, 0.36 if len(nodes) <= NAMED_NODES else 0.16)


def apart(where: Places, height: float, margins: tuple[float, float]) -> float:
    """The least distance of two arms in points, in a figure of this height."""
    heights = [y for _, y in where.values()]
    unit = 72 * (height - TITLES) / (max(heights) - min(heights) + sum(margins))
    pairs = combinations(where.values(), 2)
    return min((float(np.hypot(WIDTH * (x - x1), unit * (y - y1))) for (x, y), (x1, y1) in pairs), default=WIDTH)


def draw_graph(
    ax: Axes, nodes: Sequence[ArmReason], drawn: Sequence[Flow], where: Places, numbers: dict[int, int]
) -> Drawing:
    """Arms as circles, the larger the higher their scores; arrows as wide as what passes along them.

    numbers: of the arms; without any there is room for names.
    """
    below, over = margins = NUMBERED_MARGINS if numbers else NAMED_MARGINS
    room = apart(where, float(figure_of(ax).get_size_inches()[1]), margins)
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
    ax.set_title("what the chosen arms pass on", fontsize="medium")
    return Drawing(arrows, sizes, names)


def name_room(shown: Sequence[ArmReason]) -> float:
    """Points that the name of an arm takes below its circle, at most."""
    return 4.0 + 10.0 * max(len(textwrap.wrap(arm.arm, NAME_WIDTH)) for arm in shown)


def named_above(drawn: Sequence[Flow], where: Places) -> set[int]:
    """Arms that have most of their arrows below and no other arm above: there the name is in nobody's way."""
    found = set()
    for arm, (x, y) in where.items():
        ends = [flow.effect if flow.cause == arm else flow.cause for flow in drawn if arm in (flow.cause, flow.effect)]
        rises = [where[other][1] - y for other in ends]
        free = not any(abs(x - x1) < SIDE_BY_SIDE and 0 < y1 - y < 0.5 for x1, y1 in where.values())
        if free and sum(rise < 0 for rise in rises) > sum(rise > 0 for rise in rises):
            found.add(arm)
    return found


def node_sizes(shown: Sequence[ArmReason], widest: float) -> dict[int, float]:
    """Areas in square points, in proportion to the scores above a least size; no circle is wider than `widest`."""
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
        # a mark of its own for the legend, where circles of these sizes would not fit
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
    """Above or below a circle of this size."""
    away = np.sqrt(size) / 2 + 3
    name.xyann = (0, away if above else -away)
    name.set_verticalalignment("bottom" if above else "top")


def draw_flows(ax: Axes, drawn: Sequence[Flow], where: Places, sizes: dict[int, float]) -> dict[Flow, FancyArrowPatch]:
    """Arrows, straight for now; those that nothing passes along are thin and grey, those that take away are dashed."""
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
    """Colour, line and what they mean."""
    if flow.amount == 0:
        return "0.75", "-", "(next to) nothing passes"
    if flow.amount > 0:
        return COLORS[1], "-", "passes on (width: how much)"
    return "black", "--", "takes away (width: how much)"


def bend(flow: Flow, where: Places, *, mutual: bool) -> float:
    """Arrows there and back bend to both sides. Long ones bend more: away from others that begin where they do, or if
    they are level towards the middle, where there is room.
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


def settle(ax: Axes, drawing: Drawing, where: Places) -> None:
    """Bend the arrows, put names where few arrows are, and write the amounts.

    Arrows bend on the page, not in the coordinates of the axes, so this comes when everything else has its place.
    """
    figure_of(ax).draw_without_rendering()
    bend_arrows(ax, drawing, where)
    move_names(ax, drawing)
    if len(drawing.arrows) <= NAMED_EDGES:
        write_amounts(ax, drawing)


def bend_arrows(ax: Axes, drawing: Drawing, where: Places) -> None:
    """Strong arrows come first, and the others keep clear of them."""
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
        rad = best_bend(ends, bend(flow, where, mutual=mutual), width, page, strong, one_side=mutual)
        arrow.set_connectionstyle("arc3", rad=rad)
        if len(strong) < STRONG_ARROWS:
            strong.append(Line(ends, curves(page, ends, np.array([rad]))[0], width))


def move_names(ax: Axes, drawing: Drawing) -> None:
    """To the other sides of their circles, where fewer arrows are and nothing else is."""
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
    """How many arrows a box lies on; heads count more."""
    return sum(bool(within(line, box).any()) for line in lines) + 2 * box.count_overlaps(heads)


def corners_of(arrow: FancyArrowPatch) -> Array:
    """On the page: the start, the control point and the end of the line, then the corners of the head."""
    return np.asarray(arrow.get_transform().transform(arrow.get_path().vertices)[:6], float)  # the last one closes it


def write_amounts(ax: Axes, drawing: Drawing) -> None:
    """How much passes, on the arrows; nowhere rather than on top of something else, and nothing that is negligible."""
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
    """The squares around the arms on the page."""
    found = []
    for marks in [marks for marks in ax.collections if isinstance(marks, PathCollection)]:
        centres = ax.transData.transform(np.asarray(marks.get_offsets()).reshape(-1, 2))  # none of marks of the legend
        for (x, y), size in zip(centres, marks.get_sizes(), strict=False):
            half = np.sqrt(size) / 2 * figure_of(ax).dpi / 72
            found.append(Bbox.from_extents(x - half, y - half, x + half, y + half))
    return found


def left_out(reasons: Reasons, shown: Sequence[ArmReason], nodes: Sequence[ArmReason], drawn: Sequence[Flow]) -> str:
    """What the graph does not show, in words, and who it shows that has no bar."""
    if np.isnan(reasons.flows).any():
        return "Not known along which paths it spills over."
    edges = int((reasons.adjacency != 0).sum())
    if not edges:
        return "No spill-over is known."
    total = float(np.abs(reasons.flows).sum())
    share = sum(abs(flow.amount) for flow in drawn) / total if total else 1.0
    whole = len(nodes) == len(reasons.arms)
    arms = "" if whole else f"{len(nodes)} of {len(reasons.arms)} arms{some_chosen(reasons, nodes)}, "
    if len(drawn) == edges and whole:
        return "All edges of the graph are shown."
    carried = f", which carry {share:.1%} of all that is passed on" if total else ""
    return f"Shown: {arms}{len(drawn)} of {edges:,} edges{carried}.{without_bar(shown, nodes)}"


def some_chosen(reasons: Reasons, nodes: Sequence[ArmReason]) -> str:
    """How many of the chosen are in the graph, if not all."""
    chosen, here = (sum(arm.chosen for arm in arms) for arms in (reasons.arms, nodes))
    return "" if here == chosen else f" ({here} of the {chosen} chosen)"


def without_bar(shown: Sequence[ArmReason], nodes: Sequence[ArmReason]) -> str:
    """A key to the numbers that stand at no bar."""
    numbers, rows = numbers_of(shown, nodes), {arm.position for arm in shown}
    others = [arm for arm in nodes if arm.position not in rows]
    if not others:
        return ""
    names = zip(others, short_names([arm.arm for arm in others], KEY_NAME), strict=True)
    key = [f"{numbers[arm.position]} {name}".replace(" ", "\N{NO-BREAK SPACE}") for arm, name in names]
    return f" Bars without a number: not in the graph. Circles without a bar: {', '.join(key)}."

"""One decision as a figure: how much spills over between arms, and the parts of each arm's score."""

import textwrap
from collections.abc import Sequence, Set
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spillover.figures.flows import (
    LEAST_CIRCLE,
    NAMED_MARGINS,
    Flow,
    draw_graph,
    finish_graph,
    least_distance,
    name_room,
    places_of,
    scale_limit,
)
from spillover.figures.style import (
    COLORS,
    HATCHES,
    LONG_NAME,
    NAMED_NODES,
    as_written,
    figure_legend,
    figure_of,
    hide_spines,
    new_panels,
    row_names,
    short_names,
)
from spillover.reasons import ArmReason, Reasons
from spillover.reasons.paths import edge_places, is_known, sizes, values_at

MOST_ARMS = 24  # in each panel
MOST_SOURCES = 12  # chosen arms in the graph, before the arms that they affect
MOST_EDGES = 40
FEW_EDGES = 30  # up to this many, edges without a flow are drawn too
RUNNERS_UP = 4  # that always have a bar, and as many of the worst chosen arms
NEAR = 2_000  # with more arms, only those that a flow joins to the others are looked at
KEY_NAME = 20  # letters of a name below the graph
NEXT_TO_NOTHING = 0.001  # flows below this share of the largest count as 0
FAINT = 0.01  # edges weaker than this share of the strongest are left out
PARTS = (
    ("on_itself", "effect on itself", COLORS[0], HATCHES[0]),
    ("on_others", "spills over to others", COLORS[1], HATCHES[1]),
    ("exploration", "exploration", "0.8", HATCHES[2]),
)


def decision_figure(reasons: Reasons) -> Figure:
    """The graph with the chosen arms and the flows that they start; beside it, the parts of the scores.

    With many arms, the scores are those of the chosen arms (the best and the worst of them) and the runners-up, and
    the graph has the arms that pass on or receive most. The figure says what is left out.

    >>> import spillover as sp
    >>> learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), seed=1)
    >>> for z in ([0.6, 0], [0, 0.5]):
    ...     learner.report(learner.play([z[0] > 0, z[1] > 0]), z=z, y=z)
    >>> figure = decision_figure(learner.reasons(["web", "radio"]))
    >>> len(figure.axes)  # the graph, and the scores
    2
    """
    flows = strongest_flows(reasons)
    nodes = graph_arms(reasons)
    shown = shown_arms(reasons, nodes)
    height = max(4.2, 0.27 * len(shown) + 1.6)
    drawn = drawn_flows(reasons, flows, nodes)
    where = places_of([arm.position for arm in nodes], drawn, len(reasons.arms))
    crowded = least_distance(where, height, NAMED_MARGINS) < LEAST_CIRCLE + name_room(nodes)
    numbered = crowded or len(nodes) > NAMED_NODES or max(len(arm.arm) for arm in nodes) > LONG_NAME
    numbers = numbers_of(shown, nodes) if numbered else {}
    graph, bars = new_panels(1, 2, size=(12.5, height), gridspec_kw={"width_ratios": [1.15, 1]})
    draw_scores(bars, reasons, shown, numbers)
    drawing = draw_graph(graph, nodes, drawn, where, numbers)
    graph.set_xlabel(as_written(textwrap.fill(graph_caption(reasons, shown, nodes, drawn), 72)), fontsize="small")
    figure = figure_of(graph)
    names = [arm.arm for arm in reasons.ranked() if arm.chosen]
    plan = " (by a plan, not by scores)" if reasons.planned else ""
    title = f"{len(names)} of {len(reasons.arms)} arms chosen{plan}: {', '.join(names) or 'none'}"
    figure.suptitle(as_written(textwrap.shorten(title, 105, placeholder=" …")), fontsize="large", fontweight="bold")
    figure_legend([graph, bars])
    finish_graph(graph, drawing, where)
    return figure


def draw_scores(ax: Axes, reasons: Reasons, shown: Sequence[ArmReason], numbers: dict[int, int]) -> None:
    """One bar for each arm, with its parts stacked; negative parts extend to the left."""
    limit = scale_limit(shown)
    rows = np.arange(len(shown))
    right, left = np.zeros(len(shown)), np.zeros(len(shown))
    for name, label, color, hatch in shown_parts(reasons):
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
    ax.set_xlabel(textwrap.fill(f"score: {reasons.quantity}, including exploration", 80), fontsize="small")
    ax.set_title(score_title(reasons, shown), fontsize="medium")
    hide_spines(ax)


def shown_parts(reasons: Reasons) -> Sequence[tuple[str, str, str, str]]:
    """The parts of a score; effects are not split where a policy knows totals only."""
    if is_known(reasons.adjacency) or any(arm.spilled_over for arm in reasons.arms):
        return PARTS
    effect, _, exploration = PARTS
    return ("total", "expected effect", *effect[2:]), exploration


def write_beyond(ax: Axes, row: int, arm: ArmReason, limit: float) -> None:
    """Write the score of a bar that is cut off."""
    words = f"{arm.score:.3g}" if np.isfinite(arm.score) else "infinite: no data yet"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.9}
    side = "right" if arm.score > 0 else "left"
    ax.text(np.sign(arm.score) * limit * 0.97, row, words, ha=side, va="center", fontsize=8, bbox=box)


def name_rows(ax: Axes, shown: Sequence[ArmReason], numbers: dict[int, int]) -> None:
    """Write the names, those of the chosen arms in bold with a dot, and draw a line below the chosen arms."""
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
        ax.axhline(chosen - 0.5, color="black", linewidth=1.1, linestyle=(0, (5, 3)), label="chosen arms above")


def score_title(reasons: Reasons, shown: Sequence[ArmReason]) -> str:
    left = [arm for arm in reasons.arms if arm not in shown]
    title = "the parts of each score"
    if not left:
        return title
    groups = [("chosen", [arm for arm in left if arm.chosen]), ("not chosen", [arm for arm in left if not arm.chosen])]
    parts = [f"{len(some)} {what}, at most {max(arm.score for arm in some):.3g}" for what, some in groups if some]
    return f"{title}: {len(shown)} of {len(reasons.arms)} arms\n(left out: {'; '.join(parts)})"


def strongest_flows(reasons: Reasons) -> list[Flow]:
    """The edges, the largest flows first, then the others by weight, without faint ones."""
    if not is_known(reasons.flows):
        return []
    edges = edge_places(reasons.adjacency)
    weights, flows = values_at(reasons.adjacency, edges), values_at(reasons.flows, edges)
    heaviest = np.abs(weights).max(initial=0.0)
    passing = np.where(np.abs(flows) < NEXT_TO_NOTHING * np.abs(flows).max(initial=0.0), 0.0, flows)
    found = [
        Flow(j, i, float(amount), float(weight))
        for (i, j), amount, weight in zip(edges, passing, weights, strict=True)
        if abs(weight) > FAINT * heaviest
    ]
    return sorted(found, key=lambda flow: (-abs(flow.amount), -abs(flow.weight)))


def graph_arms(reasons: Reasons) -> list[ArmReason]:
    """The chosen arms that pass on most, then the arms with the largest flows to or from them, as in `ranked`."""
    ranked = reasons.ranked()
    if len(ranked) <= MOST_ARMS:
        return ranked
    flows = sizes(reasons.flows)
    passed = flows.sum(axis=0)
    waiting = sorted(ranked, key=lambda arm: (not arm.chosen, -passed[arm.position]))
    kept = [arm.position for arm in waiting[:MOST_SOURCES] if arm.chosen]
    while len(kept) < MOST_ARMS:
        joined = flows[:, kept].sum(axis=1) + flows[kept].sum(axis=0)
        near = (
            waiting if len(waiting) <= NEAR else [arm for arm in waiting if joined[arm.position] > 0] or waiting[:NEAR]
        )
        left = [arm.position for arm in near if arm.position not in kept]
        if not left:
            break
        kept.append(max(left, key=lambda j: float(joined[j])))  # the first of equal ones
    return [arm for arm in ranked if arm.position in kept]


def drawn_flows(reasons: Reasons, flows: Sequence[Flow], nodes: Sequence[ArmReason]) -> list[Flow]:
    """The largest flows, at least one for each chosen arm; then some edges without a flow."""
    here = {arm.position for arm in nodes}
    inside = [flow for flow in flows if flow.cause in here and flow.effect in here]
    passing = [flow for flow in inside if flow.amount]
    firsts = {flow.cause: flow for flow in reversed(passing) if reasons.arms[flow.cause].chosen}.values()
    kept = set(list(dict.fromkeys([*sorted(firsts, key=passing.index), *passing]))[:MOST_EDGES])
    nothing = [flow for flow in inside if not flow.amount]
    return [flow for flow in passing if flow in kept] + drawn_structure(kept, nothing)


def drawn_structure(kept: Set[Flow], edges: Sequence[Flow]) -> list[Flow]:
    """Edges without a flow: some if there are few arrows, else one for each arm that would have none."""
    joined = {end for flow in kept for end in (flow.cause, flow.effect)}
    alone = {end: flow for flow in reversed(edges) for end in (flow.cause, flow.effect) if end not in joined}
    firsts = dict.fromkeys(alone.values())
    room = min(max(FEW_EDGES - len(kept), len(firsts)), MOST_EDGES - len(kept))
    taken = set(list(dict.fromkeys([*firsts, *edges]))[:room])
    return [flow for flow in edges if flow in taken]


def shown_arms(reasons: Reasons, nodes: Sequence[ArmReason]) -> list[ArmReason]:
    """The arms with a bar, as in `ranked`: the chosen, the runners-up, the others in the graph, then by score.

    Of too many chosen arms the best and the worst are kept: with the runners-up they show how close it was.
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
    """Numbers of the arms in the graph: the rows of their bars, and the next numbers for arms without a bar."""
    rows = dict.fromkeys(arm.position for arm in (*shown, *nodes))
    here = {arm.position for arm in nodes}
    return {position: row for row, position in enumerate(rows, start=1) if position in here}


def graph_caption(
    reasons: Reasons, shown: Sequence[ArmReason], nodes: Sequence[ArmReason], drawn: Sequence[Flow]
) -> str:
    """Say what the graph leaves out, and which of its arms have no bar."""
    if not is_known(reasons.flows):
        return "The paths of the spill-over are not known."
    edges = len(edge_places(reasons.adjacency))
    if not edges:
        return "No spill-over is known."
    total = float(sizes(reasons.flows).sum())
    share = sum(abs(flow.amount) for flow in drawn) / total if total else 1.0
    all_arms = len(nodes) == len(reasons.arms)
    arms = "" if all_arms else f"{len(nodes)} of {len(reasons.arms)} arms{some_chosen(reasons, nodes)}, "
    if len(drawn) == edges and all_arms:
        return "All edges of the graph are shown."
    carried = f", which carry {share:.1%} of the spill-over" if total else ""
    return f"Shown: {arms}{len(drawn)} of {edges:,} edges{carried}.{without_bar(shown, nodes)}"


def some_chosen(reasons: Reasons, nodes: Sequence[ArmReason]) -> str:
    """Count the chosen arms in the graph, if not all are."""
    chosen, here = (sum(arm.chosen for arm in arms) for arms in (reasons.arms, nodes))
    return "" if here == chosen else f" ({here} of the {chosen} chosen)"


def without_bar(shown: Sequence[ArmReason], nodes: Sequence[ArmReason]) -> str:
    """A key to the numbers of arms without a bar."""
    numbers, rows = numbers_of(shown, nodes), {arm.position for arm in shown}
    others = [arm for arm in nodes if arm.position not in rows]
    if not others:
        return ""
    names = zip(others, short_names([arm.arm for arm in others], KEY_NAME), strict=True)
    key = [f"{numbers[arm.position]} {name}".replace(" ", "\N{NO-BREAK SPACE}") for arm, name in names]
    return f" Bars without a number: not in the graph. Circles without a bar: {', '.join(key)}."

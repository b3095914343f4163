"""Choose the arms and edges of the figure of a decision, and caption those that are left out."""

from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from spillover.figures.style import short_names
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


class Flow(NamedTuple):
    """An edge that is drawn."""

    cause: int
    effect: int
    amount: float  # the flow if the chosen arms are played
    weight: float


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


def scale_limit(shown: Sequence[ArmReason]) -> float:
    """Return where the axis ends: infinite or very large scores must not squeeze the others."""
    sizes = np.array([abs(arm.score) for arm in shown if np.isfinite(arm.score) and arm.score != 0])
    if not len(sizes):
        return 1.0
    return 1.12 * float(sizes[sizes <= 50 * np.median(sizes)].max())


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

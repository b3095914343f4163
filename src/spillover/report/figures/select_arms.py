"""Which arms and edges the picture of a decision shows, and what it says of the others."""

from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from spillover.reasons import ArmReason, Reasons
from spillover.report.figures.labels import short_names

MOST_ARMS = 24  # in each panel
MOST_SOURCES = 12  # chosen arms that are in the graph before those that they pass something on to
MOST_EDGES = 40
FEW_EDGES = 30  # up to so many, edges that nothing passes along are drawn too
RUNNERS_UP = 4  # with a bar in any case, and so many of the last that were chosen
KEY_NAME = 20  # letters of a name below the graph
NEXT_TO_NOTHING = 0.001  # flows below this share of the largest count as nothing
FAINT = 0.01  # edges weaker than this share of the strongest are left out


class Flow(NamedTuple):
    """An edge that is drawn."""

    cause: int
    effect: int
    amount: float  # what passes if the chosen arms are played
    weight: float


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


def scale_limit(shown: Sequence[ArmReason]) -> float:
    """Where the axis ends: scores without limit, or out of all proportion, do not squeeze the others."""
    sizes = np.array([abs(arm.score) for arm in shown if np.isfinite(arm.score) and arm.score != 0])
    if not len(sizes):
        return 1.0
    return 1.12 * float(sizes[sizes <= 50 * np.median(sizes)].max())


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

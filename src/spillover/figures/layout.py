"""Positions of the arms of a graph: from left to right without cycles, in a ring with cycles."""

from collections.abc import Sequence

import numpy as np

from spillover.reasons import layers
from spillover.types import Array

Places = dict[int, tuple[float, float]]
ZIGZAG = (0.5, 0.82, 0.18, 0.66, 0.34)  # heights of arms alone in their column, so that arrows do not overlap
IN_A_ROW = 8  # arms without any edge


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

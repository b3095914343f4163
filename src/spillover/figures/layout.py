"""Positions of the arms of a graph, and bends of arrows that avoid circles at which they do not end.

Arrows are curves as matplotlib's "arc3" draws them: from the middle of one circle to that of another, with a control
point `rad` times the length beside the middle.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike

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

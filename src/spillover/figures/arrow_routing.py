"""How arrows bend on the page to avoid circles at which they do not end.

Arrows are curves as matplotlib's "arc3" draws them: from the middle of one circle to that of another, with a control
point `rad` times the length beside the middle.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike

from spillover.types import Array

POINTS = np.linspace(0, 1, 41)  # positions along a curve
BENDS = (0.0, 0.07, 0.14, 0.2, 0.27, 0.35, 0.45, 0.55, 0.7)  # to both sides
GAP = 3.0  # pixels between a curve and circles other than its ends
TOUCHED = 100.0  # cost of a pixel too near to a circle: more than any bend
ON_A_NAME = 0.2  # cost of crossing a name
ON_ARROWS = 1.0  # cost of a curve that lies entirely on others


class Page(NamedTuple):
    """What is on the page, in pixels."""

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
    """By how many pixels each curve comes too near to circles that are not its own."""
    away = distances(found, page.centres).min(axis=1)
    short = np.maximum(page.radii + width / 2 + GAP - away, 0.0)
    short[:, list(ends)] = 0.0
    return np.asarray(short.sum(axis=1))


def outside(found: Array, width: float, frame: Bbox) -> Array:
    """By how many pixels each curve leaves the frame."""
    low, high = frame.get_points() + width / 2 * np.array([[1], [-1]])
    return np.asarray(np.maximum(np.maximum(low - found, found - high), 0.0).max(axis=(1, 2)))


def within(found: Array, box: Bbox) -> Array:
    """Which points are in a box."""
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

"""What the policies that learn no graph say of themselves: weights of 1 and no edges, or the weights they were told."""

from typing import Any

import numpy as np

from spillover.policies.scale import Scale
from spillover.types import Array, BoolArray, Explanation


def ranked_by(told_graph: bool) -> str:
    """What the scores of a policy on a scale are, in words."""
    if told_graph:
        return "expected total effect of playing the arm"
    return "expected overall reward of the arm itself, on a scale from 0 to 1"


def plain_explanation(
    *,
    mean: Array,
    count: Array,
    clock: Any,
    index: Array,
    chosen: BoolArray,
    weights: Array | None = None,
    adjacency: Array | None = None,
    planned: Any = False,
) -> Explanation:
    """An explanation whose arms have no effect on each other, unless weights and edges are given."""
    n, batch = index.shape[-1], index.shape[:-1]
    effect = np.ones_like(index) if weights is None else np.array(weights)
    return Explanation(
        mean=mean,
        count=count,
        clock=np.broadcast_to(clock, batch).astype(float),
        index=index,
        adjacency=np.zeros((*batch, n, n)) if adjacency is None else adjacency,
        gain=np.ones_like(index),
        weights=effect,
        score=effect * index,
        chosen=chosen,
        planned=np.broadcast_to(planned, batch).astype(np.bool_),
    )


def scaled_explanation(
    scale: Scale, weights: Array, told_graph: bool, *, mean: Array, index: Array, **rest: Any
) -> Explanation:
    """The same for means and indices in [0, 1]; those of a policy that is told the graph become rewards z again.

    It is told total effects only: its edges are NaN, "not known", and one unit of each effect counts as direct.
    """
    if not told_graph:
        return plain_explanation(mean=mean, index=index, **rest)
    low, unit = scale.low[..., None], scale.unit[..., None]
    unknown = np.full((*index.shape, index.shape[-1]), np.nan)
    return plain_explanation(
        mean=low + unit * mean, index=low + unit * index, weights=weights, adjacency=unknown, **rest
    )

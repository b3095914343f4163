"""Explanations of the policies that learn no graph: weights of 1 and no edges, or known weights."""

from typing import Any

import numpy as np

from spillover.graph.learner import explained
from spillover.graph.none import EmptyGraph
from spillover.policies.scale import Scale, unit_or_one
from spillover.types import Array, Explanation


def graph_free_explanation(
    *,
    mean: Array,
    count: Array,
    clock: Any,
    index: Array,
    weights: Array | None = None,
    adjacency: Array | None = None,
    plan: Any = "",
) -> Explanation:
    """An explanation without effects between arms, unless weights and edges are given."""
    batch = index.shape[:-1]
    effect = np.ones_like(index) if weights is None else np.array(weights)
    return Explanation(
        mean=mean,
        count=count,
        clock=np.broadcast_to(clock, batch).astype(float),
        index=index,
        adjacency=explained(EmptyGraph(effect)) if adjacency is None else adjacency,
        gain=np.ones_like(index),
        weights=effect,
        score=effect * index,
        plan=np.broadcast_to(plan, batch),
    )


def scaled_explanation(
    scale: Scale, weights: Array, knows_graph: bool, *, mean: Array, index: Array, **rest: Any
) -> Explanation:
    """The same for means and indices in [0, 1], in the units of the rewards.

    Without the graph they are amounts of y above the lowest possible one, as every arm is worth choosing on that scale.
    A policy that knows the graph has rewards z. It knows total effects only: its edges are NaN (unknown), and one unit
    of each effect counts as direct.
    """
    low, unit = scale.low[..., None], unit_or_one(scale)[..., None]
    if not knows_graph:
        return graph_free_explanation(mean=unit * mean, index=unit * index, **rest)
    unknown = np.full((*index.shape, index.shape[-1]), np.nan)
    return graph_free_explanation(
        mean=low + unit * mean, index=low + unit * index, weights=weights, adjacency=unknown, **rest
    )

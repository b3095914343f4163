"""Credible intervals of the effects of choosing an arm, from the errors of its mean and of the graph."""

from typing import Any

import numpy as np

from spillover.graph.learner import GraphErrors
from spillover.types import Array

WIDTH = 1.959963984540054  # standard deviations on each side of a 95% interval of a normal distribution
SIDES = np.array([-WIDTH, WIDTH])


def around(middle: Array, variance: Array) -> Array:
    """95% intervals, with the axis (low, high) last."""
    return np.asarray(middle[..., None] + np.sqrt(np.maximum(variance, 0.0))[..., None] * SIDES)


def intervals(
    adjacency: Any, weights: Array, gain: Array, mean: Array, deviation: Array, errors: GraphErrors | None
) -> dict[str, Any]:
    """The fields of an explanation about baselines, effects and intervals, as far as they are known.

    mean, deviation: of each arm's own reward. The errors of means and graph are taken to be independent. Where the
    graph is sparse, for many arms, there is nothing about each pair of them.
    """
    own = {"direct_interval": around(gain * mean, (gain * deviation) ** 2)}
    if errors is None:
        return own
    spill, of_mean, of_graph = weights - gain, deviation**2, errors.weights_variance
    beyond = of_graph * (mean**2 + of_mean)
    own |= {
        "baseline": errors.baseline,
        "spill_interval": around(spill * mean, spill**2 * of_mean + beyond),
        "total_interval": around(weights * mean, weights**2 * of_mean + beyond),
    }
    if not isinstance(adjacency, np.ndarray):
        return own
    known = np.isfinite(adjacency).all(axis=(-1, -2), keepdims=True)
    reach = np.linalg.inv(np.eye(mean.shape[-1]) - (adjacency if known.all() else np.nan_to_num(adjacency)))
    effects = reach * (gain * mean)[..., None, :]
    edges = around(adjacency, errors.edge_variance)
    return own | {
        "effects": np.where(known, effects, np.nan),
        "edge_probability": errors.edge_probability,
        "edge_interval": edges,
    }

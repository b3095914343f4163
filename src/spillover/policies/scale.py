"""How policies that know no graph meet the problem: one scale to [0, 1] for all arms.

They learn from the overall rewards y of the arms they chose. Told the true graph they learn from the instantaneous
rewards z instead and rank weight times index: that separates what the graph brings from what the index brings.
"""

from typing import NamedTuple

import numpy as np

from spillover import validate
from spillover.types import Array, Batch, BoolArray, Feedback, Problem


class Scale(NamedTuple):
    """What is learned is amounts above `low`; `unit` of them are a reward of 1."""

    low: Array  # (*batch,)
    unit: Array  # (*batch,): where no range is declared the largest amount so far, 0 before the first
    declared: BoolArray  # (*batch,)


def open_scale(problem: Problem, batch: Batch, told_graph: bool) -> Scale:
    """The declared range of what is learned from, or a running maximum where none is declared."""
    name = "reward_range" if told_graph else "overall_range"
    given = getattr(problem, name)
    if given is None:
        return Scale(np.zeros(batch), np.zeros(batch), np.zeros(batch, np.bool_))
    pairs = validate.spread(name, given, (*batch, 2))
    return Scale(pairs[..., 0].copy(), pairs[..., 1] - pairs[..., 0], np.ones(batch, np.bool_))


def amounts(scale: Scale, feedback: Feedback, told_graph: bool) -> tuple[Scale, Array]:
    """The amounts in a piece of feedback, 0 for arms not chosen, and the scale after it.

    Amounts, not rewards: sums of them are divided by the unit only when they are used, so that a running maximum
    rescales all that came before.
    """
    observed = feedback.z if told_graph else feedback.y
    above = np.where(feedback.x, np.maximum(observed - scale.low[..., None], 0.0), 0.0)
    if scale.declared.all():
        return scale, np.minimum(above, scale.unit[..., None])
    largest = np.where(feedback.arrived, above.max(axis=-1), 0.0)
    unit = np.where(scale.declared, scale.unit, np.maximum(scale.unit, largest))
    return scale._replace(unit=unit), np.minimum(above, unit[..., None])


def ranking(weights: Array, scale: Scale, index: Array, told_graph: bool) -> Array:
    """What arms are ranked by: the index; told the graph, the weight times the reward that the index stands for."""
    if not told_graph:
        return index
    return np.asarray(weights * (scale.low[..., None] + scale.unit[..., None] * index))


def divisor(scale: Scale) -> Array:
    """The unit, 1 while nothing was seen."""
    return np.where(scale.unit > 0, scale.unit, 1.0)


def ranking_weights(problem: Problem, batch: Batch, told_graph: bool) -> Array:
    """The true weights for a policy that is told the graph, else ones."""
    validate.require(isinstance(told_graph, bool), "told_graph", told_graph, "True or False")
    shape = (*batch, problem.n_arms)
    if not told_graph:
        return np.ones(shape)
    if problem.weights is None:
        raise ValueError("weights = None in the problem: must be 1'(I-A)^-1 F for a policy with told_graph=True")
    return validate.spread("weights", problem.weights, shape)

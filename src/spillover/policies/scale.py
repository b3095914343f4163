"""What rewards on one scale to [0, 1] are, and explanations without effects between arms: for policies without a graph.

They learn from the overall rewards y of the chosen arms. With `knows_graph` they learn from the instantaneous rewards z
instead and rank arms by weight times index, which separates the contribution of the graph from that of the index.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import EXPECTED_EFFECT, Policy, Traits
from spillover.core import CorePolicy, Turn, choose_top, later
from spillover.graph.learner import explained
from spillover.graph.none import EmptyGraph
from spillover.kernels.averages import rank
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Explanation, Finite, Problem


@dataclass(frozen=True, kw_only=True)
class ScaledPolicy(Policy):
    """A policy that learns from rewards on one scale.

    knows_graph: rank by the true weights (`Problem.weights`), which only a simulation knows.
    """

    knows_graph: bool = False

    def __post_init__(self) -> None:
        validate.require(isinstance(self.knows_graph, bool), "knows_graph", self.knows_graph, "True or False")

    @property
    def traits(self) -> Traits:
        own = "expected overall reward of the arm itself, above the lowest possible one"
        quantity = EXPECTED_EFFECT if self.knows_graph else own
        return Traits(needs_rewards=self.knows_graph, knows_graph=self.knows_graph, explains=True, quantity=quantity)


@dataclass(frozen=True, kw_only=True)
class ScaledCorePolicy(ScaledPolicy, CorePolicy):
    """The same, written for one learner: it chooses the arms with the highest `index`, or weight times index."""

    draws_index: ClassVar[bool] = False  # whether `index` draws random numbers: further ones break ties then

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        scores = turn.lines[0]
        self.index(s, turn, scores)
        rank(s.weights, s.scale.low, s.scale.unit, self.knows_graph, scores)
        choose_top(scores, s.budget, later(turn) if self.draws_index else turn, x)


class Scale(NamedTuple):
    """Rewards are stored as amounts above `low`; an amount of `unit` is a reward of 1."""

    low: Finite  # (*batch,)
    unit: Amount  # (*batch,): without a declared range the largest amount so far, 0 before the first
    declared: Constant[BoolArray]  # (*batch,)


def initial_scale(problem: Problem, batch: Batch, knows_graph: bool) -> Scale:
    """The scale of the declared range, or of a running maximum if none is declared."""
    name, given = ("reward_range", problem.reward_range) if knows_graph else ("overall_range", problem.overall_range)
    if given is None:
        return Scale(np.zeros(batch), np.zeros(batch), np.zeros(batch, np.bool_))
    pairs = validate.spread(name, given, (*batch, 2))
    return Scale(pairs[..., 0].copy(), np.asarray(pairs[..., 1] - pairs[..., 0]), np.ones(batch, np.bool_))


def unit_or_one(scale: Scale) -> Array:
    """The unit, or 1 before the first observation."""
    return np.where(scale.unit > 0, scale.unit, 1.0)


def ranking_weights(problem: Problem, batch: Batch, knows_graph: bool) -> Array:
    """The true weights for a policy that knows the graph, otherwise ones."""
    shape = (*batch, problem.n_arms)
    if not knows_graph:
        return np.ones(shape)
    if problem.weights is None:
        raise ValueError("weights = None in the problem: must be 1'(I-A)^-1 F for a policy with knows_graph=True")
    return validate.spread("weights", problem.weights, shape)


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

"""Least squares of outcomes on z, by rank-one updates: the total effects, without assumptions about the graph."""

from typing import Any, NamedTuple

import numpy as np

from spillover.core.compiled import inner
from spillover.graph.learner import largest_reward
from spillover.kernels.regression import learn_outcome
from spillover.types import Amount, Array, Batch, Constant, Finite, Problem

# Relative to the squared rewards. It only makes the inverse exist: its bias is too small to affect decisions.
RIDGE = 1e-9
# Lower bound on the variance of a residual, relative to the squared rewards. An effect of up to 10 that is observed for
# the first time leaves a recursive residual of at most 100 ridges, which must not look like noise or like a change.
FLOOR = 100 * RIDGE


class Regression(NamedTuple):
    """Effects of z on m outcomes, and their uncertainty; the prior is that an arm affects only itself."""

    root: Finite  # (*batch, n, n): a root of (Z Z' + ridge)^-1
    effects: Finite  # (*batch, m, n): B, outcomes per unit of z
    scatter: Finite  # (*batch, m, m): sum of outer products of recursive residuals
    freedom: Amount  # (*batch,): degrees of freedom of the scatter
    ridge: Constant[Array]  # (*batch,)


def empty_regression(problem: Problem, prior: Array, batch: Batch) -> Regression:
    """A regression without outcomes: the effects are the prior, (m, n)."""
    m, n = prior.shape
    ridge = np.broadcast_to(RIDGE * largest_reward(problem) ** 2, batch).copy()
    return Regression(
        root=np.eye(n) / np.sqrt(ridge)[..., None, None],
        effects=np.broadcast_to(prior, (*batch, m, n)).copy(),
        scatter=np.zeros((*batch, m, m)),
        freedom=np.zeros(batch),
        ridge=ridge,
    )


@inner
def learn(known: Any, z: Any, outcome: Any, weight: Any, room: Any) -> Any:
    """Learn from a round; returns how much of it the past could have predicted, from 0 to 1."""
    squares, held, _ = room
    certainty = learn_outcome(known.root, known.effects, known.scatter, z, outcome, weight, squares, held)
    known.freedom += certainty
    return certainty


def floor_of(known: Any) -> Any:
    """The lower bound on the variance of a residual."""
    return (FLOOR / RIDGE) * known.ridge

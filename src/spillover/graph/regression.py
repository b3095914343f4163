"""Least squares of outcomes on z, by rank-one updates: the total effects, without assumptions about the graph."""

from typing import NamedTuple

import numpy as np

from spillover import kernels
from spillover.graph.learner import largest_reward
from spillover.state import repeat_in_place
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Finite, Problem

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


def regress(known: Regression, z: Array, outcome: Array, weight: Array | BoolArray) -> tuple[Regression, Array]:
    """Learn from a round; also returns how much of it the past could have predicted, from 0 to 1. In place."""
    certainty = kernels.regress(known.root, known.effects, known.scatter, z, outcome, weight)
    return known._replace(freedom=np.asarray(known.freedom + certainty)), np.asarray(certainty)


def regress_rounds(known: Regression, z: Array, outcome: Array, weight: Array | BoolArray) -> Regression:
    """Learn many rounds of one history, in order along the first axis. In place."""
    learned = (repeat_in_place(leaf, len(z)) for leaf in (known.root, known.effects, known.scatter))
    certainty = kernels.regress(*learned, z, outcome, weight)
    return known._replace(freedom=np.asarray(known.freedom + certainty.sum()))


def summed(known: Regression) -> Regression:
    """The regression of the sum of all outcomes on z."""
    return Regression(
        root=known.root.copy(),
        effects=known.effects.sum(axis=-2, keepdims=True),
        scatter=known.scatter.sum(axis=(-2, -1), keepdims=True),
        freedom=known.freedom.copy(),
        ridge=known.ridge.copy(),
    )


def forget_rounds(known: Regression, prior: Array, rows: BoolArray) -> Regression:
    """Reset the rows of the batch in a mask."""
    n = prior.shape[-1]
    known.root[rows] = np.eye(n) / np.sqrt(known.ridge[rows])[..., None, None]
    known.effects[rows] = prior
    known.scatter[rows] = 0.0
    return known._replace(freedom=np.where(rows, 0.0, known.freedom))


def size_of(known: Regression) -> Array:
    """The largest possible reward."""
    return np.sqrt(known.ridge / RIDGE)


def floor_of(known: Regression) -> Array:
    """The lower bound on the variance of a residual."""
    return (FLOOR / RIDGE) * known.ridge

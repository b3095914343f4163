"""Least squares of outcomes on z, by rank-one updates: the total effects, whatever graph is behind them."""

from typing import NamedTuple

import numpy as np

from spillover import kernels
from spillover.state import repeat_in_place
from spillover.types import Array, Batch, BoolArray, Problem

# Only there so that the inverse exists, relative to the squared rewards: what it biases is far below any decision.
RIDGE = 1e-9
# Least variance of a residual that is believed, relative to the squared rewards. An effect of up to 10 that no round
# has shown before leaves a recursive residual of at most 100 ridges, and must not look like noise or like a change.
FLOOR = 100 * RIDGE


class Regression(NamedTuple):
    """Effects of z, and how sure they are. m outcomes; the prior is that an arm acts on nothing but itself."""

    root: Array  # (*batch, n, n): a root of (Z Z' + ridge)^-1
    effects: Array  # (*batch, m, n): B, outcomes per unit of z
    scatter: Array  # (*batch, m, m): sum of outer products of recursive residuals
    freedom: Array  # (*batch,): degrees of freedom behind it
    ridge: Array  # (*batch,)


def empty_regression(problem: Problem, prior: Array, batch: Batch) -> Regression:
    """No outcome yet: effects are the prior, (m, n)."""
    m, n = prior.shape
    size = np.abs(np.asarray(problem.reward_range, float)).max(axis=-1)
    ridge = np.broadcast_to(RIDGE * size**2, batch).copy()
    return Regression(
        root=np.eye(n) / np.sqrt(ridge)[..., None, None],
        effects=np.broadcast_to(prior, (*batch, m, n)).copy(),
        scatter=np.zeros((*batch, m, m)),
        freedom=np.zeros(batch),
        ridge=ridge,
    )


def regress(known: Regression, z: Array, outcome: Array, weight: Array | BoolArray) -> tuple[Regression, Array]:
    """Learn from a round; also how much of it the past could have predicted, from 0 to 1. Rewrites what it is given."""
    certainty = kernels.regress(known.root, known.effects, known.scatter, z, outcome, weight)
    return known._replace(freedom=np.asarray(known.freedom + certainty)), np.asarray(certainty)


def regress_rounds(known: Regression, z: Array, outcome: Array, weight: Array | BoolArray) -> Regression:
    """Let one learner learn from many rounds, the first axis, in their order. Rewrites what it is given."""
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
    """Start afresh for the learners of a mask."""
    n = prior.shape[-1]
    known.root[rows] = np.eye(n) / np.sqrt(known.ridge[rows])[..., None, None]
    known.effects[rows] = prior
    known.scatter[rows] = 0.0
    return known._replace(freedom=np.where(rows, 0.0, known.freedom))


def size_of(known: Regression) -> Array:
    """Largest reward there can be."""
    return np.sqrt(known.ridge / RIDGE)


def floor_of(known: Regression) -> Array:
    """Least variance of a residual that is believed."""
    return (FLOOR / RIDGE) * known.ridge

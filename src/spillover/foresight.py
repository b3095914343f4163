"""Worlds that can draw many rounds in advance, and the measures of many rounds."""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from spillover import kernels
from spillover.contracts import ScoredWorld
from spillover.rng import Rng
from spillover.types import BoolArray, Course, IntArray, Outcome, Scored


@runtime_checkable
class ForeseeableWorld(ScoredWorld, Protocol):
    """A world that can draw many rounds in advance, because what they bring does not depend on the decisions."""

    def course(self, first: int, last: int, rng: Rng) -> Course | None:
        """What rounds first to last, which have the same graph, bring; None if that cannot be told in advance.

        rng: the streams of the world's batch. `play` must give the same outcomes, bit for bit, as far as the problem
        observes them.
        """

    def score_rounds(self, first: int, x: BoolArray) -> Scored:
        """Measure the decisions x, (*batch, rounds, n), of rounds first, first + 1, ..., as `score_each` does."""

    def best_of_rounds(self, rounds: IntArray) -> BoolArray:
        """Optimal decisions of one or more rounds, (*batch, rounds, n), as `best_of_each` finds them."""


@runtime_checkable
class SparseWorld(ScoredWorld, Protocol):
    """A world with many arms, whose graph is asked for as a list of edges instead of a matrix."""

    def edges(self, t: int) -> Any:
        """The graph of round t as a `scipy.sparse.coo_array`, (*batch, n, n)."""


def drawn(course: Course, first: int, last: int, rng: Rng) -> Course:
    """A course with the rewards of all arms, from one that leaves them to be drawn; rng: as that of `course`."""
    if course.law == kernels.DRAWN:
        return course
    rounds = np.arange(first, last + 1)[:, None]
    keys, every_arm = rng.keys[..., None, :], np.ones(course.rewards.shape[-1], np.bool_)
    rewards = kernels.draw_rewards(
        course.law, course.rewards, course.concentration, keys, rounds[:, 0].astype(np.uint64), every_arm
    )
    return course._replace(rewards=np.asarray(rewards), law=kernels.DRAWN)


def observed(outcome: Outcome, observes: str) -> Outcome:
    """The observed part of an outcome: z is NaN if it is not observed, y[..., 0] is the sum of y if only that is."""
    if observes == "both":
        return outcome
    y = outcome.y
    if observes == "payoff":
        y = np.zeros_like(outcome.y)
        y[..., 0] = kernels.payoff_of(outcome.y)
    return outcome._replace(z=np.full_like(outcome.z, np.nan), y=y)


def score_each(world: ScoredWorld, first: int, x: BoolArray) -> Scored:
    """Measure the decisions x, (*batch, rounds, n), of rounds first, first + 1, ... one after another."""
    regret, matches, possible = [], [], []
    for row in range(x.shape[-2]):
        t, decision = first + row, x[..., row, :]
        best = world.best(t)
        regret.append(world.expected(t, best) - world.expected(t, decision))
        matches.append(world.matches(t, decision))
        possible.append(best.sum(axis=-1))
    return Scored(*(np.stack(each, axis=-1) for each in (regret, matches, possible)))


def best_of_each(world: ScoredWorld, rounds: IntArray) -> BoolArray:
    """Optimal decisions of some rounds, (*batch, rounds, n), one after another."""
    return np.stack([world.best(int(t)) for t in rounds], axis=-2)

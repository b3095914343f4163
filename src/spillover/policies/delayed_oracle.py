"""An oracle whose knowledge is delayed like feedback."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from spillover.contracts import (
    ROUND,
    ScoredContextualWorld,
    ScoredWorld,
    methods_of,
    require_contextual,
    unchanged,
)
from spillover.core import Lesson, Turn
from spillover.policies.reference import (
    BestOfRounds,
    OracleState,
    fill_random_set,
    payoffs,
    random_explanation,
    require_world,
    true_explanation,
)
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray


@dataclass(frozen=True, kw_only=True)
class DelayedOracle(BestOfRounds):
    """Plays the set that was best in the latest round whose outcome has arrived; random sets before the first.

    With a constant delay D that is the best set of round t - 1 - D: its regret is the cost of the delay alone. It is a
    reference point, not a bound: drift can be extrapolated, and before the first arrival arms with many descendants
    are better than random ones.

    It knows the context of the coming round: the set is the best one in that context, with the graph and the
    effectiveness of the latest round that has arrived. If arms report at different times, each arm counts as of its own
    latest report; an arm without one gets a random mean.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=30, changes=(11,))
    >>> run = sp.simulate(DelayedOracle(), world, sp.ConstantDelay(5), replications=4, seed=0)
    >>> run.regret[:, -1] == run.regret[:, 16]  # five rounds after the change it knows all again
    array([ True,  True,  True,  True])
    """

    uses_context = True

    def oldest(self, state: OracleState) -> IntArray:
        return np.maximum(newest_round(state.latest), 1)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        newest = 0
        for i in range(x.shape[0]):
            newest = max(newest, s.latest[i])
        if newest == 0:
            fill_random_set(turn, s.budget, x)
            return
        best = s.best.sets[newest - s.best.first]
        for i in range(x.shape[0]):
            x[i] = best[i]

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        for i in range(lesson.x.shape[0]):
            s.latest[i] = max(s.latest[i], lesson.round)

    def learn(self, state: OracleState, feedback: Feedback, rng: Rng) -> OracleState:
        before = state.latest.copy()
        learned: OracleState = super().learn(state, feedback, rng)
        if feedback.fresh is not None:
            np.copyto(learned.latest, before, where=~feedback.fresh)
        return learned

    def select(self, state: OracleState, rng: Rng) -> Choice:
        choice, world = super().select(state, rng), require_world(self.world, self)
        apart = differs(world, state.latest) & (newest_round(state.latest) > 0)
        if not apart.any():
            return choice
        t, drawn = int(state.rounds.flat[0]) + 1, rng.uniform(state.latest.shape[-1])
        weights, means = recalled(world, t, state.latest, np.broadcast_to(drawn, state.latest.shape))
        return Choice(np.where(apart[..., None], best_set(world, weights * means), choice.x))

    @property
    def runs_compiled(self) -> bool:
        told = self.world is None or not self.world.problem.context
        return told and unchanged(self, AS_COMPILED)

    def explain(self, state: OracleState, rng: Rng) -> Explanation:
        """The true values of the latest round whose outcome has arrived; random ranks before the first."""
        world, found = require_world(self.world, self), random_explanation(state, rng)
        t, latest, newest = int(state.rounds.flat[0]) + 1, state.latest, newest_round(state.latest)
        for s in np.unique(newest[newest > 0]):
            found = where_rows(newest == s, true_explanation(world, int(s), state), found)
        here = (newest > 0) & differs(world, latest)
        if not here.any():
            return found
        drawn = np.broadcast_to(rng.uniform(latest.shape[-1]), latest.shape)
        weights, means = recalled(world, t, latest, drawn)
        estimates = replace(found, mean=means, index=means, weights=weights, score=weights * means)
        return where_rows(here, estimates, found)


AS_COMPILED = methods_of(DelayedOracle, ROUND)


def newest_round(latest: IntArray) -> IntArray:
    """The latest round of which any outcome has arrived; 0 before the first."""
    return np.asarray(latest.max(axis=-1))


def differs(world: ScoredWorld, latest: IntArray) -> BoolArray:
    """Whether arms are known as of different rounds, or in another context: then no round's best set is the answer."""
    if world.problem.context:
        return np.ones(latest.shape[:-1], np.bool_)
    return np.asarray((latest != newest_round(latest)[..., None]).any(axis=-1))


def recalled(world: ScoredWorld, t: int, latest: IntArray, drawn: Array) -> tuple[Array, Array]:
    """Weights and mean rewards in the context of round t, each arm as of its latest report, (*batch, n).

    drawn: the mean rewards of arms without a report.
    """
    reported = np.maximum(latest, 1)
    different, shape = np.unique(reported), latest.shape
    tell = scores_in(world, t, shape)
    then = np.stack([np.broadcast_to(world.weights(int(s)), shape) for s in different], axis=-2)
    now = np.stack([np.broadcast_to(tell(int(s)), shape) for s in different], axis=-2)
    known = np.divide(now, then, out=np.zeros(then.shape), where=then != 0)
    at = np.searchsorted(different, reported)[..., None, :]
    means = np.where(latest > 0, np.take_along_axis(known, at, axis=-2)[..., 0, :], drawn)
    return np.take_along_axis(then, at.max(axis=-1, keepdims=True), axis=-2)[..., 0, :], means


def scores_in(world: ScoredWorld, t: int, shape: Batch) -> Callable[[int], Array]:
    """The expected payoff of each arm in the context of round t, as a function of the round that it is known as of."""
    if world.problem.context or isinstance(world, ScoredContextualWorld):
        told = require_contextual(world)
        return lambda as_of: told.scores(t, as_of)
    return lambda as_of: payoffs(world, as_of, shape)


def best_set(world: ScoredWorld, scores: Array) -> BoolArray:
    """The feasible set with the highest sum of scores; a world without such a method has only its budget."""
    if isinstance(world, ScoredContextualWorld):
        return world.best_set(scores)
    order = np.argsort(-scores, axis=-1, kind="stable")
    rank = np.argsort(order, axis=-1, kind="stable")
    return np.asarray((rank < world.problem.budget) & (scores > 0))


def where_rows(here: BoolArray, one: Explanation, other: Explanation) -> Explanation:
    """One explanation for some rows of a batch, the other for the rest."""
    merged = {}
    for each in fields(Explanation):
        first, second = getattr(one, each.name), getattr(other, each.name)
        if first is None:  # reference points do not fill it in
            continue
        merged[each.name] = np.where(here.reshape(here.shape + (1,) * (first.ndim - here.ndim)), first, second)
    return Explanation(**merged)

"""An oracle whose knowledge is delayed like feedback."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from spillover import validate
from spillover.contracts import Policy, ScoredContextualWorld, ScoredWorld, require_contextual
from spillover.policies.reference import (
    Counting,
    CountState,
    best_sets,
    bring_outcomes,
    next_rounds,
    payoffs,
    random_explanation,
    random_set,
    require_world,
    take_arrivals,
    true_explanation,
)
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem, Stretch


@dataclass(frozen=True, kw_only=True)
class DelayedOracle(Counting):
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

    world: Any = field(default=None, metadata={"set_by_user": False})  # `simulate` sets it

    needs_world = True
    uses_context = True

    def with_world(self, world: ScoredWorld) -> Policy:
        return replace(self, world=world)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CountState:
        state = super().init(problem, rng, batch)
        return state._replace(latest=np.zeros((*batch, problem.n_arms), np.int64))  # of each arm

    def update(self, state: CountState, feedback: Feedback, rng: Rng) -> CountState:
        feedback = validate.partial_feedback(feedback, state.latest.shape, np.array([-np.inf, np.inf]), state.rounds)
        played_at = np.where(feedback.arrived, state.rounds - feedback.age, 0)[..., None]
        reported = True if feedback.fresh is None else feedback.fresh
        return state._replace(latest=np.maximum(state.latest, np.where(reported, played_at, 0)))

    def select(self, state: CountState, rng: Rng) -> Choice:
        world = require_world(self.world, self)
        x = random_set(state, rng)
        newest = newest_round(state)
        if self.recalls_a_round(world, state):
            for t in np.unique(newest[newest > 0]):
                known = np.broadcast_to(world.best(int(t)), x.shape)
                x = np.where((newest == t)[..., None], known, x)
            return Choice(x)
        weights, means = recalled(world, state, rng)
        return Choice(np.where((newest > 0)[..., None], best_set(world, weights * means), x))

    @property
    def fuses(self) -> bool:
        return self.world is None or not self.world.problem.context

    def play_stretch(self, state: CountState, stretch: Stretch, rng: Rng) -> CountState | None:
        world = require_world(self.world, self)
        newest, after = take_arrivals(state, stretch)
        x = best_sets(world, np.maximum(newest, 1))
        blind = (newest == 0).any(axis=tuple(range(newest.ndim - 1)))
        guessed = random_set(state, rng.over(Purpose.CHOICE, next_rounds(state, stretch)[blind]))
        x[..., blind, :] = np.where(newest[..., blind, None] == 0, guessed, x[..., blind, :])
        return after if bring_outcomes(x, state, stretch, rng) else None

    def recalls_a_round(self, world: ScoredWorld, state: CountState) -> bool:
        """Whether all arms are known as of the same round, without any context: then its best set is played."""
        return not world.problem.context and bool((state.latest == newest_round(state)[..., None]).all())

    def explain(self, state: CountState, rng: Rng) -> Explanation:
        """The true values of the latest round whose outcome has arrived; random ranks before the first."""
        world, found = require_world(self.world, self), random_explanation(state, rng)
        newest = newest_round(state)
        for t in np.unique(newest[newest > 0]):
            found = where_rows(newest == t, true_explanation(world, int(t), state), found)
        if self.recalls_a_round(world, state):
            return found
        weights, means = recalled(world, state, rng)
        estimates = replace(found, mean=means, index=means, weights=weights, score=weights * means)
        return where_rows(newest > 0, estimates, found)


def newest_round(state: CountState) -> IntArray:
    """(*batch,): the latest round of which any outcome has arrived; 0 before the first."""
    return np.asarray(state.latest.max(axis=-1))


def recalled(world: ScoredWorld, state: CountState, rng: Rng) -> tuple[Array, Array]:
    """Weights and mean rewards in the context of the coming round, each arm as of its latest report."""
    t, shape, newest = int(state.rounds.flat[0]) + 1, state.latest.shape, newest_round(state)
    means = np.broadcast_to(rng.uniform(shape[-1]), shape)
    weights = np.broadcast_to(world.weights(1), shape)
    for s in np.unique(newest[newest > 0]):
        weights = np.where((newest == s)[..., None], world.weights(int(s)), weights)
    for s in np.unique(state.latest[state.latest > 0]):
        then, now = world.weights(int(s)), scores(world, t, int(s), shape)
        known = np.divide(now, then, out=np.zeros(shape), where=np.broadcast_to(then != 0, shape))
        means = np.where(state.latest == s, known, means)
    return weights, means


def scores(world: ScoredWorld, t: int, as_of: int, shape: Batch) -> Array:
    """The expected payoff of each arm in the context of round t, as of another round."""
    if world.problem.context:
        return np.broadcast_to(require_contextual(world).scores(t, as_of), shape)
    return payoffs(world, as_of, shape)


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

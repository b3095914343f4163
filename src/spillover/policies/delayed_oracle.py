"""An oracle whose knowledge is delayed like feedback."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import (
    ROUND,
    CompiledRounds,
    Policy,
    ScoredContextualWorld,
    ScoredWorld,
    methods_of,
    require_contextual,
    unchanged,
)
from spillover.policies.decided_rounds import (
    CountState,
    bring_outcomes,
    next_rounds,
    pieces,
    take_arrivals,
    waits_for_rewards,
)
from spillover.policies.reference import (
    Counting,
    best_sets,
    payoffs,
    random_explanation,
    random_set,
    require_world,
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
        world, t = require_world(self.world, self), int(state.rounds.flat[0]) + 1
        guess = Guess(random_set(state, rng)[..., None, :], rng.uniform(state.latest.shape[-1])[..., None, :])
        return Choice(recall(world, t, state.latest[..., None, :], guess)[..., 0, :])

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        form = CompiledRounds(self.play_stretch, draws_rewards=True, plays_parts=True)
        tells = self.world is None or not self.world.problem.context
        return form if tells and unchanged(self, AS_COMPILED) else None

    def play_stretch(self, state: CountState, stretch: Stretch, rng: Rng) -> CountState | None:
        """As many rounds at a time as can be decided before it matters which rewards they bring."""
        if not waits_for_rewards(stretch):
            latest, after = take_arrivals(state, stretch)
            return after if self.bring(latest, state, stretch, rng) else None
        for piece in pieces(stretch):
            latest, _ = take_arrivals(state, piece, ahead=True)
            if not self.bring(latest, state, piece, rng):
                return None
            state = take_arrivals(state, piece)[1]
        return state

    def bring(self, latest: IntArray, state: CountState, stretch: Stretch, rng: Rng) -> bool:
        """Decide the rounds of a stretch, (*batch, rounds, 1 or n) being known then; whether outcomes are valid."""
        rounds, n = next_rounds(state, stretch), int(state.shape.flat[0])
        shape = (*latest.shape[:-1], n)
        guess = Guess(np.zeros(shape, np.bool_), np.zeros(shape))
        blind = (latest == 0).any(axis=(*range(latest.ndim - 2), -1))
        if blind.any():
            streams = rng.over(Purpose.CHOICE, rounds[blind])
            guess.x[..., blind, :] = random_set(state, streams)
            guess.means[..., blind, :] = streams.uniform(n)
        x = recall(require_world(self.world, self), int(rounds[0]), latest, guess)
        return bring_outcomes(x, state, stretch, rng)

    def explain(self, state: CountState, rng: Rng) -> Explanation:
        """The true values of the latest round whose outcome has arrived; random ranks before the first."""
        world, found = require_world(self.world, self), random_explanation(state, rng)
        t, latest, newest = int(state.rounds.flat[0]) + 1, state.latest, newest_round(state.latest)
        for s in np.unique(newest[newest > 0]):
            found = where_rows(newest == s, true_explanation(world, int(s), state), found)
        here = (newest > 0) & differs(world, latest)
        if not here.any():
            return found
        told = recalled(world, t, latest[..., None, :], rng.uniform(latest.shape[-1])[..., None, :])
        weights, means = (each[..., 0, :] for each in told)
        estimates = replace(found, mean=means, index=means, weights=weights, score=weights * means)
        return where_rows(here, estimates, found)


class Guess(NamedTuple):
    """What stands for knowledge before the first report."""

    x: BoolArray  # (*batch, rounds, n): a random set
    means: Array  # (*batch, rounds, n): random mean rewards


AS_COMPILED = methods_of(DelayedOracle, ROUND)


def newest_round(latest: IntArray) -> IntArray:
    """The latest round of which any outcome has arrived; 0 before the first."""
    return np.asarray(latest.max(axis=-1))


def differs(world: ScoredWorld, latest: IntArray) -> BoolArray:
    """Whether arms are known as of different rounds, or in another context: then no round's best set is the answer."""
    if world.problem.context:
        return np.ones(latest.shape[:-1], np.bool_)
    return np.asarray((latest != newest_round(latest)[..., None]).any(axis=-1))


def recall(world: ScoredWorld, t: int, latest: IntArray, guess: Guess) -> BoolArray:
    """The decisions of some rounds, t being the first, from the latest reports before each of them.

    latest: (*batch, rounds, n) of each arm, or (*batch, rounds, 1) of all arms together.
    """
    x, newest, apart = guess.x, newest_round(latest), differs(world, latest)
    if not apart.all():
        x = np.where((newest > 0)[..., None], best_sets(world, np.maximum(newest, 1)), x)
    if apart.any():
        weights, means = recalled(world, t, np.broadcast_to(latest, x.shape), guess.means)
        x = np.where((apart & (newest > 0))[..., None], best_set(world, weights * means), x)
    return x


def recalled(world: ScoredWorld, t: int, latest: IntArray, drawn: Array) -> tuple[Array, Array]:
    """Weights and mean rewards in the context of round t, each arm as of its latest report, (*batch, rounds, n).

    drawn: the mean rewards of arms without a report.
    """
    reported = np.maximum(latest, 1)
    different, shape = np.unique(reported), (*latest.shape[:-2], latest.shape[-1])
    tell = scores_in(world, t, shape)
    then = np.stack([np.broadcast_to(world.weights(int(s)), shape) for s in different], axis=-2)
    now = np.stack([np.broadcast_to(tell(int(s)), shape) for s in different], axis=-2)
    known = np.divide(now, then, out=np.zeros(then.shape), where=then != 0)
    at = np.searchsorted(different, reported)
    means = np.where(latest > 0, np.take_along_axis(known, at, axis=-2), drawn)
    return np.take_along_axis(then, at.max(axis=-1, keepdims=True), axis=-2), means


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

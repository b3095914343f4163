"""Reference points: the uniform random policy, the oracle, and an oracle whose knowledge is delayed like feedback."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import ScoredContextualWorld, ScoredWorld, Traits, require_contextual
from spillover.contracts.world import ForeseeableWorld, best_of_each
from spillover.core import CorePolicy, Lesson, Turn, inner
from spillover.core.batches import Batches
from spillover.core.policy import first_fields
from spillover.kernels.drawing import philox, to_unit
from spillover.policies.scale import graph_free_explanation
from spillover.rng import Rng
from spillover.types import (
    Array,
    Batch,
    BoolArray,
    Choice,
    Constant,
    Explanation,
    IntArray,
    Problem,
    Round,
    Rounds,
    State,
    Stretch,
)

BLOCK = 4  # numbers that are drawn together
EVERYTHING = (-np.inf, np.inf)  # the range of rewards


class CountState(NamedTuple):
    """The number of rounds played."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): all numbers


class BestSets(NamedTuple):
    """The best sets of the rounds that the next decisions may need; none in between."""

    first: Round  # (*batch,): the first of these rounds
    sets: BoolArray  # (*batch, rounds, n)


class OracleState(NamedTuple):
    """The number of rounds played, and the latest ones of which something was reported."""

    rounds: Rounds  # (*batch,)
    latest: Round  # (*batch, n) of each arm: 0 while nothing has arrived
    best: BestSets
    n_arms: Constant[IntArray]  # (*batch,)
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): all numbers


class Counting(CorePolicy):
    """Base of the reference points, which learn nothing from what outcomes are."""

    compiled = "without arrays"
    traits = Traits(needs_rewards=False, needs_outcomes=False, accepts_missing=True, explains=True)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> Any:
        everything = validate.spread("reward_range", EVERYTHING, (*batch, 2))
        return CountState(**first_fields(self, problem, batch) | {"reward_range": everything})

    def signals(self, state: State) -> dict[str, Any]:
        """It learns nothing, so there is nothing to check."""
        return {"learns": False}


def best_sets(world: ScoredWorld, rounds: IntArray) -> BoolArray:
    """The best sets of some rounds of each replication, (*batch, rounds, n) for (*batch, rounds)."""
    different, which = np.unique(rounds, return_inverse=True)
    found = world.best_of_rounds(different) if isinstance(world, ForeseeableWorld) else best_of_each(world, different)
    best = np.broadcast_to(found, (*rounds.shape[:-1], *found.shape[-2:]))
    return np.take_along_axis(best, which.reshape(rounds.shape)[..., None], axis=-2)


@inner
def fill_random_set(turn: Turn, budget: int, x: Any) -> None:
    """A uniformly random set of `budget` arms: the ranks of the first so many random numbers, one for each arm."""
    drawn, n = turn.lines[0], x.shape[0]
    for start in range(0, n, BLOCK):
        words = philox(np.uint64(start), turn.call, turn.round, turn.purpose, turn.key[0], turn.key[1])
        for i in range(start, min(start + BLOCK, n)):
            drawn[i] = to_unit(words[i - start])
            x[i] = False
    for j in range(budget):
        rank = 0
        for i in range(n):
            rank += (drawn[i] < drawn[j]) | ((drawn[i] == drawn[j]) & (i < j))
        x[rank] = True


def random_explanation(state: Any, rng: Rng) -> Explanation:
    """An explanation without estimates: the score is the random rank of an arm, 1 for the first, 1 / n for the last."""
    n = int(state.n_arms.flat[0])
    place = np.broadcast_to(rng.permutation(n), (*state.rounds.shape, n))
    return graph_free_explanation(
        mean=np.full(place.shape, np.nan),
        count=np.zeros(place.shape),
        clock=state.rounds,
        index=1.0 - place / place.shape[-1],
    )


@dataclass(frozen=True, kw_only=True)
class Uniform(Counting):
    """Plays a uniformly random set every round.

    >>> import spillover as sp
    >>> int(sp.Learner(Uniform(), sp.Problem(n_arms=5, budget=2), seed=0).choose().sum())
    2
    """

    traits = Counting.traits._replace(quantity="rank in a random order", scores_have_units=False)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        fill_random_set(turn, s.budget, x)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        pass

    def explain(self, state: CountState, rng: Rng) -> Explanation:
        """The scores are random ranks."""
        return random_explanation(state, rng)


@dataclass(frozen=True, kw_only=True)
class BestOfRounds(Counting):
    """Base of the oracles, which play the best set of a round; before decisions the world is asked for the sets."""

    world: Any = field(default=None, metadata={"set_by_user": False})  # `simulate` sets it

    traits = Counting.traits._replace(needs_world=True)

    def for_problem(self, problem: Problem, world: ScoredWorld | None = None) -> "BestOfRounds":
        return self if world is None else replace(self, world=world)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> OracleState:
        counts, n = super().init(problem, rng, batch), problem.n_arms
        nothing = BestSets(np.zeros(batch, np.int64), np.zeros((*batch, 0, n), np.bool_))
        return OracleState(latest=np.zeros((*batch, n), np.int64), best=nothing, **counts._asdict())

    @property
    def batches(self) -> Batches:
        return OracleBatches(self)

    def oldest(self, state: OracleState) -> IntArray:
        """The round whose best set the next decision is, (*batch,): at least this one is that of later decisions."""
        raise NotImplementedError


class OracleBatches(Batches):
    """An oracle, which is told the best sets of the rounds that the next decisions may need."""

    policy: Any
    runs_alone = False

    @property
    def plays_stretches(self) -> bool:
        return bool(self.policy.compiled)

    def with_sets(self, state: OracleState, rounds: IntArray) -> OracleState:
        """The state with the best sets of these rounds, (*batch, rounds)."""
        sets = best_sets(require_world(self.policy.world, self.policy), rounds)
        return state._replace(best=BestSets(rounds[..., 0].copy(), np.ascontiguousarray(sets)))

    def select(self, state: OracleState, rng: Rng) -> Choice:
        return super().select(self.with_sets(state, self.policy.oldest(state)[..., None]), rng)

    def play_stretch(self, state: OracleState, stretch: Stretch, rng: Rng) -> OracleState | None:
        first, last = int(self.policy.oldest(state).min()), int(state.rounds.flat[0]) + len(stretch.recorded)
        rounds = np.broadcast_to(np.arange(first, last + 1), (*state.rounds.shape, last + 1 - first))
        played: OracleState | None = super().play_stretch(self.with_sets(state, rounds), stretch, rng)
        return played and played._replace(best=state.best)


@dataclass(frozen=True, kw_only=True)
class Oracle(BestOfRounds):
    """Plays the best set of every round: the policy that regret is measured against.

    >>> import spillover as sp
    >>> world = sp.FixedSEM(adjacency=[[0, 0.5], [0, 0]], means=[0.5, 0.4], budget=1, horizon=10)
    >>> sp.simulate(Oracle(), world, sp.ConstantDelay(3), replications=2, seed=0).final_regret
    array([0., 0.])
    """

    def oldest(self, state: OracleState) -> IntArray:
        return np.asarray(state.rounds + 1)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        best = s.best.sets[s.rounds + 1 - s.best.first]
        for i in range(x.shape[0]):
            x[i] = best[i]

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        pass

    def explain(self, state: OracleState, rng: Rng) -> Explanation:
        """The true means, graph and weights of the next round; no exploration bonus."""
        return true_explanation(require_world(self.world, self), int(state.rounds.flat[0]) + 1, state)


def true_explanation(world: ScoredWorld, t: int, state: OracleState) -> Explanation:
    """The true values of round t, from the world's expected payoffs, weights and edges."""
    n = int(state.n_arms.flat[0])
    shape = (*state.rounds.shape, n)
    weights = np.broadcast_to(world.weights(t), shape)
    adjacency = np.broadcast_to(world.adjacency(t), (*shape, n)).copy()
    payoff = payoffs(world, t, shape)
    mean = np.divide(payoff, weights, out=np.zeros(shape), where=weights != 0)
    found = graph_free_explanation(
        mean=mean,
        count=np.full(shape, np.inf),
        clock=state.rounds,
        index=mean,
        weights=weights,
        adjacency=adjacency,
    )
    return replace(found, gain=direct_effects(adjacency, found.weights))


def payoffs(world: ScoredWorld, t: int, shape: Batch) -> Array:
    """The expected payoff of each arm in round t, (*batch, n), for any scored world: payoffs are linear."""
    alone = np.eye(shape[-1], dtype=np.bool_)
    return np.stack([world.expected(t, np.broadcast_to(arm, shape)) for arm in alone], axis=-1)


def direct_effects(adjacency: Array, weights: Array) -> Array:
    """The diagonal of F, as the weights are 1'(I - A)^-1 F."""
    n = adjacency.shape[-1]
    spread = np.linalg.inv(np.eye(n) - adjacency).sum(axis=-2)
    gain: Array = np.divide(weights, spread, out=np.ones_like(weights), where=spread != 0)
    return gain


def require_world(world: ScoredWorld | None, policy: object) -> ScoredWorld:
    """The world; raises a ValueError that says how to set it if there is none."""
    if world is None:
        raise ValueError(
            f"world = None in {type(policy).__name__}: must be a drawn world; simulate() sets it, "
            f"elsewhere use {type(policy).__name__}(world=environment.draw(rng, batch))"
        )
    return world


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

    traits = BestOfRounds.traits._replace(uses_context=True)

    @property
    def batches(self) -> Batches:
        return DelayedBatches(self)

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
        together = lesson.arrival.shape[0] == 0
        for i in range(lesson.x.shape[0]):
            if together or lesson.arrival[i] == s.rounds:
                s.latest[i] = max(s.latest[i], lesson.round)

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


class DelayedBatches(OracleBatches):
    """A delayed oracle, for which the world is asked where arms are known as of different rounds."""

    plays_parts = False

    @property
    def plays_stretches(self) -> bool:
        world = self.policy.world
        return super().plays_stretches and (world is None or not world.problem.context)

    def select(self, state: OracleState, rng: Rng) -> Choice:
        choice, world = super().select(state, rng), require_world(self.policy.world, self.policy)
        apart = differs(world, state.latest) & (newest_round(state.latest) > 0)
        if not apart.any():
            return choice
        t, drawn = int(state.rounds.flat[0]) + 1, rng.uniform(state.latest.shape[-1])
        weights, means = recalled(world, t, state.latest, np.broadcast_to(drawn, state.latest.shape))
        return Choice(np.where(apart[..., None], best_set(world, weights * means), choice.x))


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

"""Reference points: the uniform random policy, the oracle, and the oracle that hears of the world as late as we do."""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.policies.plain import plain_explanation
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Policy, Problem, World


class CountState(NamedTuple):
    """How many rounds were played, and which is the latest that was heard of."""

    rounds: IntArray  # (*batch,)
    latest: IntArray  # (*batch,): 0 while nothing has arrived
    shape: IntArray  # (*batch, 2): number of arms, budget

    @property
    def budget(self) -> IntArray:
        return self.shape[..., 1]


class Counting:
    """What the reference points share: they learn nothing but the time."""

    order_free = True
    learns_graph = False

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CountState:
        validate.problem(problem)
        zero = np.zeros(batch, np.int64)
        shape = np.broadcast_to(np.array([problem.n_arms, problem.budget]), (*batch, 2)).copy()
        return CountState(zero, zero.copy(), shape)

    def played(self, state: CountState, x: BoolArray) -> CountState:
        validate.decision("x", x, (*state.rounds.shape, int(state.shape.flat[0])))
        return state._replace(rounds=state.rounds + 1)

    def update(self, state: CountState, feedback: Feedback, rng: Rng) -> CountState:
        shape = (*state.rounds.shape, int(state.shape.flat[0]))
        feedback = validate.feedback(feedback, shape, np.array([-np.inf, np.inf]), state.rounds)
        moment = np.where(feedback.arrived, state.rounds - feedback.age, 0)
        return state._replace(latest=np.maximum(state.latest, moment))

    def signals(self, state: CountState) -> dict[str, Any]:
        """It learns nothing, so nothing is amiss with what it learned."""
        return {"learns": False}


def random_order(state: CountState, rng: Rng) -> IntArray:
    """A uniformly random place from 0 on for each arm."""
    return rng.permutation(int(state.shape.flat[0]))


def random_set(state: CountState, rng: Rng) -> BoolArray:
    """A uniformly random set of exactly `budget` arms: those that were drawn first."""
    return np.asarray(random_order(state, rng) < int(state.shape.flat[1]))


def random_explanation(state: CountState, rng: Rng) -> Explanation:
    """Nothing is known of any arm: the score is the place that it drew, 1 for the first, 1 / n for the last."""
    place = np.broadcast_to(random_order(state, rng), (*state.rounds.shape, int(state.shape.flat[0])))
    return plain_explanation(
        mean=np.full(place.shape, np.nan),
        count=np.zeros(place.shape),
        clock=state.rounds,
        index=1.0 - place / place.shape[-1],
        chosen=np.asarray(place < int(state.shape.flat[1])),
    )


@dataclass(frozen=True, kw_only=True)
class Uniform(Counting):
    """Plays a uniformly random set every round."""

    quantity = "place in a random order"

    def select(self, state: CountState, rng: Rng) -> Choice:
        return Choice(random_set(state, rng))

    def explain(self, state: CountState, rng: Rng | None = None) -> Explanation:
        """All exploration: see `random_explanation`."""
        return random_explanation(state, (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1))


@dataclass(frozen=True, kw_only=True)
class Oracle(Counting):
    """Plays the best set of every round: the policy that regret is measured against."""

    world: Any = None

    def told(self, world: World) -> Policy:
        return replace(self, world=world)

    def select(self, state: CountState, rng: Rng) -> Choice:
        t = int(state.rounds.flat[0]) + 1
        best = told(self.world, self).best(t)
        return Choice(np.broadcast_to(best, (*state.rounds.shape, best.shape[-1])).copy())

    def explain(self, state: CountState, rng: Rng | None = None) -> Explanation:
        """The world itself: true means, graph and weights of the next round; no exploration."""
        t = int(state.rounds.flat[0]) + 1
        return true_explanation(told(self.world, self), t, state, self.select(state, rng or Rng(0)).x)


@dataclass(frozen=True, kw_only=True)
class DelayedOracle(Counting):
    """Plays the set that was best in the latest round it has heard of; uniformly random sets while blind.

    With a constant delay D that is the best set of round t - 1 - D: what the delay alone costs. A reference point,
    not a bound: drift can be extrapolated, and while blind the arms with many descendants are the better bet.
    """

    world: Any = None

    def told(self, world: World) -> Policy:
        return replace(self, world=world)

    def select(self, state: CountState, rng: Rng) -> Choice:
        world = told(self.world, self)
        x = random_set(state, rng)
        for moment in np.unique(state.latest[state.latest > 0]):
            known = np.broadcast_to(world.best(int(moment)), x.shape)
            x = np.where((state.latest == moment)[..., None], known, x)
        return Choice(x)

    def explain(self, state: CountState, rng: Rng | None = None) -> Explanation:
        """The world of the latest round that was heard of; all exploration while blind."""
        streams = (rng or Rng(0)).at(Purpose.CHOICE, state.rounds + 1)
        shown = random_explanation(state, streams)
        for moment in np.unique(state.latest[state.latest > 0]):
            world, t = told(self.world, self), int(moment)
            best = np.broadcast_to(world.best(t), shown.chosen.shape)
            shown = where_learners(state.latest == moment, true_explanation(world, t, state, best), shown)
        return shown


def true_explanation(world: World, t: int, state: CountState, chosen: BoolArray) -> Explanation:
    """Round t of a world, from what every world can say: expected payoffs, weights and edges."""
    weights = np.broadcast_to(world.weights(t), chosen.shape)
    adjacency = np.broadcast_to(world.adjacency(t), (*chosen.shape, chosen.shape[-1])).copy()
    alone = np.eye(chosen.shape[-1], dtype=np.bool_)
    payoff = np.stack([world.expected(t, np.broadcast_to(arm, chosen.shape)) for arm in alone], axis=-1)
    mean = np.divide(payoff, weights, out=np.zeros(chosen.shape), where=weights != 0)
    shown = plain_explanation(
        mean=mean,
        count=np.full(chosen.shape, np.inf),
        clock=state.rounds,
        index=mean,
        chosen=chosen,
        weights=weights,
        adjacency=adjacency,
    )
    return replace(shown, gain=direct_effects(adjacency, shown.weights))


def direct_effects(adjacency: Array, weights: Array) -> Array:
    """The diagonal of F, as the weights are 1'(I - A)^-1 F."""
    n = adjacency.shape[-1]
    spread = np.linalg.inv(np.eye(n) - adjacency).sum(axis=-2)
    gain: Array = np.divide(weights, spread, out=np.ones_like(weights), where=spread != 0)
    return gain


def where_learners(here: BoolArray, one: Explanation, other: Explanation) -> Explanation:
    """One explanation for some learners of a batch, the other for the rest."""
    merged = {}
    for field in fields(Explanation):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if first is None:  # what only other policies have to tell
            continue
        merged[field.name] = np.where(here.reshape(here.shape + (1,) * (first.ndim - here.ndim)), first, second)
    return Explanation(**merged)


def told(world: World | None, policy: object) -> World:
    """The world, or an error that says how to give it."""
    if world is None:
        raise ValueError(
            f"world = None in {type(policy).__name__}: must be a drawn world; simulate() gives it, "
            f"elsewhere use {type(policy).__name__}().told(environment.draw(rng, batch))"
        )
    return world

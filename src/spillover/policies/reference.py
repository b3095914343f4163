"""Reference points: the uniform random policy, the oracle, and the oracle that hears of the world as late as we do."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.rng import Rng
from spillover.types import Batch, BoolArray, Choice, Feedback, IntArray, Policy, Problem, World


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


def random_set(state: CountState, rng: Rng) -> BoolArray:
    """A uniformly random set of exactly `budget` arms."""
    n, budget = (int(k) for k in state.shape.reshape(-1, 2)[0])
    rank = rng.permutation(n)
    return np.asarray(rank < budget)


@dataclass(frozen=True, kw_only=True)
class Uniform(Counting):
    """Plays a uniformly random set every round."""

    def select(self, state: CountState, rng: Rng) -> Choice:
        return Choice(random_set(state, rng))


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


def told(world: World | None, policy: object) -> World:
    """The world, or an error that says how to give it."""
    if world is None:
        raise ValueError(
            f"world = None in {type(policy).__name__}: must be a drawn world; simulate() gives it, "
            f"elsewhere use {type(policy).__name__}().told(environment.draw(rng, batch))"
        )
    return world

"""Reference points: the uniform random policy and the oracle; see also `delayed_oracle`."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spillover import kernels, validate
from spillover.contracts import ROUND, CompiledRounds, Policy, ScoredWorld, methods_of, unchanged
from spillover.foresight import ForeseeableWorld, best_of_each
from spillover.policies.decided_rounds import CountState, next_rounds, play_decided
from spillover.policies.explanations import graph_free_explanation
from spillover.rng import Purpose, Rng
from spillover.types import (
    Array,
    Batch,
    BoolArray,
    Choice,
    Explanation,
    Feedback,
    IntArray,
    Problem,
    Stretch,
)

FEW_ARMS = 128  # whose ranks are counted faster than arms are sorted


class Counting(Policy):
    """Base of the reference points, which keep track of the rounds and learn nothing else."""

    explains = True
    needs_rewards = False
    needs_outcomes = False
    accepts_missing = True

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
        feedback = validate.partial_feedback(feedback, shape, np.array([-np.inf, np.inf]), state.rounds)
        played_at = np.where(feedback.arrived, state.rounds - feedback.age, 0)
        return state._replace(latest=np.maximum(state.latest, played_at))

    def signals(self, state: CountState) -> dict[str, Any]:
        """It learns nothing, so there is nothing to check."""
        return {"learns": False}


def best_sets(world: ScoredWorld, rounds: IntArray) -> BoolArray:
    """The best sets of some rounds of each replication, (*batch, rounds, n) for (*batch, rounds)."""
    different, which = np.unique(rounds, return_inverse=True)
    found = world.best_of_rounds(different) if isinstance(world, ForeseeableWorld) else best_of_each(world, different)
    best = np.broadcast_to(found, (*rounds.shape[:-1], *found.shape[-2:]))
    return np.take_along_axis(best, which.reshape(rounds.shape)[..., None], axis=-2)


def random_order(state: CountState, rng: Rng) -> IntArray:
    """A uniformly random rank, from 0, for each arm."""
    return rng.permutation(int(state.shape.flat[0]))


def random_set(state: CountState, rng: Rng) -> BoolArray:
    """A uniformly random set of exactly `budget` arms: those with the first ranks."""
    n, budget = state.shape.flat[:2].tolist()
    if n <= FEW_ARMS:
        return np.asarray(kernels.random_set(*rng.address(), budget, np.empty(n)))
    return np.asarray(random_order(state, rng) < budget)


def random_explanation(state: CountState, rng: Rng) -> Explanation:
    """An explanation without estimates: the score is the random rank of an arm, 1 for the first, 1 / n for the last."""
    place = np.broadcast_to(random_order(state, rng), (*state.rounds.shape, int(state.shape.flat[0])))
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

    quantity = "rank in a random order"
    scores_have_units = False

    def select(self, state: CountState, rng: Rng) -> Choice:
        return Choice(random_set(state, rng))

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        form = CompiledRounds(self.play_stretch, draws_rewards=True, plays_parts=True)
        return form if unchanged(self, UNIFORM) else None

    def play_stretch(self, state: CountState, stretch: Stretch, rng: Rng) -> CountState | None:
        x = random_set(state, rng.over(Purpose.CHOICE, next_rounds(state, stretch)))
        return play_decided(x, state, stretch, rng)

    def explain(self, state: CountState, rng: Rng) -> Explanation:
        """The scores are random ranks."""
        return random_explanation(state, rng)


UNIFORM = methods_of(Uniform, ROUND)


@dataclass(frozen=True, kw_only=True)
class Oracle(Counting):
    """Plays the best set of every round: the policy that regret is measured against.

    >>> import spillover as sp
    >>> world = sp.FixedSEM(adjacency=[[0, 0.5], [0, 0]], means=[0.5, 0.4], budget=1, horizon=10)
    >>> sp.simulate(Oracle(), world, sp.ConstantDelay(3), replications=2, seed=0).final_regret
    array([0., 0.])
    """

    world: Any = field(default=None, metadata={"set_by_user": False})  # `simulate` sets it

    needs_world = True

    def with_world(self, world: ScoredWorld) -> Policy:
        return replace(self, world=world)

    def select(self, state: CountState, rng: Rng) -> Choice:
        t = int(state.rounds.flat[0]) + 1
        best = require_world(self.world, self).best(t)
        return Choice(np.broadcast_to(best, (*state.rounds.shape, best.shape[-1])).copy())

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        form = CompiledRounds(self.play_stretch, draws_rewards=True, plays_parts=True)
        return form if unchanged(self, ORACLE) else None

    def play_stretch(self, state: CountState, stretch: Stretch, rng: Rng) -> CountState | None:
        world = require_world(self.world, self)
        rounds = np.broadcast_to(next_rounds(state, stretch), (*state.rounds.shape, len(stretch.recorded)))
        return play_decided(best_sets(world, rounds), state, stretch, rng)

    def explain(self, state: CountState, rng: Rng) -> Explanation:
        """The true means, graph and weights of the next round; no exploration bonus."""
        return true_explanation(require_world(self.world, self), int(state.rounds.flat[0]) + 1, state)


ORACLE = methods_of(Oracle, ROUND)


def true_explanation(world: ScoredWorld, t: int, state: CountState) -> Explanation:
    """The true values of round t, from the world's expected payoffs, weights and edges."""
    n = int(state.shape.flat[0])
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
            f"elsewhere use {type(policy).__name__}().with_world(environment.draw(rng, batch))"
        )
    return world

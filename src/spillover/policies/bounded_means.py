"""The base of NDC-SEM and SEM-UCB: means with an exploration bonus on a graph, compiled as a whole.

The index is a mean plus a bonus of known form, so one kernel makes a decision, and one plays whole stretches of rounds.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import HISTORY, ROUND, CompiledRounds, Policy, methods_of, unchanged
from spillover.policies.compact import MOST_ARMS, CompactMeans
from spillover.policies.compiled_rounds import LAGS, course_for_kernels, kind_of_graph, played_by
from spillover.policies.dates import dated
from spillover.policies.dates import for_kernels as delay_for_kernels
from spillover.policies.graph_policy import MeansOnGraph, MeansState, advance_round, check_weights
from spillover.policies.initialisation import follow_plan, is_sweep
from spillover.policies.pending import count_pulls, empty_pulls, in_flight
from spillover.rng import Rng
from spillover.scratch import SCRATCH
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem, Stretch


class Bonus(NamedTuple):
    """The bonus unit sqrt(width (s + 1) log(m) / M)."""

    width: Any  # a number, or an array that broadcasts over the batch
    pending: bool = False  # M counts pulls in flight too
    in_range: bool = True  # an arm is forgotten if its bonus is a million times as wide as the range; or as 1


@dataclass(frozen=True, kw_only=True)
class BoundedMeans(MeansOnGraph):
    """Ranks arms by the weights of a learned graph times an upper bound of their means; a subclass has a `bonus`.

    See `MeansOnGraph` for the rest. A subclass with its own `index` chooses by that, and is not compiled.
    """

    @property
    @abstractmethod
    def bonus(self) -> Bonus:
        """The exploration bonus."""

    @property
    def assumed_delay(self) -> int | None:
        """The delay that all outcomes are taken to have; None: each counts from its own round."""
        return None

    @property
    def order_free(self) -> bool:
        return self.assumed_delay is None and super().order_free

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> MeansState:
        state = super().init(problem, rng, batch)
        return state._replace(pulls=empty_pulls(problem.n_arms, batch)) if self.bonus.pending else state

    @cached_property
    def rules(self) -> IntArray:
        """The settings of the kernels in `kernels/rounds.py`, in their order there."""
        bonus, delay = self.bonus, delay_for_kernels(self.assumed_delay)
        return np.array([bonus.pending, bonus.in_range, delay, kind_of_graph(self.graph)])

    @cached_property
    def growths(self) -> Array:
        """How much a bonus has grown after so many rounds without an observation; for many arms."""
        return np.asarray(kernels.discount_tables(self.discount, LAGS)[1])

    def for_kernels(self, state: MeansState) -> tuple[Any, ...]:
        """The first arguments of these kernels."""
        averages, bonus = state.averages, self.bonus
        pulls = state.pulls if bonus.pending else averages[1:]  # or anything of this shape
        unit = 0.0 if self.unit is None else self.unit
        known = state.rounds, state.clock, state.budget, state.reward_range
        return *averages, *pulls, *known, self.discount, bonus.width, unit, self.rules

    def index(self, state: MeansState) -> Array:
        """The mean of each arm plus the bonus; +inf for an arm never observed (never played, if pulls count)."""
        return np.asarray(kernels.means_index(*self.for_kernels(state)))

    def select(self, state: MeansState, rng: Rng) -> Choice:
        if not unchanged(self, INDEX):
            return super().select(state, rng)
        check_weights(state, self.graph)
        graph, plan = state.graph, state.plan
        memo = self.graph.remember(graph)
        if is_sweep(plan, state.rounds):
            return Choice(self.select_of_many(state, rng), memo=memo)
        growths = self.growths if graph.weights.shape[-1] > len(LAGS) else LAGS[:0]
        x = kernels.choose_by_means(*self.for_kernels(state), graph.weights, plan, growths, *rng.address())
        return Choice(np.asarray(x), memo=memo)

    def select_of_many(self, state: MeansState, rng: Rng) -> BoolArray:
        """The decision of the sweep, and after it that of the means."""
        *batch, n = state.graph.weights.shape
        swept = state.rounds * state.budget >= n
        if not swept.any():
            return np.asarray(state.plan == state.rounds[..., None])
        scores = SCRATCH.array("scores", (n,), float, tuple(batch))
        growths = self.growths if n > len(LAGS) else LAGS[:0]
        x = kernels.choose_of_many(*self.for_kernels(state), state.graph.weights, growths, scores, *rng.address())
        return np.asarray(x if swept.all() else follow_plan(state.plan, state.rounds, x))

    def played(self, state: MeansState, x: BoolArray) -> MeansState:
        state = advance_round(state, x, self.discount)
        if not self.bonus.pending:
            return state
        pulls = count_pulls(state.pulls, np.asarray(x, np.bool_), state.rounds, self.discount)
        return state._replace(pulls=pulls)

    def learn(self, state: MeansState, feedback: Feedback, rng: Rng) -> MeansState:
        if not self.graph.fuses or not unchanged(self, ABSORBING):
            return super().learn(state, dated(feedback, self.assumed_delay, state.rounds), rng)
        shape, ranges, now = state.averages.sums.shape, state.reward_range, state.rounds
        if len(shape) > 1 or not validate.is_canonical(feedback, shape):
            # a batch is checked first, so that an error leaves all of it as it was
            feedback = validate.feedback(feedback, shape, ranges, now)
        x, z, y, age, arrived = feedback[:5]
        parts, outcome = self.graph.parts(state.graph), (x, np.ascontiguousarray(z), np.ascontiguousarray(y))
        faults = kernels.learn_by_means(
            *state.averages, *parts[1:4], *outcome, age, arrived, now, ranges, self.discount, self.rules
        )
        if faults.any():
            validate.feedback(Feedback(*feedback), shape, ranges, now)  # whoever says that it was checked
        return state

    def catch_up(self, state: MeansState, rounds: Feedback, first: int, rng: Rng) -> MeansState:
        if len(rounds.x) == 1 or not unchanged(self, LEARNING):
            one_by_one: MeansState = Policy.catch_up(self, state, rounds, first, rng)
            return one_by_one
        pulls = state.pulls
        for played_at, x in enumerate(rounds.x if self.bonus.pending else (), int(state.rounds) + 1):
            pulls = count_pulls(pulls, x, np.array(played_at), self.discount)
        return self.learn_rounds(state, rounds)._replace(pulls=pulls)

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        return CompiledRounds(self.play_stretch, draws_rewards=True) if self.is_compiled else None

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled forms do what the methods do."""
        return bool(self.graph.fuses and unchanged(self, AS_COMPILED))

    def play_stretch(self, state: MeansState, stretch: Stretch, rng: Rng) -> MeansState | None:
        if is_sweep(state.plan, state.rounds):
            return None
        parts = self.graph.parts(state.graph)
        played = played_by(
            kernels.play_rounds,
            *self.for_kernels(state),
            parts.weights,
            state.plan,
            rng.keys,
            *parts[1:],
            *kernels.discount_tables(self.discount, LAGS),
            *course_for_kernels(stretch),
            stretch.recorded,
            stretch.snapshots,
        )
        if played is None:
            return None
        return state._replace(rounds=state.rounds + len(stretch.recorded), clock=played[0])

    def compact(self, state: MeansState) -> CompactMeans | None:
        small = state.averages.sums.shape[-1] <= MOST_ARMS and not is_sweep(state.plan, state.rounds)
        return CompactMeans(self, state) if self.is_compiled and small else None

    def explain(self, state: MeansState, rng: Rng) -> Explanation:
        found = super().explain(state, rng)
        if not self.bonus.pending:
            return found
        return replace(found, pending=in_flight(state.averages, state.pulls, state.rounds, self.discount))


INDEX = methods_of(BoundedMeans, ("index", "reward_unit"))
ABSORBING = methods_of(BoundedMeans, ("absorb",))
LEARNING = methods_of(BoundedMeans, (*HISTORY, "absorb", "assumed_delay"))
AS_COMPILED = methods_of(BoundedMeans, (*ROUND, "index", "reward_unit", "absorb"))

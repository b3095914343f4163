"""The base of NDC-SEM and SEM-UCB: means with an exploration bonus on a graph, written for one learner."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spillover.contracts import HISTORY, ROUND, Policy, methods_of, unchanged
from spillover.core import CorePolicy, Functions, Lesson, Turn, choose_top, inner
from spillover.graph.none import EmptyGraph
from spillover.kernels.averages import add_pulls, add_rewards
from spillover.kernels.gram import absorb_outcome
from spillover.kernels.graph import is_spent, note_moves, refit, room_for_refit
from spillover.kernels.rounds import ASSUMED_DELAY, GRAPH, SIGNED, bounds_of_means, date_of, take_snapshot, weigh
from spillover.policies.averages import DISCOUNT, Discounted
from spillover.policies.compiled_rounds import kind_of_graph
from spillover.policies.dates import dated
from spillover.policies.dates import for_kernels as delay_for_kernels
from spillover.policies.graph_policy import MeansOnGraph, MeansState, check_weights
from spillover.policies.initialisation import follows_plan
from spillover.policies.pending import count_pulls, empty_pulls, in_flight
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem


class Bonus(NamedTuple):
    """The bonus unit sqrt(width (s + 1) log(m) / M)."""

    width: Any  # a number, or an array that broadcasts over the batch
    pending: bool = False  # M counts pulls in flight too
    in_range: bool = True  # an arm is forgotten if its bonus is a million times as wide as the range; or as 1


@dataclass(frozen=True, kw_only=True)
class BoundedMeans(Discounted, MeansOnGraph, CorePolicy):
    """Ranks arms by the weights of a learned graph times an upper bound of their means; a subclass has a `bonus`.

    See `MeansOnGraph` for the rest. A subclass with its own `index` chooses by that, and is not compiled.
    """

    compiled = True
    allocates = False
    unchanged_by_play = ("graph", "plan", "averages")
    constants: ClassVar[Mapping[str, int]] = {**DISCOUNT, "bonus_width": 0, "bonus_unit": 0, "rules": 1}

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

    # --- what functions of one learner see of it --------------------------------------------------------------------

    @property
    def bonus_width(self) -> Any:
        return self.bonus.width

    @property
    def bonus_unit(self) -> float:
        """The unit, or 0 for the width of the reward range."""
        return 0.0 if self.unit is None else float(self.unit)

    @cached_property
    def rules(self) -> IntArray:
        """The settings of `bounds_of_means` and others, in the order of `kernels/rounds.py`."""
        bonus, delay = self.bonus, delay_for_kernels(self.assumed_delay)
        return np.array([bonus.pending, bonus.in_range, delay, kind_of_graph(self.graph)])

    @property
    def functions(self) -> Functions:
        """Those of a policy with such a bonus and graph, or of a subclass that has its own."""
        made = functions_of_means(self.bonus.pending, self.graph.fuses and self.graph.learns)
        own = {
            name: getattr(type(self), name) for name, method in OF_ONE.items() if not unchanged(self, {name: method})
        }
        return made._replace(**own)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        raise NotImplementedError("see functions_of_means")

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        raise NotImplementedError("see functions_of_means")

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> MeansState:
        state = super().init(problem, rng, batch)
        return state._replace(pulls=empty_pulls(problem.n_arms, batch)) if self.bonus.pending else state

    def index(self, state: MeansState) -> Array:
        """The mean of each arm plus the bonus; +inf for an arm never observed (never played, if pulls count)."""
        return self.indices(self.without_graph(state), Rng(0))

    def without_graph(self, state: MeansState) -> MeansState:
        """The state with the weights alone of a graph that only its own learner, in Python, can learn."""
        if self.graph.fuses:
            return state
        return state._replace(graph=EmptyGraph(np.ascontiguousarray(state.graph.weights)))

    def select(self, state: MeansState, rng: Rng) -> Choice:
        if not unchanged(self, INDEX):
            return super().select(state, rng)
        check_weights(state, self.graph)
        choice = CorePolicy.select(self, self.without_graph(state), rng)
        return choice._replace(memo=self.graph.remember(state.graph))

    def played(self, state: MeansState, x: BoolArray) -> MeansState:
        played: MeansState = CorePolicy.played(self, self.without_graph(state), x)
        return played._replace(graph=state.graph)

    def learn(self, state: MeansState, feedback: Feedback, rng: Rng) -> MeansState:
        if not self.graph.fuses or not unchanged(self, ABSORBING):
            return super().learn(state, dated(feedback, self.assumed_delay, state.rounds), rng)
        learned: MeansState = CorePolicy.learn(self, state, feedback, rng)
        return learned

    def catch_up(self, state: MeansState, rounds: Feedback, first: int, rng: Rng) -> MeansState:
        if len(rounds.x) == 1 or not unchanged(self, LEARNING):
            one_by_one: MeansState = Policy.catch_up(self, state, rounds, first, rng)
            return one_by_one
        if self.graph.fuses:
            learned: MeansState = self.learn_history(state, rounds, rng)
            return learned
        pulls = state.pulls
        for played_at, x in enumerate(rounds.x if self.bonus.pending else (), int(state.rounds) + 1):
            pulls = count_pulls(pulls, x, np.array(played_at), self.discount)
        return self.learn_rounds(state, rounds)._replace(pulls=pulls)

    @property
    def runs_compiled(self) -> bool:
        """Whether the functions of one learner do what the methods do."""
        return bool(self.graph.fuses and unchanged(self, AS_COMPILED))

    def explain(self, state: MeansState, rng: Rng) -> Explanation:
        found = super().explain(state, rng)
        if not self.bonus.pending:
            return found
        return replace(found, pending=in_flight(state.averages, state.pulls, state.rounds, self.discount))


OF_ONE = methods_of(BoundedMeans, ("decide", "learn_outcome", "note_play", "derive", "remember", "prepare", "show"))
INDEX = methods_of(BoundedMeans, ("index", "reward_unit"))
ABSORBING = methods_of(BoundedMeans, ("absorb",))
LEARNING = methods_of(BoundedMeans, (*HISTORY, "absorb", "assumed_delay"))
AS_COMPILED = methods_of(BoundedMeans, (*ROUND, "index", "reward_unit", "absorb"))


@lru_cache
def functions_of_means(pending: bool, learns: bool) -> Functions:
    """The functions of one learner; pending: pulls in flight count; learns: together with those of a sparse graph."""

    def index(self: Any, s: Any, turn: Any, found: Any) -> None:
        known = s.averages
        pulls, latest = (s.pulls.counts, s.pulls.stamps) if pending else (known.counts, known.stamps)
        bounds_of_means(
            known.sums, known.counts, known.stamps, pulls, latest, s.rounds, s.clock, s.budget, s.reward_range,
            self.log_discount, self.bonus_width, self.bonus_unit, self.rules, self.growths, found,
        )  # fmt: skip

    fill_index = inner(index)

    def decide(self: Any, s: Any, turn: Any, x: Any) -> None:
        if follows_plan(s.plan, s.rounds, s.budget, x):
            return
        scores = turn.lines[0]
        fill_index(self, s, turn, scores)
        weigh(s.graph.weights, scores)
        choose_top(scores, s.budget, turn, x)

    def note_play(self: Any, s: Any, x: Any) -> None:
        s.clock = self.discount * s.clock + 1.0
        if pending:
            add_pulls(s.pulls.counts, s.pulls.stamps, x, s.rounds, self.log_discount, self.powers)

    def learn_outcome(self: Any, s: Any, lesson: Any, turn: Any) -> None:
        known, dated = s.averages, date_of(lesson.round, s.rounds, self.rules[ASSUMED_DELAY])
        add_rewards(
            known.sums, known.counts, known.stamps, lesson.x, lesson.z, dated, self.log_discount, self.powers
        )  # fmt: skip
        if learns:
            graph, errors = s.graph, turn.lines[1]
            absorb_outcome(
                graph.gram, graph.residual, graph.adjacency, lesson.z, lesson.y, 1.0, graph.acyclic, errors
            )  # fmt: skip
            note_moves(lesson.y, errors, turn.room)

    if not learns:

        def show_nothing(self: Any, s: Any, adjacency: Any) -> None:
            for i in range(adjacency.shape[0]):
                for j in range(adjacency.shape[1]):
                    adjacency[i, j] = 0.0

        return Functions(decide, learn_outcome, note_play, fill_index=index, show=show_nothing)

    def derive(self: Any, s: Any, turn: Any) -> None:
        if is_spent(turn.room):
            graph, signed = s.graph, self.rules[GRAPH] == SIGNED
            refit(
                graph.gram, graph.residual, graph.adjacency, graph.pressure, graph.weights, graph.penalty, graph.bound,
                graph.acyclic, signed, turn.room, True,
            )  # fmt: skip

    def prepare(self: Any, s: Any) -> Any:
        return room_for_refit(s.n_arms)

    def show(self: Any, s: Any, adjacency: Any) -> None:
        take_snapshot(s.graph.adjacency, adjacency)

    return Functions(decide, learn_outcome, note_play, derive, fill_index=index, prepare=prepare, show=show)

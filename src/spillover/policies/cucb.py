"""CUCB (Chen, Wang, Yuan and Wang 2016): as it is, with a discount, on a sliding window, and with sets as arms."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.core import CorePolicy, Lesson, Turn, choose_top, inner
from spillover.core.policy import first_fields
from spillover.kernels.averages import add_rewards, amounts_above_low, grown_bounds, upper_bounds
from spillover.kernels.averages import unit_or_one as unit_of
from spillover.policies.averages import Averages, Discounted, counts_now, empty_averages, mean_of, means
from spillover.policies.scale import (
    Scale,
    ScaledCorePolicy,
    graph_free_explanation,
    initial_scale,
    ranking_weights,
    scaled_explanation,
    unit_or_one,
)
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Constant,
    Explanation,
    Finite,
    IntArray,
    Problem,
    Round,
    Rounds,
)

WIDTH = 1.5  # of sqrt(3 ln t / (2 T_i))
CAP = 1.0  # of the index


class CUCBState(NamedTuple):
    """What CUCB has learned."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    clock: Amount  # (*batch,): the discounted number of rounds
    averages: Averages  # of amounts on the scale
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


def explain_cucb(
    state: Any, index: Array, knows_graph: bool, *, discount: Any = 1.0, clock: Any = None, plan: Any = ""
) -> Explanation:
    """The estimates behind the next decision: of y, or of z if the graph is known."""
    return scaled_explanation(
        state.scale,
        state.weights,
        knows_graph,
        mean=means(state.averages) / unit_or_one(state.scale)[..., None],
        count=counts_now(state.averages, state.rounds, discount),
        clock=state.clock if clock is None else clock,
        index=index,
        plan=plan,
    )


@dataclass(frozen=True, kw_only=True)
class CUCB(Discounted, ScaledCorePolicy):
    """The s arms with the largest min(1, mean + sqrt(3 ln t / (2 T_i))), or 1 if never observed; ties at random.

    It ignores delays: an outcome counts when it arrives.

    knows_graph: see `spillover.policies.scale`.

    >>> import spillover as sp
    >>> state = CUCB().init(sp.Problem(n_arms=5, budget=2), sp.Rng(0))
    >>> int(CUCB().select(state, sp.Rng(0)).x.sum())
    2
    """

    discount = 1.0  # a field of DiscountedCUCB
    compiled = "without arrays"

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> CUCBState:
        first = first_fields(self, problem, batch)
        return CUCBState(
            **first,
            clock=np.zeros(batch),
            averages=empty_averages(problem.n_arms, batch),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        known, clock = s.averages, self.discount * s.clock + 1.0
        upper_bounds(
            known.sums, known.counts, known.stamps, s.rounds, clock, self.log_discount, WIDTH, unit_of(s.scale.unit),
            CAP, 1.0, self.growths, found,
        )  # fmt: skip

    def note_play(self, s: Any, x: Any) -> None:
        s.clock = self.discount * s.clock + 1.0

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        amounts = turn.lines[0]
        observed = lesson.z if self.knows_graph else lesson.y
        s.scale.unit = amounts_above_low(observed, lesson.x, s.scale.low, s.scale.unit, s.scale.declared, amounts)
        known = s.averages
        add_rewards(
            known.sums, known.counts, known.stamps, lesson.x, amounts, lesson.round, self.log_discount, self.powers
        )

    def explain(self, state: CUCBState, rng: Rng) -> Explanation:
        return explain_cucb(state, self.indices(state, rng), self.knows_graph, discount=self.discount)


@dataclass(frozen=True, kw_only=True)
class DiscountedCUCB(CUCB):
    """CUCB with means, counts and time discounted from the round of the action (after Garivier and Moulines 2011).

    discount: gamma, in (0, 1): how fast the past fades.
    knows_graph: see `spillover.policies.scale`.

    >>> DiscountedCUCB(discount=1.5)
    Traceback (most recent call last):
    ValueError: discount = 1.5: must be a number strictly between 0 and 1
    """

    discount: Any = 0.995

    grids = ("discount",)

    def __post_init__(self) -> None:
        super().__post_init__()
        between = "a number strictly between 0 and 1"
        validate.number("discount", self.discount, between, low=0, high=1, open_ends=True)


class Window(NamedTuple):
    """The rounds of play inside the window, in slots by round modulo its length."""

    rewards: Finite  # (*batch, window, n)
    chosen: BoolArray  # (*batch, window, n)
    holds: Round  # (*batch, window): the round in each slot, which has left the window if a later one is due there


class WindowState(NamedTuple):
    """What CUCB on a window has learned."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    sums: Finite  # (*batch, n): over the window
    counts: Amount  # (*batch, n)
    window: Window
    scale: Scale
    weights: Constant[Array]  # (*batch, n): ones, or the true ones
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


@dataclass(frozen=True, kw_only=True)
class SlidingWindowCUCB(ScaledCorePolicy):
    """CUCB that uses only the outcomes of rounds played in the last `window` rounds.

    The window covers rounds of play, so it must be longer than the delay for the policy to learn at all.

    window: how many rounds count.
    knows_graph: see `spillover.policies.scale`.

    >>> SlidingWindowCUCB(window=0)
    Traceback (most recent call last):
    ValueError: window = 0: must be a whole number from 1 on
    """

    window: int = 500

    compiled = "without arrays"

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.whole("window", self.window, 1)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> WindowState:
        first = first_fields(self, problem, batch)
        line, ring = (*batch, problem.n_arms), (*batch, self.window, problem.n_arms)
        return WindowState(
            **first,
            sums=np.zeros(line),
            counts=np.zeros(line),
            window=Window(
                rewards=np.zeros(ring),
                chosen=np.zeros(ring, np.bool_),
                holds=np.zeros(ring[:-1], np.int64),
            ),
            scale=initial_scale(problem, batch, self.knows_graph),
            weights=ranking_weights(problem, batch, self.knows_graph),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        found[:] = 1.0  # the bonus does not grow
        clock, unit = float(min(s.rounds + 1, self.window)), unit_of(s.scale.unit)
        grown_bounds(s.sums, s.counts, clock, WIDTH, unit, CAP, 1.0, found)

    def note_play(self, s: Any, x: Any) -> None:
        """Forget the round that has left the window."""
        known, slot = s.window, s.rounds % self.window
        if known.holds[slot] == 0 or known.holds[slot] != s.rounds - self.window:
            return
        for i in range(x.shape[0]):
            if known.chosen[slot, i]:
                s.counts[i] -= 1.0
                s.sums[i] = s.sums[i] - known.rewards[slot, i] if s.counts[i] > 0.0 else 0.0

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        amounts, scale = turn.lines[0], s.scale
        observed = lesson.z if self.knows_graph else lesson.y
        scale.unit = amounts_above_low(observed, lesson.x, scale.low, scale.unit, scale.declared, amounts)
        if lesson.round <= s.rounds - self.window:
            return
        known, slot = s.window, lesson.round % self.window
        known.holds[slot] = lesson.round
        for i in range(lesson.x.shape[0]):
            known.chosen[slot, i] = lesson.x[i]
            known.rewards[slot, i] = amounts[i]
            if lesson.x[i]:
                s.sums[i] += amounts[i]
                s.counts[i] += 1.0

    def explain(self, state: WindowState, rng: Rng) -> Explanation:
        return scaled_explanation(
            state.scale,
            state.weights,
            self.knows_graph,
            mean=mean_of(state.sums, state.counts) / unit_or_one(state.scale)[..., None],
            count=state.counts.copy(),
            clock=np.minimum(state.rounds, self.window),
            index=self.indices(state, rng),
        )


MOST_SETS = 100_000


class SuperArmState(NamedTuple):
    """What has been learned about each set."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    clock: Amount  # (*batch,)
    averages: Averages  # of the payoff of each set, (*batch, sets)
    members: Constant[BoolArray]  # (*batch, sets, n)
    scale: Amount  # (*batch,): how far payoffs can differ
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z


@dataclass(frozen=True, kw_only=True)
class SuperArmUCB(Discounted, CorePolicy):
    """A discounted upper confidence bound on the payoff of every set of s arms, without sharing between sets.

    It shows why the paper learns about base arms: here a set gives no information about others with the same arms.
    The index is that of NDC-SEM with the same parameters, on payoffs scaled to [0, 1].

    >>> import spillover as sp
    >>> run = sp.simulate(SuperArmUCB(), sp.SyntheticSEM(n_arms=4, budget=2, horizon=50, changes=()), 0)
    >>> run.regret.shape
    (1, 50)
    """

    discount: Any = 0.985
    exploration: Any = 1e-10

    compiled = "without arrays"
    traits = Traits(
        needs_rewards=False, needs_outcomes=False, explains=True, quantity="payoff of the best set with the arm"
    )
    grids = ("discount", "exploration")

    def __post_init__(self) -> None:
        between = "a number strictly between 0 and 1"
        validate.number("discount", self.discount, between, low=0, high=1, open_ends=True)
        validate.number("exploration", self.exploration, "a finite number >= 0", low=0, high=np.inf)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> SuperArmState:
        first = first_fields(self, problem, batch)
        n, sets = problem.n_arms, comb(problem.n_arms, problem.budget)
        validate.require(sets <= MOST_SETS, "number of sets", sets, f"at most {MOST_SETS:,}")
        members = np.zeros((sets, n), np.bool_)
        chosen = np.array(list(combinations(range(n), problem.budget)))
        np.put_along_axis(members, chosen, True, axis=-1)
        overall = np.asarray(problem.reward_range if problem.overall_range is None else problem.overall_range, float)
        return SuperArmState(
            **first,
            clock=np.zeros(batch),
            averages=empty_averages(sets, batch),
            members=np.broadcast_to(members, (*batch, sets, n)).copy(),
            scale=np.broadcast_to(n * (overall[..., 1] - overall[..., 0]), batch).copy(),
        )

    def signals(self, state: SuperArmState) -> dict[str, Any]:
        """Its estimates are for sets, not for arms."""
        return {"of_sets": True}

    def prepare(self, s: Any) -> Any:
        sets = s.members.shape[0]
        return np.empty(sets), np.empty(sets, np.bool_)

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """The index of each set, (sets,)."""
        fill_index(self, s, found)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        scores, chosen = turn.room
        fill_index(self, s, scores)
        highest = -np.inf
        for k in range(scores.shape[0]):
            highest = max(highest, scores[k])
        for k in range(scores.shape[0]):  # as only positive scores are chosen, and payoffs may be 0 or less
            scores[k] = 1.0 if scores[k] == highest else 0.0
        choose_top(scores, 1, turn, chosen)
        for k in range(scores.shape[0]):
            if chosen[k]:
                for i in range(x.shape[0]):
                    x[i] = s.members[k, i]

    def note_play(self, s: Any, x: Any) -> None:
        s.clock = self.discount * s.clock + 1.0

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        payoffs, which = turn.room
        payoff = 0.0
        for i in range(lesson.y.shape[0]):
            payoff += lesson.y[i]
        for k in range(which.shape[0]):  # none, if another number of arms was played
            payoffs[k], which[k] = payoff, is_same(s.members[k], lesson.x)
        known = s.averages
        add_rewards(
            known.sums, known.counts, known.stamps, which, payoffs, lesson.round, self.log_discount, self.powers
        )

    def explain(self, state: SuperArmState, rng: Rng) -> Explanation:
        """The estimates of an arm are those of the best set that contains it."""
        chosen = self.select(state, rng).x
        place = (state.members == chosen[..., None, :]).all(axis=-1).argmax(axis=-1)
        index = self.indices(state, rng, state.averages.sums.shape[-1:])
        within = np.where(state.members, index[..., None], -np.inf).argmax(axis=-2)
        best = np.where(chosen, place[..., None], within)  # (*batch, n): ties go to the set that is played
        count = counts_now(state.averages, state.rounds, self.discount)
        return graph_free_explanation(
            mean=np.take_along_axis(means(state.averages), best, axis=-1),
            count=np.take_along_axis(count, best, axis=-1),
            clock=state.clock,
            index=np.take_along_axis(index, best, axis=-1) * state.scale[..., None],
        )


@inner
def fill_index(p: Any, s: Any, found: Any) -> None:
    """mean + sqrt(4 exploration (s + 1) ln(clock) / count) of each set; infinite if never observed."""
    known, width = s.averages, 4.0 * p.exploration * (s.budget + 1)
    upper_bounds(
        known.sums, known.counts, known.stamps, s.rounds, s.clock, p.log_discount, width, s.scale, np.inf, 1.0,
        p.growths, found,
    )  # fmt: skip


@inner
def is_same(members: Any, x: Any) -> Any:
    """Whether a set is the one that was played."""
    alike = 0
    while alike < x.shape[0] and members[alike] == x[alike]:
        alike += 1
    return alike == x.shape[0]

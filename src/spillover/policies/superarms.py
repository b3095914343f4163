"""Learning about super arms: every set of s arms is treated as an arm of its own, with its payoff as the reward."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import Traits
from spillover.contracts.hyperparameters import check_grid
from spillover.core import CorePolicy, Lesson, Turn, choose_top, inner
from spillover.kernels.averages import add_rewards, upper_bounds
from spillover.policies.averages import Averages, Discounted, counts_now, empty_averages, means
from spillover.policies.explanations import graph_free_explanation
from spillover.rng import Rng
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Explanation, IntArray, Problem, Rounds

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
        validate.problem(problem)
        check_grid(self, batch)
        n, sets = problem.n_arms, comb(problem.n_arms, problem.budget)
        validate.require(sets <= MOST_SETS, "number of sets", sets, f"at most {MOST_SETS:,}")
        members = np.zeros((sets, n), np.bool_)
        chosen = np.array(list(combinations(range(n), problem.budget)))
        np.put_along_axis(members, chosen, True, axis=-1)
        overall = np.asarray(problem.reward_range if problem.overall_range is None else problem.overall_range, float)
        return SuperArmState(
            rounds=np.zeros(batch, np.int64),
            n_arms=np.full(batch, n, np.int64),
            clock=np.zeros(batch),
            averages=empty_averages(sets, batch),
            members=np.broadcast_to(members, (*batch, sets, n)).copy(),
            scale=np.broadcast_to(n * (overall[..., 1] - overall[..., 0]), batch).copy(),
            budget=np.full(batch, problem.budget, np.int64),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
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

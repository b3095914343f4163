"""Learning about super arms: every set of s arms is treated as an arm of its own, with its payoff as the reward."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.constraints.search import top_arms
from spillover.contracts import Policy
from spillover.contracts.hyperparameters import check_grid
from spillover.policies.averages import Averages, counts_now, empty_averages, learn, means, upper_index
from spillover.policies.explanations import graph_free_explanation
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Choice,
    Constant,
    Explanation,
    Feedback,
    IntArray,
    Problem,
    Rounds,
)

MOST_SETS = 100_000


class SuperArmState(NamedTuple):
    """What has been learned about each set."""

    rounds: Rounds  # (*batch,)
    clock: Amount  # (*batch,)
    averages: Averages  # of the payoff of each set, (*batch, sets)
    members: Constant[BoolArray]  # (*batch, sets, n)
    scale: Amount  # (*batch,): how far payoffs can differ
    reward_range: Constant[Array]  # (*batch, 2): of z

    @property
    def budget(self) -> IntArray:
        return np.asarray(self.members[..., 0, :].sum(axis=-1))


@dataclass(frozen=True, kw_only=True)
class SuperArmUCB(Policy):
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

    explains = True
    needs_rewards = False
    needs_outcomes = False
    quantity = "payoff of the best set with the arm"
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
            clock=np.zeros(batch),
            averages=empty_averages(sets, batch),
            members=np.broadcast_to(members, (*batch, sets, n)).copy(),
            scale=np.broadcast_to(n * (overall[..., 1] - overall[..., 0]), batch).astype(float),
            reward_range=validate.spread("reward_range", problem.reward_range, (*batch, 2)),
        )

    def signals(self, state: SuperArmState) -> dict[str, Any]:
        """Its estimates are for sets, not for arms."""
        return {"of_sets": True}

    def index(self, state: SuperArmState) -> Array:
        budget = state.members[..., 0, :].sum(axis=-1)
        width = 4.0 * self.exploration * (budget + 1)
        return upper_index(
            state.averages, state.rounds, state.clock, width=width, discount=self.discount, unit=state.scale
        )

    def best_set(self, state: SuperArmState, rng: Rng) -> IntArray:
        """The position of the set with the highest index, (*batch,)."""
        # top_arms needs positive scores: a small offset allows a set whose payoffs were all 0
        index = self.index(state)
        lowest = np.minimum(index.min(axis=-1, keepdims=True), 0.0)
        return np.asarray(top_arms(index - lowest + 1e-12, 1, rng).argmax(axis=-1))

    def select(self, state: SuperArmState, rng: Rng) -> Choice:
        place = self.best_set(state, rng)
        return Choice(np.take_along_axis(state.members, place[..., None, None], axis=-2)[..., 0, :])

    def played(self, state: SuperArmState, x: BoolArray) -> SuperArmState:
        validate.decision("x", x, (*state.rounds.shape, state.members.shape[-1]))
        return state._replace(rounds=state.rounds + 1, clock=self.discount * state.clock + 1.0)

    def update(self, state: SuperArmState, feedback: Feedback, rng: Rng) -> SuperArmState:
        shape = (*state.rounds.shape, state.members.shape[-1])
        feedback = validate.feedback(feedback, shape, state.reward_range, state.rounds, rewards=False)
        y, age, arrived = feedback.y, feedback.age, feedback.arrived
        which = (state.members == feedback.x[..., None, :]).all(axis=-1)  # no set, if another number of arms was played
        payoff = np.where(which, y.sum(axis=-1)[..., None], 0.0)
        averages = learn(state.averages, which, payoff, state.rounds - age, self.discount, arrived)
        return state._replace(averages=averages)

    def explain(self, state: SuperArmState, rng: Rng) -> Explanation:
        """The estimates of an arm are those of the best set that contains it."""
        index = self.index(state)
        place = self.best_set(state, rng)
        chosen = np.take_along_axis(state.members, place[..., None, None], axis=-2)[..., 0, :]
        within = np.where(state.members, index[..., None], -np.inf).argmax(axis=-2)
        best = np.where(chosen, place[..., None], within)  # (*batch, n): ties go to the set that is played
        count = counts_now(state.averages, state.rounds, self.discount)
        return graph_free_explanation(
            mean=np.take_along_axis(means(state.averages), best, axis=-1),
            count=np.take_along_axis(count, best, axis=-1),
            clock=state.clock,
            index=np.take_along_axis(index, best, axis=-1) * state.scale[..., None],
        )

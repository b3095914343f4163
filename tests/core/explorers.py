"""A policy of one learner that uses all that there is: every kind of field, and all of the functions."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

import spillover as sp
from spillover.core import CorePolicy, Lesson, Turn, choose_top, inner, later, uniform
from spillover.policies.scale import graph_free_explanation


class Means(NamedTuple):
    """Of the outcomes of each arm, and of pairs of arms."""

    sums: Any  # (n,)
    counts: Any  # (n,)
    together: Any  # (n, n): rounds in which both were played


class ExplorerState(NamedTuple):
    """Fields of all kinds."""

    rounds: Any
    n_arms: Any
    budget: Any
    reward_range: Any  # (2,)
    clock: Any  # a number
    surprise: Any  # a number: how far the outcomes were from what was expected at the time
    started: Any  # a boolean
    last: Any  # (n,) of booleans: the last decision
    pulls: Any  # (n,) of whole numbers
    means: Means
    sides: Any  # (2, n, 2): outcomes below and above the estimate, how many of them and their sum
    estimates: Any  # (n,)


@inner
def estimate(total: Any, count: Any, otherwise: Any) -> Any:
    """A mean, if there is one."""
    return total / count if count > 0.0 else otherwise


@inner
def fill_scores(p: Any, s: Any, turn: Any, scores: Any) -> None:
    """Estimates and bonuses, or now and then random numbers."""
    unit = s.reward_range[1] - s.reward_range[0]
    explores = s.started and uniform(turn, 0) < p.epsilon
    for i in range(len(scores)):
        if explores:
            scores[i] = uniform(later(turn), i) * unit
        else:
            scores[i] = s.estimates[i] + p.bonus * unit / (1.0 + np.sum(s.means.together[i]))


@dataclass(frozen=True, kw_only=True)
class Explorer(CorePolicy):
    """Epsilon-greedy on mean outcomes, with a bonus for arms that were seldom played together with others.

    epsilon: the probability of a random set. bonus: for arms that were not played together, in units of the rewards.
    """

    epsilon: Any = 0.2
    bonus: Any = 0.05

    grids = ("epsilon", "bonus")
    memos = 1
    traits = sp.Traits(explains=True)

    def start(self, problem: sp.Problem, rng: sp.Rng) -> ExplorerState:
        n = problem.n_arms
        return ExplorerState(
            rounds=0,
            n_arms=n,
            budget=problem.budget,
            reward_range=np.array(problem.reward_range, float),
            clock=0.0,
            surprise=0.0,
            started=False,
            last=np.zeros(n, np.bool_),
            pulls=np.zeros(n, np.int64),
            means=Means(np.zeros(n), np.zeros(n), np.zeros((n, n))),
            sides=np.zeros((2, n, 2)),
            estimates=np.full(n, float(problem.reward_range[1])),
        )

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        fill_scores(self, s, turn, found)

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        fill_scores(self, s, turn, turn.lines[0])
        choose_top(turn.lines[0], s.budget, later(later(turn)), x)

    def remember(self, s: Any, turn: Turn, memo: Any) -> None:
        memo[0] = s.estimates

    def note_play(self, s: Any, x: Any) -> None:
        s.clock = 0.5 * s.clock + 1.0
        s.started = True
        s.last = x
        s.pulls += x
        for i in range(len(x)):
            for j in range(len(x)):
                s.means.together[i, j] += x[i] and x[j]

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        for i in range(len(lesson.x)):
            if lesson.x[i]:
                s.means.sums[i] += lesson.y[i]
                s.means.counts[i] += 1.0
                side = 1 if lesson.y[i] > lesson.memo[0, i] else 0
                s.sides[side, i, 0] += 1.0
                s.sides[side, i, 1] += lesson.y[i]
                s.surprise += abs(lesson.y[i] - lesson.memo[0, i])

    def derive(self, s: Any, turn: Turn) -> None:
        for i in range(len(s.estimates)):
            s.estimates[i] = estimate(s.means.sums[i], s.means.counts[i], s.reward_range[1])

    def explain(self, state: ExplorerState, rng: sp.Rng) -> sp.Explanation:
        found = self.indices(state, rng)
        mean = np.where(state.means.counts > 0, state.estimates, np.nan)
        return graph_free_explanation(mean=mean, count=state.means.counts, clock=state.rounds, index=found)


class CompiledExplorer(Explorer):
    """The same, compiled."""

    compiled: ClassVar[bool | str] = True


BOTH = Explorer(), CompiledExplorer()

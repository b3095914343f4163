"""Discounted Thompson sampling on a learned graph; the discount is chosen online, by prediction."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels
from spillover.contracts import Traits
from spillover.core import Lesson, Turn, choose_top, later
from spillover.core.policy import first_fields
from spillover.graph.learner import explained
from spillover.kernels.averages import add_pulls_side_by_side, add_side_by_side, fill_means, weigh
from spillover.policies.averages import LAGS, START, Pulls, follows_plan, start_plan, starting
from spillover.policies.graph_policy import OnGraph, scores
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

DISCOUNTS = 1.0 - 0.5 ** np.arange(6, 13)  # memories of 64, 128, ..., 4,096 rounds
LINES = 5  # of `index`
EVIDENCE_DISCOUNT = 1.0 - 0.5**11  # the evidence for a discount is itself forgotten, slowly


class Candidates(NamedTuple):
    """Every discount's view of the same feedback; sums and counts are as of the arm's stamp, rewards in [0, 1]."""

    sums: Amount  # (*batch, discounts, n)
    counts: Amount  # (*batch, discounts, n)
    stamps: Round  # (*batch, n): the latest of the arm's rounds that has arrived
    evidence: Finite  # (*batch, discounts): discounted log-likelihood of its predictions, as of `latest`
    latest: Round  # (*batch,): the latest round that has arrived


class DiscountedTSState(NamedTuple):
    """Rounds, plan and graph; the candidates; all pulls under every discount, arrived or in flight."""

    rounds: Rounds  # (*batch,)
    n_arms: Constant[IntArray]  # (*batch,)
    plan: Constant[Any]  # (*batch, n, n): plan[t] is the decision of round t + 1. A sweep: (*batch, n)
    budget: Constant[IntArray]  # (*batch,)
    reward_range: Constant[Array]  # (*batch, 2): of z
    graph: Any
    candidates: Candidates
    pulls: Pulls  # counts (*batch, discounts, n), stamps (*batch, n)


class Room(NamedTuple):
    """Room to work in."""

    graph: Any
    drawn: Any  # (5, n)


@dataclass(frozen=True, kw_only=True)
class DiscountedTS(OnGraph):
    """Thompson sampling with discounted Beta posteriors of z, weighted by a learned graph; there is nothing to tune.

    Several discounts, with memories from 64 to 4,096 rounds, learn from the same feedback side by side. Each of them
    predicts every outcome before learning it; the discount of a round is drawn in proportion to the likelihood of its
    predictions. A reward between the ends of the range counts as a fraction of a success.

    Feedback is discounted from the round of its action. Posteriors are as of the latest round that has arrived. Pulls
    in flight narrow the draw as if they had arrived and fade like all others, so that lost feedback does not hold an
    arm back forever. The order of arrival matters, because predictions depend on the feedback that came before.

    graph: how the graph is learned, as in `NDCSEM`.

    >>> import spillover as sp
    >>> run = sp.simulate(DiscountedTS(), sp.SyntheticSEM(horizon=300, changes=(150,)), 10, replications=2)
    >>> bool((run.final_regret < sp.simulate(sp.Uniform(), run.environment, 10, replications=2).final_regret).all())
    True
    """

    @property
    def traits(self) -> Traits:
        return super().traits._replace(order_free=False)

    @property
    def discounts(self) -> Any:
        return DISCOUNTS

    @cached_property
    def powers(self) -> Array:
        """The weight of a reward after so many rounds under each discount."""
        return np.asarray(kernels.discount_tables(DISCOUNTS, LAGS)[0])

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> DiscountedTSState:
        first = first_fields(self, problem, batch)
        n = problem.n_arms
        line, table = (*batch, n), (*batch, len(DISCOUNTS), n)
        return DiscountedTSState(
            **first,
            plan=start_plan("auto", n, problem.budget, rng, batch),
            graph=self.graph.init(problem, batch),
            candidates=Candidates(
                sums=np.zeros(table),
                counts=np.zeros(table),
                stamps=np.zeros(line, np.int64),
                evidence=np.zeros(table[:-1]),
                latest=np.zeros(batch, np.int64),
            ),
            pulls=Pulls(np.zeros(table), np.zeros(line, np.int64)),
        )

    def prepare(self, s: Any) -> Any:
        return Room(self.graph.prepare(s.graph), np.empty((LINES, s.n_arms)))

    def index(self, s: Any, turn: Turn, found: Any) -> None:
        """A draw of the means; the posterior's means, in [0, 1], and counts; pulls in flight; the discount's place."""
        known, pulls, low, high = s.candidates, s.pulls, s.reward_range[0], s.reward_range[1]
        leader = fill_means(
            known.sums, known.counts, known.stamps, pulls.counts, pulls.stamps, known.evidence, self.discounts,
            self.powers, s.rounds, known.latest, turn.key, turn.call, turn.round, turn.purpose,
            found[0], found[1], found[2], found[3],
        )  # fmt: skip
        for i in range(found.shape[1]):
            found[0, i] = low + (high - low) * found[0, i]
        found[4, 0] = leader

    def decide(self, s: Any, turn: Turn, x: Any) -> None:
        if follows_plan(s.plan, s.rounds, s.budget, x):
            return
        drawn = turn.room.drawn
        self.index(s, turn, drawn)
        weigh(s.graph.weights, drawn[0])
        choose_top(drawn[0], s.budget, later(turn), x)

    def note_play(self, s: Any, x: Any) -> None:
        add_pulls_side_by_side(s.pulls.counts, s.pulls.stamps, self.discounts, self.powers, x, s.rounds)

    def learn_outcome(self, s: Any, lesson: Lesson, turn: Turn) -> None:
        known = s.candidates
        add_side_by_side(
            known.sums, known.counts, known.stamps, known.evidence, self.discounts, EVIDENCE_DISCOUNT, self.powers,
            lesson.x, lesson.z, s.reward_range, lesson.round, known.latest,
        )  # fmt: skip
        known.latest = max(known.latest, lesson.round)
        self.graph.absorb_outcome(s.graph, lesson, lesson.z, 1.0, turn.room.graph)

    def explain(self, state: DiscountedTSState, rng: Rng) -> Explanation:
        """The index is the draw."""
        found = self.indices(state, rng, (LINES, state.graph.weights.shape[-1]))
        index, mean, count, flying, leader = np.moveaxis(found, -2, 0)
        discount, weights = DISCOUNTS[leader[..., 0].astype(int)], np.array(state.graph.weights)
        seen: BoolArray = state.candidates.counts[..., 0, :] > 0
        low, high = state.reward_range[..., :1], state.reward_range[..., 1:]
        return Explanation(
            mean=np.where(seen, low + (high - low) * mean, np.nan),
            count=count,
            clock=np.asarray((1.0 - discount**state.rounds) / (1.0 - discount)),
            index=index,
            adjacency=explained(state.graph),
            gain=np.array(self.graph.gain(state.graph)),
            weights=weights,
            score=scores(weights, index),
            plan=np.where(starting(state.plan, state.rounds), START, ""),
            pending=flying,
        )

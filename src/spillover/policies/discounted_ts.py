"""Discounted Thompson sampling on a learned graph; the discount is chosen online, by prediction."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.graph import ROW_BOUND
from spillover.policies.pending import Pulls
from spillover.policies.sem import LearnsGraph, SEMState, choose, decide, explanation, pass_round, start, take_in
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Choice, Explanation, Feedback, IntArray, Problem

DISCOUNTS = 1.0 - 0.5 ** np.arange(6, 13)  # memories of 64, 128, ..., 4,096 rounds
EVIDENCE_DISCOUNT = 1.0 - 0.5**11  # what a discount was worth is itself forgotten, slowly


class Candidates(NamedTuple):
    """Every discount's view of the same feedback; sums and counts are as of the arm's stamp, rewards in [0, 1]."""

    sums: Array  # (*batch, discounts, n)
    counts: Array  # (*batch, discounts, n)
    stamps: IntArray  # (*batch, n): the latest of the arm's rounds that has arrived
    evidence: Array  # (*batch, discounts): discounted log-likelihood of what it predicted, as of `heard`
    heard: IntArray  # (*batch,): the latest round that has arrived


class DiscountedTSState(NamedTuple):
    """Time, plan and graph; the candidates; all pulls under every discount, heard of or not."""

    base: SEMState
    candidates: Candidates
    pulls: Pulls  # counts (*batch, discounts, n), stamps (*batch, n)

    @property
    def rounds(self) -> IntArray:
        return self.base.rounds

    @property
    def budget(self) -> IntArray:
        return self.base.budget


class Draw(NamedTuple):
    """One round's draw, and what it was drawn from; rewards in [0, 1]."""

    draw: Array  # (*batch, n)
    mean: Array  # (*batch, n): of the posterior
    seen: Array  # (*batch, n): discounted observations behind it
    flying: Array  # (*batch, n): discounted pulls in flight
    leader: IntArray  # (*batch,): position of the discount


@dataclass(frozen=True, kw_only=True)
class DiscountedTS(LearnsGraph):
    """Thompson sampling with discounted Beta posteriors of z, weighted by a learned graph; nothing needs to be set.

    Several discounts, with memories from 64 to 4,096 rounds, learn from all feedback side by side. Each predicts every
    outcome that arrives from what it holds by then; a round's discount is drawn in proportion to how well it has
    predicted. A reward between the ends of the range counts as that share of a success.

    Feedback weighs by the time of its action. Posteriors are as of the latest round heard of; pulls in flight narrow
    the draw as if they had been heard of, and fade like all others, so that lost feedback holds no arm back for good.
    What a prediction is worth depends on what had arrived before it: the order of arrival matters, if only for that.

    Parameters of the graph as those of `NDCSEM`.

    >>> import spillover as sp
    >>> run = sp.simulate(DiscountedTS(), sp.SyntheticSEM(horizon=300, changes=(150,)), 10, replications=2)
    >>> bool((run.final_regret < sp.simulate(sp.Uniform(), run.environment, 10, replications=2).final_regret).all())
    True
    """

    sparsity: Any = 1e-3
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    graph: Any = "sparse"
    signed: bool = False

    order_free = False
    grids = ("sparsity",)

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> DiscountedTSState:
        validate.grid(self, batch)
        base = start(self.learner, problem, rng, batch)
        line, table = (*batch, problem.n_arms), (*batch, len(DISCOUNTS), problem.n_arms)
        return DiscountedTSState(
            base=base,
            candidates=Candidates(
                sums=np.zeros(table),
                counts=np.zeros(table),
                stamps=np.zeros(line, np.int64),
                evidence=np.zeros(table[:-1]),
                heard=np.zeros(batch, np.int64),
            ),
            pulls=Pulls(np.zeros(table), np.zeros(line, np.int64)),
        )

    def draw(self, state: DiscountedTSState, rng: Rng) -> Draw:
        sums, counts, stamps, evidence, heard = state.candidates
        now = state.base.rounds
        known = sums, counts, stamps, *state.pulls, evidence
        return Draw(*kernels.side_by_side_draw(*known, DISCOUNTS, now, heard, *rng.address()))

    def select(self, state: DiscountedTSState, rng: Rng) -> Choice:
        index = on_range(self.draw(state, rng).draw, state.base.limits)
        return decide(state.base, index, self.learner, rng)

    def played(self, state: DiscountedTSState, x: BoolArray) -> DiscountedTSState:
        base = pass_round(state.base, x, 1.0)
        pulls = kernels.side_by_side_pulls(*state.pulls, DISCOUNTS, np.asarray(x, np.bool_), base.rounds)
        return state._replace(base=base, pulls=Pulls(*pulls))

    def update(self, state: DiscountedTSState, feedback: Feedback, rng: Rng) -> DiscountedTSState:
        shape = state.base.averages.sums.shape
        feedback = validate.feedback(feedback, shape, state.base.limits, state.base.rounds)
        base = take_in(state.base, feedback, self.learner, 1.0)
        moment = base.rounds - feedback.age
        sums, counts, stamps, evidence, heard = state.candidates
        kernels.side_by_side_arrival(
            *(sums, counts, stamps, evidence, DISCOUNTS, EVIDENCE_DISCOUNT),
            *(feedback.x, feedback.z, base.limits, moment, heard, feedback.arrived),
        )
        latest = np.maximum(heard, np.where(feedback.arrived, moment, 0))
        return state._replace(base=base, candidates=state.candidates._replace(heard=latest))

    def explain(self, state: DiscountedTSState, rng: Rng | None = None) -> Explanation:
        """What the policy holds as it decides the next round; `rng` draws, as in `select`. The index is the draw."""
        base = state.base
        own = (rng or Rng(0)).at(Purpose.CHOICE, base.rounds + 1)
        drawn = self.draw(state, own)
        index = on_range(drawn.draw, base.limits)
        discount = DISCOUNTS[drawn.leader]
        seen = state.candidates.counts[..., 0, :] > 0
        return replace(
            explanation(base, index, 1.0, choose(base, index, own)),
            mean=np.where(seen, on_range(drawn.mean, base.limits), np.nan),
            count=drawn.seen,
            clock=np.asarray((1.0 - discount**base.rounds) / (1.0 - discount)),
            pending=drawn.flying,
        )


def on_range(share: Array, limits: Array) -> Array:
    """From [0, 1] to the range of the rewards."""
    low, high = limits[..., :1], limits[..., 1:]
    return np.asarray(low + (high - low) * share)

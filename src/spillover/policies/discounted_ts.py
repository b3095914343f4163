"""Discounted Thompson sampling on a learned graph; the discount is chosen online, by prediction."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import ROUND, CompiledRounds, methods_of, unchanged
from spillover.contracts.hyperparameters import check_grid
from spillover.graph.none import NoGraph
from spillover.graph.sparse import Graph, SparseGraph
from spillover.policies.compiled_rounds import LAGS, course_for_kernels, kind_of_graph, played_by
from spillover.policies.graph_policy import (
    GraphPolicy,
    MeansState,
    absorb,
    advance_round,
    choose_by_scores,
    explanation,
    initial_state,
)
from spillover.policies.initialisation import is_sweep
from spillover.policies.pending import Pulls
from spillover.rng import Rng
from spillover.types import (
    Amount,
    Array,
    Batch,
    BoolArray,
    Choice,
    Explanation,
    Feedback,
    Finite,
    IntArray,
    Problem,
    Round,
    Stretch,
)

DISCOUNTS = 1.0 - 0.5 ** np.arange(6, 13)  # memories of 64, 128, ..., 4,096 rounds
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

    base: MeansState
    candidates: Candidates
    pulls: Pulls  # counts (*batch, discounts, n), stamps (*batch, n)

    @property
    def rounds(self) -> IntArray:
        return self.base.rounds

    @property
    def budget(self) -> IntArray:
        return self.base.budget


class PosteriorDraw(NamedTuple):
    """A draw of the means from the posterior, and the posterior itself; rewards in [0, 1]."""

    draw: Array  # (*batch, n)
    mean: Array  # (*batch, n): of the posterior
    seen: Array  # (*batch, n): discounted observations behind it
    flying: Array  # (*batch, n): discounted pulls in flight
    leader: IntArray  # (*batch,): position of the drawn discount


@dataclass(frozen=True, kw_only=True)
class DiscountedTS(GraphPolicy):
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

    order_free = False

    def init(self, problem: Problem, rng: Rng, batch: Batch = ()) -> DiscountedTSState:
        check_grid(self, batch)
        base = initial_state(self.graph, problem, rng, batch)
        line, table = (*batch, problem.n_arms), (*batch, len(DISCOUNTS), problem.n_arms)
        return DiscountedTSState(
            base=base,
            candidates=Candidates(
                sums=np.zeros(table),
                counts=np.zeros(table),
                stamps=np.zeros(line, np.int64),
                evidence=np.zeros(table[:-1]),
                latest=np.zeros(batch, np.int64),
            ),
            pulls=Pulls(np.zeros(table), np.zeros(line, np.int64)),
        )

    def draw_means(self, state: DiscountedTSState, rng: Rng) -> PosteriorDraw:
        sums, counts, stamps, evidence, latest = state.candidates
        now = state.base.rounds
        known = sums, counts, stamps, *state.pulls, evidence
        return PosteriorDraw(*kernels.side_by_side_draw(*known, DISCOUNTS, now, latest, *rng.address()))

    def select(self, state: DiscountedTSState, rng: Rng) -> Choice:
        index = on_range(self.draw_means(state, rng).draw, state.base.reward_range)
        return choose_by_scores(state.base, index, self.graph, rng)

    def played(self, state: DiscountedTSState, x: BoolArray) -> DiscountedTSState:
        base = advance_round(state.base, x, 1.0)
        pulls = kernels.side_by_side_pulls(*state.pulls, DISCOUNTS, np.asarray(x, np.bool_), base.rounds)
        return state._replace(base=base, pulls=Pulls(*pulls))

    def learn(self, state: DiscountedTSState, feedback: Feedback, rng: Rng) -> DiscountedTSState:
        base = state.base
        feedback = validate.feedback(feedback, base.averages.sums.shape, base.reward_range, base.rounds)
        played_at = base.rounds - feedback.age
        sums, counts, stamps, evidence, latest = state.candidates
        kernels.side_by_side_arrival(
            *(sums, counts, stamps, evidence, DISCOUNTS, EVIDENCE_DISCOUNT),
            *(feedback.x, feedback.z, base.reward_range, played_at, latest, feedback.arrived),
        )
        latest = np.maximum(latest, np.where(feedback.arrived, played_at, 0))
        return state._replace(
            base=base._replace(graph=absorb(self.graph, base.graph, feedback, played_at)),
            candidates=state.candidates._replace(latest=latest),
        )

    def solve(self, state: DiscountedTSState) -> DiscountedTSState:
        return state._replace(base=super().solve(state.base))

    def adjacency(self, state: DiscountedTSState) -> Array:
        return super().adjacency(state.base)

    def edges(self, state: DiscountedTSState) -> Any:
        return super().edges(state.base)

    @property
    def compiled_rounds(self) -> CompiledRounds | None:
        compiled = type(self.graph) in (SparseGraph, NoGraph) and self.graph.bounded and unchanged(self, AS_COMPILED)
        return CompiledRounds(self.play_stretch, draws_rewards=True) if compiled else None

    def play_stretch(self, state: DiscountedTSState, stretch: Stretch, rng: Rng) -> DiscountedTSState | None:
        base, (*candidates, latest), length = state.base, state.candidates, len(stretch.recorded)
        if is_sweep(base.plan, base.rounds):
            return None
        played = played_by(
            kernels.play_discounted,
            *(*candidates, latest, *state.pulls, DISCOUNTS, EVIDENCE_DISCOUNT),
            kernels.discount_tables(DISCOUNTS, LAGS)[0],
            *(base.rounds, base.budget, base.reward_range, base.plan, rng.keys, kind_of_graph(self.graph)),
            *parts_of(base.graph),
            *course_for_kernels(stretch),
            stretch.recorded,
            stretch.snapshots,
        )
        if played is None:
            return None
        return state._replace(
            base=base._replace(rounds=base.rounds + length, clock=base.clock + length),
            candidates=state.candidates._replace(latest=played[0].astype(np.int64)),
        )

    def explain(self, state: DiscountedTSState, rng: Rng) -> Explanation:
        """The index is the draw."""
        base = state.base
        drawn = self.draw_means(state, rng)
        index = on_range(drawn.draw, base.reward_range)
        discount = DISCOUNTS[drawn.leader]
        seen = state.candidates.counts[..., 0, :] > 0
        return replace(
            explanation(base, index, self.graph, 1.0, pending=drawn.flying),
            mean=np.where(seen, on_range(drawn.mean, base.reward_range), np.nan),
            count=drawn.seen,
            clock=np.asarray((1.0 - discount**base.rounds) / (1.0 - discount)),
        )


AS_COMPILED = methods_of(DiscountedTS, (*ROUND, "draw_means"))


def on_range(share: Array, reward_range: Array) -> Array:
    """Map [0, 1] to the range of the rewards."""
    low, high = reward_range[..., :1], reward_range[..., 1:]
    return np.asarray(low + (high - low) * share)


def parts_of(graph: Any) -> tuple[Array, ...]:
    """The arrays of a graph that the kernel rewrites."""
    if isinstance(graph, Graph):
        gram, residual, adjacency, pressure, weights, penalty, bound, acyclic = graph
        return weights, gram, residual, adjacency, pressure, penalty, bound, acyclic
    idle = graph.adjacency  # nothing but the weights is used
    return graph.weights, idle, idle, idle, graph.weights, idle, np.array(np.inf), np.array(True)

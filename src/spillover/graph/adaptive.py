"""The graph learner for an unknown graph: several candidates side by side; the one that predicts best is used."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover.graph.change_detection import (
    ChangeEvidence,
    empty_change_evidence,
    learn_tested,
    learn_tested_rounds,
    record_alarm,
    weight_since_change,
)
from spillover.graph.evidence import Evidence, best_candidate, empty_evidence, predicted_payoff, update_evidence
from spillover.graph.instrument import InstrumentGraph, InstrumentState, add_information, information_in
from spillover.graph.learner import GraphLearner
from spillover.graph.payoff import PayoffGraph, PayoffWeights
from spillover.graph.regression import summed
from spillover.graph.sparse import ROW_BOUND, SparseGraph
from spillover.graph.tuned import SelfTunedGraph
from spillover.types import Array, Batch, BoolArray, IntArray, Problem

CANDIDATES = ("sparse", "instrument", "full-history", "none")


class AdaptiveState(NamedTuple):
    """The candidates, the evidence for each, and the evidence of a change."""

    sparse: Any  # a Graph or a TunedGraph
    instrument: InstrumentState
    full_history: PayoffGraph  # never restarts
    evidence: Evidence
    changes: ChangeEvidence
    used: IntArray  # (*batch,): position in CANDIDATES
    weights: Array  # (*batch, n): of the candidate in use

    @property
    def adjacency(self) -> Array:
        learned = self.instrument.adjacency
        return pick(self.used, [self.sparse.adjacency, learned, self.full_history.adjacency, np.zeros_like(learned)])

    @property
    def alarms(self) -> IntArray:
        """How many changes of the graph were detected, (*batch,)."""
        return self.changes.alarms

    @property
    def since(self) -> IntArray:
        """The round of play whose outcome revealed the last change, 0 before the first; (*batch,)."""
        return self.changes.since


def pick(used: IntArray, choices: list[Array]) -> Array:
    """For each row of the batch the value of the candidate in use."""
    axes = choices[0].ndim - used.ndim
    return np.asarray(np.choose(used[(..., *[None] * axes)], choices))


class EvidenceSummary(NamedTuple):
    """How well each candidate predicts."""

    candidates: tuple[str, ...]
    errors: Array  # (*batch, candidates): discounted mean squared error of the predicted payoff; NaN before any
    with_graph: Array  # (*batch,): the lowest error of the candidates with a graph
    without: Array  # (*batch,): the error without a graph
    used: IntArray  # (*batch,): position in candidates


@dataclass(frozen=True, kw_only=True)
class AdaptiveGraph(GraphLearner):
    """The paper's sparse graph, the instrument estimate, full-history weights or no graph: whichever predicts best.

    A candidate predicts the payoff of a round with the weights it had when the round was played, so an outdated graph
    does not win by fitting past outcomes. The sparse graph is the default; another candidate replaces it if its error
    is lower by two standard errors.
    Residuals reveal a change of the graph; the candidates then restart from the rounds played since. Only the
    full-history weights, a regression of the payoff on z, do not restart: if the graph changes all the time, they
    capture what its versions have in common.

    sparsity: of the sparse graph, for rewards of at most 1; "auto" chooses it online (`SelfTunedGraph`).
    row_bound, required, forbidden, signed: as in `SparseGraph`.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=300, changes=(), gain_range=(0.5, 2.0))
    >>> runs = [sp.simulate(sp.NDCSEM(graph=g), world, 10, replications=20) for g in ("adaptive", "sparse")]
    >>> bool(runs[0].final_regret.mean() < runs[1].final_regret.mean())
    True
    """

    sparsity: Any = 1e-3
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    signed: bool = False

    order_free = False
    deferrable = True
    judges = True
    grids = ("sparsity",)

    def __post_init__(self) -> None:
        _ = self.sparse, self.instrument  # validates the parameters

    @cached_property
    def sparse(self) -> SparseGraph | SelfTunedGraph:
        shared = {"row_bound": self.row_bound, "required": self.required, "forbidden": self.forbidden}
        if isinstance(self.sparsity, str) and self.sparsity == "auto":
            return SelfTunedGraph(signed=self.signed, **shared)
        return SparseGraph(sparsity=self.sparsity, signed=self.signed, **shared)

    @cached_property
    def instrument(self) -> InstrumentGraph:
        return InstrumentGraph(signed=self.signed, required=self.required, forbidden=self.forbidden)

    @cached_property
    def full_history(self) -> PayoffWeights:
        return PayoffWeights(signed=self.signed)

    def init(self, problem: Problem, batch: Batch = ()) -> AdaptiveState:
        n = problem.n_arms
        learner: Any = self.sparse
        sparse = learner.init(problem, batch)
        size = np.abs(np.asarray(problem.reward_range, float)).max(axis=-1)
        # the sparsity is for rewards up to 1: on another scale the penalty grows with the squared rewards
        learner.scale_penalty(sparse, np.broadcast_to(size, batch) ** 2)
        return AdaptiveState(
            sparse=sparse,
            instrument=self.instrument.init(problem, batch),
            full_history=self.full_history.init(problem, batch),
            evidence=empty_evidence(len(CANDIDATES), batch),
            changes=empty_change_evidence(n, batch),
            used=np.zeros(batch, np.int64),
            weights=np.ones((*batch, n)),
        )

    def remember(self, graph: AdaptiveState) -> Array:
        """The current weights of each candidate with a graph, (*batch, 3, n); zeros while there is little data.

        Poor early predictions would count against a candidate for a long time.
        """
        held = np.stack([graph.sparse.weights, graph.instrument.weights, graph.full_history.weights], axis=-2)
        ripe = graph.instrument.regression.freedom >= held.shape[-1]
        return np.where(ripe[..., None, None], held, 0.0)

    def judge(self, graph: AdaptiveState, z: Array, y: Array, arrived: BoolArray, memo: Any) -> AdaptiveState:
        """Compare a payoff with the predictions from the candidates' weights when its round was played."""
        if memo is None:
            return graph
        ripe = np.asarray(memo).any(axis=(-1, -2))
        evidence = update_evidence(graph.evidence, predicted_payoff(memo, z), y.sum(axis=-1), arrived & ripe)
        return graph._replace(evidence=evidence)

    def absorb(
        self, graph: AdaptiveState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> AdaptiveState:
        current = weight_since_change(graph.changes, weight, played_at)
        tested = learn_tested(graph.changes, graph.instrument.regression, z, y, current)
        graph = graph._replace(
            instrument=add_information(graph.instrument, information_in(tested.certainty)),
            full_history=self.full_history.absorb(graph.full_history, z, y, weight, played_at),
        )
        if tested.alarm.any():
            graph = self.restart(graph, tested.alarm, played_at)
            first = self.instrument.absorb(graph.instrument, z, y, current * tested.alarm, played_at)
            graph = graph._replace(instrument=first)
        return graph._replace(sparse=self.sparse.absorb(graph.sparse, z, y, current, played_at))

    def absorb_rounds(
        self, graph: AdaptiveState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> AdaptiveState:
        start, full_history = 0, graph.full_history
        while start < len(z):
            current = weight_since_change(graph.changes, weight[start:], played_at[start:])
            tested = learn_tested_rounds(graph.changes, graph.instrument.regression, z[start:], y[start:], current)
            stop = start + int(tested.alarm.argmax()) if tested.alarm.any() else len(z)
            rows, quiet = slice(start, stop), current[: stop - start]
            graph = graph._replace(
                sparse=self.sparse.absorb_rounds(graph.sparse, z[rows], y[rows], quiet, played_at[rows]),
                instrument=add_information(graph.instrument, information_in(tested.certainty).sum(axis=0)),
            )
            if stop < len(z):  # the round that revealed a change is the first of the new graph
                graph = self.restart(graph, np.array(True), played_at[stop])
            start = stop
        if graph.alarms or not len(z):
            learned = self.full_history.absorb_rounds(full_history, z, y, weight, played_at)
            return graph._replace(full_history=learned)
        # without a restart the regression of the payoff is the sum of those of the outcomes
        return graph._replace(full_history=full_history._replace(regression=summed(graph.instrument.regression)))

    def restart(self, graph: AdaptiveState, alarm: BoolArray, played_at: IntArray) -> AdaptiveState:
        """Forget everything but the full-history weights in the rows in which a round revealed a change."""
        return graph._replace(
            sparse=self.sparse.forget(graph.sparse, alarm),
            instrument=self.instrument.forget(graph.instrument, alarm),
            changes=record_alarm(graph.changes, alarm, played_at),
        )

    def solve(self, graph: AdaptiveState) -> AdaptiveState:
        sparse, instrument = self.sparse.solve(graph.sparse), self.instrument.solve(graph.instrument)
        full_history, used = self.full_history.solve(graph.full_history), best_candidate(graph.evidence)
        weights = pick(used, [sparse.weights, instrument.weights, full_history.weights, np.ones_like(graph.weights)])
        return graph._replace(
            sparse=sparse, instrument=instrument, full_history=full_history, used=used, weights=weights
        )

    def gram(self, graph: AdaptiveState) -> Array | None:
        return self.sparse.gram(graph.sparse)

    def gain(self, graph: AdaptiveState) -> Array:
        ones = np.ones_like(graph.weights)
        return pick(graph.used, [ones, graph.instrument.gain, ones, ones])


def evidence(graph: AdaptiveState) -> EvidenceSummary:
    """How well each candidate predicts the payoff, compared with no graph."""
    held, count = graph.evidence, graph.evidence.observed[..., None]
    errors = np.divide(held.errors, count, out=np.full_like(held.errors, np.nan), where=count > 0)
    return EvidenceSummary(CANDIDATES, errors, errors[..., :-1].min(axis=-1), errors[..., -1], np.array(graph.used))

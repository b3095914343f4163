"""The learner for those who know nothing of the graph: several side by side, the one that foretells best is used."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.graph.foretold import Evidence, best_candidate, foretell, no_evidence, weigh
from spillover.graph.instrument import InstrumentGraph, InstrumentState, heard, news_of
from spillover.graph.learner import absorb_rounds
from spillover.graph.payoff import PayoffGraph, PayoffWeights
from spillover.graph.regression import summed
from spillover.graph.sparse import ROW_BOUND, SparseGraph
from spillover.graph.tuned import SelfTunedGraph, TunedGraph
from spillover.graph.watch import (
    Watch,
    learn_watched,
    learn_watched_rounds,
    no_alarms,
    note_alarm,
    of_this_graph,
)
from spillover.types import Array, Batch, BoolArray, IntArray, Problem

CANDIDATES = ("sparse", "instrument", "lasting", "none")


class AdaptiveState(NamedTuple):
    """The candidates, the evidence for each, and the watch for a change."""

    sparse: Any  # a Graph or a TunedGraph
    instrument: InstrumentState
    lasting: PayoffGraph  # never begins anew
    evidence: Evidence
    watch: Watch
    used: IntArray  # (*batch,): position in CANDIDATES
    weights: Array  # (*batch, n): of the one that is used

    @property
    def adjacency(self) -> Array:
        learned = self.instrument.adjacency
        return pick(self.used, [self.sparse.adjacency, learned, self.lasting.adjacency, np.zeros_like(learned)])

    @property
    def gain(self) -> Array:
        ones = np.ones_like(self.weights)
        return pick(self.used, [ones, self.instrument.gain, self.lasting.gain, ones])

    @property
    def alarms(self) -> IntArray:
        """How many changes of the graph were noticed, (*batch,)."""
        return self.watch.alarms

    @property
    def since(self) -> IntArray:
        """The round of play whose outcome gave the last change away, 0 before the first; (*batch,)."""
        return self.watch.since


def pick(used: IntArray, choices: list[Array]) -> Array:
    """What belongs to the candidate that each learner uses."""
    axes = choices[0].ndim - used.ndim
    return np.asarray(np.choose(used[(..., *[None] * axes)], choices))


class Account(NamedTuple):
    """What speaks for each candidate."""

    candidates: tuple[str, ...]
    errors: Array  # (*batch, candidates): discounted mean squared error of the foretold payoff; NaN before any
    with_graph: Array  # (*batch,): the least of those with a graph
    without: Array  # (*batch,)
    used: IntArray  # (*batch,): position in candidates


@dataclass(frozen=True, kw_only=True)
class AdaptiveGraph:
    """The paper's sparse graph, the instrument estimate, lasting weights, or none: whichever foretold the payoff best.

    Each candidate is judged by the weights that it held when a round was played, so a graph that fits what has arrived
    but is outdated by then counts as what it is. Another than the first is used where it is better by two standard
    errors.
    A change of the graph is noticed by its residuals; then all is learned anew from the rounds played since. Only the
    lasting weights, a regression of the payoff on z, are not: in graphs that change all the time they are what is
    common to them.

    Parameters as those of `SparseGraph` and `SelfTunedGraph` (sparsity "auto").

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

    def __post_init__(self) -> None:
        _ = self.sparse, self.instrument  # refuse what they cannot take

    @cached_property
    def sparse(self) -> SparseGraph | SelfTunedGraph:
        shared = {"row_bound": self.row_bound, "required": self.required, "forbidden": self.forbidden}
        if isinstance(self.sparsity, str):
            validate.require(self.sparsity == "auto", "sparsity", self.sparsity, 'a finite number >= 0, or "auto"')
            return SelfTunedGraph(signed=self.signed, **shared)
        return SparseGraph(sparsity=self.sparsity, signed=self.signed, **shared)

    @cached_property
    def instrument(self) -> InstrumentGraph:
        return InstrumentGraph(signed=self.signed, required=self.required, forbidden=self.forbidden)

    @cached_property
    def lasting(self) -> PayoffWeights:
        return PayoffWeights(signed=self.signed)

    def init(self, problem: Problem, batch: Batch = ()) -> AdaptiveState:
        n = problem.n_arms
        sparse = self.sparse.init(problem, batch)
        size = np.abs(np.asarray(problem.reward_range, float)).max(axis=-1)
        scaled = sparse.fits.penalty if isinstance(sparse, TunedGraph) else sparse.penalty
        # the sparsity is meant for rewards up to 1: nothing is to be set where they are on another scale
        scaled *= np.broadcast_to(size, batch)[(..., *[None] * (scaled.ndim - len(batch)))] ** 2
        return AdaptiveState(
            sparse=sparse,
            instrument=self.instrument.init(problem, batch),
            lasting=self.lasting.init(problem, batch),
            evidence=no_evidence(len(CANDIDATES), batch),
            watch=no_alarms(n, batch),
            used=np.zeros(batch, np.int64),
            weights=np.ones((*batch, n)),
        )

    def remember(self, graph: AdaptiveState) -> Array:
        """The weights that each candidate with a graph holds now, (*batch, 3, n); zeros while they say little yet.

        What was foretold before there was much to learn from would be held against the candidates for long.
        """
        held = np.stack([graph.sparse.weights, graph.instrument.weights, graph.lasting.weights], axis=-2)
        ripe = graph.instrument.regression.freedom >= held.shape[-1]
        return np.where(ripe[..., None, None], held, 0.0)

    def judge(self, graph: AdaptiveState, z: Array, y: Array, arrived: BoolArray, memo: Any) -> AdaptiveState:
        """What an outcome says of the weights that were held when its round was played."""
        if memo is None:
            return graph
        ripe = np.asarray(memo).any(axis=(-1, -2))
        evidence = weigh(graph.evidence, foretell(memo, z), y.sum(axis=-1), arrived & ripe)
        return graph._replace(evidence=evidence)

    def absorb(
        self, graph: AdaptiveState, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray
    ) -> AdaptiveState:
        current = of_this_graph(graph.watch, weight, moment)
        said = learn_watched(graph.watch, graph.instrument.regression, z, y, current)
        graph = graph._replace(
            instrument=heard(graph.instrument, news_of(said.certainty)),
            lasting=self.lasting.absorb(graph.lasting, z, y, weight, moment),
        )
        if said.alarm.any():
            graph = self.begin_anew(graph, said.alarm, moment)
            anew = self.instrument.absorb(graph.instrument, z, y, current * said.alarm, moment)
            graph = graph._replace(instrument=anew)
        return graph._replace(sparse=self.sparse.absorb(graph.sparse, z, y, current, moment))

    def absorb_rounds(
        self, graph: AdaptiveState, z: Array, y: Array, weight: Array | BoolArray, moment: IntArray
    ) -> AdaptiveState:
        start, lasting = 0, graph.lasting
        while start < len(z):
            current = of_this_graph(graph.watch, weight[start:], moment[start:])
            said = learn_watched_rounds(graph.watch, graph.instrument.regression, z[start:], y[start:], current)
            stop = start + int(said.alarm.argmax()) if said.alarm.any() else len(z)
            rows, quiet = slice(start, stop), current[: stop - start]
            graph = graph._replace(
                sparse=absorb_rounds(self.sparse, graph.sparse, z[rows], y[rows], quiet, moment[rows]),
                instrument=heard(graph.instrument, news_of(said.certainty).sum(axis=0)),
            )
            if stop < len(z):  # the round that gave a change away is the first of the new graph
                graph = self.begin_anew(graph, np.array(True), moment[stop])
            start = stop
        if graph.alarms or not len(z):
            return graph._replace(lasting=self.lasting.absorb_rounds(lasting, z, y, weight, moment))
        # as long as nothing was forgotten, the payoff's regression is the sum of the outcomes'
        return graph._replace(lasting=lasting._replace(regression=summed(graph.instrument.regression)))

    def begin_anew(self, graph: AdaptiveState, alarm: BoolArray, moment: IntArray) -> AdaptiveState:
        """Forget all but the lasting weights where a round gave a change away."""
        return graph._replace(
            sparse=self.sparse.forget(graph.sparse, alarm),
            instrument=self.instrument.forget(graph.instrument, alarm),
            watch=note_alarm(graph.watch, alarm, moment),
        )

    def solve(self, graph: AdaptiveState) -> AdaptiveState:
        sparse, instrument = self.sparse.solve(graph.sparse), self.instrument.solve(graph.instrument)
        lasting, used = self.lasting.solve(graph.lasting), best_candidate(graph.evidence)
        weights = pick(used, [sparse.weights, instrument.weights, lasting.weights, np.ones_like(graph.weights)])
        return graph._replace(sparse=sparse, instrument=instrument, lasting=lasting, used=used, weights=weights)


def evidence(graph: AdaptiveState) -> Account:
    """Whether the graph helps: how well the payoff was foretold with each candidate and without a graph."""
    held, count = graph.evidence, graph.evidence.heard[..., None]
    errors = np.divide(held.errors, count, out=np.full_like(held.errors, np.nan), where=count > 0)
    return Account(CANDIDATES, errors, errors[..., :-1].min(axis=-1), errors[..., -1], np.array(graph.used))

"""The graph learner for an unknown graph: several candidates side by side; the one that predicts best is used."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.contracts import methods_of, unchanged
from spillover.graph.candidates import CandidateGraph
from spillover.graph.change_detection import (
    ChangeEvidence,
    empty_change_evidence,
    learn_tested,
    learn_tested_rounds,
    record_alarm,
    weight_since_change,
)
from spillover.graph.contradictions import effects_against_order, own_slopes
from spillover.graph.doubts import (
    Doubts,
    compare_given_x,
    empty_doubts,
    forget_doubts,
    note_noise,
    prefers_k_class,
    raise_doubts,
    z_misleads,
)
from spillover.graph.edges import ROW_BOUND, SPARSITY
from spillover.graph.evidence import Evidence, best_candidate, empty_evidence, judge_candidates
from spillover.graph.instrument import InstrumentGraph, InstrumentState, add_information, information_in
from spillover.graph.k_class import KClassGraph, KClassState, clear_baseline
from spillover.graph.learner import LEARNING, MANY_ARMS, GraphErrors, GraphLearner
from spillover.graph.payoff import PayoffGraph, PayoffWeights
from spillover.graph.regression import summed
from spillover.graph.sparse import SparseGraph
from spillover.graph.tuned import SelfTunedGraph
from spillover.state import copy_state
from spillover.types import Array, Batch, BoolArray, Finite, IntArray, Problem, Within

CANDIDATES = ("sparse", "instrument", "full-history", "none", "k-class")
K_CLASS = CANDIDATES.index("k-class")
TRUSTING = CANDIDATES[:K_CLASS]  # they take z for what an arm does by itself
OLD = 1.1  # times the rounds of a k-class estimate, after which a brief solution makes it again
COMPARED = 300  # the last rounds of a history, from which predictions given x are compared


class AdaptiveState(NamedTuple):
    """The candidates, the evidence for each, and the evidence of a change.

    >>> import spillover as sp
    >>> AdaptiveGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    sparse: Any  # a Graph or a TunedGraph
    instrument: InstrumentState
    full_history: PayoffGraph  # never restarts
    evidence: Evidence
    changes: ChangeEvidence
    used: Annotated[IntArray, Within(0, len(CANDIDATES) - 1)]  # (*batch,): position in CANDIDATES
    weights: Finite  # (*batch, n): of the candidate in use
    k_class: KClassState
    doubts: Doubts

    @property
    def adjacency(self) -> Array:
        learned, empty = self.instrument.adjacency, np.zeros_like(self.instrument.adjacency)
        full_history, k_class = self.full_history.adjacency, self.k_class.adjacency
        return pick(self.used, [self.sparse.adjacency, learned, full_history, empty, k_class])

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
    """How well each candidate predicts, and whether z is to be trusted.

    >>> import spillover as sp
    >>> evidence(AdaptiveGraph().init(sp.Problem(n_arms=3, budget=1))).candidates
    ('sparse', 'instrument', 'full-history', 'none', 'k-class')
    """

    candidates: tuple[str, ...]
    errors: Array  # (*batch, 4): discounted mean squared error of the payoff predicted from z; NaN before any
    with_graph: Array  # (*batch,): the lowest error of the candidates with a graph
    without: Array  # (*batch,): the error without a graph
    used: IntArray  # (*batch,): position in candidates
    confounded: BoolArray  # (*batch,): whether a hidden common cause of z and y was detected
    baseline: BoolArray  # (*batch,): whether outcomes are not 0 where nothing is chosen: declared, or detected
    log_confounding: Array  # (*batch,): log Bayes factor of a hidden common cause
    log_baseline: Array  # (*batch,): log Bayes factor of a baseline


@dataclass(frozen=True, kw_only=True)
class AdaptiveGraph(GraphLearner):
    """The sparse graph, the instrument estimate, full-history weights, no graph, or k-class: whichever predicts best.

    A candidate predicts the payoff of a round with the weights it had when the round was played, so an outdated graph
    does not win by fitting past outcomes. The sparse graph is the default; another candidate replaces it if its error
    is lower by two standard errors.
    Residuals reveal a change of the graph; the candidates then restart from the rounds played since. Only the
    full-history weights, a regression of the payoff on z, do not restart: if the graph changes all the time, they
    capture what its versions have in common.

    Where z misleads, because outcomes have a baseline (declared or detected) or hidden common causes with z (detected),
    the k-class estimate is used. With noise in the equations it is used too, unless another candidate predicts the
    payoff clearly better from the decision alone.

    sparsity: of the sparse graph; "auto" chooses it online (`SelfTunedGraph`).
    row_bound, required, forbidden, signed: as in `SparseGraph`.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM(horizon=300, changes=(), gain_range=(0.5, 2.0))
    >>> runs = [sp.simulate(sp.NDCSEM(graph=g), world, 10, replications=20) for g in ("adaptive", "sparse")]
    >>> bool(runs[0].final_regret.mean() < runs[1].final_regret.mean())
    True
    """

    sparsity: Any = SPARSITY
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    signed: bool = False

    order_free = False
    deferrable = True
    judges = True
    fits_baseline = True
    grids = ("sparsity",)

    @property
    def kernels(self) -> tuple[str, ...]:
        return (
            *("k_class", "fit", "tested_regress", "doubts", "structure", "total_effects", "regress", "absorb"),
            *("spectral_radius", "judge_candidates", "shrunk_weights", "absorb_moments", "best_candidate"),
            *("trusting_weights", "payoff_of"),
        )

    @property
    def fuses_comparison(self) -> bool:
        return bool(self.sparse.fuses) and unchanged(self, AS_COMPILED)

    def for_problem(self, problem: Problem) -> GraphLearner:
        """Itself, or candidate edges alone if there are many arms: comparisons take time with n cubed.

        A baseline needs the k-class estimate, so with one nothing is left out.
        """
        if problem.n_arms <= MANY_ARMS or problem.baseline:
            return self
        return CandidateGraph(
            sparsity=SPARSITY if self.sparsity == "auto" else self.sparsity,
            row_bound=self.row_bound,
            required=self.required,
            forbidden=self.forbidden,
            signed=self.signed,
        )

    def __post_init__(self) -> None:
        validate.require(self.row_bound is not None, "row_bound", self.row_bound, "a number strictly between 0 and 1")
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

    @cached_property
    def k_class(self) -> KClassGraph:
        return KClassGraph(signed=self.signed, required=self.required, forbidden=self.forbidden)

    def init(self, problem: Problem, batch: Batch = ()) -> AdaptiveState:
        n = problem.n_arms
        learner: Any = self.sparse
        return AdaptiveState(
            sparse=learner.init(problem, batch),
            instrument=self.instrument.init(problem, batch),
            full_history=self.full_history.init(problem, batch),
            evidence=empty_evidence(len(TRUSTING), batch),
            changes=empty_change_evidence(n, batch),
            used=np.full(batch, K_CLASS if problem.baseline else 0, np.int64),  # as `solve` finds without outcomes
            weights=np.ones((*batch, n)),
            k_class=self.k_class.init(problem, batch),
            doubts=empty_doubts(problem, batch),
        )

    def remember(self, graph: AdaptiveState) -> Array:
        """The current weights of each candidate with a graph, (*batch, 3, n); zeros while there is little data.

        Poor early predictions would count against a candidate for a long time.
        """
        held = np.stack([graph.sparse.weights, graph.instrument.weights, graph.full_history.weights], axis=-2)
        ripe = graph.instrument.regression.freedom >= held.shape[-1]
        return held if ripe.all() else np.where(ripe[..., None, None], held, 0.0)

    def judge(self, graph: AdaptiveState, z: Array, y: Array, arrived: BoolArray, memo: Any) -> AdaptiveState:
        """Compare a payoff with the predictions from the candidates' weights when its round was played."""
        if memo is None:
            return graph
        return graph._replace(evidence=judge_candidates(graph.evidence, memo, z, y, arrived))

    def absorb(
        self, graph: AdaptiveState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> AdaptiveState:
        return self.absorb_expected(graph, z, y, weight, played_at, z)

    def absorb_expected(
        self, graph: AdaptiveState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray, expected: Array
    ) -> AdaptiveState:
        current = weight_since_change(graph.changes, weight, played_at)
        trusted = current * ~z_misleads(graph.doubts)
        tested = learn_tested(graph.changes, graph.instrument.regression, z, y, trusted)
        graph = self.compare(graph, y, (trusted > 0.0) & ~tested.alarm, expected)
        graph = graph._replace(
            instrument=add_information(graph.instrument, information_in(tested.certainty)),
            full_history=self.full_history.absorb(graph.full_history, z, y, weight, played_at),
        )
        return self.absorb_tested(graph, z, y, current, trusted, played_at, expected, tested.alarm)

    def absorb_tested(
        self,
        graph: AdaptiveState,
        z: Array,
        y: Array,
        current: Array,
        trusted: Array,
        played_at: IntArray,
        expected: Array,
        alarm: BoolArray,
    ) -> AdaptiveState:
        """The rest of `absorb_expected`, after the test for a change of the graph."""
        if alarm.any():
            graph, changed = self.explain_alarm(graph, alarm)
            graph = self.restart(graph, changed, played_at)
            first = self.instrument.absorb(graph.instrument, z, y, current * changed, played_at)
            graph = graph._replace(instrument=first)
        return graph._replace(
            sparse=self.sparse.absorb(graph.sparse, z, y, trusted, played_at),
            k_class=self.k_class.absorb_expected(graph.k_class, z, y, current, played_at, expected),
        )

    def finish(
        self, graph: AdaptiveState, z: Array, y: Array, played_at: IntArray, expected: Array, alarm: BoolArray
    ) -> AdaptiveState:
        weight = np.asarray(alarm, float)
        return self.solve(self.absorb_tested(graph, z, y, weight, weight, played_at, expected, np.asarray(alarm)))

    def compare(self, graph: AdaptiveState, y: Array, arrived: BoolArray, expected: Array) -> AdaptiveState:
        """Compare the k-class estimate with the candidate that z favours, where the equations have noise."""
        noisy = arrived & graph.doubts.noisy
        if not noisy.any():
            return graph
        usual = self.trusting_weights(graph, best_candidate(graph.evidence))
        return graph._replace(doubts=compare_given_x(graph.doubts, graph.k_class.weights, usual, expected, y, noisy))

    def explain_alarm(self, graph: AdaptiveState, alarm: BoolArray) -> tuple[AdaptiveState, BoolArray]:
        """Rows in which an alarm is a change of the graph: it is none if earlier rounds show that z misleads."""
        k_class = self.k_class.test(graph.k_class, alarm)
        doubts = raise_doubts(graph.doubts, k_class)
        return graph._replace(k_class=k_class, doubts=doubts), alarm & ~z_misleads(doubts)

    def absorb_rounds(
        self, graph: AdaptiveState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> AdaptiveState:
        return self.absorb_expected_rounds(graph, z, y, weight, played_at, z)

    def absorb_expected_rounds(
        self, graph: AdaptiveState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray, expected: Array
    ) -> AdaptiveState:
        if not unchanged(self, ABSORBING):
            one_by_one: AdaptiveState = super().absorb_expected_rounds(graph, z, y, weight, played_at, expected)
            return one_by_one
        start, full_history, doubted = 0, graph.full_history, bool(z_misleads(graph.doubts))
        skipped = 0  # an arrival that raised an alarm is not compared
        while start < len(z):
            current = weight_since_change(graph.changes, weight[start:], played_at[start:])
            trusted = current * ~z_misleads(graph.doubts)
            tested = learn_tested_rounds(graph.changes, graph.instrument.regression, z[start:], y[start:], trusted)
            stop = start + int(tested.alarm.argmax()) if tested.alarm.any() else len(z)
            rows, seen = slice(start, stop), stop - start
            compared = seen if graph.doubts.noisy.any() else 0  # elsewhere there is nothing to compare
            for row in range(max(seen - COMPARED, skipped), compared):
                graph = self.compare(graph, y[start + row], trusted[row] > 0.0, expected[start + row])
            both = (z[rows], y[rows])
            graph = graph._replace(
                sparse=self.sparse.absorb_rounds(graph.sparse, *both, trusted[:seen], played_at[rows]),
                instrument=add_information(graph.instrument, information_in(tested.certainty).sum(axis=0)),
                k_class=self.k_class.absorb_expected_rounds(
                    graph.k_class, *both, current[:seen], played_at[rows], expected[rows]
                ),
            )
            if stop < len(z):  # the round that revealed a change is the first of the new graph
                graph, changed = self.explain_alarm(graph, np.array(True))
                graph = self.restart(graph, changed, played_at[stop])
                doubted |= not changed
            start, skipped = stop, 1
        if graph.alarms or doubted or not len(z):
            learned = self.full_history.absorb_rounds(full_history, z, y, weight, played_at)
            return graph._replace(full_history=learned)
        # without a restart the regression of the payoff is the sum of those of the outcomes
        return graph._replace(full_history=full_history._replace(regression=summed(graph.instrument.regression)))

    def restart(self, graph: AdaptiveState, alarm: BoolArray, played_at: IntArray) -> AdaptiveState:
        """Forget everything but the full-history weights in the rows in which a round revealed a change."""
        if not alarm.any():
            return graph
        return graph._replace(
            sparse=self.sparse.forget(graph.sparse, alarm),
            instrument=self.instrument.forget(graph.instrument, alarm),
            k_class=self.k_class.forget(graph.k_class, alarm),
            doubts=forget_doubts(graph.doubts, alarm),
            changes=record_alarm(graph.changes, alarm, played_at),
        )

    def solve(self, graph: AdaptiveState) -> AdaptiveState:
        return self.solved(graph, np.ones_like(graph.k_class.ordered))

    def solve_briefly(self, graph: AdaptiveState) -> AdaptiveState:
        """The k-class estimate is made again only where it is old: for a while it was not needed."""
        if not unchanged(self, SOLVING):
            own: AdaptiveState = super().solve_briefly(graph)
            return own
        held = graph.k_class
        return self.solved(graph, held.moments[..., -1, -1] > OLD * held.solved)

    def solved(self, graph: AdaptiveState, repeated: BoolArray) -> AdaptiveState:
        """repeated: rows in which the k-class estimate, which costs more than all the rest, may be made again."""
        graph = graph._replace(
            sparse=self.sparse.solve(graph.sparse),
            instrument=self.instrument.solve(graph.instrument),
            full_history=self.full_history.solve(graph.full_history),
            k_class=self.k_class.test_if_due(graph.k_class),
        )
        doubts, instrument = raise_doubts(graph.doubts, graph.k_class), graph.instrument
        doubts = note_noise(doubts, graph.k_class, instrument.regression, instrument.gain)
        may_be_used = z_misleads(doubts) | doubts.noisy
        graph = graph._replace(k_class=self.k_class.estimate(graph.k_class, may_be_used & repeated))
        used, k_class = best_candidate(graph.evidence), prefers_k_class(doubts)
        weights = self.trusting_weights(graph, used)
        if k_class.any():
            weights = np.where(k_class[..., None], graph.k_class.weights, weights)
        return graph._replace(doubts=doubts, used=np.where(k_class, K_CLASS, used), weights=weights)

    def trusting_weights(self, graph: AdaptiveState, used: IntArray) -> Array:
        """The weights of a candidate that trusts z."""
        held = (graph.sparse.weights, graph.instrument.weights, graph.full_history.weights)
        return np.asarray(kernels.trusting_weights(used, *held))

    def gram(self, graph: AdaptiveState) -> Array | None:
        return self.sparse.gram(graph.sparse)

    def gain(self, graph: AdaptiveState) -> Array:
        ones = np.ones_like(graph.weights)
        return pick(graph.used, [ones, graph.instrument.gain, ones, ones, ones])

    def errors(self, graph: AdaptiveState) -> GraphErrors:
        """Those of the k-class estimate, made for them where it is not in use.

        The total effects may be those of another candidate, so their variances are the wider ones.
        """
        tested = self.k_class.test_if_due(copy_state(graph.k_class))
        found = self.k_class.wide_errors(self.k_class.estimate(tested, graph.used != K_CLASS))
        return found._replace(baseline=self.baseline(graph))

    def baseline(self, graph: AdaptiveState) -> Array:
        """That of the k-class estimate where it is in use; the other candidates fit none."""
        in_use = graph.used == K_CLASS
        if not in_use.any():
            return np.zeros_like(graph.weights)
        return np.where(in_use[..., None], self.k_class.baseline(graph.k_class), 0.0)

    def signals(self, graph: AdaptiveState) -> dict[str, Any]:
        """A baseline is a signal where nobody declared it; where z misleads, a regression on z contradicts nothing."""
        undeclared = graph.doubts.baseline & ~graph.doubts.declared & clear_baseline(graph.k_class)
        trusted, ordered = ~z_misleads(graph.doubts), graph.k_class.ordered
        against = effects_against_order(graph.instrument) & (trusted & ordered)[..., None, None]
        return {
            "confounded": graph.doubts.confounded,
            "baseline": undeclared,
            "against_order": against,
            "own_slopes": np.where(trusted[..., None], own_slopes(graph.instrument), np.nan),
        }


SOLVING = methods_of(AdaptiveGraph, ("solve",))
STEPS = ("compare", "absorb_tested", "explain_alarm", "restart", "solved", "trusting_weights")
ABSORBING = methods_of(AdaptiveGraph, ("absorb", "absorb_expected", "absorb_tested"))
AS_COMPILED = methods_of(AdaptiveGraph, (*LEARNING, *STEPS))


def evidence(graph: AdaptiveState) -> EvidenceSummary:
    """How well each candidate predicts the payoff, compared with no graph.

    >>> import spillover as sp
    >>> found = evidence(AdaptiveGraph().init(sp.Problem(n_arms=3, budget=1)))
    >>> found.candidates[found.used.item()]  # what the weights come from, before the first outcome
    'sparse'
    """
    held, count = graph.evidence, graph.evidence.observed[..., None]
    errors = np.divide(held.errors, count, out=np.full_like(held.errors, np.nan), where=count > 0)
    return EvidenceSummary(
        candidates=CANDIDATES,
        errors=errors,
        with_graph=errors[..., :-1].min(axis=-1),
        without=errors[..., -1],
        used=np.array(graph.used),
        confounded=np.array(graph.doubts.confounded),
        baseline=np.array(graph.doubts.baseline),
        log_confounding=np.array(graph.k_class.confounded),
        log_baseline=np.array(graph.k_class.constant),
    )

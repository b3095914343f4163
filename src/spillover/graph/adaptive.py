"""The graph learner for an unknown graph: several candidates side by side; the one that predicts best is used."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.core.compiled import inner
from spillover.graph.adaptive_state import (
    CANDIDATES,
    K_CLASS,
    TRUSTING,
    AdaptiveState,
    empty_change_evidence,
    empty_doubts,
    empty_evidence,
    pick,
    z_misleads,
)
from spillover.graph.candidates import CandidateGraph
from spillover.graph.contradictions import effects_against_order, lowers_outcomes, negative_effects, own_slopes
from spillover.graph.core import CoreGraph
from spillover.graph.edges import ROW_BOUND, SPARSITY
from spillover.graph.instrument import InstrumentGraph, add_information
from spillover.graph.k_class import ALARM, SUSPICION, KClassGraph, clear_baseline, is_due, test_z
from spillover.graph.learner import MANY_ARMS, GraphErrors, GraphLearner, GraphTraits
from spillover.graph.payoff import PayoffWeights
from spillover.graph.regression import FLOOR, RIDGE
from spillover.graph.sparse import SparseGraph
from spillover.graph.tuned import SelfTunedGraph
from spillover.kernels.evidence import favourite, judge_pair, judge_weights, use_weights
from spillover.kernels.regression import test_and_learn
from spillover.state import copy_state
from spillover.types import Array, Batch, BoolArray, IntArray, Problem

QUIET = 1e6  # lower bound on the mean number of arrivals between false alarms
NOISY = 10.0  # an equation has noise if its residuals exceed the least variance so many times


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
class AdaptiveGraph(CoreGraph):
    """The sparse graph, the instrument estimate, full-history weights, no graph, or k-class: whichever predicts best.

    A candidate predicts the payoff of a round with the weights it had when the round was played, so an outdated graph
    does not win by fitting past outcomes. The sparse graph is the default; another candidate replaces it if its error
    is lower by two standard errors.
    The instrument estimate and the full-history weights assume no signs: where an arm clearly lowers an outcome, the
    sparse graph and k-class, whose edges are positive unless `signed`, give way to the instrument estimate.
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

    allocates = False
    memos = 3
    parts = ("sparse", "instrument", "full_history", "k_class")
    helpers = ("explain_alarm",)
    grids = ("sparsity",)

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(order_free=False, deferrable=True, judges=True, signed=self.signed, fits_baseline=True)

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
        return InstrumentGraph(signed=True, required=self.required, forbidden=self.forbidden)

    @cached_property
    def full_history(self) -> PayoffWeights:
        return PayoffWeights(signed=True)

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

    # --- one graph --------------------------------------------------------------------------------------------------

    def prepare(self, g: Any) -> Any:
        return Room(self.sparse.prepare(g.sparse), self.instrument.prepare(g.instrument), np.empty(g.weights.shape[0]))

    def note(self, g: Any, memo: Any) -> None:
        """The current weights of each candidate with a graph; zeros while there is little data.

        Poor early predictions would count against a candidate for a long time.
        """
        ripe = g.instrument.regression.freedom >= memo.shape[1]
        for i in range(memo.shape[1]):
            memo[0, i] = g.sparse.weights[i] if ripe else 0.0
            memo[1, i] = g.instrument.weights[i] if ripe else 0.0
            memo[2, i] = g.full_history.weights[i] if ripe else 0.0

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        held, doubts, y = g.evidence, g.doubts, lesson.y
        # the payoff is compared with the predictions from the candidates' weights when its round was played
        held.observed = judge_weights(
            held.errors, held.lead, held.doubt, held.cross, held.power, held.observed, lesson.memo, lesson.z, y
        )  # fmt: skip
        # a round before the one that revealed a change may come from the graph before it: it raises no alarm
        current = weight if lesson.round >= g.changes.since else 0.0
        trusted = 0.0 if doubts.baseline or doubts.confounded else current
        alarm = trusted != 0.0 and test_outcome(g, lesson.z, y, trusted, room.regression)
        if doubts.noisy and trusted > 0.0 and not alarm:
            given = doubts.given_x
            favourite_weights(g, room.line)
            given.observed = judge_pair(
                given.errors, given.lead, given.doubt, given.cross, given.power, given.observed, g.k_class.weights,
                room.line, expected, y,
            )  # fmt: skip
        self.full_history.absorb_outcome(g.full_history, lesson, expected, weight, room.regression)
        if alarm:
            self.explain_alarm(g, lesson, expected, current, room)
        if trusted != 0.0:
            self.sparse.absorb_outcome(g.sparse, lesson, expected, trusted, room.sparse)
        self.k_class.absorb_outcome(g.k_class, lesson, expected, current, ())

    def explain_alarm(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        """An alarm is a change of the graph, unless earlier rounds show that z misleads."""
        test_z(g.k_class)
        if not raise_doubts(g):
            self.forget_all(g, room)
            g.changes.alarms += 1
            g.changes.since = lesson.round
            self.instrument.absorb_outcome(g.instrument, lesson, expected, weight, room.regression)

    def forget_all(self, g: Any, room: Any) -> None:
        """Forget everything but the full-history weights."""
        self.sparse.forget_all(g.sparse, room.sparse)
        self.instrument.forget_all(g.instrument, room.regression)
        self.k_class.forget_all(g.k_class, ())
        clear_evidence(g.doubts.given_x)
        for i in range(g.weights.shape[0]):
            g.changes.suspicion[i] = 0.0
            for j in range(g.weights.shape[0]):
                g.changes.risen[i, j] = g.changes.fallen[i, j] = 0.0

    def derive(self, g: Any, room: Any) -> None:
        doubts, held = g.doubts, g.k_class
        self.sparse.derive(g.sparse, room.sparse)
        self.instrument.derive(g.instrument, room.regression)
        self.full_history.derive(g.full_history, room.regression)
        self.k_class.test_if_due(held)
        misled = raise_doubts(g)
        note_noise(g)
        if (misled or doubts.noisy) and is_due(held):
            self.k_class.estimate(held)
        given, negative = doubts.given_x, not self.signed and lowers_outcomes(g.instrument)
        noisy = doubts.noisy and not negative  # the k-class edges are positive, too
        if misled or (noisy and favourite(given.errors, given.lead, given.doubt, given.power) == 0):
            g.used = K_CLASS
            for i in range(g.weights.shape[0]):
                g.weights[i] = held.weights[i]
        else:
            g.used = favourite_weights(g, g.weights)
            if g.used == 0 and negative:
                g.used = 1
                for i in range(g.weights.shape[0]):
                    g.weights[i] = g.instrument.weights[i]

    def show(self, g: Any, adjacency: Any) -> None:
        """That of the candidate in use; NaN if it has none."""
        if g.used == 0:
            self.sparse.show(g.sparse, adjacency)
        elif g.used == 1:
            self.instrument.show(g.instrument, adjacency)
        elif g.used == K_CLASS:
            self.k_class.show(g.k_class, adjacency)
        else:
            for i in range(adjacency.shape[0]):
                for j in range(adjacency.shape[1]):
                    adjacency[i, j] = math.nan if g.used == 2 else 0.0

    # --- many ---------------------------------------------------------------------------------------------------------

    def gain(self, graph: AdaptiveState) -> Array:
        ones = np.ones_like(graph.weights)
        return pick(graph.used, [ones, graph.instrument.gain, ones, ones, ones])

    def errors(self, graph: AdaptiveState) -> GraphErrors:
        """Those of the k-class estimate, made for them where it is not in use.

        The total effects may be those of another candidate, so their variances are the wider ones.
        """
        known = graph.k_class
        if self.k_class.is_due_in(known):
            known = self.k_class.solve(copy_state(known))
        return self.k_class.wide_errors(known, self.baseline(graph))

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
        doubtful = (trusted & ordered)[..., None, None]
        against = np.zeros_like(graph.instrument.regression.effects, np.bool_)
        if doubtful.any():
            against = effects_against_order(graph.instrument) & doubtful
        return {
            **self.sparse.signals(graph.sparse),
            "confounded": graph.doubts.confounded,
            "baseline": undeclared,
            "against_order": against,
            "negative_effects": negative_effects(graph.instrument) & (trusted & (not self.signed))[..., None, None],
            "own_slopes": np.where(trusted[..., None], own_slopes(graph.instrument), np.nan),
        }


class Room(NamedTuple):
    """Room to work in."""

    sparse: Any
    regression: Any
    line: Any


@inner
def favourite_weights(g: Any, weights: Any) -> Any:
    """The weights of the candidate that the evidence favours, of those that trust z; returns which it is."""
    held = g.evidence
    used = favourite(held.errors, held.lead, held.doubt, held.power)
    use_weights(used, g.sparse.weights, g.instrument.weights, g.full_history.weights, weights)
    return used


@inner
def test_outcome(g: Any, z: Any, y: Any, weight: Any, room: Any) -> Any:
    """Test an outcome for a change of the graph, and learn the effects from it unless it reveals one.

    A residual is compared with the noise learned so far. Without noise it is compared with the rounding error, so that
    the first outcome that the graph cannot explain raises an alarm.
    """
    known, changes = g.instrument.regression, g.changes
    squares, held, _ = room
    alarm, certainty = test_and_learn(
        known.root, known.effects, known.scatter, known.freedom, changes.suspicion, changes.risen, changes.fallen, z, y,
        FLOOR / RIDGE * known.ridge, math.sqrt(known.ridge / RIDGE), QUIET, weight, squares, held,
    )  # fmt: skip
    known.freedom += certainty
    add_information(g.instrument, certainty)
    return alarm


@inner
def raise_doubts(g: Any) -> Any:
    """Doubts about z itself, which stay once they are raised; returns whether z misleads."""
    doubts = g.doubts
    doubts.baseline |= g.k_class.constant > ALARM
    doubts.confounded |= g.k_class.confounded > ALARM
    return doubts.baseline or doubts.confounded


@inner
def note_noise(g: Any) -> None:
    """Whether the equations have noise, from the residuals of y on z, and k-class may be the better estimate.

    That is where a hidden cause is suspected, and, if the order is not known, where all direct effects seem to be 1, as
    k-class takes them to be. With a known order and no hidden cause the others cope with noise.
    """
    known, held = g.instrument.regression, g.k_class
    equal_gains, largest = True, 0.0
    for i in range(g.weights.shape[0]):
        equal_gains &= g.instrument.gain[i] == 1.0
        largest = max(largest, known.scatter[i, i])
    suitable = held.confounded > SUSPICION or (not held.ordered and equal_gains)
    g.doubts.noisy = suitable and largest / max(known.freedom, 1.0) > NOISY * (FLOOR / RIDGE * known.ridge)


@inner
def clear_evidence(held: Any) -> None:
    """Start again from nothing."""
    for c in range(held.errors.shape[0]):
        held.errors[c] = held.lead[c] = held.doubt[c] = held.cross[c] = held.power[c] = 0.0
    held.observed = 0.0


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

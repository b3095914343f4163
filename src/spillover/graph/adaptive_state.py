"""The state of the adaptive graph learner: candidates, the evidence for each, changes of the graph, doubts about z."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from spillover.graph.instrument import InstrumentState
from spillover.graph.k_class import KClassState
from spillover.graph.payoff import PayoffGraph
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Finite, IntArray, Problem, Round, Within

CANDIDATES = ("sparse", "instrument", "full-history", "none", "k-class")
K_CLASS = CANDIDATES.index("k-class")
TRUSTING = CANDIDATES[:K_CLASS]  # they take z for what an arm does by itself


class Evidence(NamedTuple):
    """Discounted sums over the arrivals; the last candidate is no graph."""

    errors: Amount  # (*batch, candidates): squared errors of the payoff
    lead: Finite  # (*batch, candidates): error of the first candidate minus that of this one
    doubt: Amount  # (*batch, candidates): squares of the lead, for its variance
    cross: Finite  # (*batch, candidates): payoff times prediction
    power: Amount  # (*batch, candidates): prediction squared
    observed: Amount  # (*batch,): arrivals


def empty_evidence(candidates: int, batch: Batch) -> Evidence:
    errors, lead, doubt, cross, power = (np.zeros((*batch, candidates)) for _ in range(5))
    return Evidence(errors, lead, doubt, cross, power, np.zeros(batch))


class ChangeEvidence(NamedTuple):
    """Evidence of a change since the last one."""

    suspicion: Finite  # (*batch, n): that the residuals of each arm's outcome have grown
    risen: Finite  # (*batch, n, n): that the effect of each arm on each outcome has grown
    fallen: Finite  # (*batch, n, n): or shrunk
    alarms: Round  # (*batch,): how many changes were detected
    since: Round  # (*batch,): the round of play whose outcome revealed the last one; 0 before the first


def empty_change_evidence(n_arms: int, batch: Batch) -> ChangeEvidence:
    square = (*batch, n_arms, n_arms)
    never = np.zeros(batch, np.int64)
    return ChangeEvidence(np.zeros((*batch, n_arms)), np.zeros(square), np.zeros(square), never, never.copy())


class Doubts(NamedTuple):
    """What speaks against the candidates that trust z."""

    declared: Constant[BoolArray]  # (*batch,): the problem says that there is a baseline
    baseline: BoolArray  # (*batch,): declared, or outcomes are not 0 where z is
    confounded: BoolArray  # (*batch,): a hidden common cause of z and y was detected
    noisy: BoolArray  # (*batch,): the equations have noise, which the candidates that trust z may not cope with
    given_x: (
        Evidence  # of payoffs predicted from what was expected of z: by k-class, and by the candidate that z favours
    )


def empty_doubts(problem: Problem, batch: Batch) -> Doubts:
    declared, never = np.full(batch, bool(problem.baseline)), np.zeros(batch, np.bool_)
    return Doubts(declared, declared.copy(), never, never.copy(), empty_evidence(2, batch))


def z_misleads(doubts: Doubts) -> BoolArray:
    """Whether only the k-class estimate is right, (*batch,)."""
    return np.asarray(doubts.baseline | doubts.confounded)


class AdaptiveState(NamedTuple):
    """The candidates, the evidence for each, and the evidence of a change.

    >>> import spillover as sp
    >>> sp.graph.AdaptiveGraph().init(sp.Problem(n_arms=3, budget=1)).weights
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

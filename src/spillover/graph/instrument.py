"""The graph from the total effects of z: it allows cycles, noise, any order and any direct effects."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.graph.edges import edge_mask
from spillover.graph.learner import GraphLearner
from spillover.graph.payoff import LEAST_WEIGHT
from spillover.graph.regression import Regression, empty_regression, floor_of, forget_rounds, regress
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Finite, IntArray, Problem

# New information for each arm before the graph is estimated again: less would change it by a fraction of its standard
# errors only, and an estimate costs n^3, too much for every round.
ENOUGH_INFORMATION = 0.025
UNKNOWN = 0.5  # an arm's effects count as unknown while more than this share of their prior variance is left


class InstrumentState(NamedTuple):
    """Total effects and the graph derived from them.

    >>> import spillover as sp
    >>> sp.graph.InstrumentGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    regression: Regression  # of y: m = n
    new_information: Amount  # (*batch,): since the graph was last estimated
    bars: Constant[Array]  # (*batch, n, n): standard errors an edge must exceed; 0: it is known, inf: it is impossible
    gain_bars: Constant[Array]  # (*batch, n): the same for a gain other than 1
    adjacency: Finite  # (*batch, n, n)
    gain: Finite  # (*batch, n): diagonal of F
    weights: Finite  # (*batch, n): 1'(I - A)^-1 F


@dataclass(frozen=True, kw_only=True)
class InstrumentGraph(GraphLearner):
    """Inverts the regression of y on z: z are the instruments, so noise in the equations causes no bias.

    B = Y Z'(Z Z')^-1 estimates (I - A)^-1 F. Then H = B^-1 has F^-1 on its diagonal, and A = I - F H. An edge is kept
    if it exceeds sqrt(2 log(n (n - 1))) standard errors, about the largest value that n (n - 1) absent edges reach by
    chance; gains likewise, around 1. Without noise absent edges are exactly 0. There are no edges while the rounds do
    not separate the arms.

    signed: edges may be negative. required, forbidden: (n, n) masks of edges known to exist and to be impossible. The
    order of an acyclic problem is neither needed nor used.

    >>> import spillover as sp
    >>> learner = InstrumentGraph()
    >>> graph = learner.init(sp.Problem(n_arms=2, budget=2, acyclic=False))
    >>> for z, y in (([0.0, 1.0], [0.5, 1.25]), ([1.0, 0.0], [1.25, 0.625])):  # a cycle
    ...     graph = learner.absorb(graph, np.array(z), np.array(y), np.array(1.0), np.array(1))
    >>> learner.solve(graph).adjacency.round(6)
    array([[0. , 0.4],
           [0.5, 0. ]])
    """

    signed: bool = False
    required: Any = None
    forbidden: Any = None

    order_free = False  # the graph is estimated when enough information has arrived

    def __post_init__(self) -> None:
        validate.require(isinstance(self.signed, bool), "signed", self.signed, "True or False")

    def init(self, problem: Problem, batch: Batch = ()) -> InstrumentState:
        n = problem.n_arms
        usual = np.sqrt(2.0 * np.log(max(n * (n - 1), 2)))
        required, forbidden = edge_mask("required", self.required, n), edge_mask("forbidden", self.forbidden, n)
        impossible = forbidden | np.eye(n, dtype=np.bool_)
        validate.require(
            not (required & impossible).any(), "required", required, "False for forbidden edges and self-loops"
        )
        bars = np.where(impossible, np.inf, np.where(required, 0.0, usual))
        return InstrumentState(
            regression=empty_regression(problem, np.eye(n), batch),
            new_information=np.zeros(batch),
            bars=np.broadcast_to(bars, (*batch, n, n)).copy(),
            gain_bars=np.full((*batch, n), usual),
            adjacency=np.zeros((*batch, n, n)),
            gain=np.ones((*batch, n)),
            weights=np.ones((*batch, n)),
        )

    def absorb(
        self, graph: InstrumentState, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray
    ) -> InstrumentState:
        regression, certainty = regress(graph.regression, z, y, weight)
        return add_information(graph._replace(regression=regression), information_in(certainty))

    def solve(self, graph: InstrumentState) -> InstrumentState:
        """Estimate the graph again in the rows with enough new information; rewrites its argument."""
        due: BoolArray = np.greater(graph.new_information, ENOUGH_INFORMATION * graph.weights.shape[-1])
        if not due.any():
            return graph
        known = graph.regression
        kernels.structure(
            known.effects,
            known.root,
            known.scatter,
            known.freedom,
            graph.bars,
            graph.gain_bars,
            floor_of(known),
            self.signed,
            UNKNOWN / known.ridge,
            LEAST_WEIGHT,
            due,
            graph.adjacency,
            graph.gain,
            graph.weights,
        )
        return graph._replace(new_information=np.where(due, 0.0, graph.new_information))

    def gain(self, graph: InstrumentState) -> Array:
        return graph.gain

    def forget(self, graph: InstrumentState, rows: BoolArray) -> InstrumentState:
        graph.adjacency[rows] = 0.0
        graph.gain[rows] = 1.0
        graph.weights[rows] = 1.0
        regression = forget_rounds(graph.regression, np.eye(graph.weights.shape[-1]), rows)
        return graph._replace(regression=regression, new_information=np.where(rows, 0.0, graph.new_information))


def information_in(certainty: Array) -> Array:
    """The information in rounds, from how much of each the past could have predicted (0: there was no round)."""
    return np.where(certainty > 0.0, 1.0 - certainty, 0.0)


def add_information(graph: InstrumentState, information: Array) -> InstrumentState:
    return graph._replace(new_information=np.asarray(graph.new_information + information))

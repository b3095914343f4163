"""The graph from the total effects of z: under cycles, noise, any order and any direct effects."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import kernels, validate
from spillover.graph.learner import GraphLearner
from spillover.graph.payoff import clip_weights
from spillover.graph.regression import Regression, empty_regression, floor_of, forget_rounds, regress
from spillover.graph.sparse import edge_mask
from spillover.types import Array, Batch, BoolArray, IntArray, Problem

# How much new information may wait, for each arm, before the graph is estimated again: it could not differ by more than
# a fraction of its standard errors. An estimate costs n^3, too much for every round.
NEWS = 0.025
UNKNOWN = 0.5  # of the prior variance of an arm's effects: with more than that left nothing is known of them


class InstrumentState(NamedTuple):
    """Total effects and the graph derived from them."""

    regression: Regression  # of y: m = n
    news: Array  # (*batch,): information that arrived since the graph was last estimated
    bars: Array  # (*batch, n, n): standard errors an edge must exceed; 0 for known ones, inf for impossible ones
    gain_bars: Array  # (*batch, n): the same for a gain other than 1
    adjacency: Array  # (*batch, n, n)
    gain: Array  # (*batch, n): diagonal of F
    weights: Array  # (*batch, n): 1'(I - A)^-1 F


@dataclass(frozen=True, kw_only=True)
class InstrumentGraph(GraphLearner):
    """B = Y Z'(Z Z')^-1 estimates (I - A)^-1 F, with z as instruments: noise in the equations does not bias it.

    Then H = B^-1 has F^-1 on its diagonal, and A = I - F H. An edge is kept if it exceeds sqrt(2 log(n (n - 1)))
    of its standard errors, about the largest that n (n - 1) absent edges reach by chance; gains likewise, around 1.
    Without noise absent edges are exactly 0. Where the rounds do not separate the arms there are no edges yet.

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

    order_free = False  # the graph is estimated when enough has arrived

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
            news=np.zeros(batch),
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
        """Estimate the graph again where enough information has arrived; rewrites what it is given."""
        due: BoolArray = np.greater(graph.news, NEWS * graph.weights.shape[-1])
        if not due.any():
            return graph
        known = graph.regression
        adjacency, gain, weights = kernels.structure(
            known.effects[due],
            known.root[due],
            known.scatter[due],
            known.freedom[due],
            graph.bars[due],
            graph.gain_bars[due],
            floor_of(known)[due],
            self.signed,
        )
        # an arm that no round separates from others hides the edges through it, but not the other arms' total effects
        unknown = (known.root[due] ** 2).sum(axis=-1) * known.ridge[due][..., None] > UNKNOWN
        weights = np.where(unknown.any(axis=-1, keepdims=True), known.effects[due].sum(axis=-2), weights)
        graph.adjacency[due] = adjacency
        graph.gain[due] = gain
        graph.weights[due] = clip_weights(weights, self.signed, False)
        return graph._replace(news=np.where(due, 0.0, graph.news))

    def gain(self, graph: InstrumentState) -> Array:
        return graph.gain

    def forget(self, graph: InstrumentState, rows: BoolArray) -> InstrumentState:
        graph.adjacency[rows] = 0.0
        graph.gain[rows] = 1.0
        graph.weights[rows] = 1.0
        regression = forget_rounds(graph.regression, np.eye(graph.weights.shape[-1]), rows)
        return graph._replace(regression=regression, news=np.where(rows, 0.0, graph.news))


def information_in(certainty: Array) -> Array:
    """Information in rounds, by how much of each the past could have predicted; 0 stands for no round."""
    return np.where(certainty > 0.0, 1.0 - certainty, 0.0)


def add_information(graph: InstrumentState, news: Array) -> InstrumentState:
    return graph._replace(news=np.asarray(graph.news + news))

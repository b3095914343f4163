"""The graph from the total effects of z: it allows cycles, noise, any order and any direct effects."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.core.compiled import inner
from spillover.graph.core import CoreGraph
from spillover.graph.edges import edge_mask
from spillover.graph.learner import GraphTraits
from spillover.graph.payoff import LEAST_WEIGHT
from spillover.graph.regression import FLOOR, RIDGE, Regression, empty_regression, learn
from spillover.kernels.inversion import structure
from spillover.kernels.regression import clear_regression, room_for_regression
from spillover.types import Amount, Array, Batch, Constant, Finite, Problem

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
class InstrumentGraph(CoreGraph):
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

    allocates = False

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(order_free=False, signed=self.signed)  # estimated when enough information has arrived

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

    def prepare(self, g: Any) -> Any:
        return room_for_regression(g.weights.shape[0])

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        add_information(g, learn(g.regression, lesson.z, lesson.y, weight, room))

    def derive(self, g: Any, room: Any) -> None:
        """Estimate the graph again if there is enough new information."""
        known = g.regression
        if g.new_information > ENOUGH_INFORMATION * g.weights.shape[0]:
            structure(
                known.effects, known.root, known.scatter, known.freedom, g.bars, g.gain_bars,
                FLOOR / RIDGE * known.ridge, self.signed, UNKNOWN / known.ridge, LEAST_WEIGHT, g.adjacency, g.gain,
                g.weights,
            )  # fmt: skip
            g.new_information = 0.0

    def forget_all(self, g: Any, room: Any) -> None:
        known = g.regression
        clear_regression(known.root, known.effects, known.scatter, known.ridge, True)
        known.freedom = g.new_information = 0.0
        for i in range(g.weights.shape[0]):
            g.gain[i] = g.weights[i] = 1.0
            for j in range(g.weights.shape[0]):
                g.adjacency[i, j] = 0.0

    def gain(self, graph: InstrumentState) -> Array:
        return graph.gain


@inner
def add_information(g: Any, certainty: Any) -> None:
    """Count what was new in a round, from how much of it the past could have predicted (0: there was no round)."""
    if certainty > 0.0:
        g.new_information += 1.0 - certainty

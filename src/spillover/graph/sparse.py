"""Learning the graph (Eq. 9): sufficient statistics in, adjacency and weights out.

Row i of the estimate minimises a'Ga - 2c'a + sparsity * sum(a) over a >= 0 on the columns allowed for it, with
G = sum y y' and c = sum (y_i - z_i) y. G and the residual correlations Q = (Y - Z)Y' - A G are kept by rank-one
updates, so a round costs the same however many came before; rows whose optimality conditions still hold are skipped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spillover.graph.candidates import CandidateGraph
from spillover.graph.core import CoreGraph
from spillover.graph.edges import ROW_BOUND, SPARSITY, check_lasso, edge_mask, impossible_edges
from spillover.graph.learner import MANY_ARMS, GraphLearner, GraphTraits, largest_reward
from spillover.kernels.graph import (
    absorb_outcome,
    clear_fit,
    drop_infinite_weights,
    is_spent,
    note_moves,
    refit,
    room_for_refit,
)
from spillover.types import Array, Batch, BoolArray, Constant, Finite, Problem


class Graph(NamedTuple):
    """Sufficient statistics and the current minimiser.

    >>> import spillover as sp
    >>> graph = SparseGraph().init(sp.Problem(n_arms=2, budget=1))
    >>> graph.adjacency, graph.weights  # before the first outcome
    (array([[0., 0.],
           [0., 0.]]), array([1., 1.]))
    """

    gram: Finite  # (*batch, n, n): G
    residual: Finite  # (*batch, n, n): Q = (Y - Z)Y' - A G
    adjacency: Finite  # (*batch, n, n): A[i, j] is the effect of arm j on arm i
    pressure: Finite  # (*batch, n): multiplier of each row's bound
    weights: Finite  # (*batch, n): 1'(I - A)^-1
    penalty: Constant[Array]  # (*batch, n, n): sparsity / 2; 0 for edges known to exist, inf for impossible ones
    bound: Constant[Array]  # (*batch,): upper bound on the sum of a row
    acyclic: Constant[BoolArray]  # (*batch,)


@dataclass(frozen=True, kw_only=True)
class SparseGraph(CoreGraph):
    """The paper's graph learner at a fixed sparsity (its lambda); absorb and solve work in place.

    With more than 500 arms a policy uses `CandidateGraph` instead, with the same parameters; `DenseGraph` never does.

    sparsity: lambda >= 0 of the graph problem for rewards of at most 1; an array makes a grid. With a reward_range up
        to r the penalty is lambda r^2, so that the graph does not depend on the units of the rewards.
    row_bound: without a known order (`Problem(acyclic=False)`) each row of A sums to at most this, so that
        spill-over dies out and weights exist. None: no bound, as in the paper; a decision by a graph with a spectral
        radius of 1 or more is then refused.
    required, forbidden: boolean (n, n) masks of edges known to exist (never penalised) and known to be impossible.
    signed: edges may be negative; absolute values are penalised and bounded.

    >>> import spillover as sp
    >>> policy = sp.NDCSEM(graph=sp.SparseGraph(sparsity=0.01, signed=True))
    >>> policy.graph.sparsity
    0.01
    """

    sparsity: Any = SPARSITY
    row_bound: float | None = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    signed: bool = False

    allocates = False
    constants: ClassVar[Mapping[str, int]] = {"bounded": 0}
    grids = ("sparsity",)

    @property
    def bounded(self) -> bool:
        return self.row_bound is not None

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(deferrable=True, signed=self.signed, bounded=self.bounded)

    def for_problem(self, problem: Problem) -> GraphLearner:
        """Itself, or the same problem on candidate edges if there are many arms; an order needs no bound."""
        row_bound: Any = ROW_BOUND if problem.acyclic else self.row_bound  # candidate edges refuse None by name
        if problem.n_arms <= MANY_ARMS:
            return self if self.bounded else replace(self, row_bound=row_bound)
        return CandidateGraph(
            sparsity=self.sparsity,
            row_bound=row_bound,
            required=self.required,
            forbidden=self.forbidden,
            signed=self.signed,
        )

    def __post_init__(self) -> None:
        check_lasso(self.sparsity, self.row_bound, self.signed, unbounded=True)

    def init(self, problem: Problem, batch: Batch = ()) -> Graph:
        n = problem.n_arms
        square, line = (*batch, n, n), (*batch, n)
        penalty = np.zeros(square)
        penalty += np.asarray(self.sparsity, float)[..., None, None] / 2
        # the sparsity is for rewards up to 1: in other units the penalty grows with the squared rewards
        penalty *= largest_reward(problem)[..., None, None] ** 2
        penalty[..., edge_mask("required", self.required, n)] = 0.0
        penalty[..., impossible_edges(problem, self.required, self.forbidden)] = np.inf
        return Graph(
            gram=np.zeros(square),
            residual=np.zeros(square),
            adjacency=np.zeros(square),
            pressure=np.zeros(line),
            weights=np.ones(line),
            penalty=penalty,
            bound=np.full(batch, np.inf if problem.acyclic or self.row_bound is None else self.row_bound),
            acyclic=np.full(batch, problem.acyclic),
        )

    # --- one graph --------------------------------------------------------------------------------------------------

    def prepare(self, g: Any) -> Any:
        return room_for_refit(g.weights.shape[0])

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        errors = room[0]
        absorb_outcome(g.gram, g.residual, g.adjacency, lesson.z, lesson.y, weight, g.acyclic, errors)
        note_moves(lesson.y, errors, room)

    def derive(self, g: Any, room: Any) -> None:
        if is_spent(room):
            refit(
                g.gram, g.residual, g.adjacency, g.pressure, g.weights, g.penalty, g.bound, g.acyclic, self.signed,
                room, True,
            )  # fmt: skip
            if not self.bounded:
                drop_infinite_weights(g.adjacency, g.weights, room[0])

    def forget_all(self, g: Any, room: Any) -> None:
        clear_fit(g.gram, g.residual, g.adjacency, g.pressure, g.weights, room)

    # --- many ---------------------------------------------------------------------------------------------------------

    def signals(self, graph: Graph) -> dict[str, Any]:
        return {"gram": graph.gram}


@dataclass(frozen=True, kw_only=True)
class DenseGraph(SparseGraph):
    """`SparseGraph` with all N^2 edges, however many arms there are.

    >>> import spillover as sp
    >>> sp.NDCSEM(graph=sp.graph.DenseGraph(sparsity=0.01)).graph.sparsity
    0.01
    """

    def for_problem(self, problem: Problem) -> GraphLearner:
        return self

"""The paper's graph problem (Eq. 9) on few candidate edges instead of all N^2: for many arms.

Row i has at most `causes` candidates. The arm that violates the row's optimality conditions most becomes one, and the
row is then solved exactly as in `sparse.py`, on its candidates alone. An arm is active in an outcome if its y is
noticeable; an outcome costs time for its active arms and for the rows that have them as candidates, and the state has
O(N) numbers.
"""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import kernels, validate
from spillover.graph.core import CoreGraph
from spillover.graph.edges import ROW_BOUND, SPARSITY, check_lasso, edge_pairs, required_pairs
from spillover.graph.learner import MANY_ARMS, GraphTraits, largest_reward
from spillover.kernels.candidate_rows import solve_candidates
from spillover.kernels.candidates import candidate_arrival
from spillover.types import Amount, Array, Batch, BoolArray, Constant, Finite, IntArray, Problem, Within

FAINTEST = 1e-6  # y of an active arm is above this; as all of these in units of the largest reward
LEAST_MISS = 0.02  # what a row cannot explain is worth a search above this
PASSES = 12  # candidates that a row may get in a round
SEARCHED = 100_000  # outcomes of single arms that a round's search goes through, so that its cost is bounded
ACTIVE = 16  # active arms of an outcome that are kept, for each arm that may be played; fewer than LEAST_ACTIVE never
LEAST_ACTIVE = 256
LEAST_HISTORY, MOST_HISTORY = 512, 4096  # outcomes that are kept
KEPT = 256  # active arms of past outcomes that are kept, for each arm
ROOM = 4  # of an outcome in the history, on average, for each arm that may be played; fewer than LEAST_ROOM never
LEAST_ROOM = 64
MOST_CAUSES = 1000  # a row has the squared number of statistics

Count = Annotated[IntArray, Within(0)]
Small = Annotated[NDArray[np.int32], Within(0)]
Flags = Annotated[NDArray[np.int8], Within(0, 2)]
Arms = Annotated[NDArray[np.int32], Within(-1, below=(-2,))]
Places = Annotated[NDArray[np.int32], Within(0, below=(-1,))]
Links = Annotated[NDArray[np.int32], Within(-1, below=(-2, -1))]


class CandidateEdges(NamedTuple):
    """The candidates of each row with their statistics, the history that they come from, and the current minimiser.

    >>> import spillover as sp
    >>> sp.CandidateGraph().init(sp.Problem(n_arms=4, budget=1)).weights
    array([1., 1., 1., 1.])
    """

    cause: Arms  # (*batch, n, k): the candidates of each row, -1 where a slot is empty
    edge: Finite  # (*batch, n, k): A[i, cause[i]]
    gram: Finite  # (*batch, n, k, k): G of each row's candidates
    residual: Finite  # (*batch, n, k): Q of each row's candidates
    pressure: Finite  # (*batch, n): multiplier of each row's bound
    weights: Finite  # (*batch, n): 1'(I - A)^-1
    penalty: Finite  # (*batch, n, k): half of the sparsity; 0 for edges known to exist
    following: Links  # (*batch, n, k + 1): the next slot of the same cause, and the first slot of arm i; -1 for none
    previous: Links  # (*batch, n, k + 1)
    heard_arm: Small  # (*batch, h): the active arms of the last outcomes, in order, one outcome after another
    heard_y: Finite  # (*batch, h): their y
    heard_rest: Finite  # (*batch, h): their y - z
    heard_start: Count  # (*batch, m): where an outcome begins, if the ring had no end
    heard_count: Count  # (*batch, m): how many were active
    heard_at: Count  # (*batch, m): which outcome it was
    written: Count  # (*batch, 1): where the next outcome begins
    active_at: Count  # (*batch, n, l): the last outcomes in which each arm was active
    active_y: Finite  # (*batch, n, l): its y
    active_rest: Finite  # (*batch, n, l): its y - z
    active_count: Count  # (*batch, n): in how many outcomes it was active
    energy: Amount  # (*batch, n): sum of its squared y
    clock: Count  # (*batch, 1): outcomes heard
    border: Amount  # (*batch, 1): the arms of the last outcome with a larger |y| were active
    rows: Places  # (*batch, n): the rows that the last outcome concerns, first `concerned` of them
    concerned: Count  # (*batch, 1)
    touched: Flags  # (*batch, n): 1 for these rows, 2 for those that did not predict the outcome
    tried: Small  # (*batch, n): searches of each row since it was last explained
    required: Constant[NDArray[np.int32]]  # (*batch, n): slots of edges known to exist, the first of each row
    forbidden: Constant[IntArray]  # (*batch, f): effect * n + cause, sorted
    unit: Constant[Array]  # (*batch,): the largest reward
    half: Constant[Array]  # (*batch,): half of the sparsity
    most_active: Constant[IntArray]  # (*batch,): active arms of an outcome that are kept
    bound: Constant[Array]  # (*batch,): upper bound on the sum of a row
    acyclic: Constant[BoolArray]  # (*batch,)

    @property
    def adjacency(self) -> Array:
        """All n * n entries: of few arms, or of one learner to look at."""
        *batch, n, _ = self.cause.shape
        full = np.zeros((*batch, n, n + 1))  # the last column is that of empty slots
        np.put_along_axis(full, np.where(self.cause < 0, n, self.cause), self.edge, axis=-1)
        return np.ascontiguousarray(full[..., :n])

    @property
    def edges(self) -> Any:
        """The edges alone, as a `scipy.sparse.coo_array`."""
        from scipy.sparse import coo_array

        *batch, n, _ = self.cause.shape
        *rows, slot = np.nonzero(self.edge)
        found = (*rows, self.cause[(*rows, slot)].astype(np.int64))
        return coo_array((self.edge[(*rows, slot)], found), shape=(*batch, n, n))


@dataclass(frozen=True, kw_only=True)
class CandidateGraph(CoreGraph):
    """The graph problem of `SparseGraph` on candidate edges: for hundreds of arms and more; in place.

    sparsity, row_bound, signed: as in `SparseGraph`.
    causes: candidates of each arm at most, besides those that are required. A row with more true causes misses some.
    recent: outcomes of each arm that candidates are looked for in.
    required, forbidden: (n, n) masks of edges known to exist and known to be impossible, dense or `scipy.sparse`.

    >>> import spillover as sp
    >>> learner = CandidateGraph(sparsity=0.0)
    >>> graph = learner.init(sp.Problem(n_arms=2, budget=2, acyclic=True))
    >>> graph = learner.absorb(graph, np.array([0.0, 1.0]), np.array([0.5, 1.0]), np.array(1.0), np.array(1))
    >>> learner.solve(graph).weights
    array([1. , 1.5])
    """

    sparsity: Any = SPARSITY
    row_bound: float = ROW_BOUND
    required: Any = None
    forbidden: Any = None
    signed: bool = False
    causes: int = 8
    recent: int = 16

    allocates = False
    grids = ("sparsity",)

    @property
    def traits(self) -> GraphTraits:
        return GraphTraits(order_free=False, solves_all=False, signed=self.signed)

    def __post_init__(self) -> None:
        check_lasso(self.sparsity, self.row_bound, self.signed)
        validate.whole("causes", self.causes, 1, MOST_CAUSES)
        validate.whole("recent", self.recent, 1, MOST_HISTORY)

    def init(self, problem: Problem, batch: Batch = ()) -> CandidateEdges:
        n = problem.n_arms
        forbidden = edge_pairs("forbidden", self.forbidden, n) @ np.array([n, 1])
        known = by_row(required_pairs(problem, self.required, forbidden), n)
        k = max(min(self.causes, n - 1), 1) + known.shape[-1]
        c = min(n, max(ACTIVE * problem.budget, LEAST_ACTIVE))
        m = min(max(KEPT * max(n, MANY_ARMS) // c, LEAST_HISTORY), MOST_HISTORY)
        room = max(m * min(n, max(ROOM * problem.budget, LEAST_ROOM)), c)
        unit = np.asarray(np.zeros(batch) + largest_reward(problem))
        half = np.asarray(np.zeros(batch) + np.asarray(self.sparsity, float) / 2 * unit**2)
        cause = np.full((*batch, n, k), -1, np.int32)
        cause[..., : known.shape[-1]] = known
        graph = CandidateEdges(
            cause=cause,
            edge=np.zeros((*batch, n, k)),
            gram=np.zeros((*batch, n, k, k)),
            residual=np.zeros((*batch, n, k)),
            pressure=np.zeros((*batch, n)),
            weights=np.ones((*batch, n)),
            penalty=np.zeros((*batch, n, k)),
            following=np.empty((*batch, n, k + 1), np.int32),
            previous=np.empty((*batch, n, k + 1), np.int32),
            heard_arm=np.zeros((*batch, room), np.int32),
            heard_y=np.zeros((*batch, room)),
            heard_rest=np.zeros((*batch, room)),
            heard_start=np.zeros((*batch, m), np.int64),
            heard_count=np.zeros((*batch, m), np.int64),
            heard_at=np.zeros((*batch, m), np.int64),
            written=np.zeros((*batch, 1), np.int64),
            active_at=np.zeros((*batch, n, self.recent), np.int64),
            active_y=np.zeros((*batch, n, self.recent)),
            active_rest=np.zeros((*batch, n, self.recent)),
            active_count=np.zeros((*batch, n), np.int64),
            energy=np.zeros((*batch, n)),
            clock=np.zeros((*batch, 1), np.int64),
            border=np.zeros((*batch, 1)),
            rows=np.zeros((*batch, n), np.int32),
            concerned=np.zeros((*batch, 1), np.int64),
            touched=np.zeros((*batch, n), np.int8),
            tried=np.zeros((*batch, n), np.int32),
            required=np.zeros((*batch, n), np.int32) + (known >= 0).sum(axis=-1, dtype=np.int32),
            forbidden=np.zeros((*batch, len(forbidden)), np.int64) + forbidden,
            unit=unit,
            half=half,
            most_active=np.full(batch, c),
            bound=np.full(batch, np.inf if problem.acyclic else self.row_bound),
            acyclic=np.full(batch, problem.acyclic),
        )
        kernels.link_candidates(graph.cause, graph.following, graph.previous)
        return graph

    # --- one graph --------------------------------------------------------------------------------------------------

    show = None  # type: ignore[assignment]  # n * n numbers

    def prepare(self, g: Any) -> Any:
        n = g.weights.shape[0]
        return np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(n, np.bool_), np.zeros(n), np.zeros((n, 2))

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        candidate_arrival(
            g.cause, g.edge, g.gram, g.residual, g.following, g.heard_arm, g.heard_y, g.heard_rest, g.heard_start,
            g.heard_count, g.heard_at, g.written, g.active_at, g.active_y, g.active_rest, g.active_count, g.energy,
            g.clock, g.border, g.rows, g.concerned, g.touched, lesson.z, lesson.y, weight, FAINTEST * g.unit,
            LEAST_MISS * g.unit, g.most_active,
        )  # fmt: skip

    def derive(self, g: Any, room: Any) -> None:
        """Solve the rows that the last outcome concerns, and again those that get a candidate for what they miss."""
        moved, where, queued, change, evidence = room
        solve_candidates(
            g.cause, g.edge, g.gram, g.residual, g.pressure, g.weights, g.penalty, g.following, g.previous, g.heard_arm,
            g.heard_y, g.heard_rest, g.heard_start, g.heard_count, g.heard_at, g.written, g.active_at, g.active_y,
            g.active_rest, g.active_count, g.energy, g.clock, g.border, g.rows, g.concerned, g.touched, g.tried,
            g.required, g.forbidden, moved, where, queued, change, evidence, LEAST_MISS * g.unit, g.half, g.bound,
            g.acyclic, self.signed, PASSES, SEARCHED,
        )  # fmt: skip


def by_row(pairs: IntArray, n: int) -> NDArray[np.int32]:
    """The causes of each effect in pairs sorted by effect, (n, most), with -1 after them."""
    effect, cause = pairs.T
    counts = np.bincount(effect, minlength=n)
    table = np.full((n, counts.max(initial=0)), -1, np.int32)
    table[effect, np.arange(len(pairs)) - (np.cumsum(counts) - counts)[effect]] = cause
    return table

"""The contract of a graph learner."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from spillover.types import Array, Batch, BoolArray, IntArray, Problem

# Above this many arms, edges are kept sparsely: by then candidates cost less time and memory than all N^2 edges, and
# decide as well (`python -m benchmarks many-arms`).
MANY_ARMS = 500
MOST_DENSE = 2_000  # arms of an explanation with all edges as a matrix


class GraphErrors(NamedTuple):
    """What a learner knows of the errors of its estimates, and of the outcomes without any decision."""

    baseline: Array  # (*batch, n): expected outcome of each arm if nothing is chosen, spill-over included
    weights_variance: Array  # (*batch, n)
    edge_variance: Array  # (*batch, n, n)
    edge_probability: Array  # (*batch, n, n): that the edge exists


class GraphTraits(NamedTuple):
    """What a graph learner is like.

    >>> import spillover as sp
    >>> sp.SparseGraph().traits.signed
    False
    """

    order_free: bool = True  # the graph does not depend on the order in which outcomes arrive
    deferrable: bool = False  # outcomes of a history may be absorbed without a `solve` after each of them
    solves_all: bool = True  # `solve` uses all outcomes absorbed so far; otherwise mostly the last: call it after each
    judges: bool = False  # it learns from how well its earlier estimates predicted, as `remember` noted them down
    learns: bool = True  # weights can differ from 1
    signed: bool = False  # spill-over may hurt: edges may be negative
    fits_baseline: bool = False  # it allows for outcomes that are not 0 where nothing is chosen
    bounded: bool = True  # weights exist whatever the outcomes; otherwise all are 0 where the spill-over is infinite


def largest_reward(problem: Problem) -> Array:
    """The unit of penalties and priors: the largest absolute reward of the range; (), or the batch of the range."""
    return np.asarray(np.abs(np.asarray(problem.reward_range, float)).max(axis=-1))


class GraphLearner(ABC):
    """Learns the graph from outcomes; a frozen dataclass that holds hyperparameters only.

    Its state is a NamedTuple with at least `adjacency` (*batch, n, n) and `weights` (*batch, n). `init`, `absorb` and
    `solve` are required; everything else has a default. `absorb` and `solve` may rewrite the arrays of the given state.

    >>> import numpy as np
    >>> import spillover as sp
    >>> learner = sp.SparseGraph()  # any learner; the three functions:
    >>> graph = learner.init(sp.Problem(n_arms=2, budget=2))
    >>> for z in np.array([[0.5, 0], [0, 0.4], [0.6, 0.3]]):
    ...     y = z + [0, 0.5 * z[0]]  # arm 0 moves arm 1
    ...     graph = learner.absorb(graph, z, y, np.array(1.0), np.array(1))
    >>> learner.solve(graph).adjacency.round(1)
    array([[0. , 0. ],
           [0.5, 0. ]])
    """

    @abstractmethod
    def init(self, problem: Problem, batch: Batch = ()) -> Any:
        """The graph before the first outcome."""

    @abstractmethod
    def absorb(
        self,
        graph: Any,
        z: Array,
        y: Array,
        weight: Array | BoolArray,
        played_at: IntArray,
        expected: Array | None = None,
        memo: Any = None,
    ) -> Any:
        """Add the outcome of a round to the statistics; a weight of 0 means that there is none.

        expected: what the policy expected of z, E[z | x, past], (*batch, n), 0 for arms that were not chosen: an
        instrument, because it depends on the decision and on the past only; z if it is not known. memo: what `remember`
        returned when the round was played.
        """

    @abstractmethod
    def solve(self, graph: Any) -> Any:
        """Estimate adjacency and weights from the statistics."""

    # --- optional ------------------------------------------------------------------------------------------------

    @property
    def traits(self) -> GraphTraits:
        """What the learner is like."""
        return GraphTraits()

    @property
    def grids(self) -> tuple[str, ...]:
        """Hyperparameters that may be arrays and then broadcast over the batch."""
        return ()

    def for_problem(self, problem: Problem) -> "GraphLearner":
        """The learner specialised to a problem, before `init`; by default itself."""
        return self

    def remember(self, graph: Any) -> Any:
        """What it will need of the current estimates when the outcome of the next round arrives; None: nothing."""
        return None

    def gain(self, graph: Any) -> Array:
        """The direct effects, the diagonal of F, (*batch, n); 1 if they are not estimated."""
        return np.ones_like(graph.weights)

    def errors(self, graph: Any) -> GraphErrors | None:
        """Standard errors and baselines; None if they are not estimated."""
        return None

    def baseline(self, graph: Any) -> Array | None:
        """The baselines in `errors`, which a learner may know without the errors; None if they are not estimated."""
        found = self.errors(graph)
        return None if found is None else found.baseline

    def signals(self, graph: Any) -> dict[str, Any]:
        """Data for health checks, as in `Policy.signals`."""
        return {}


def edges_of(graph: Any) -> Any:
    """The estimated edges as a `scipy.sparse.coo_array` (*batch, n, n); entry (i, j) is the effect of j on i.

    A graph with few edges has them as `edges`: for many arms nothing else may be asked of it but these and `weights`.
    """
    from scipy.sparse import coo_array

    return graph.edges if hasattr(graph, "edges") else coo_array(np.asarray(graph.adjacency))


def explained(graph: Any) -> Any:
    """The adjacency for an explanation; a `scipy.sparse.csr_array` if it would be too large a matrix."""
    if graph.weights.ndim > 1 or graph.weights.shape[-1] <= MOST_DENSE:
        return np.array(graph.adjacency)
    return edges_of(graph).tocsr()

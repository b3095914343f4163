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
    def absorb(self, graph: Any, z: Array, y: Array, weight: Array | BoolArray, played_at: IntArray) -> Any:
        """Add the outcome of a round to the statistics; a weight of 0 means that there is none."""

    @abstractmethod
    def solve(self, graph: Any) -> Any:
        """Estimate adjacency and weights from the statistics."""

    # --- optional: what the learner is like ----------------------------------------------------------------------

    @property
    def order_free(self) -> bool:
        """Whether the graph does not depend on the order in which outcomes arrive."""
        return True

    @property
    def deferrable(self) -> bool:
        """Whether outcomes of a history may be absorbed without a `solve` after each of them."""
        return False

    @property
    def solves_all(self) -> bool:
        """Whether `solve` uses all outcomes absorbed so far; otherwise mostly the last one, so call it after each."""
        return True

    @property
    def judges(self) -> bool:
        """Whether it learns from how well its earlier estimates predicted: it does if it has a `remember`."""
        return type(self).remember is not GraphLearner.remember

    @property
    def learns(self) -> bool:
        """Whether weights can differ from 1."""
        return True

    @property
    def fits_baseline(self) -> bool:
        """Whether it allows for outcomes that are not 0 where nothing is chosen."""
        return False

    @property
    def signed(self) -> bool:
        """Whether spill-over may hurt: edges may be negative."""
        return False

    @property
    def grids(self) -> tuple[str, ...]:
        """Hyperparameters that may be arrays and then broadcast over the batch."""
        return ()

    @property
    def bounded(self) -> bool:
        """Whether weights exist whatever the outcomes; otherwise all are 0 where the spill-over is infinite."""
        return True

    # --- optional: what it can do -------------------------------------------------------------------------------

    def for_problem(self, problem: Problem) -> "GraphLearner":
        """The learner specialised to a problem, before `init`; by default itself."""
        return self

    def absorb_expected(
        self,
        graph: Any,
        z: Array,
        y: Array,
        weight: Array | BoolArray,
        played_at: IntArray,
        expected: Array,
        memo: Any = None,
    ) -> Any:
        """`absorb`, with what was known when the round was played; by default it is ignored.

        expected: what the policy expected of z, E[z | x, past], (*batch, n), 0 for arms that were not chosen: an
        instrument, because it depends on the decision and on the past only. memo: what `remember` returned then.
        """
        return self.absorb(graph, z, y, weight, played_at)

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
        """Data for health checks, as in `spillover.policies.signals`."""
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

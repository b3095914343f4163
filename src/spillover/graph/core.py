"""The base of graph learners that are written for one learner, as the policies on them are; and no graph at all."""

import math
import threading
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spillover.contracts import methods_of, unchanged
from spillover.core.compiled import entry
from spillover.core.own import is_number, methods_named, spread
from spillover.core.record import Fields, fields_of, record_class, row_opener, table_of
from spillover.core.use import check_arrays, in_one_piece
from spillover.graph.learner import GraphLearner, GraphTraits
from spillover.kernels.averages import take_snapshot
from spillover.types import Array, Batch, BoolArray, Constant, IntArray, Problem

LAST = threading.local()  # the hyperparameters of the last graph learner in use, as the drivers take them
FUNCTIONS = ("absorb_outcome", "derive", "note", "show", "prepare", "forget_all")


class Outcome(NamedTuple):
    """The outcome of a round, as far as a graph is concerned; a `Lesson` has all of it."""

    z: Any  # (n,)
    y: Any  # (n,)
    round: Any  # in which it was played
    memo: Any  # (memos, n): what `note` noted down then


class CoreGraph(GraphLearner):
    """A graph learner written for one learner: functions that policies compose with their own.

    They see one graph: `g.weights` is an array (n,), `g.used` a number that may be assigned; of `self` they see its
    numbers, `constants`, each other, and the graph learners in `parts` as the same. They are compiled, as those of a
    `CorePolicy` are. The functions with a batch axis follow from them.

    >>> import spillover as sp
    >>> isinstance(sp.SparseGraph(), CoreGraph)
    True
    """

    allocates: ClassVar[bool] = True  # whether functions make arrays besides `prepare`; a fifth faster if they do not
    memos: ClassVar[int] = 0  # lines of n numbers that `note` notes down
    constants: ClassVar[Mapping[str, int]] = {}  # further attributes that the functions use: name -> axes, 0: a number
    parts: ClassVar[tuple[str, ...]] = ()  # attributes that are graph learners whose functions these functions use
    helpers: ClassVar[tuple[str, ...]] = ()  # further functions that these functions use

    @abstractmethod
    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        """Add the outcome of a round: lesson.z, y, round and memo; expected: of z, before it was known."""

    def derive(self, g: Any, room: Any) -> None:
        """Estimate weights and adjacency from what was absorbed."""

    def note(self, g: Any, memo: Any) -> None:
        """Note down, in (memos, n), what `absorb_outcome` will want to know of today."""

    def show(self, g: Any, adjacency: Any) -> None:
        """Fill in the estimated graph, (n, n)."""
        take_snapshot(g.adjacency, adjacency)

    def prepare(self, g: Any) -> Any:
        """Make room to work in, a tuple of arrays; what is in it may be kept for the next outcome of the same graph."""
        return ()

    def forget_all(self, g: Any, room: Any) -> None:
        """Start again from nothing, for those that have this graph learner as a part."""

    def reached(self) -> list[tuple[type, str]]:
        """All functions that are compiled, by class and name."""
        learners = (pair for part in self.parts for pair in getattr(self, part).reached())
        return [*((type(self), name) for name in (*FUNCTIONS, *self.helpers)), *learners]

    def own_numbers(self, batch: Batch) -> Any:
        """What functions see of `self`, for each graph of a batch."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        axes = {name: 0 for name, value in given.items() if is_number(value)} | dict(self.constants)
        methods = methods_named(self, (*FUNCTIONS, *self.helpers))
        own = record_class((*axes, *self.parts), methods)
        learners = (getattr(self, name).own_numbers(batch) for name in self.parts)
        return own(*(spread(getattr(self, name), batch, each) for name, each in axes.items()), *learners)

    # --- the functions with a batch axis, from these --------------------------------------------------------------

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
        use = GraphUse(self, graph)
        memo = np.zeros((use.count, self.memos, use.n)) if memo is None else use.flat(memo, (self.memos, use.n))
        lines = (use.flat(np.asarray(part, float), (use.n,)) for part in (z, y, z if expected is None else expected))
        amounts = use.flat(np.asarray(weight, float), ()), use.flat(np.asarray(played_at, np.int64), ())
        use.drivers.absorb(use.own, use.graph, *lines, *amounts, memo)
        return graph

    def solve(self, graph: Any) -> Any:
        use = GraphUse(self, graph)
        use.drivers.solve(use.own, use.graph, use.count)
        return graph

    def remember(self, graph: Any) -> Any:
        if not self.memos:
            return None
        use = GraphUse(self, graph)
        memo = np.zeros((use.count, self.memos, use.n))
        use.drivers.note(use.own, use.graph, memo)
        return memo.reshape(*use.batch, self.memos, use.n)


BATCH_FORMS = methods_of(CoreGraph, ("absorb", "solve", "remember"))


def is_core(learner: GraphLearner) -> bool:
    """Whether a graph learner does what its functions of one learner do: not if its forms for batches are its own."""
    return isinstance(learner, CoreGraph) and unchanged(learner, BATCH_FORMS)


class GraphUse:
    """A graph learner and the graphs of a batch, as the drivers take them."""

    def __init__(self, learner: CoreGraph, graph: Any) -> None:
        *batch, self.n = graph.weights.shape
        self.batch: Batch = tuple(batch)
        self.count = math.prod(batch)
        check_arrays(type(learner).__name__, graph, self.batch)
        form, reached = fields_of(graph, len(batch)), learner.reached()
        last = getattr(LAST, "use", None)
        if last is not None and last[:4] == (id(learner), self.batch, form, reached):
            *_, self.kept, self.own, self.drivers = last
        else:
            own = learner.own_numbers(self.batch)
            self.kept = learner, own  # whose identity and addresses are used
            self.own, self.drivers = table_of(own, 1), graph_drivers(fields_of(own, 1), form)
            LAST.use = id(learner), self.batch, form, reached, self.kept, self.own, self.drivers
        self.graph = table_of(graph, len(batch))

    def flat(self, values: Any, shape: tuple[int, ...]) -> Any:
        """Values of each graph, in one piece, with one axis for the graphs."""
        given = np.broadcast_to(values, (*self.batch, *shape))
        return in_one_piece(given).reshape(self.count, *shape)


def learned(learner: GraphLearner, graph: Any, z: Array, y: Array) -> Any:
    """One graph from `init` after rounds 1, 2, ..., (rounds, n); it is solved for at their end, if it can be."""
    one, order = np.ones(len(z)), np.arange(1, len(z) + 1)
    if learner.traits.solves_all and isinstance(learner, CoreGraph) and is_core(learner):
        use = GraphUse(learner, graph)
        use.drivers.absorb_rounds(use.own, use.graph, in_one_piece(z), in_one_piece(y), one)
        return learner.solve(graph)
    for row in range(len(z)):
        graph = learner.absorb(graph, z[row], y[row], one[row], order[row])
        if row == len(z) - 1 or not learner.traits.solves_all:
            graph = learner.solve(graph)
    return graph


class GraphDrivers(NamedTuple):
    """The functions of graph learners for the graphs of a batch."""

    absorb: Any
    absorb_rounds: Any
    solve: Any
    note: Any


@lru_cache(maxsize=256)
def graph_drivers(own: Fields, graph: Fields) -> GraphDrivers:
    """Compile the functions of a graph learner for graphs of this form."""
    open_own, open_graph = row_opener(own, fixed=True), row_opener(graph)

    def absorb_each(hyper, graphs, z, y, expected, weight, played, memo):
        for k in range(z.shape[0]):
            if weight[k] != 0.0:
                p, g = open_own(hyper, k), open_graph(graphs, k)
                p.absorb_outcome(g, Outcome(z[k], y[k], played[k], memo[k]), expected[k], weight[k], p.prepare(g))

    def absorb_rounds(hyper, graphs, z, y, weight):
        """The rounds of a history, into one graph."""
        p, g = open_own(hyper, 0), open_graph(graphs, 0)
        room, memo = p.prepare(g), np.zeros((0, z.shape[1]))
        for r in range(z.shape[0]):
            if weight[r] != 0.0:
                p.absorb_outcome(g, Outcome(z[r], y[r], r + 1, memo), z[r], weight[r], room)

    def solve_each(hyper, graphs, count):
        for k in range(count):
            p, g = open_own(hyper, k), open_graph(graphs, k)
            p.derive(g, p.prepare(g))

    def note_each(hyper, graphs, memo):
        for k in range(memo.shape[0]):
            open_own(hyper, k).note(open_graph(graphs, k), memo[k])

    return GraphDrivers(*(entry(each) for each in (absorb_each, absorb_rounds, solve_each, note_each)))


class EmptyGraph(NamedTuple):
    """No edges: every arm's weight is 1.

    >>> import spillover as sp
    >>> NoGraph().init(sp.Problem(n_arms=2, budget=1)).adjacency
    array([[0., 0.],
           [0., 0.]])
    """

    weights: Constant[Array]  # (*batch, n)

    @property
    def adjacency(self) -> Array:
        return np.zeros((*self.weights.shape, self.weights.shape[-1]))

    @property
    def edges(self) -> Any:
        from scipy.sparse import coo_array

        return coo_array((*self.weights.shape, self.weights.shape[-1]))


@dataclass(frozen=True, kw_only=True)
class NoGraph(CoreGraph):
    """Learns no graph: all weights are 1.

    >>> import spillover as sp
    >>> NoGraph().init(sp.Problem(n_arms=3, budget=1)).weights
    array([1., 1., 1.])
    """

    allocates = False
    traits = GraphTraits(deferrable=True, learns=False)

    def init(self, problem: Problem, batch: Batch = ()) -> EmptyGraph:
        return EmptyGraph(np.ones((*batch, problem.n_arms)))

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        """There is nothing to learn."""

    def show(self, g: Any, adjacency: Any) -> None:
        for i in range(adjacency.shape[0]):
            for j in range(adjacency.shape[1]):
                adjacency[i, j] = 0.0


class OutsideGraph(NamedTuple):
    """The weights of a graph, and the outcome that is to be handed on to its learner."""

    weights: Array  # (*batch, n)
    z: Array  # (*batch, n)
    y: Array  # (*batch, n)
    expected: Array  # (*batch, n)
    round: IntArray  # (*batch,): in which it was played
    weight: Array  # (*batch,): 0 if there is none


def outside(weights: Array) -> OutsideGraph:
    """The graph with these weights."""
    z, y, expected = (np.zeros(weights.shape) for _ in range(3))
    batch = weights.shape[:-1]
    return OutsideGraph(np.ascontiguousarray(weights), z, y, expected, np.zeros(batch, np.int64), np.zeros(batch))


@dataclass(frozen=True, kw_only=True)
class Outside(CoreGraph):
    """Notes what a policy wants its graph to learn."""

    allocates = False

    def init(self, problem: Problem, batch: Batch = ()) -> OutsideGraph:
        return outside(np.ones((*batch, problem.n_arms)))

    def absorb_outcome(self, g: Any, lesson: Any, expected: Any, weight: Any, room: Any) -> None:
        for i in range(expected.shape[0]):
            g.z[i], g.y[i], g.expected[i] = lesson.z[i], lesson.y[i], expected[i]
        g.round, g.weight = lesson.round, weight

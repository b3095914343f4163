"""A world with a given graph and given means."""

import copy
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.environments.surroundings import Surroundings, given_surroundings
from spillover.environments.synthetic import NO_MATRICES, WIDEST, check_course, check_observes
from spillover.environments.world import HANDED_ON, MANY_ARMS, ManyArmsWorld, SEMWorld, sorted_edges
from spillover.rng import Rng
from spillover.tabular import from_networkx, in_columns, in_rows, names_of, table_of, to_networkx
from spillover.types import Array, Batch, IntArray

SURROUNDINGS = ("baseline", "context", "context_effect", "context_on_baseline", "confounding")


class Edges(NamedTuple):
    """The edges of a graph in the user's order, those of a cause next to each other."""

    effect: IntArray
    cause: IntArray
    weight: Array


@dataclass(frozen=True, kw_only=True)
class FixedSEM:
    """A known graph with known means; arrays, or tables (pandas, Polars, Arrow) whose labels are the arms' names.

    adjacency: (n, n), adjacency[i, j] is the effect of arm j on arm i; for many arms a `scipy.sparse` matrix. Rows of
    a table are labelled by its index, or by a first column of texts; without labels they have the order of the columns.
    The arms may come in any order: the world sorts them so that every cause comes after its effects (see `arms` and
    `order`). A graph with cycles needs `acyclic=False`, a spectral radius below 1 and at most 2,000 arms, and keeps its
    order.
    means: (n,), or (periods, n) with one row for each stationary period; `changes` are the first rounds of the later
    ones. gain: the diagonal of F.
    baseline: (n,), the outcomes that there are without any decision (before spill-over).
    context: (rounds, k), a row for each round, known before the decision. context_effect, context_on_baseline: (n, k),
    what a unit of each column adds to an arm's mean (which stays in [0, 1]) and to its baseline.
    confounding: a number or (n,), how strongly a hidden common cause, a standard normal in each round cut off at four
    deviations, acts on an arm's reward and on its equation. observes: "both", "overall" or "payoff"; see `Problem`.

    >>> world = FixedSEM(adjacency=[[0, 0], [0.5, 0]], means=[0.9, 0.2], budget=1)
    >>> world.order, world.arms  # arm 0 acts on arm 1, so it comes last
    ((1, 0), ('2', '1'))
    """

    adjacency: Any
    means: Any
    budget: int
    horizon: int = 5000
    changes: tuple[int, ...] = ()
    smooth: bool = False
    law: str = "bernoulli"
    concentration: float = 4.0
    gain: Any = None
    noise: float = 0.0
    acyclic: bool = True
    baseline: Any = None
    context: Any = None
    context_effect: Any = None
    context_on_baseline: Any = None
    confounding: Any = None
    observes: str = "both"

    def __post_init__(self) -> None:
        for name in ("adjacency", "means", "gain", *SURROUNDINGS):
            object.__setattr__(self, name, copy.deepcopy(getattr(self, name)))  # the caller may change his own
        n = self.n_arms
        validate.whole("budget", self.budget, 1)
        validate.require(self.budget <= n, "budget", self.budget, f"at most {n}, the number of arms")
        check_course(self.horizon, self.changes, (), self.law, self.concentration, self.noise)
        levels = self.levels()
        periods = len(self.changes) + (2 if self.smooth else 1)
        shapes = f"({n},) or (1, {n})" if periods == 1 else f"({periods}, {n}): one row for each period"
        good = levels.shape == (periods, n)
        validate.require(good, "shape of means", np.shape(self.means), shapes)
        validate.number("means", levels, "from 0 to 1", low=0, high=1)
        gain = self.gains()
        validate.require(
            gain.shape == (n,) and bool((np.isfinite(gain) & (gain > 0)).all()),
            "gain",
            self.gain,
            f"{n} finite numbers > 0",
        )
        check_observes(self.observes)
        _ = self.surroundings()
        if self.acyclic:
            _ = self.order
        else:
            accepted = f"True with more than {MANY_ARMS:,} arms"
            validate.require(n <= MANY_ARMS, "acyclic", self.acyclic, accepted)
            radius = float(np.abs(np.linalg.eigvals(self.matrix())).max())
            validate.require(
                radius < 1,
                "spectral radius of adjacency",
                radius,
                "below 1, or the spill-over never dies out",
            )

    @cached_property
    def edges(self) -> Edges:
        """The edges, checked."""
        sparse = sys.modules.get("scipy.sparse")  # whoever has a sparse matrix has loaded it
        if sparse is not None and sparse.issparse(self.adjacency):
            given = self.adjacency.tocoo()
            given.sum_duplicates()
            found, shape, weight = given.coords, given.shape, validate.numbers("adjacency", given.data, "numbers")
        else:
            whole = self.labelled()
            found, shape, weight = np.nonzero(whole), whole.shape, whole[whole != 0]
        square = len(shape) == 2 and shape[0] == shape[1] and shape[0] > 0
        validate.require(square, "shape of adjacency", shape, "(n, n)")
        validate.number("adjacency", np.append(weight, 0.0), "finite numbers >= 0", low=0, high=np.inf)
        effect, cause = (np.asarray(arms, np.int64)[weight > 0] for arms in found)
        loops = effect[effect == cause]
        accepted = "none: a zero diagonal"
        validate.require(loops.size == 0, "self-loops of adjacency", [self.names()[i] for i in loops], accepted)
        order = np.lexsort((effect, cause))
        return Edges(effect[order], cause[order], np.asarray(weight, float)[weight > 0][order])

    def labelled(self) -> Array:
        """The adjacency as an array; rows of a table in the order of its columns."""
        given, table = self.adjacency, table_of("adjacency", self.adjacency)
        if table is not None:
            rows, columns = table.names if table.labels is None else table.labels, table.names
            named = len(rows) == len(columns) and set(rows) == set(columns)
            accepted = "the same arms in rows and columns, each once"
            validate.require(named, "labels of adjacency", (rows, columns), accepted)
            given = in_rows("adjacency", given, columns)
        return np.array(validate.numbers("adjacency", given, "a square array of numbers"))

    @property
    def n_arms(self) -> int:
        _ = self.edges  # it has checked the shape
        return len(self.names())

    def matrix(self) -> Array:
        """The adjacency matrix in the user's order: of few arms."""
        a = np.zeros((self.n_arms, self.n_arms))
        a[self.edges.effect, self.edges.cause] = self.edges.weight
        return a

    def names(self) -> list[str]:
        """The arms in the user's order."""
        table = table_of("adjacency", self.adjacency)
        return [str(i + 1) for i in range(np.shape(self.adjacency)[0])] if table is None else table.names

    def levels(self) -> Array:
        """The means, (periods, n) in the user's order; columns of a DataFrame are matched by name."""
        return np.atleast_2d(self.by_name("means", self.means))

    def gains(self) -> Array:
        if self.gain is None:
            return np.ones(self.n_arms)
        return self.by_name("gain", self.gain)

    def surroundings(self) -> Surroundings | None:
        """Baseline, context and hidden cause in the user's order, checked; None if there is nothing of the kind."""
        if all(getattr(self, name) is None for name in SURROUNDINGS):
            return None
        return given_surroundings(
            self.n_arms,
            self.horizon,
            self.each_arm("baseline"),
            self.table(),
            self.coefficients("context_on_baseline"),
            self.coefficients("context_effect"),
            self.each_arm("confounding"),
        )

    def each_arm(self, name: str) -> Array | None:
        """A finite number for each arm, in the user's order; None if it is not given."""
        given = getattr(self, name)
        if given is None:
            return None
        n = self.n_arms
        values = self.by_name(name, given)
        values = np.full(n, values) if values.ndim == 0 else values
        good = values.shape == (n,) and bool((np.abs(values) <= WIDEST).all())
        accepted = f"a finite number, or {n} of them, one for each arm, at most {WIDEST:g} in size"
        validate.require(good, name, given, accepted)
        return values

    def table(self) -> Array | None:
        """The context, (rounds, k)."""
        if self.context is None:
            return None
        values = validate.numbers("context", in_columns("context", self.context, None), "numbers, (rounds, k)")
        good = values.ndim == 2 and len(values) >= self.horizon and values.shape[1] > 0
        shape = f"(rounds, k) with at least {self.horizon} rounds, the horizon"
        validate.require(good, "shape of context", values.shape, shape)
        validate.require(bool(np.isfinite(values).all()), "context", self.context, "finite numbers")
        return values

    def coefficients(self, name: str) -> Array | None:
        """The effects of the context columns on each arm, (n, k), in the user's order."""
        given = getattr(self, name)
        if given is None:
            return None
        validate.require(self.context is not None, name, given, "None, as there is no context")
        by_name = in_rows(name, given, self.names(), names_of(self.context))
        values = validate.numbers(name, by_name, "numbers, (n, k)")
        shape = (self.n_arms, np.shape(self.context)[1])
        good = values.shape == shape and bool(np.isfinite(values).all())
        validate.require(good, name, given, f"finite numbers of shape {shape}: (arms, context columns)")
        return values

    def by_name(self, name: str, given: Any) -> Array:
        """Values for the arms, by position, or by name if they have labels."""
        table, labels = table_of(name, given), validate.labels_of(given)
        found = table.names if table is not None else None if labels is None else [str(label) for label in labels]
        values = table.matrix(name) if table is not None else given
        values = np.array(validate.numbers(name, values, "numbers, one for each arm"))
        if found is None:
            return values
        names = self.names()
        validate.require(sorted(found) == sorted(names), f"labels of {name}", found, f"the arms {names}")
        return values[..., [found.index(arm) for arm in names]]

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The user's arm at each position of the world."""
        if not self.acyclic or bool((self.edges.effect < self.edges.cause).all()):
            return tuple(range(self.n_arms))
        return effects_first(self.edges, self.names())

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms in the world's order."""
        names = self.names()
        return tuple(names[i] for i in self.order)

    @classmethod
    def from_networkx(cls, network: Any, *, means: Any, weight: str = "weight", **fields: Any) -> "FixedSEM":
        """The world of a `networkx.DiGraph`: an edge leads from a cause to its effect.

        means: by name, a mapping from nodes or a Series, or in the order of the nodes. weight: the edge attribute with
        the effect of one unit; an edge without it has 1. fields: as in `FixedSEM`.

        >>> import networkx
        >>> network = networkx.DiGraph([("radio", "tv", {"weight": 0.5})])
        >>> FixedSEM.from_networkx(network, means={"tv": 0.2, "radio": 0.9}, budget=1).arms
        ('tv', 'radio')
        """
        import pyarrow as pa

        names, adjacency = from_networkx(network, weight)
        if isinstance(means, Mapping):
            means = pa.table({str(arm): [mean] for arm, mean in means.items()})
        labelled = pa.table([pa.array(names), *(pa.array(column) for column in adjacency.T)], ["", *names])
        return cls(adjacency=labelled, means=means, **fields)

    def to_networkx(self, *, threshold: float = 0.0) -> Any:
        """The graph as a `networkx.DiGraph`, with the names of the arms; see `spillover.tabular.to_networkx`.

        >>> FixedSEM(adjacency=[[0, 0], [0.5, 0]], means=[0.9, 0.2], budget=1).to_networkx().edges["1", "2"]
        {'weight': 0.5}
        """
        return to_networkx(self.matrix(), self.names(), threshold=threshold)

    def draw(self, rng: Rng, batch: Batch = ()) -> SEMWorld:
        order, n = list(self.order), self.n_arms
        around = self.surroundings()
        levels, gain = self.levels()[:, order], self.gains()[order]
        rest: dict[str, Any] = {name: getattr(self, name) for name in HANDED_ON} | dict(
            gain=np.broadcast_to(gain, (*batch, *gain.shape)),
            levels=np.broadcast_to(levels, (*batch, *levels.shape)),
            changes=tuple(self.changes),
            graph_changes=(),
            acyclic=self.acyclic,
            arms=self.arms,
            surroundings=None if around is None else around.of_arms(order).spread(batch),
        )
        if n > MANY_ARMS:
            place = np.argsort(order)
            lists = sorted_edges(place[self.edges.effect], place[self.edges.cause], self.edges.weight, n)
            return ManyArmsWorld(edges_of_graphs=(lists.broadcast(batch),), graphs=NO_MATRICES, **rest)
        a = self.matrix()[np.ix_(order, order)]
        return SEMWorld(graphs=np.broadcast_to(a, (*batch, 1, *a.shape)), **rest)


def effects_first(edges: Edges, names: list[str]) -> tuple[int, ...]:
    """An order of the arms in which every cause comes after its effects; raises a ValueError that shows a cycle."""
    bounds = np.searchsorted(edges.cause, np.arange(len(names) + 1)).tolist()
    sorter = TopologicalSorter({j: edges.effect[bounds[j] : bounds[j + 1]].tolist() for j in range(len(names))})
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(names[i] for i in reversed(error.args[1]))  # from cause to effect
        raise ValueError(f"adjacency = a graph with the cycle {cycle}: must be acyclic, or set acyclic=False") from None
    order: list[int] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return tuple(order)


def example_graph(*, weight: float = 0.5, mean: float = 0.5, budget: int = 2, horizon: int = 1000) -> FixedSEM:
    """The four-arm graph of the paper's Fig. 1, with one weight and one mean for all: the paper gives none.

    >>> example_graph().arms
    ('2', '4', '3', '1')
    """
    a = np.zeros((4, 4))
    for effect, cause in ((2, 1), (2, 3), (3, 1), (2, 4), (4, 3)):
        a[effect - 1, cause - 1] = weight
    return FixedSEM(adjacency=a, means=np.full(4, mean), budget=budget, horizon=horizon)

"""Worlds in which the expected outcomes of every set of arms are listed: network interference, a nonlinear model.

Rewards z are not seen there: a unit's outcome is all there is. Outcomes are differences from those without a decision.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spillover import validate
from spillover.rng import Rng
from spillover.types import Array, Batch, BoolArray, IntArray, Outcome, Problem

MOST_UNITS = 12
FORMS = ("table", "linear")


@dataclass(frozen=True, kw_only=True)
class SetWorld:
    """Sets are numbered by the sum of 2^i over their arms i."""

    table: Array  # (*batch, 2^n, n): the expected outcome of each arm
    neighbours: BoolArray  # (*batch, n, n): whether the outcome of arm i depends on arm j directly
    budget: int
    horizon: int
    noise: float
    changes: tuple[int, ...] = ()
    graph_changes: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        return int(self.table.shape[-1])

    @cached_property
    def problem(self) -> Problem:
        """What a policy knows; the range of y has four deviations of noise."""
        seen, wide = self.table[..., self.feasible, :], 4.0 * self.noise
        ends = seen.min(axis=(-1, -2)) - wide, seen.max(axis=(-1, -2)) + wide
        return Problem(self.n, self.budget, overall_range=np.stack(ends, axis=-1), observes="overall")

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(str(k + 1) for k in range(self.n))

    @cached_property
    def sets(self) -> BoolArray:
        """All sets as masks, (2^n, n)."""
        return sets_of(self.n)

    @cached_property
    def feasible(self) -> IntArray:
        return np.flatnonzero(self.sets.sum(axis=-1) <= self.budget)

    @cached_property
    def payoffs(self) -> Array:
        """(*batch, sets): the expected payoff of every feasible set."""
        return np.asarray(self.table[..., self.feasible, :].sum(axis=-1))

    @cached_property
    def alone(self) -> Array:
        """(*batch, n, n): [i, j] is the outcome of arm i if only arm j is played."""
        return np.asarray(np.swapaxes(self.table[..., 1 << np.arange(self.n), :], -1, -2))

    def adjacency(self, t: int) -> Array:
        """What each arm does to each other one if it is played alone."""
        return np.where(np.eye(self.n, dtype=np.bool_), 0.0, self.alone)

    def weights(self, t: int) -> Array:
        return np.asarray(self.alone.sum(axis=-2))

    def structure(self) -> Array:
        """Whose decisions an outcome depends on directly; 0 where it does not."""
        return np.where(self.neighbours, np.nan, 0.0)

    def of_set(self, x: BoolArray) -> Array:
        """The expected outcomes of a decision."""
        number = (x << np.arange(self.n)).sum(axis=-1)[..., None, None]
        table = np.broadcast_to(self.table, (*x.shape[:-1], *self.table.shape[-2:]))
        return np.asarray(np.take_along_axis(table, number, axis=-2)[..., 0, :])

    def expected(self, t: int, x: BoolArray) -> Array:
        return np.asarray(self.of_set(x).sum(axis=-1))

    @cached_property
    def optimum(self) -> BoolArray:
        return np.asarray(self.sets[self.feasible[self.payoffs.argmax(axis=-1)]])

    def best(self, t: int) -> BoolArray:
        return self.optimum

    def matches(self, t: int, x: BoolArray) -> IntArray:
        """No two sets have the same payoff, but those with arms that do nothing."""
        optimal = self.payoffs == self.payoffs.max(axis=-1, keepdims=True)
        common = (x[..., None, :] & self.sets[self.feasible]).sum(axis=-1)
        return np.asarray(np.where(optimal, common, 0).max(axis=-1))

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        y = self.of_set(x) + self.noise * rng.normal(self.n)
        return Outcome(np.full(y.shape, np.nan), y)


def sets_of(n: int) -> BoolArray:
    """All sets of n arms, (2^n, n), by their numbers."""
    return np.asarray((np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1)


def draw_neighbours(rng: Rng, batch: Batch, n: int, count: int) -> BoolArray:
    """Each unit and count - 1 others, uniformly at random."""
    rank = np.broadcast_to(rng.uniform(n * n).reshape(*rng.keys.shape[:-1], n, n), (*batch, n, n))
    rank = np.where(np.eye(n, dtype=np.bool_), -1.0, rank)
    return np.asarray(np.argsort(np.argsort(rank, axis=-1), axis=-1) < count)


@dataclass(frozen=True, kw_only=True)
class NetworkInterference:
    """Units whose outcomes depend on the decisions about at most so many neighbours, themselves included.

    form: "table", any function of the neighbours' decisions (Agarwal, Agarwal, Masoero and Whitehouse 2024), with
    values uniform on [0, 1], less that of no decision; or "linear", the sum of an own effect, uniform on [0, 1], and of
    others, uniform on [-0.5, 0.5] (Wang, Bastani, Bastani and Ren 2026). budget: at most so many units; all by default.
    noise: standard deviation of each outcome.

    >>> import spillover as sp
    >>> world = NetworkInterference(units=3, neighbours=2).draw(sp.Rng(0))
    >>> world.structure()  # the outcome of a unit depends on itself and on another one
    array([[nan,  0., nan],
           [ 0., nan, nan],
           [ 0., nan, nan]])
    """

    units: int = 8
    neighbours: int = 4
    form: str = "table"
    budget: int | None = None
    horizon: int = 1500
    noise: float = 0.3

    def __post_init__(self) -> None:
        check_units(self.units, self.budget, self.horizon, self.noise)
        validate.whole("neighbours", self.neighbours, 1, self.units)
        validate.require(self.form in FORMS, "form", self.form, f"one of {', '.join(FORMS)}")

    def draw(self, rng: Rng, batch: Batch = ()) -> SetWorld:
        n, around = self.units, draw_neighbours(rng, batch, self.units, self.neighbours)
        if self.form == "linear":
            effects = rng.uniform(n * n).reshape(*rng.keys.shape[:-1], n, n) - 0.5 * ~np.eye(n, dtype=np.bool_)
            table = np.swapaxes(np.where(around, effects, 0.0) @ sets_of(n).T.astype(float), -1, -2)
        else:
            # the number of the neighbours' decisions: each neighbour's place among them is a bit
            bits = np.where(around, 1 << np.maximum(np.cumsum(around, axis=-1) - 1, 0), 0)
            number = np.swapaxes(bits @ sets_of(n).T, -1, -2)  # (*batch, sets, n)
            size = 2**self.neighbours
            values = np.broadcast_to(rng.uniform(n * size).reshape(*rng.keys.shape[:-1], n, size), (*batch, n, size))
            values = np.swapaxes(values - values[..., :1], -1, -2)
            table = np.take_along_axis(values, number, axis=-2)
        budget = n if self.budget is None else self.budget
        return SetWorld(table=table, neighbours=around, budget=budget, horizon=self.horizon, noise=self.noise)


@dataclass(frozen=True, kw_only=True)
class NonlinearSEM:
    """A structural model whose nodes saturate: y_i = x_i b_i + sum_j A_ij tanh(steepness y_j) / steepness.

    The payoff of a set is not the sum of its arms'. A stand-in for models in a space of kernels: causes come after
    their effects, edges exist with probability `density` and are uniform in `weight_range`, b is uniform on [0, 1], and
    the noise (a standard deviation) is that of measuring an outcome. Small steepness: nearly linear.
    """

    nodes: int = 8
    density: float = 0.4
    weight_range: tuple[float, float] = (0.25, 1.0)
    steepness: float = 2.0
    budget: int = 3
    horizon: int = 1500
    noise: float = 0.3

    def __post_init__(self) -> None:
        check_units(self.nodes, self.budget, self.horizon, self.noise)
        validate.number("density", self.density, "a probability from 0 to 1", low=0, high=1)
        validate.number("weight_range", self.weight_range, "a pair (low, high) of finite numbers", low=-1e6, high=1e6)
        validate.require(np.shape(self.weight_range) == (2,), "weight_range", self.weight_range, "a pair (low, high)")
        validate.number("steepness", self.steepness, "a number > 0", low=0, high=1e6, open_ends=True)

    def draw(self, rng: Rng, batch: Batch = ()) -> SetWorld:
        n, shape, (low, high) = self.nodes, rng.keys.shape[:-1], self.weight_range
        there, size = (rng.uniform(n * n).reshape(*shape, n, n) for _ in range(2))
        edges = (there < self.density) & ~np.tri(n, dtype=np.bool_)
        graph, own = np.where(edges, low + (high - low) * size, 0.0), rng.uniform(n)
        table = np.zeros((*shape, 2**n, n))
        for i in range(n - 1, -1, -1):
            felt = np.tanh(self.steepness * table) / self.steepness
            table[..., i] = sets_of(n)[:, i] * own[..., None, i] + (felt * graph[..., None, i, :]).sum(axis=-1)
        around = edges | np.eye(n, dtype=np.bool_)
        table, around = (np.broadcast_to(each, (*batch, *each.shape[-2:])) for each in (table, around))
        return SetWorld(table=table, neighbours=around, budget=self.budget, horizon=self.horizon, noise=self.noise)


def check_units(units: int, budget: int | None, horizon: int, noise: float) -> None:
    validate.whole("units", units, 1, MOST_UNITS)
    if budget is not None:
        validate.whole("budget", budget, 1, units)
    validate.whole("horizon", horizon, 1)
    validate.number("noise", noise, "a finite number >= 0", low=0, high=1e6)

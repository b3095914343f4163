"""Draw the paper's synthetic worlds: a random acyclic graph, Bernoulli rewards, means that change."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spillover import validate
from spillover.environments.surroundings import Surroundings, draw_surroundings
from spillover.environments.world import (
    HANDED_ON,
    LAWS,
    MANY_ARMS,
    EdgeLists,
    ManyArmsWorld,
    SEMWorld,
    draw_pairs,
    sorted_edges,
)
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch

USUAL_BASELINE = (0.5, 2.0)  # with baseline=True

NO_MATRICES = np.empty((0, 0, 0))  # the graphs of a world that keeps lists of edges
WIDEST = 1e30  # of what outcomes are made of: outcomes may be at most 1e40


@dataclass(frozen=True, kw_only=True)
class SyntheticSEM:
    """Random worlds; the defaults are the paper's Section V-A.

    Worlds with more than 2,000 arms keep their edges as lists, which take no n * n memory.

    edge_density: edges / (n (n - 1)); 0.09 with 10 arms gives 8 edges. weight_range: of their weights, drawn uniformly.
    changes: first rounds of new means. changed: "all", or how many arms get a new mean at a change.
    smooth: the means move gradually between the changes instead of jumping at them.
    graph_changes: first rounds of new graphs.
    law: "bernoulli", "beta" with `concentration` a + b, or "pareto": heavy tails, up to about 12 times the mean.
    gain_range: of the diagonal of F, drawn uniformly (the paper folds F into the rewards; NDC-SEM's graph problem
    assumes F = 1, so other gains mislead it).
    noise: standard deviation of normal noise in each structural equation.
    harmful: probability that an edge is negative: spill-over that hurts.
    baseline: the range of the outcomes that there are without any decision, drawn uniformly for each arm; True is
    (0.5, 2). context: number of context columns, which are known before each decision: a weekly sine, then random walks
    in [-1.5, 1.5]. They move the baselines (coefficients normal with deviation `context_on_baseline`) and the means
    (deviation `context_effect`; means are clipped to [0, 1]).
    confounding: standard deviation of a hidden common cause, which acts on the rewards and the equations of half of the
    arms, and is cut off at four deviations. observes: what policies see, "both" (z and y), "overall" (only y) or
    "payoff" (only the sum of y).

    >>> from spillover import Rng
    >>> world = SyntheticSEM().draw(Rng(seed=0))
    >>> int((world.adjacency(1) > 0).sum()), world.horizon, world.changes
    (8, 5000, (1000, 2500, 4000))
    """

    n_arms: int = 10
    budget: int = 4
    edge_density: float = 0.09
    weight_range: tuple[float, float] = (0.4, 0.7)
    horizon: int = 5000
    changes: tuple[int, ...] = (1000, 2500, 4000)
    changed: int | str = "all"
    smooth: bool = False
    graph_changes: tuple[int, ...] = ()
    law: str = "bernoulli"
    concentration: float = 4.0
    gain_range: tuple[float, float] = (1.0, 1.0)
    noise: float = 0.0
    harmful: float = 0.0
    baseline: bool | tuple[float, float] = False
    context: int = 0
    context_effect: float = 0.3
    context_on_baseline: float = 0.5
    confounding: float = 0.0
    observes: str = "both"

    def __post_init__(self) -> None:
        validate.whole("n_arms", self.n_arms, 1)
        validate.whole("budget", self.budget, 1)
        validate.require(self.budget <= self.n_arms, "budget", self.budget, f"at most n_arms = {self.n_arms}")
        validate.number(
            "edge_density",
            self.edge_density,
            "from 0 to 0.5, the density of a full acyclic graph",
            low=0,
            high=0.5,
        )
        validate.require(isinstance(self.smooth, bool), "smooth", self.smooth, "True or False")
        check_pair("weight_range", self.weight_range, zero=True)
        if self.changed != "all":
            number = isinstance(self.changed, int | np.integer)
            validate.require(number, "changed", self.changed, '"all" or a number of arms')
            validate.whole("changed", self.changed, 0, self.n_arms)
        validate.number("harmful", self.harmful, "a probability from 0 to 1", low=0, high=1)
        check_pair("gain_range", self.gain_range, zero=False)
        check_course(self.horizon, self.changes, self.graph_changes, self.law, self.concentration, self.noise)
        check_pair("baseline", self.baseline_range or (0.0, 0.0), least=-np.inf)
        validate.whole("context", self.context, 0)
        for name in ("context_effect", "context_on_baseline", "confounding"):
            accepted = f"a finite number >= 0, at most {WIDEST:g}"
            validate.number(name, getattr(self, name), accepted, low=0, high=WIDEST)
        check_observes(self.observes)

    @property
    def baseline_range(self) -> tuple[float, float] | None:
        """The range that baselines are drawn from; None without baselines."""
        return (USUAL_BASELINE if self.baseline is True else self.baseline) or None

    @property
    def edges(self) -> int:
        return round(self.edge_density * self.n_arms * (self.n_arms - 1))

    def draw(self, rng: Rng, batch: Batch = ()) -> SEMWorld:
        periods = range(len(self.graph_changes) + 1)
        if self.n_arms > MANY_ARMS:
            lists = tuple(self.draw_edges(rng, batch) for _ in periods)
            return ManyArmsWorld(edges_of_graphs=lists, graphs=NO_MATRICES, **self.draw_rest(rng, batch))
        graphs = [self.draw_graph(rng, batch) for _ in periods]
        return SEMWorld(graphs=np.stack(graphs, axis=-3), **self.draw_rest(rng, batch))

    def draw_rest(self, rng: Rng, batch: Batch) -> dict[str, Any]:
        """Draw all of a world but its graphs."""
        low, high = self.gain_range
        return {name: getattr(self, name) for name in HANDED_ON} | dict(
            gain=low + (high - low) * np.broadcast_to(rng.uniform(self.n_arms), (*batch, self.n_arms)),
            levels=self.draw_means(rng, batch),
            changes=tuple(self.changes),
            graph_changes=tuple(self.graph_changes),
            acyclic=True,
            arms=tuple(str(i + 1) for i in range(self.n_arms)),
            surroundings=self.draw_surroundings(rng, batch),
        )

    def draw_surroundings(self, rng: Rng, batch: Batch) -> Surroundings | None:
        """Baselines, context and the arms of the hidden cause; None if there is nothing of the kind."""
        if not (self.baseline_range or self.context or self.confounding):
            return None
        return draw_surroundings(
            rng,
            batch,
            self.n_arms,
            self.horizon,
            baseline=self.baseline_range,
            columns=self.context,
            context_on_baseline=self.context_on_baseline,
            context_effect=self.context_effect,
            confounding=self.confounding,
        )

    def draw_graph(self, rng: Rng, batch: Batch) -> Array:
        """Edges uniformly at random above the diagonal, with weights uniform in their range."""
        n = self.n_arms
        above = np.flatnonzero(~np.tri(n, dtype=np.bool_))
        flat = np.zeros((*batch, n * n))
        places = above[rng.permutation(len(above))[..., : self.edges]]
        np.put_along_axis(flat, np.broadcast_to(places, (*batch, self.edges)), self.draw_weights(rng), axis=-1)
        return flat.reshape(*batch, n, n)

    def draw_edges(self, rng: Rng, batch: Batch) -> EdgeLists:
        """Draw the edges of many arms, without a place for every possible edge."""
        effect, cause = np.divmod(draw_pairs(rng, batch, self.n_arms, self.edges), self.n_arms)
        return sorted_edges(effect, cause, np.broadcast_to(self.draw_weights(rng), effect.shape), self.n_arms)

    def draw_weights(self, rng: Rng) -> Array:
        """The weights of all edges."""
        low, high = self.weight_range
        weights = low + (high - low) * rng.uniform(max(self.edges, 1))[..., : self.edges]
        if self.harmful == 0:
            return weights
        return np.where(rng.uniform(max(self.edges, 1))[..., : self.edges] < self.harmful, -weights, weights)

    def draw_means(self, rng: Rng, batch: Batch) -> Array:
        """Means uniform on [0, 1]; at each change `changed` of the arms get a new one."""
        n = self.n_arms
        count = n if self.changed == "all" else int(self.changed)
        periods = len(self.changes) + (2 if self.smooth else 1)
        levels = np.empty((*batch, periods, n))
        levels[..., 0, :] = rng.uniform(n)
        for k in range(1, periods):
            fresh, rank = rng.uniform(n), rng.permutation(n)
            levels[..., k, :] = np.where(rank < count, fresh, levels[..., k - 1, :])
        return levels


def check_pair(name: str, given: Any, *, zero: bool = True, least: float = 0.0) -> None:
    """Check a range to draw from uniformly."""
    bound = "" if least < 0 else "0 <= " if zero else "0 < "
    accepted = f"a pair (low, high) with {bound}low <= high"
    validate.number(name, given, accepted, low=least, high=np.inf)
    validate.number(name, given, f"{accepted}, at most {WIDEST:g} in size", low=-WIDEST, high=WIDEST)
    pair = np.asarray(given, float)
    good = pair.shape == (2,) and bool(pair[0] <= pair[1]) and (zero or bool(pair[0] > 0))
    validate.require(good, name, given, accepted)


def check_observes(observes: Any) -> None:
    """Check what is seen of an outcome."""
    accepted = f"one of {', '.join(validate.OBSERVES)}"
    validate.require(isinstance(observes, str) and observes in validate.OBSERVES, "observes", observes, accepted)


def check_course(
    horizon: int,
    changes: tuple[int, ...],
    graph_changes: tuple[int, ...],
    law: str,
    concentration: float,
    noise: float,
) -> None:
    """Check what all worlds share: a horizon, change points inside it, a distribution of the rewards, noise."""
    validate.whole("horizon", horizon, 1)
    for name, given in (("changes", changes), ("graph_changes", graph_changes)):
        rounds = np.asarray(given)
        good = rounds.ndim == 1 and (rounds.size == 0 or rounds.dtype.kind in "iu")
        accepted = f"increasing rounds from 2 to the horizon, {horizon}"
        validate.require(good, name, given, accepted)
        inside = bool(((rounds >= 2) & (rounds <= horizon)).all()) and bool((np.diff(rounds) > 0).all())
        validate.require(inside, name, given, accepted)
    validate.require(law in LAWS, "law", law, f"one of {', '.join(LAWS)}")
    for name, value in (("concentration", concentration), ("noise", noise)):
        validate.require(np.ndim(value) == 0, name, value, "a single number")
    validate.number("concentration", concentration, "a number > 0", low=0, high=np.inf, open_ends=True)
    validate.number("noise", noise, f"a finite number >= 0, at most {WIDEST:g}", low=0, high=WIDEST)


@dataclass(frozen=True, kw_only=True)
class Instance:
    """The world of replication 0 of a seed, for every replication: only rewards and delays differ.

    >>> world = Instance(seed=7).draw(Rng(0, [0, 1]), (2,))
    >>> bool((world.means(1)[0] == world.means(1)[1]).all())
    True
    """

    seed: int = 0
    of: SyntheticSEM = field(default_factory=SyntheticSEM)

    def draw(self, rng: Rng, batch: Batch = ()) -> SEMWorld:
        one = self.of.draw(Rng(self.seed).at(Purpose.WORLD))
        return one.repeated(batch)

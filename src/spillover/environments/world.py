"""A drawn world of the structural equation model (eqs. 1-5), also with many arms, for any batch of replications."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from spillover import kernels
from spillover.contracts import methods_of, unchanged
from spillover.contracts.world import best_of_each, observed, score_each
from spillover.environments.surroundings import LARGEST_CAUSE, Surroundings, for_rounds
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, Course, IntArray, Outcome, Problem, Scored

LAWS = ("bernoulli", "beta", "pareto")
HANDED_ON = ("budget", "horizon", "smooth", "law", "concentration", "noise", "observes")  # by environments to worlds
TAIL, LARGEST_DRAW = 1.5, 30.0  # of Pareto rewards: the exponent, and the largest multiple of the smallest one
MEAN_DRAW = TAIL / (TAIL - 1.0) * (1.0 - LARGEST_DRAW ** (1.0 - TAIL)) / (1.0 - LARGEST_DRAW**-TAIL)
LARGEST_PARETO = LARGEST_DRAW / MEAN_DRAW  # of an arm with mean 1
TOLD_BY_MEANS = {"bernoulli": kernels.BERNOULLI, "beta": kernels.BETA}  # laws of which a course tells the means
MEANS = "means"  # their key in the cache
NOTHING = np.zeros(1)  # stands for noise or a baseline that a world does not have


class Optimum(NamedTuple):
    """The optimal decision of a round, and the scores that it follows from."""

    scores: Array  # (*batch, n): expected payoff of each arm
    best: BoolArray  # (*batch, n): an optimal set
    lowest: Array  # (*batch,): the lowest score in it
    value: Array  # (*batch,): expected payoff of the optimal set


@dataclass(frozen=True, kw_only=True)
class SEMWorld:
    """Graph, means and change points are fixed; every round draws the rewards of all arms, played or not.

    x may have further batch axes before those of the world: all cells of a grid meet the same world. Expected payoffs
    are those of the decision, in the context of the round: the baseline is not part of them.

    A round t may be an array of rounds wherever its type is Any: their axis then comes after those of the batch.

    >>> import spillover as sp
    >>> world = sp.FixedSEM(adjacency=[[0, 0.5], [0, 0]], means=[0.5, 0.4], budget=1, horizon=20).draw(sp.Rng(0))
    >>> world.expected(1, np.array([False, True])).round(3).item()  # arm 1 moves arm 0: 0.4 * 1.5
    0.6
    """

    graphs: Array  # (*batch, graph periods, n, n): adjacency matrices
    gain: Array  # (*batch, n): diagonal of F
    levels: Array  # (*batch, periods, n): the means of each period; if smooth, the points between which they move
    budget: int
    horizon: int
    changes: tuple[int, ...]
    graph_changes: tuple[int, ...]
    smooth: bool
    law: str
    concentration: float
    noise: float
    acyclic: bool
    arms: tuple[str, ...]
    surroundings: Surroundings | None = None  # baseline, context and hidden causes, if there are any
    observes: str = "both"  # what is seen of an outcome, see `Problem`
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def repeated(self, batch: Batch) -> "SEMWorld":
        """Repeat the world for every replication of a batch."""
        graphs, gain, levels = (np.broadcast_to(v, (*batch, *v.shape)) for v in (self.graphs, self.gain, self.levels))
        around = self.surroundings.spread(batch) if self.surroundings is not None else None
        return replace(self, graphs=graphs, gain=gain, levels=levels, surroundings=around, cache={})

    @cached_property
    def spread(self) -> Array:
        """(I - A)^-1 of every graph period."""
        return np.asarray(np.linalg.inv(np.eye(self.graphs.shape[-1]) - self.graphs), float)

    @cached_property
    def columns(self) -> Array:
        """The columns of `spread`, next to each other in memory."""
        return np.ascontiguousarray(self.spread.swapaxes(-1, -2))

    @cached_property
    def total(self) -> Array:
        """(I - A)^-1 F of every graph period."""
        return self.spread * self.gain[..., None, None, :]

    @cached_property
    def weights_of_graphs(self) -> Array:
        """1'(I - A)^-1 F of every graph period."""
        return np.asarray(self.total.sum(axis=-2))

    @cached_property
    def problem(self) -> Problem:
        """The problem, as a policy knows it, without graph and means; the range of y covers all feasible decisions."""
        n, around, rewards = self.gain.shape[-1], self.surroundings, (0.0, self.largest_reward)
        if around is not None and self.observes == "both":
            rewards = reward_range(around, self.largest_reward)
        problem = Problem(n, self.budget, self.acyclic, rewards, self.overall_range(), observes=self.observes)
        if around is None:
            return problem
        return problem._replace(context=around.columns, baseline=around.has_baseline)

    def overall_range(self) -> Array:
        """Bound the outcomes y of feasible decisions, (*batch, 2)."""
        columns = np.sort(self.total, axis=-1) * self.largest_reward
        largest = columns[..., -self.budget :].sum(axis=-1)
        least = np.minimum(columns[..., : self.budget], 0.0).sum(axis=-1)  # where spill-over hurts
        if self.surroundings is not None:
            return outcome_range(self, self.surroundings, least, largest)
        return np.stack([least.min(axis=(-1, -2)), largest.max(axis=(-1, -2))], axis=-1)

    @property
    def largest_reward(self) -> float:
        """The largest reward that an arm can have."""
        return LARGEST_PARETO if self.law == "pareto" else 1.0

    @cached_property
    def ends(self) -> IntArray:
        """The first rounds of all periods, and the round after the last one."""
        return np.array((1, *self.changes, self.horizon + 1))

    def period(self, t: Any) -> Any:
        """The stationary period of round t (from 1)."""
        return self.ends[1:-1].searchsorted(t, side="right")

    def graph_period(self, t: Any) -> Any:
        return np.array(self.graph_changes, np.int64).searchsorted(t, side="right")

    def adjacency(self, t: int) -> Array:
        return self.graphs[..., self.graph_period(t), :, :]

    def to_networkx(self, t: int = 1, *, threshold: float = 0.0) -> Any:
        """The graph of round t as a `networkx.DiGraph`; of a single world, see `spillover.tabular.to_networkx`.

        >>> from spillover.environments import example_graph
        >>> example_graph().draw(Rng(0)).to_networkx().number_of_edges()
        5
        """
        from spillover.tabular import to_networkx

        return to_networkx(self.adjacency(t), self.arms, threshold=threshold)

    def weights(self, t: Any) -> Array:
        """w = 1'(I - A)^-1 F."""
        return self.weights_of_graphs[..., self.graph_period(t), :]

    def context(self, t: int) -> Array | None:
        """The context of round t, (*batch, k); None without context."""
        around = self.surroundings
        return around.context(t) if around is not None and around.columns else None

    @cached_property
    def moved_by_context(self) -> bool:
        """Whether the means depend on the context."""
        return self.surroundings is not None and self.surroundings.moves_effects

    def means(self, t: Any) -> Array:
        """The mean rewards in round t, in its context; those of the last stretch of rounds are kept."""
        if np.ndim(t) == 0 or not self.every_round_differs:
            return self.in_context(t, self.effectiveness(t))
        stretch = t.tobytes()
        if self.cache.get(MEANS, (None,))[0] != stretch:
            self.cache[MEANS] = stretch, self.in_context(t, self.effectiveness(t))
        found: Array = self.cache[MEANS][1]
        return found

    def in_context(self, t: Any, level: Array) -> Array:
        """Mean rewards in the context of round t, from those without context."""
        if not self.moved_by_context or self.surroundings is None:
            return level
        return np.clip(level + self.surroundings.added_effect(t), 0.0, 1.0)

    def effectiveness(self, t: Any) -> Array:
        """beta_t: constant in a period, or along half a cosine from one level to the next; without context."""
        k = self.period(t)
        if not self.smooth:
            same = np.ndim(t) > 0 and bool((k == k[0]).all())  # rounds of one period: they share its level
            # not by an index, which would put the rounds before the batch in memory, and kernels go through the batch
            return np.asarray(self.levels.take(k[:1] if same else k, axis=-2))
        part = (t - self.ends[k]) / (self.ends[k + 1] - self.ends[k])
        share = np.asarray((1.0 - np.cos(np.pi * part)) / 2.0)[..., None]
        return np.asarray((1.0 - share) * self.levels[..., k, :] + share * self.levels[..., k + 1, :])

    def scores(self, t: Any, as_of: Any) -> Array:
        """Expected payoff of each arm in the context of round t, with the graph and effectiveness of round `as_of`."""
        means = self.means(t) if as_of is t else self.in_context(t, self.effectiveness(as_of))
        return np.asarray(self.weights(as_of) * means)

    def best_set(self, scores: Array) -> BoolArray:
        """The feasible decision with the highest sum of scores."""
        return np.asarray(kernels.best_arms(scores, self.budget))

    @property
    def every_round_differs(self) -> bool:
        """Whether expected payoffs change from round to round, and not only from period to period."""
        return self.smooth or self.moved_by_context

    def optimum(self, t: int) -> Optimum:
        key = t if self.every_round_differs else (self.period(t), self.graph_period(t))
        if key not in self.cache:
            if self.every_round_differs:
                self.cache.clear()  # so only the last is worth keeping
            self.cache[key] = self.optimum_for(self.scores(t, t))
        found: Optimum = self.cache[key]
        return found

    def optimum_for(self, scores: Array) -> Optimum:
        best = self.best_set(scores)
        value, lowest = kernels.set_worth(scores, best)
        return Optimum(scores, best, np.asarray(lowest), np.asarray(value))

    def sum_of(self, scores: Array, x: BoolArray) -> Array:
        """The expected payoff of a decision."""
        return np.asarray(kernels.set_worth(scores, x)[0])

    def expected(self, t: int, x: BoolArray) -> Array:
        optimum = self.optimum(t)
        return optimum.value if x is optimum.best else self.sum_of(optimum.scores, x)

    def best(self, t: int) -> BoolArray:
        return self.optimum(t).best

    def best_of_rounds(self, rounds: IntArray) -> BoolArray:
        return self.best_at_once(rounds) if unchanged(self, SCORED) else best_of_each(self, rounds)

    def best_at_once(self, rounds: IntArray) -> BoolArray:
        """`best` of some rounds in one go, if each differs."""
        if not self.every_round_differs:
            return best_of_each(self, rounds)
        return self.best_set(self.scores(rounds, rounds))

    def matches(self, t: int, x: BoolArray) -> IntArray:
        return matches_with(self.optimum(t), x)

    def score_rounds(self, first: int, x: BoolArray) -> Scored:
        return self.score_at_once(first, x) if unchanged(self, SCORED) else score_each(self, first, x)

    def score_at_once(self, first: int, x: BoolArray) -> Scored:
        """`expected`, `best` and `matches` of all rounds of a period in one go, or of all rounds if each differs."""
        end = first + x.shape[-2]
        if self.every_round_differs:
            starts = [first]
        else:
            starts = sorted({first} | {t for t in (*self.changes, *self.graph_changes) if first < t < end})
        parts = []
        for start, stop in zip(starts, [*starts[1:], end], strict=True):
            rounds = np.arange(start, stop)
            if self.every_round_differs:
                optimum = self.optimum_for(self.scores(rounds, rounds))
            else:
                optimum = for_all_rounds(self.optimum(start))
            chosen = x[..., start - first : stop - first, :]
            regret, matches = kernels.score_decision(*optimum, chosen)
            possible = np.broadcast_to(optimum.best.sum(axis=-1), (*self.gain.shape[:-1], len(rounds)))
            parts.append(Scored(regret, matches, possible))
        return Scored(*(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)))

    def rewards(self, t: Any, rng: Rng) -> Array:
        """b_t: the instantaneous rewards of all arms."""
        means = self.means(t)
        if self.law == "bernoulli":
            return rng.bernoulli(means)
        if self.law == "pareto":
            below = 1.0 - LARGEST_DRAW**-TAIL
            return np.asarray(means / MEAN_DRAW * (1.0 - below * rng.uniform(means.shape[-1])) ** (-1.0 / TAIL))
        tiny = 1e-9  # a mean of 0 or 1 is a constant, not a Beta distribution
        draws = rng.beta(
            np.maximum(self.concentration * means, tiny), np.maximum(self.concentration * (1 - means), tiny)
        )
        return np.where(means <= 0, 0.0, np.where(means >= 1, 1.0, draws))

    def exogenous(self, t: Any, k: int, rng: Rng) -> Course:
        """The outcomes of round t, graph of period k, that no decision changes; or of many rounds t with that graph."""
        around, rewards, hidden = self.surroundings, self.rewards(t, rng), np.asarray(0.0)
        if around is not None and around.confounds:
            hidden = around.hidden_cause(t, rng)
            rewards = rewards + hidden
        return Course(self.total[..., k, :, :], rewards, *self.added(t, k, rng, hidden))

    def added(self, t: Any, k: int, rng: Rng, hidden: Any) -> tuple[Array, Array]:
        """Noise and baseline of round t, spread over the graph of period k; hidden: what its hidden cause adds."""
        around, noise, baseline = self.surroundings, NOTHING, NOTHING
        if self.noise > 0:
            noise = self.shocks(k, rng)
        if around is not None:
            columns = for_rounds(t, self.columns[..., k, :, :], 2)
            baseline = np.asarray(kernels.spread_over(columns, around.without_decision(t) + hidden))
        return noise, baseline

    def shocks(self, k: int, rng: Rng) -> Array:
        """The noise of the round or the rounds of the streams, spread over the graph of period k."""
        keys, call, rounds, purpose = rng.address()
        columns = self.columns[..., k, :, :]
        if rounds.ndim == 0:
            return np.asarray(kernels.spread_normals(keys, call, rounds[None], purpose, columns, self.noise))[..., 0, :]
        return np.asarray(kernels.spread_normals(keys[..., 0, :], call, rounds, purpose, columns, self.noise))

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        total, rewards, noise, baseline = self.exogenous(t, self.graph_period(t), rng)[:4]
        z, y = kernels.play(total, rewards, x)
        for added in (noise, baseline):
            if added is not NOTHING:
                y = y + added
        return observed(Outcome(z, y, self.context(t)), self.observes)

    def course(self, first: int, last: int, rng: Rng) -> Course | None:
        """Draw what rounds bring, whatever is chosen; None if a subclass has its own `play`, so that nobody can tell.

        A subclass whose own methods take arrays of rounds, too, can say `course = SEMWorld.course_at_once`; likewise
        for `score_rounds` and `best_of_rounds`.
        """
        if not unchanged(self, PLAYED):
            return None
        draw = self.course_at_once if unchanged(self, DRAWN) else self.course_by_rounds
        return draw(first, last, rng)

    def course_at_once(self, first: int, last: int, rng: Rng) -> Course:
        """`course`, from draws of all rounds at once."""
        rounds = np.arange(first, last + 1)
        own, k = rng.over(Purpose.WORLD, rounds), self.graph_period(first)
        around = self.surroundings
        hides = around is not None and around.confounds
        if self.law not in TOLD_BY_MEANS or hides or not unchanged(self, REWARDS):
            return self.exogenous(rounds, k, own)
        means = self.means(rounds)
        own.address()  # of the rewards, which are drawn when the decision is known
        noise, baseline = self.added(rounds, k, own, 0.0)
        return Course(self.total[..., k, :, :], means, noise, baseline, TOLD_BY_MEANS[self.law], self.concentration)

    def course_by_rounds(self, first: int, last: int, rng: Rng) -> Course:
        """`course`, from one draw after another."""
        k = self.graph_period(first)
        drawn = [self.exogenous(t, k, rng.at(Purpose.WORLD, t)) for t in range(first, last + 1)]
        rewards, noise, baseline = (np.stack(parts, axis=-2) for parts in list(zip(*drawn, strict=True))[1:4])
        return Course(drawn[0].total, rewards, noise, baseline)


DRAWS = ("rewards", "means", "in_context", "effectiveness", "period", "graph_period", "exogenous", "added")
SCORES = ("expected", "best", "matches", "optimum", "optimum_for", "best_set", "scores", "sum_of", "weights")
PLAYED, DRAWN = methods_of(SEMWorld, ("play",)), methods_of(SEMWorld, DRAWS)
REWARDS = methods_of(SEMWorld, ("rewards", "exogenous"))
SCORED = methods_of(SEMWorld, (*DRAWS, *SCORES))


def matches_with(optimum: Optimum, x: BoolArray) -> IntArray:
    """Count the chosen arms that belong to an optimal decision; if there are several, to the closest one."""
    return np.asarray(kernels.matches_of(optimum.scores, optimum.best, optimum.lowest, x))


def for_all_rounds(optimum: Optimum) -> Optimum:
    """An optimum with an axis for rounds that share it."""
    scores, best, lowest, value = optimum
    return Optimum(scores[..., None, :], best[..., None, :], lowest[..., None], value[..., None])


def reward_range(around: Surroundings, largest: float) -> tuple[float, float]:
    """The range of z: that of the rewards, widened by the hidden cause."""
    most = LARGEST_CAUSE * float(np.abs(around.loading).max())
    return (0.0 - most, largest + most)


def outcome_range(world: SEMWorld, around: Surroundings, least: Array, largest: Array) -> Array:
    """The range of y, (*batch, 2): of every decision, context and hidden cause, and of four deviations of noise.

    least, largest: (*batch, graph periods, n), what the rewards of feasible decisions bring to each arm.
    """
    spread, total, share = world.spread, np.sort(np.abs(world.total), axis=-1), np.abs(around.loading)
    still = (spread @ around.baseline[..., None, :, None])[..., 0]  # (*batch, graph periods, n)
    moved = spread @ around.on_baseline[..., None, :, :]  # (*batch, graph periods, n, k)
    ends = [moved * edge[..., None, None, :] for edge in (around.table.min(axis=-2), around.table.max(axis=-2))]
    cause = np.abs(spread @ around.loading[..., None, :, None])[..., 0]
    cause = cause + total[..., -world.budget :].sum(axis=-1) * share.max(axis=-1)[..., None, None]
    wide = LARGEST_CAUSE * (cause + world.noise * np.sqrt((spread**2).sum(axis=-1)))
    low = still + np.minimum(*ends).sum(axis=-1) + least - wide
    high = still + np.maximum(*ends).sum(axis=-1) + largest + wide
    return np.stack([low.min(axis=(-1, -2)), high.max(axis=(-1, -2))], axis=-1)


MANY_ARMS = 2_000  # worlds with more arms keep lists of edges: a dense one has several matrices of n * n numbers


class EdgeLists(NamedTuple):
    """Edges sorted by cause, of graphs in which every cause comes after its effects."""

    start: IntArray  # (*batch, n + 1): where the edges of each cause begin
    effect: IntArray  # (*batch, edges)
    weight: Array  # (*batch, edges)

    @property
    def n_arms(self) -> int:
        return int(self.start.shape[-1]) - 1

    def spread(self, own: Array) -> Array:
        """(I - A)^-1 times what each equation has of its own, (*batch, n)."""
        return np.asarray(kernels.spread_edges(*self, own))

    def total_effects(self) -> Array:
        """1'(I - A)^-1, (*batch, n)."""
        return np.ascontiguousarray(kernels.total_effects_and_one(*self)[..., :-1])

    def absolute(self) -> "EdgeLists":
        return self._replace(weight=np.abs(self.weight))

    def broadcast(self, batch: Batch) -> "EdgeLists":
        """Repeat the edges for every replication of a batch."""
        start, effect, weight = self
        return EdgeLists(
            np.broadcast_to(start, (*batch, *start.shape)),
            np.broadcast_to(effect, (*batch, *effect.shape)),
            np.broadcast_to(weight, (*batch, *weight.shape)),
        )

    def matrix(self) -> Any:
        """All edges as a `scipy.sparse.coo_array` (*batch, n, n); entry (i, j) is the effect of j on i."""
        from scipy.sparse import coo_array

        *batch, edges = self.effect.shape
        n = self.n_arms
        counts = np.diff(self.start.reshape(-1, n + 1), axis=-1)
        replication = np.repeat(np.arange(len(counts)), edges)
        cause = np.concatenate([np.repeat(np.arange(n), row) for row in counts])
        outer = np.unravel_index(replication, tuple(batch)) if batch else ()
        places = (*outer, self.effect.ravel(), cause)
        return coo_array((self.weight.ravel(), places), shape=(*batch, n, n))


def sorted_edges(effect: IntArray, cause: IntArray, weight: Array, n: int) -> EdgeLists:
    """Lists of edges from arrays (*batch, edges) in any order."""
    order = np.lexsort((effect, cause), axis=-1)
    effects, weights = np.take_along_axis(effect, order, axis=-1), np.take_along_axis(weight, order, axis=-1)
    *batch, edges = effect.shape
    causes = np.take_along_axis(cause, order, axis=-1).reshape(int(np.prod(batch, dtype=int)), edges)
    rows = [np.searchsorted(row, np.arange(n + 1)) for row in causes]
    return EdgeLists(np.array(rows, np.int64).reshape(*batch, n + 1), effects, weights)


def draw_pairs(rng: Rng, batch: Batch, n: int, edges: int) -> IntArray:
    """Different pairs of arms, each equally likely: (*batch, edges), effect * n + cause with effect < cause.

    Pairs are drawn until there are enough different ones; replications do not depend on each other.
    """
    rows: list[IntArray] = [np.zeros(0, np.int64)] * int(np.prod(batch, dtype=int))
    while edges and min(len(row) for row in rows) < edges:
        drawn = np.broadcast_to(np.floor(n * rng.uniform(2 * edges)), (*batch, 2 * edges)).astype(np.int64)
        one, other = drawn[..., :edges], drawn[..., edges:]
        pairs = (np.minimum(one, other) * n + np.maximum(one, other)).reshape(-1, edges)
        fits = (one != other).reshape(-1, edges)
        rows = [in_order(np.append(row, new[fit])) for row, new, fit in zip(rows, pairs, fits, strict=True)]
    return np.array([row[:edges] for row in rows], np.int64).reshape(*batch, edges)


def in_order(values: IntArray) -> IntArray:
    """Different values, in the order of their first appearance.

    >>> in_order(np.array([3, 1, 3, 2]))
    array([3, 1, 2])
    """
    return values[np.sort(np.unique(values, return_index=True)[1])]


@dataclass(frozen=True, kw_only=True)
class ManyArmsWorld(SEMWorld):
    """A round costs O(n + edges), and O(edges that it reaches) of arithmetic; `graphs` is empty.

    Its outcomes are those of a dense world with the same edges up to rounding, as sums have another order. The range of
    y that its problem states is wider: that of all arms together, as the s largest effects on each arm are not known.
    """

    edges_of_graphs: tuple[EdgeLists, ...]  # one of each graph period

    # what it overrides is the same for an array of rounds
    score_rounds, best_of_rounds = SEMWorld.score_rounds, SEMWorld.best_of_rounds

    def repeated(self, batch: Batch) -> "ManyArmsWorld":
        lists = tuple(each.broadcast(batch) for each in self.edges_of_graphs)
        return replace(cast("ManyArmsWorld", super().repeated(batch)), edges_of_graphs=lists)

    @cached_property
    def weights_of_graphs(self) -> Array:
        return np.stack([lists.total_effects() * self.gain for lists in self.edges_of_graphs], axis=-2)

    def edges(self, t: int) -> Any:
        """The graph of round t as a `scipy.sparse.coo_array`, (*batch, n, n)."""
        return self.edges_of_graphs[self.graph_period(t)].matrix()

    def adjacency(self, t: int) -> Array:
        """All n * n entries; `edges` takes no such memory."""
        return np.asarray(self.edges(t).todense(), float)

    def to_networkx(self, t: int = 1, *, threshold: float = 0.0) -> Any:
        from spillover.tabular import to_networkx

        return to_networkx(self.edges(t), self.arms, threshold=threshold)

    def overall_range(self) -> Array:
        """(*batch, 2): bounds of y, whatever is chosen; with surroundings for four deviations of noise."""
        harmful = any((lists.weight < 0).any() for lists in self.edges_of_graphs)
        own, around = self.gain * self.largest_reward, self.surroundings
        if around is not None:
            moved = (np.abs(around.on_baseline) * np.abs(around.table).max(axis=-2)[..., None, :]).sum(axis=-1)
            own = own + np.abs(around.baseline) + moved + LARGEST_CAUSE * ((1.0 + self.gain) * np.abs(around.loading))
            own = own + LARGEST_CAUSE * self.noise
        largest = np.stack([lists.absolute().spread(own).max(axis=-1) for lists in self.edges_of_graphs]).max(axis=0)
        least = -largest if harmful or around is not None else np.zeros_like(largest)
        return np.stack([least, largest], axis=-1)

    def play(self, t: int, x: BoolArray, rng: Rng) -> Outcome:
        around, n = self.surroundings, self.gain.shape[-1]
        if self.law == "bernoulli":  # draws of arms that were not chosen are never made
            chosen = np.broadcast_to(x, (*x.shape[: x.ndim - self.gain.ndim], *self.gain.shape))
            z = np.asarray(kernels.chosen_bernoulli(*rng.address(), self.means(t), chosen))
        else:
            z = np.where(x, self.rewards(t, rng), 0.0)
        hidden = around.hidden_cause(t, rng) if around is not None and around.confounds else 0.0
        if around is not None and around.confounds:
            z = np.where(x, z + hidden, 0.0)
        own = self.gain * z
        if self.noise > 0:
            own = own + self.noise * rng.normal(n)
        if around is not None:
            own = own + around.without_decision(t) + hidden
        y = self.edges_of_graphs[self.graph_period(t)].spread(own)
        return observed(Outcome(z, y, self.context(t)), self.observes)

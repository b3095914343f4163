"""The constants of a world in Theorem 1: gaps, weights, the longest path, the longest delay."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.delays import NEVER, as_delay
from spillover.environments.world import SEMWorld
from spillover.types import Array


class Gaps(NamedTuple):
    """The smallest and the largest shortfall of a suboptimal decision.

    >>> Gaps(smallest=np.array(0.1), largest=np.array(1.5)).smallest.item()
    0.1
    """

    smallest: Array  # Delta_min of each row; inf where every decision is optimal
    largest: Array  # Delta_max of each row; 0 there


class WorldConstants(NamedTuple):
    """The constants of a world that Theorem 1 uses.

    >>> constants = WorldConstants(10, 4, 5000, 3, 3, 2.5, 0.05, 3.0)
    >>> constants.horizon, constants.changes
    (5000, 3)
    """

    n_arms: int  # N
    budget: int  # s
    horizon: int  # T
    changes: int  # Upsilon_T: rounds at which a mean changes
    longest_path: int  # p: edges on the longest path of the graph
    largest_weight: float  # w_max
    smallest_gap: float  # Delta_min
    largest_gap: float  # Delta_max


def decision_gaps(scores: Any, budget: int) -> Gaps:
    """Smallest and largest shortfall of a decision of at most `budget` arms, exactly, for each row of `scores`.

    scores: (..., n), >= 0: w_i beta_i, what arm i adds to the payoff. No sets are enumerated: relative to the best
    arms, a decision exchanges some of them for others, or for nothing, which is an arm worth 0. Its shortfall is the
    sum of the shortfalls of these exchanges, none of them negative, and each exchange alone is a decision too. So the
    smallest positive shortfall is that of a single exchange, also if there are ties; the largest is that of the empty
    decision.

    >>> smallest, largest = decision_gaps([3.0, 2.0, 2.0, 0.5], budget=2)
    >>> smallest.item(), largest.item()  # 3 for 2, not the tie of 2 and 2; 3 + 2 for nothing
    (1.0, 5.0)
    """
    values = np.asarray(scores, float)
    good = values.ndim > 0 and values.size > 0 and bool((np.isfinite(values) & (values >= 0)).all())
    validate.require(good, "scores", scores, "finite numbers >= 0, one for each arm")
    validate.whole("budget", budget, 1, values.shape[-1])
    ordered = -np.sort(-values, axis=-1)
    inside = ordered[..., :budget]
    outside = np.concatenate([ordered[..., budget:], np.zeros((*values.shape[:-1], 1))], axis=-1)
    border, rival = inside[..., -1], outside[..., 0]
    above = np.min(inside, axis=-1, where=inside > rival[..., None], initial=np.inf)
    below = np.max(outside, axis=-1, where=outside < border[..., None], initial=-np.inf)
    return Gaps(np.minimum(above - rival, border - below), inside.sum(axis=-1))


def longest_path(adjacency: Any) -> int:
    """p: the number of edges on the longest path of an acyclic graph; A^p is the last power that is not 0.

    >>> longest_path([[0, 0.5, 0], [0, 0, 0.5], [0, 0, 0]])
    2
    """
    edges = np.asarray(adjacency) != 0
    square = edges.ndim == 2 and edges.shape[0] == edges.shape[1] and edges.size > 0
    validate.require(square, "shape of adjacency", edges.shape, "(n, n)")
    length = np.zeros(len(edges), np.int64)  # of the longest path found so far from each arm
    for _ in range(len(edges)):
        longer = np.max(np.where(edges, length[:, None] + 1, 0), axis=0)
        if (longer == length).all():
            return int(length.max())
        length = longer
    raise ValueError("adjacency = a graph with a cycle: must be acyclic, or paths have no largest length")


def world_constants(world: SEMWorld, replication: int | tuple[int, ...] | None = None) -> WorldConstants:
    """The constants of a drawn world; `replication` selects one world of a batch.

    Gaps are over all decisions and all rounds. The weight is the largest one of the true graph, over all arms: an upper
    bound on w_max once the graph is known, as in the proof; `record_run` measures w_max from the estimates of a run.

    >>> import spillover as sp
    >>> world_constants(sp.SyntheticSEM().draw(sp.Rng(0))).longest_path
    4
    """
    if not isinstance(world, SEMWorld):
        raise TypeError(f"world = {world!r}: must be a drawn world, such as SyntheticSEM().draw(Rng(0))")
    one = one_world(world, replication)
    check_assumptions(one)
    means = np.stack([one.means(t) for t in distinct_rounds(one)])
    scores = means * one.weights(1)
    gaps = decision_gaps(scores, one.budget)
    smallest = float(gaps.smallest.min())
    validate.require(
        smallest < np.inf,
        "scores of the world",
        scores[0],
        "above 0 for some arm in some round: every decision is optimal, so Delta_min is undefined and no regret arises",
    )
    return WorldConstants(
        n_arms=scores.shape[-1],
        budget=one.budget,
        horizon=one.horizon,
        changes=int((np.diff(means, axis=0) != 0).any(axis=-1).sum()),
        longest_path=longest_path(one.adjacency(1)),
        largest_weight=float(one.weights(1).max()),
        smallest_gap=smallest,
        largest_gap=float(gaps.largest.max()),
    )


def one_world(world: SEMWorld, replication: int | tuple[int, ...] | None) -> SEMWorld:
    """The world of one replication."""
    batch = world.levels.shape[:-2]
    place = () if replication is None else replication if isinstance(replication, tuple) else (replication,)
    inside = len(place) == len(batch) and all(0 <= k < size for k, size in zip(place, batch, strict=True))
    accepted = "None, for a world without a batch" if batch == () else f"a place in the batch {batch} of the world"
    validate.require(inside, "replication", replication, accepted)
    return replace(world, graphs=world.graphs[place], gain=world.gain[place], levels=world.levels[place], cache={})


def check_assumptions(world: SEMWorld) -> None:
    """Check the assumptions of the proof about the graph."""
    fixed = "(): Theorem 1 assumes one graph for all rounds"
    validate.require(world.graph_changes == (), "graph_changes of the world", world.graph_changes, fixed)
    exact = "0: Theorem 1 assumes that the graph is known exactly once every arm has been observed"
    validate.require(world.noise == 0, "noise of the world", world.noise, exact)
    unit = (
        "all 1: NDC-SEM weights arms by 1'(I - A)^-1, without F, and Theorem 1 assumes that these are the true weights"
    )
    validate.require(bool((world.gain == 1).all()), "gain of the world", world.gain, unit)


def distinct_rounds(world: SEMWorld) -> list[int]:
    """Rounds that cover all values of the means: the first of each period, or every round if means are smooth."""
    return list(range(1, world.horizon + 1)) if world.smooth else [1, *world.changes]


def largest_delay(delay: Any) -> int:
    """D_max (Corollary 1) of a bounded delay: a number of rounds, recorded delays, or a Delay.

    >>> import spillover as sp
    >>> largest_delay(50), largest_delay([3, 8, 5]), largest_delay(sp.UniformDelay(20, 80))
    (50, 8, 80)
    """
    bound = as_delay(delay).largest
    most = NEVER if bound is None else int(bound)
    bounded = "bounded: Corollary 1 needs a largest delay (a record of the delays that occurred has one)"
    validate.require(most < NEVER, "delay", delay, bounded)
    return most

"""What Theorem 1 wants to know of a world: gaps, weights, the longest path, the longest delay."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.delays import NEVER, ConstantDelay, LossyDelay, RecordedDelay, UniformDelay, as_delay
from spillover.environments.world import SEMWorld
from spillover.types import Array


class Gaps(NamedTuple):
    """How far decisions fall short of the best one: the least and the most, over all that fall short."""

    smallest: Array  # Delta_min of each row; inf where every decision is optimal
    largest: Array  # Delta_max of each row; 0 there


class WorldConstants(NamedTuple):
    """All that Theorem 1 uses of a world."""

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

    scores: (..., n), >= 0: w_i beta_i, what arm i adds to the payoff. No set is enumerated: against the best arms, a
    decision exchanges some of them for others, or for nothing, which is an arm worth 0. Its shortfall is the sum of
    the shortfalls of these exchanges, none negative, and each alone is a decision too. So the smallest one above 0 is
    that of a single exchange, whatever the ties; the largest is that of choosing nothing.

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
    """p: how many edges the longest path of an acyclic graph has; A^p is the last power that is not 0.

    >>> longest_path([[0, 0.5, 0], [0, 0, 0.5], [0, 0, 0]])
    2
    """
    edges = np.asarray(adjacency) != 0
    square = edges.ndim == 2 and edges.shape[0] == edges.shape[1] and edges.size > 0
    validate.require(square, "shape of adjacency", edges.shape, "(n, n)")
    length = np.zeros(len(edges), np.int64)  # of the longest path that starts at each arm, as far as found
    for _ in range(len(edges)):
        longer = np.max(np.where(edges, length[:, None] + 1, 0), axis=0)
        if (longer == length).all():
            return int(length.max())
        length = longer
    raise ValueError("adjacency = a graph with a cycle: must be acyclic: on a cycle paths have no greatest length")


def world_constants(world: SEMWorld, replication: int | tuple[int, ...] | None = None) -> WorldConstants:
    """What Theorem 1 uses of a drawn world; `replication` picks one world out of a batch.

    Gaps are over all decisions and all rounds. The weight is the largest of the true graph, over all arms: an upper
    value of w_max once the graph is known, as the proof has it; `record_run` finds the one of the estimates of a run.

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
    """The world of one learner."""
    batch = world.levels.shape[:-2]
    place = () if replication is None else replication if isinstance(replication, tuple) else (replication,)
    inside = len(place) == len(batch) and all(0 <= k < size for k, size in zip(place, batch, strict=True))
    accepted = "None, for a world without a batch" if batch == () else f"a place in the batch {batch} of the world"
    validate.require(inside, "replication", replication, accepted)
    return replace(world, graphs=world.graphs[place], gain=world.gain[place], levels=world.levels[place], cache={})


def check_assumptions(world: SEMWorld) -> None:
    """What the proof takes for granted of the graph."""
    fixed = "(): Theorem 1 takes one graph for all rounds"
    validate.require(world.graph_changes == (), "graph_changes of the world", world.graph_changes, fixed)
    exact = "0: Theorem 1 takes the graph as known exactly once every arm has been observed"
    validate.require(world.noise == 0, "noise of the world", world.noise, exact)
    plain = "all 1: NDC-SEM weighs arms by 1'(I - A)^-1, without F, and Theorem 1 takes these weights as the true ones"
    validate.require(bool((world.gain == 1).all()), "gain of the world", world.gain, plain)


def distinct_rounds(world: SEMWorld) -> list[int]:
    """Rounds in which all means occur: the first of each period, or every round where means glide."""
    return list(range(1, world.horizon + 1)) if world.smooth else [1, *world.changes]


def lossy_maximum(delay: Any) -> int:
    return NEVER if delay.loss > 0 else largest_delay(delay.delay)


LARGEST: dict[type, Callable[[Any], Any]] = {
    ConstantDelay: lambda delay: delay.rounds,
    UniformDelay: lambda delay: delay.high,
    RecordedDelay: lambda delay: np.nan_to_num(np.asarray(delay.delays, float), nan=np.inf).max(),
    LossyDelay: lossy_maximum,
}


def largest_delay(delay: Any) -> int:
    """D_max (Corollary 1) of whatever may stand for a delay: a number of rounds, a record, a bounded delay.

    >>> largest_delay(50), largest_delay([3, 8, 5]), largest_delay(UniformDelay(20, 80))
    (50, 8, 80)
    """
    bounded = "bounded: Corollary 1 needs a largest delay (a record of the delays that occurred has one)"
    law = as_delay(delay)
    validate.require(type(law) in LARGEST, "delay", delay, bounded)
    most = LARGEST[type(law)](law)
    validate.require(most < NEVER, "delay", delay, bounded)
    return int(most)

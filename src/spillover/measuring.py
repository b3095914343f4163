"""Decisions are measured as they are played: regret, payoff, optimality, and the error of the graph."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from spillover import kernels, validate
from spillover.contracts import ScoredWorld
from spillover.foresight import ForeseeableWorld, SparseWorld, score_each
from spillover.metrics import graph_mse, sparse_graph_mse
from spillover.stretches import Part
from spillover.types import Array, Batch, BoolArray, IntArray, Scored, State

Step = TypeVar("Step")


class Measures:
    """The measures of a run, filled in part by part."""

    def __init__(self, world: ScoredWorld, batch: Batch, recorded: IntArray) -> None:
        self.world = world
        # asked once: a protocol of so many members takes longer to check than a stretch to be measured
        self.sparse = world if isinstance(world, SparseWorld) else None
        self.score = scorer(world)
        self.regret, self.payoff = (np.empty((*batch, world.horizon)) for _ in range(2))
        self.matches = np.empty((*batch, world.horizon), np.int32)
        self.possible = np.empty((batch[-1], world.horizon), np.int32)
        self.error = np.full((*batch, len(recorded)), np.nan)
        self.column = {int(t): k for k, t in enumerate(recorded)}
        self.state: State = None

    def by_graph(self, recorded: Sequence[int]) -> Iterator[tuple[Array, list[int]]]:
        """The true graphs, each with the recorded rounds (by number) in which it holds."""
        starts = np.searchsorted(self.world.graph_changes, recorded, side="right")
        for start in np.unique(starts):
            which = np.flatnonzero(starts == start).tolist()
            yield self.world.adjacency(recorded[which[0]]), which

    def add(self, part: Part) -> None:
        first = part.first
        now = slice(first - 1, first - 1 + part.x.shape[-2])
        scored = self.score(first, part.x)
        self.regret[..., now], self.matches[..., now], self.possible[..., now] = scored
        kernels.payoff_of(part.y, out=self.payoff[..., now])
        for name, values in (("expected payoff", scored.regret), ("outcome", self.payoff[..., now])):
            if np.isnan(values.sum()) and np.isnan(values).any():
                last = first + part.x.shape[-2] - 1
                where = f"{name} of {type(self.world).__name__} in rounds {first} to {last}"
                validate.require(False, where, np.nan, "numbers: the world has NaN among its parameters or outcomes")
        if self.sparse is not None:
            for k, t in enumerate(part.recorded):
                self.error[..., self.column[t]] = sparse_graph_mse(part.graphs[k], self.sparse.edges(t))
        else:
            for graph, which in self.by_graph(part.recorded):
                columns = [self.column[part.recorded[k]] for k in which]
                self.error[..., columns] = graph_mse(part.graphs[..., which, :, :], graph[..., None, :, :])
        self.state = part.state


def scorer(world: ScoredWorld) -> Callable[[int, BoolArray], Scored]:
    """Measures the decisions of some rounds, at once if the world can do that."""
    return world.score_rounds if isinstance(world, ForeseeableWorld) else partial(score_each, world)


def measure(world: ScoredWorld, batch: Batch, recorded: IntArray, parts: Iterator[Part], progress: bool) -> Measures:
    """Play all parts, and measure them."""
    measured = Measures(world, batch, recorded)
    for part in with_progress(parts, world.horizon, progress, " rounds", lambda part: part.x.shape[-2]):
        measured.add(part)
    return measured


def with_progress(
    steps: Iterator[Step], total: int, progress: bool, unit: str, size: Callable[[Step], int] = lambda step: 1
) -> Iterator[Step]:
    """The same steps with a progress bar; size: how much of the total a step is.

    In a notebook it is a widget (if ipywidgets is installed); elsewhere a line on stderr, unless that is piped.
    """
    if not progress:
        yield from steps
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, unit=unit, disable=None, leave=False) as bar:
        for step in steps:
            yield step
            bar.update(size(step))

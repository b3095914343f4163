"""The size of an experiment before it runs: cells, rounds, memory. What nobody can mean is refused.

A grid with a digit too many, a horizon in seconds instead of days: without a look ahead they end in a full memory or
run for years. `any_size` (on the command line `--any-size`) runs them all the same.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from spillover import machine
from spillover.contracts import Delay, World
from spillover.environments.sizes import WorldSize
from spillover.foresight import SparseWorld
from spillover.state import leaves
from spillover.types import State

MOST_ARMS = 2_000  # of a world with several matrices of arms * arms numbers
MOST_LISTED = 1_000_000  # of a world that keeps lists of edges
MOST_CELLS = 100_000  # each is a file
MOST_ROUNDS = 2_000_000_000  # over all cells: at 0.05 ms and more each, more than a day
PROCESS = 250_000_000  # bytes of a process before it has any data
# The following were measured, and are rather too large: an estimate of 1 GB means a peak of 0.6 to 0.8 GB.
NUMBER = 8  # bytes
WORLD_MATRICES = 6  # arms * arms numbers of a world and of its drawing
PER_EDGE, PER_ARM = 14, 60  # numbers of a world that keeps lists, of its drawing and of the rounds being played
CURVES = 6  # numbers for each round of a replication: regret, payoff, matches, and their sums
WAITING = 3  # numbers for each arm of an outcome that has not arrived
STATES = 1.5  # copies of a policy's state
ANYWAY = "--any-size runs it all the same"


class Footprint(NamedTuple):
    """What one replication of a policy in a world at a delay takes."""

    rounds: int
    memory: int  # bytes


class Size(NamedTuple):
    """What an experiment or a search takes."""

    cells: int
    rounds: int  # over all cells: each plays its replications at once
    learner_rounds: int  # over all replications
    memory: int  # bytes of the largest cell

    def __str__(self) -> str:
        cells = f"{self.cells:,} cell{'s' if self.cells != 1 else ''}"
        return f"{cells}, {self.learner_rounds:,} rounds of learners"


class Part(NamedTuple):
    """Cells of the same kind."""

    cells: int
    replications: int  # over all of them
    largest: int  # replications of the largest cell
    footprint: Footprint


def footprint(world: World, delay: Delay, state: State) -> Footprint:
    """What one replication takes, from a world and a state of one replication."""
    arms, rounds = world.problem.n_arms, world.horizon
    waiting = rounds if delay.largest is None else min(delay.largest, rounds)
    learned = STATES * sum(leaf.nbytes for leaf in leaves(state).values())
    edges = int(world.edges(1).nnz) * (len(world.graph_changes) + 1) if isinstance(world, SparseWorld) else None
    numbers = world_numbers(arms, edges) + CURVES * rounds + WAITING * arms * waiting
    return Footprint(rounds, int(NUMBER * numbers + learned))


def world_numbers(arms: int, edges: int | None) -> int:
    """How many numbers the world of a replication has; edges: in all its graphs, if they are kept as lists."""
    return WORLD_MATRICES * arms**2 if edges is None else PER_EDGE * edges + PER_ARM * arms


def size_of(parts: Iterable[Part]) -> Size:
    """The size of all parts together."""
    every = list(parts)
    return Size(
        cells=sum(part.cells for part in every),
        rounds=sum(part.cells * part.footprint.rounds for part in every),
        learner_rounds=sum(part.replications * part.footprint.rounds for part in every),
        memory=PROCESS + max((part.largest * part.footprint.memory for part in every), default=0),
    )


def refuse_world(size: WorldSize | None, available: int | None) -> None:
    """Raise a ValueError for a world that is too large to be drawn."""
    if size is None:
        return
    most = MOST_ARMS if size.edges is None else MOST_LISTED
    if size.arms > most:
        raise ValueError(f"{size.arms:,} arms: must be at most {most:,} ({ANYWAY})")
    if size.rounds > MOST_ROUNDS:
        raise ValueError(f"horizon = {size.rounds}: must be at most {MOST_ROUNDS:,} rounds ({ANYWAY})")
    needed = NUMBER * world_numbers(size.arms, size.edges)
    if available is not None and needed > available:
        raise ValueError(memory_message("one world", needed, available))


def check_size(name: str, size: Size, workers: int, available: int | None) -> str:
    """The plan in a line; a ValueError if it is beyond what the machine has or anybody waits for.

    workers: processes that compute at once. available: bytes of memory for all of them; None if that is not known.
    """
    if size.cells > MOST_CELLS:
        raise ValueError(f"{name}: {size.cells:,} cells: must be at most {MOST_CELLS:,} ({ANYWAY})")
    if size.rounds > MOST_ROUNDS:
        raise ValueError(f"{name}: {size.rounds:,} rounds over all cells: must be at most {MOST_ROUNDS:,} ({ANYWAY})")
    busy = min(workers, max(size.cells, 1))
    if available is not None and busy * size.memory > available:
        fewer = " or --jobs 1" if busy > 1 else ""
        what = f"{name}: {busy} process{'es' if busy > 1 else ''}"
        needed = memory_message(what, busy * size.memory, available)
        raise ValueError(f"{needed}; fewer replications a block{fewer} help")
    return plan(name, size, busy)


def plan(name: str, size: Size, workers: int) -> str:
    """What will be computed, in a line."""
    processes = f" in {workers} processes" if workers > 1 else ""
    return f"{name}: {size}, about {machine.in_words(workers * size.memory)} of memory{processes}"


def memory_message(what: str, needed: float, available: int) -> str:
    about, there = machine.in_words(needed), machine.in_words(available)
    return f"{what} would take about {about} of memory: must be at most the {there} there is ({ANYWAY})"


def workers_of(engine: str, jobs: int | None, address: str | None) -> int:
    """How many processes an engine uses, as far as it is known: not on a cluster, whose workers come and go."""
    import joblib

    return 1 if engine == "serial" else jobs or (1 if address else int(joblib.cpu_count()))


def workers_here(engine: str, jobs: int | None, address: str | None) -> int | None:
    """How many processes of this machine an engine uses; None on a cluster."""
    return workers_of(engine, jobs, address) if address is None else None


def memory_for(address: Any) -> int | None:
    """The memory for workers: unknown on a cluster at an address."""
    return machine.memory() if address is None else None

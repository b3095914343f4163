"""Refuse work of a size that nobody can mean, and forecast how long the rest will take.

A grid with a digit too many, a horizon in seconds instead of days: without a look ahead they end in a full memory or
run for years. `any_size` (on the command line `--any-size`) runs them all the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import singledispatch
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from spillover.contracts import Delay, World, as_policy, suited
from spillover.contracts.hyperparameters import spread_grid
from spillover.contracts.world import SparseWorld
from spillover.delays import ConstantDelay
from spillover.environments.constrained import ConstrainedSEM
from spillover.environments.fixed import FixedSEM
from spillover.environments.synthetic import Instance, SyntheticSEM
from spillover.environments.world import MANY_ARMS
from spillover.experiments.engines import workers_of
from spillover.rng import Purpose, Rng
from spillover.simulation import machine
from spillover.simulation.protocol import play_rounds, problem_for
from spillover.simulation.stretches import Unforeseen, fuses, play_stretches
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

HALF = 32  # rounds of a trial that are not timed, because they load kernels, and rounds that are; a power of 2
WORTH_A_TRIAL = 20  # trials that the cells of a kind must be as long as
NO_DELAY = ConstantDelay(0)
UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))


class WorldSize(NamedTuple):
    """The size of a world."""

    arms: int
    rounds: int
    edges: int | None = None  # if they are kept as lists; otherwise there are matrices


class Footprint(NamedTuple):
    """The rounds and memory of one replication of a policy in a world at a delay."""

    rounds: int
    memory: int  # bytes


class Size(NamedTuple):
    """The size of an experiment or a search."""

    cells: int
    rounds: int  # over all cells: each plays its replications at once
    learner_rounds: int  # over all replications
    memory: int  # bytes of a process with the largest cell


class Part(NamedTuple):
    """Cells of the same kind."""

    cells: int
    replications: int  # over all of them
    largest: int  # replications of the largest cell
    footprint: Footprint


def footprint(world: World, delay: Delay, state: State) -> Footprint:
    """Estimate what one replication takes, from a world and a state of one replication."""
    arms, rounds = world.problem.n_arms, world.horizon
    waiting = rounds if delay.largest is None else min(delay.largest, rounds)
    learned = STATES * sum(leaf.nbytes for leaf in leaves(state).values())
    edges = int(world.edges(1).nnz) * (len(world.graph_changes) + 1) if isinstance(world, SparseWorld) else None
    numbers = world_numbers(arms, edges) + CURVES * rounds + WAITING * arms * waiting
    return Footprint(rounds, int(NUMBER * numbers + learned))


def world_numbers(arms: int, edges: int | None) -> int:
    """Count the numbers of a world; edges: in all its graphs, if they are kept as lists."""
    return WORLD_MATRICES * arms**2 if edges is None else PER_EDGE * edges + PER_ARM * arms


def size_of(parts: Iterable[Part]) -> Size:
    """Add up the size of all parts."""
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
    refuse_memory("one world", NUMBER * world_numbers(size.arms, size.edges), available)


def refuse_memory(what: str, needed: int, available: int | None, advice: str = "") -> None:
    """Raise a ValueError if there is less memory than needed; available: None if that is not known."""
    if available is not None and needed > available:
        about, there = machine.in_words(needed), machine.in_words(available)
        raise ValueError(
            f"{what} would take about {about} of memory: must be at most the {there} there is ({ANYWAY}){advice}"
        )


def plan(
    name: str, size: Size, any_size: bool, engine: str = "serial", jobs: int | None = None, address: str | None = None
) -> str:
    """Say in a line what will be computed; a ValueError if it is beyond what anybody waits for or the machine has."""
    if not any_size:
        if size.cells > MOST_CELLS:
            raise ValueError(f"{name}: {size.cells:,} cells: must be at most {MOST_CELLS:,} ({ANYWAY})")
        if size.rounds > MOST_ROUNDS:
            accepted = f"must be at most {MOST_ROUNDS:,} ({ANYWAY})"
            raise ValueError(f"{name}: {size.rounds:,} rounds over all cells: {accepted}")
        workers = workers_of(engine, jobs, address)
        if workers is not None:
            busy = min(workers, max(size.cells, 1))
            what, fewer = (f"{busy} processes", " or --jobs 1") if busy > 1 else ("1 process", "")
            advice = f"; fewer replications a block{fewer} help"
            refuse_memory(f"{name}: {what}", busy * size.memory, machine.memory(), advice)
    cells = f"{size.cells:,} cell{'s' if size.cells != 1 else ''}"
    return f"{name}: {cells}, {size.learner_rounds:,} rounds of learners"


def expected_seconds(
    tasks: Sequence[Any], workers: int, seconds_of: Callable[[Any], float] | None = None
) -> float | None:
    """Forecast how long some workers will take for all tasks; None if that is not worth a trial.

    A kind of tasks is a policy, a number of arms and a number of learners. One of each kind is tried; kinds with fewer
    rounds than are worth a trial are left out. seconds_of: how long a round of a task takes; by default that is tried.
    """
    examples: dict[Any, Any] = {}
    rounds: dict[Any, int] = {}
    worlds: dict[int, World] = {}
    for task in tasks:
        place = id(task.environment)
        if place not in worlds:
            worlds[place] = task.environment.draw(Rng(task.seed, [0]).at(Purpose.WORLD), (1,))
        learners = task.count * int(np.prod(spread_grid(as_policy(task.policy))[1], dtype=int))
        kind = (type(task.policy), worlds[place].problem.n_arms, learners)
        examples.setdefault(kind, task)
        rounds[kind] = rounds.get(kind, 0) + worlds[place].horizon
    long = [kind for kind in rounds if rounds[kind] >= WORTH_A_TRIAL * 2 * HALF]
    if not long:
        return None
    seconds = sum(rounds[kind] * (seconds_of or seconds_of_round)(examples[kind]) for kind in long)
    return seconds / min(workers, len(tasks))


def seconds_of_round(task: Any) -> float:
    """Try how long a round of a task takes: some rounds of all its learners, without a delay.

    Too optimistic where rounds get slower with time, and where workers share a core.
    """
    player, grid = spread_grid(as_policy(task.policy))
    rng, batch = Rng(task.seed, np.arange(task.count)), (*grid, task.count)
    world = task.environment.draw(rng.at(Purpose.WORLD), (task.count,))
    player = suited(player, world.problem, world)
    with threadpool_limits(1):  # as when it is computed
        if fuses(world, player, NO_DELAY):
            none = np.zeros(0, np.int64)
            parts = play_stretches(player, problem_for(player, world), world, NO_DELAY, rng, batch, none, HALF)
            with suppress(Unforeseen):
                return timed(part.x.shape[-2] for part in parts)
        return timed(1 for _ in play_rounds(player, world, NO_DELAY, rng, batch))


def timed(played: Iterator[int]) -> float:
    """Measure the seconds of a round; played: so many rounds at a time. The first half counts if there is no other."""
    seconds, rounds = 0.0, 0
    for _ in range(2):
        start, before = perf_counter(), rounds
        rounds = 0
        for count in played:
            rounds += count
            if rounds >= HALF - 1:  # a stretch ends at a multiple of its length, so the first is a round shorter
                break
        if rounds == 0:
            rounds = before
            break
        seconds = perf_counter() - start
    return seconds / rounds


def time_in_words(seconds: float) -> str:
    """Write a time in the unit that suits it.

    >>> [time_in_words(s) for s in (0.2, 75, 760, 9_000, 400_000)]
    ['1 s', '75 s', '13 min', '2 h', '5 days']
    """
    for name, length in UNITS:
        if seconds >= 1.5 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(seconds, 1.0):.0f} s"


@singledispatch
def world_size(environment: object) -> WorldSize | None:
    """The size of the worlds of an environment; None if only drawing one tells."""
    return None


@world_size.register
def _(environment: SyntheticSEM) -> WorldSize:
    graphs, many = len(environment.graph_changes) + 1, environment.n_arms > MANY_ARMS
    return WorldSize(environment.n_arms, environment.horizon, graphs * environment.edges if many else None)


@world_size.register
def _(environment: FixedSEM) -> WorldSize:
    n = environment.n_arms
    return WorldSize(n, environment.horizon, len(environment.edges.effect) if n > MANY_ARMS else None)


@world_size.register
def _(environment: Instance) -> WorldSize | None:
    return world_size(environment.of)


@world_size.register
def _(environment: ConstrainedSEM) -> WorldSize | None:
    return world_size(environment.environment)

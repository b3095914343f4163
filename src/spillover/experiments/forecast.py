"""Refuse work of a size that nobody can mean, and forecast how long the rest will take.

A grid with a digit too many, a horizon in seconds instead of days: without a look ahead they end in a full memory or
run for years. `any_size` (on the command line `--any-size`) runs them all the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from spillover.contracts import World, as_policy, suited
from spillover.contracts.hyperparameters import spread_grid
from spillover.delays import ConstantDelay
from spillover.formatting import count_of
from spillover.rng import Purpose, Rng
from spillover.simulation.protocol import play_rounds, problem_for
from spillover.simulation.stretches import Unforeseen, fuses, play_stretches

MOST_ARMS = 1_000_000  # of a world in a file
MOST_CELLS = 100_000  # each is a file
MOST_ROUNDS = 2_000_000_000  # over all cells: at 0.05 ms and more each, more than a day
ANYWAY = "--any-size runs it all the same"

HALF = 32  # rounds of a trial that are not timed, because they load kernels, and rounds that are; a power of 2
WORTH_A_TRIAL = 20  # trials that the cells of a kind must be as long as
NO_DELAY = ConstantDelay(0)
UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))


class Size(NamedTuple):
    """The size of an experiment or a search."""

    cells: int
    rounds: int  # over all cells: each plays its replications at once
    learner_rounds: int  # over all replications


def size_of(parts: Iterable[tuple[int, int, int]]) -> Size:
    """Add up the size of all parts: cells, replications over all of them, rounds of each."""
    cells, replications, rounds = np.array([*parts, (0, 0, 0)], object).T
    return Size(int(cells.sum()), int((cells * rounds).sum()), int((replications * rounds).sum()))


def plan(name: str, size: Size, any_size: bool) -> str:
    """Say in a line what will be computed; a ValueError if it is beyond what anybody waits for."""
    if not any_size:
        if size.cells > MOST_CELLS:
            raise ValueError(f"{name}: {size.cells:,} cells: must be at most {MOST_CELLS:,} ({ANYWAY})")
        if size.rounds > MOST_ROUNDS:
            accepted = f"must be at most {MOST_ROUNDS:,} ({ANYWAY})"
            raise ValueError(f"{name}: {size.rounds:,} rounds over all cells: {accepted}")
    return f"{name}: {count_of(size.cells, 'cell')}, {size.learner_rounds:,} rounds of learners"


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

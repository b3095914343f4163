"""How long an experiment or a search will take: a trial of each kind of cells, before the first one is computed.

The trial plays some rounds of a cell with all its replications, without a delay, so that every round is learned from
as in most of the run. It is too optimistic where rounds get slower with time, and where workers share a core.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from spillover.contracts import Environment, Policy, World, as_policy, suited
from spillover.delays import ConstantDelay
from spillover.environments.sizes import world_size
from spillover.hyperparameters import spread_grid
from spillover.rng import Purpose, Rng
from spillover.simulation.protocol import play_rounds, problem_for
from spillover.stretches import Unforeseen, fuses, play_stretches
from spillover.types import Batch

HALF = 32  # rounds of a trial that are not timed, because they load kernels, and rounds that are; a power of 2
MOST_TRIALS = 20  # the largest kinds of cells are tried, and the others are taken to be like them
WORTH_A_TRIAL = 20  # trials that a kind of cells must be as long as
NO_DELAY = ConstantDelay(0)
UNITS = (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0))


class Load(NamedTuple):
    """A cell that will be computed: a policy in newly drawn worlds, to their horizon."""

    environment: Environment
    policy: Any
    seed: int
    replications: int
    compiled: bool  # whether many rounds are played in one call, if the policy can do that


class Kind(NamedTuple):
    """Cells whose rounds take about as long."""

    policy: type
    arms: int
    learners: int


def expected_seconds(
    loads: Sequence[Load], workers: int, seconds_of: Callable[[Load], float] | None = None
) -> float | None:
    """How long so many workers will take for all cells; None if that is not worth a trial.

    seconds_of: how long a round of a cell takes; by default that is tried out.
    """
    measured = seconds_of or seconds_of_round
    examples, rounds = kinds_of(loads)
    long = sorted((kind for kind in rounds if rounds[kind] >= WORTH_A_TRIAL * 2 * HALF), key=lambda k: -work(k, rounds))
    if not long:
        return None
    tried = long[:MOST_TRIALS]
    seconds = sum(rounds[kind] * measured(examples[kind]) for kind in tried)
    share = sum(work(kind, rounds) for kind in tried) / sum(work(kind, rounds) for kind in rounds)
    return seconds / share / min(workers, len(loads))


def kinds_of(loads: Sequence[Load]) -> tuple[dict[Kind, Load], dict[Kind, int]]:
    """A cell of each kind, and the rounds of all of them."""
    examples: dict[Kind, Load] = {}
    rounds: dict[Kind, int] = {}
    sizes: dict[int, tuple[int, int]] = {}
    for load in loads:
        place = id(load.environment)
        if place not in sizes:
            sizes[place] = arms_and_rounds(load)
        arms, horizon = sizes[place]
        grid = spread_grid(as_policy(load.policy))[1]
        kind = Kind(type(load.policy), arms, load.replications * int(np.prod(grid, dtype=int)))
        examples.setdefault(kind, load)
        rounds[kind] = rounds.get(kind, 0) + horizon
    return examples, rounds


def work(kind: Kind, rounds: dict[Kind, int]) -> int:
    """Rounds of all learners, as the plan counts them."""
    return kind.learners * rounds[kind]


def arms_and_rounds(load: Load) -> tuple[int, int]:
    """The size of a cell's worlds."""
    size = world_size(load.environment)
    if size is not None:
        return size.arms, size.rounds
    world = load.environment.draw(Rng(load.seed, [0]).at(Purpose.WORLD), (1,))
    return world.problem.n_arms, world.horizon


def seconds_of_round(load: Load) -> float:
    """How long a round of a cell takes, from a trial."""
    player, grid = spread_grid(as_policy(load.policy))
    rng = Rng(load.seed, np.arange(load.replications))
    world = load.environment.draw(rng.at(Purpose.WORLD), (load.replications,))
    player, batch = suited(player.with_world(world), world.problem), (*grid, load.replications)
    with threadpool_limits(1):  # as when it is computed
        if load.compiled:
            with suppress(Unforeseen):
                return seconds_in_stretches(player, world, rng, batch)
        return seconds_one_by_one(player, world, rng, batch)


def seconds_in_stretches(player: Policy, world: World, rng: Rng, batch: Batch) -> float:
    """By the compiled form of the policy; raises `Unforeseen` if there is none."""
    if not fuses(world, player, NO_DELAY):
        raise Unforeseen
    none = np.zeros(0, np.int64)
    parts = play_stretches(player, problem_for(player, world), world, NO_DELAY, rng, batch, none, HALF)
    return timed(part.x.shape[-2] for part in parts)


def seconds_one_by_one(player: Policy, world: World, rng: Rng, batch: Batch) -> float:
    return timed(1 for _ in play_rounds(player, world, NO_DELAY, rng, batch))


def timed(played: Iterator[int]) -> float:
    """Seconds for a round; played: so many rounds at a time. The first half is timed only if there is no other."""
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
    """A time in the unit that suits it.

    >>> [time_in_words(s) for s in (0.2, 75, 760, 9_000, 400_000)]
    ['1 s', '75 s', '13 min', '2 h', '5 days']
    """
    for name, length in UNITS:
        if seconds >= 1.5 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(seconds, 1.0):.0f} s"

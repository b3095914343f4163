"""Compute what a store holds: the cells of experiments, and the blocks of searches."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from spillover.contracts import Delay, Environment, World, as_policy, suited
from spillover.contracts.hyperparameters import spread_grid
from spillover.delays import as_delay
from spillover.environments.many_arms import MANY_ARMS
from spillover.experiments.fingerprint import source_digest
from spillover.measuring import scorer
from spillover.rng import Purpose, Rng
from spillover.simulation import Run, simulate
from spillover.simulation.replications import from_parts
from spillover.stretches import Part
from spillover.types import Array, IntArray

NO_GRAPHS = np.empty(0, np.int64)  # rounds in which they are recorded


class Failed(RuntimeError):
    """A cell or block that could not be computed."""


class Computed(NamedTuple):
    """The result of a task."""

    arrays: dict[str, Any]
    about: dict[str, Any]  # for JSON


@dataclass(frozen=True)
class CellTask:
    """One policy in one environment at one delay, for replications first to first + count - 1."""

    environment: Environment
    delay: Delay
    policy: Any
    seed: int
    record: int
    first: int
    count: int

    def compute(self) -> Computed:
        """Simulate, and return what the store holds."""
        start = perf_counter()
        with threadpool_limits(1):  # the matrices are too small for several threads
            world = self.environment.draw(Rng(self.seed, [self.first]).at(Purpose.WORLD), (1,))
            rounds = recorded_rounds(self.record, world.horizon)
            run = simulate(
                self.policy,
                self.environment,
                self.delay,
                replications=self.count,
                seed=self.seed,
                first=self.first,
                record=rounds.tolist(),
                threads=1,  # workers share the cores
            )
        arrays = {
            "rounds": rounds,
            "replications": np.arange(self.first, self.first + self.count),
            "regret": run.regret[:, rounds - 1],
            "payoff": np.cumsum(run.payoff, axis=-1)[:, rounds - 1],
            "optimality_ratio": run.optimality_ratio,
            "graph_error": run.graph_error,
            "blind_regret": blind_regret(run, self.delay, world),
            "adjacency": final_graph(run.adjacency, self.count, world.problem.n_arms),
        }
        about = {
            "horizon": world.horizon,
            "changes": [int(t) for t in run.changes],
            "arms": list(world.arms),
            "seconds": perf_counter() - start,
            "versions": versions(),
        }
        return Computed({name: np.ascontiguousarray(array) for name, array in arrays.items()}, about)


@dataclass(frozen=True)
class BlockTask:
    """Some cells of a grid, for replications first to first + count - 1."""

    environment: Environment
    delay: Delay
    policy: Any  # its hyperparameters are arrays, (cells,)
    seed: int
    first: int
    count: int

    def compute(self) -> Computed:
        """Play, and return the final regret, (cells, replications)."""
        rng = Rng(self.seed, np.arange(self.first, self.first + self.count))
        return Computed({"regret": final_regret(self.policy, self.environment, self.delay, rng)}, {})


class Job(NamedTuple):
    """A task for a worker."""

    name: str  # in the store
    label: str  # in messages
    task: CellTask | BlockTask
    source: str  # the hash of its source code


def compute_job(job: Job) -> tuple[Job, Computed, dict[str, str]]:
    """Compute a task in a worker, which must have the same source code as the process that named the result.

    Returns the versions of the worker, too.
    """
    if source_digest(job.task) != job.source:
        raise Failed(f"{job.label}: the worker has another version of spillover than this process; install the same")
    try:
        return job, job.task.compute(), versions()
    except Exception as error:
        raise Failed(f"{job.label}: {type(error).__name__}: {error}") from error


def final_graph(adjacency: Any, count: int, n: int) -> Array:
    """Select the estimates to be kept, (replications, n, n): NaN without a graph, none of them if arms are many."""
    if n > MANY_ARMS:
        return np.empty((count, 0, 0))
    return np.full((count, n, n), np.nan) if adjacency is None else np.asarray(adjacency)


def recorded_rounds(every: int, horizon: int) -> IntArray:
    """List the multiples of `every`, and the last round.

    >>> recorded_rounds(50, 120)
    array([ 50, 100, 120])
    """
    return np.unique(np.append(np.arange(every, horizon + 1, every), horizon))


def blind_regret(run: Run, delay: Delay, world: World) -> Array:
    """Sum the regret of rounds 1 to D + 1, which are decided without feedback; NaN if the delay is not constant."""
    if delay.constant is None:
        return np.full(len(run.regret), np.nan)
    return run.blind_regret(min(delay.constant + 1, world.horizon))


def final_regret(policy: Any, environment: Environment, delay: Any, rng: Rng) -> Array:
    """Play to the end, and return the regret, (*grid, replications), without storing earlier rounds."""
    replications = rng.keys.shape[:-1]
    world = environment.draw(rng.at(Purpose.WORLD), replications)
    player, grid = spread_grid(as_policy(policy))
    player, late = suited(player.with_world(world), world.problem), as_delay(delay)
    late.check_reach(world.horizon, int(rng.keys[..., 1].max(initial=0)) + 1)
    batch, score = (*grid, *replications), scorer(world)

    def added(parts: Iterator[Part]) -> Array:
        regret = np.zeros(batch)
        for part in parts:
            each = score(part.first, part.x).regret
            # one after another, so that the sum does not depend on how many rounds a part has
            regret = np.cumsum(np.concatenate([regret[..., None], each], axis=-1), axis=-1)[..., -1]
        return regret

    return from_parts(added, player, world, late, rng, batch, NO_GRAPHS)


def versions() -> dict[str, str]:
    """List the versions of everything besides the package's source that results can depend on."""
    return {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}

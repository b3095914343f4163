"""Computes the cells of an experiment."""

import platform
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from spillover.contracts import Delay, Environment, World
from spillover.environments.edges import MANY_ARMS
from spillover.rng import Purpose, Rng
from spillover.simulation import Run, simulate
from spillover.types import Array, IntArray


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


class Computed(NamedTuple):
    """The result of a task."""

    arrays: dict[str, Any]
    about: dict[str, Any]  # for JSON


def compute(task: CellTask) -> Computed:
    """Simulate, and return what the store holds."""
    start = perf_counter()
    with threadpool_limits(1):  # the matrices are too small for several threads
        world = task.environment.draw(Rng(task.seed, [task.first]).at(Purpose.WORLD), (1,))
        rounds = recorded_rounds(task.record, world.horizon)
        run = simulate(
            task.policy,
            task.environment,
            task.delay,
            replications=task.count,
            seed=task.seed,
            first=task.first,
            record=rounds.tolist(),
            threads=1,  # workers share the cores
        )
    n = world.problem.n_arms
    arrays = {
        "rounds": rounds,
        "replications": np.arange(task.first, task.first + task.count),
        "regret": run.regret[:, rounds - 1],
        "payoff": np.cumsum(run.payoff, axis=-1)[:, rounds - 1],
        "optimality_ratio": run.optimality_ratio,
        "graph_error": run.graph_error,
        "blind_regret": blind_regret(run, task.delay, world),
        "adjacency": final_graph(run.adjacency, task.count, n),
    }
    about = {
        "horizon": world.horizon,
        "changes": [int(t) for t in run.changes],
        "arms": list(world.arms),
        "seconds": perf_counter() - start,
        "versions": versions(),
    }
    return Computed({name: np.ascontiguousarray(array) for name, array in arrays.items()}, about)


def final_graph(adjacency: Any, count: int, n: int) -> Array:
    """The estimates to be kept, (replications, n, n): NaN without a graph, none of them if there are many arms."""
    if n > MANY_ARMS:
        return np.empty((count, 0, 0))
    return np.full((count, n, n), np.nan) if adjacency is None else np.asarray(adjacency)


def recorded_rounds(every: int, horizon: int) -> IntArray:
    """Multiples of `every`, and the last round.

    >>> recorded_rounds(50, 120)
    array([ 50, 100, 120])
    """
    return np.unique(np.append(np.arange(every, horizon + 1, every), horizon))


def blind_regret(run: Run, delay: Delay, world: World) -> Array:
    """Regret of rounds 1 to D + 1, which are decided without feedback; NaN if the delay is not constant."""
    if delay.constant is None:
        return np.full(len(run.regret), np.nan)
    return run.blind_regret(min(delay.constant + 1, world.horizon))


def versions() -> dict[str, str]:
    """Versions of everything besides the package's source that results can depend on."""
    return {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}

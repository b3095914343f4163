"""Compute what a store holds: cells of experiments and blocks of searches, named by the hash of their description."""

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from spillover.contracts import Delay, Environment, World, as_policy, suited
from spillover.contracts.hyperparameters import spread_grid
from spillover.delays import as_delay
from spillover.environments.world import MANY_ARMS
from spillover.rng import Purpose, Rng
from spillover.simulation import Run, simulate
from spillover.simulation.replications import from_parts, scorer
from spillover.simulation.stretches import Part
from spillover.tabular import table_of
from spillover.types import Array, IntArray

PACKAGE = Path(__file__).parents[1]
# Modules and folders that nothing here may import (`.importlinter`), so that no result depends on them. Whatever is not
# listed counts, a new folder too.
APART = {
    "__init__", "__main__", "assessment", "cli", "client", "dashboard", "evaluation", "figures", "history",
    "http", "interop", "recommendation", "report", "service", "studies", "study", "testing", "views",
}  # fmt: skip


def describe(value: Any) -> Any:
    """Describe a value for JSON: a dataclass becomes a table with the name of its class and all fields, also defaults.

    >>> from spillover import ConstantDelay
    >>> describe(ConstantDelay(50))
    {'class': 'ConstantDelay', 'rounds': 50}
    """
    named = named_fields(value)
    if named is not None:
        title = {"class": type(value).__name__} if is_dataclass(value) else {}
        return title | {name: describe(item) for name, item in named.items()}
    table = table_of("table", value)
    if table is not None:
        rows = list(range(len(table.columns[0]))) if table.labels is None else table.labels
        return describe({"columns": table.names, "index": rows, "values": table.matrix("table")})
    if isinstance(value, np.ndarray | np.generic):
        return describe(value.tolist())
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, dict):
        return {str(name): describe(item) for name, item in value.items()}
    return describe_scalar(value)


def describe_scalar(value: Any) -> Any:
    """Describe a scalar for JSON, which has no infinities and no NaN; 1 and 1.0 are the same parameter."""
    if isinstance(value, float):
        if not np.isfinite(value):
            return repr(value)
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, str | bool | int):
        return value
    raise TypeError(f"parameter = {value!r}: must be a number, text, a list, a table or a dataclass of them")


def named_fields(value: Any) -> dict[str, Any] | None:
    """List the fields of a dataclass or of a NamedTuple by name; None for any other value."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    return None


def digest(value: Any) -> str:
    """Hash the canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def source_digest(*values: Any, files: Iterable[Path] = ()) -> str:
    """Hash the source code that results computed from some values can depend on.

    That is everything in the package that computes, the given files, and the file of every other class inside of the
    values, such as a policy of your own, and of its base classes.
    """
    classes = {base for value in values for found in classes_in(value) for base in found.__mro__}
    own = {path for each in classes if (path := own_file(each)) is not None}
    return digest([package_digest(), *sorted(file_digest(path) for path in {*own, *files})])


@cache
def package_digest() -> str:
    """Hash the package's files that compute, as they were on the first call in this process."""
    return digest({path.relative_to(PACKAGE).as_posix(): file_digest(path) for path in computing_files()})


def computing_files(root: Path = PACKAGE) -> list[Path]:
    """List the package's files that results can depend on: all but those that show, serve or explain them."""
    return [path for path in sorted(root.rglob("*.py")) if computes(path, root)]


def computes(path: Path, root: Path = PACKAGE) -> bool:
    """Whether a file is one of the package's that results can depend on."""
    return path.is_relative_to(root) and Path(path.relative_to(root).parts[0]).stem not in APART


def own_file(kind: type) -> Path | None:
    """Find the file of a class that is neither Python's own nor among the files that count anyway."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)  # None for a class from the prompt
    if file is None or kind.__module__.split(".")[0] in sys.stdlib_module_names:
        return None
    return None if computes(Path(file)) else Path(file)


def classes_in(value: Any) -> Iterator[type]:
    """Yield the classes of a value and of everything that `describe` finds inside of it."""
    named = named_fields(value)
    if named is not None:
        yield type(value)
    inside = value if named is None else named
    items: Iterable[Any] = inside.values() if isinstance(inside, dict) else inside
    for item in items if isinstance(inside, dict | list | tuple) else ():
        yield from classes_in(item)


@cache
def file_digest(path: Path) -> str:
    """Hash a file, as it was on the first call in this process."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
    player, late = suited(player, world.problem, world), as_delay(delay)
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

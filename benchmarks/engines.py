"""What engines cost: seconds for a cell besides its computing, memory of the process that collects, and 1,000 cores.

Cells are as small as they get (one learner, some rounds), so that the cost of each is seen: what remains of the time
of a run when that of computing is taken off, from the difference between a long and a short run, which leaves out the
start of the workers. One worker, so that no worker waits for a processor.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.local_clusters import alone, can_be_alone, dask_cluster
from spillover.experiments import Experiment, parse_experiment, run_experiment
from spillover.experiments.compute import compute
from spillover.experiments.group_work import CellJob, write_cell
from spillover.experiments.run import find_missing, open_store
from spillover.experiments.specification import Cell
from spillover.store import CellStore

SHORT, LONG = 100, 500  # cells
GROUPED, ALONE = "grouped", "one by one"
TEXT = """
name = "engines"
block = {block}
record = {horizon}
replications = {replications}
[worlds.fresh]
kind = "synthetic"
horizon = {horizon}
changes = []
[delays.5]
kind = "constant"
rounds = 5
[policies.{policy}]
"""


def small_cells(cells: int, horizon: int = 40) -> Experiment:
    """So many cells of one learner each."""
    return parse_experiment(TEXT.format(block=1, horizon=horizon, replications=cells, policy="ndc-sem"))


class Times(NamedTuple):
    """Of a run."""

    wall: float
    computing: float  # the sum over the cells


def timed(cells: int, engine: str, address: str | None) -> Times:
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        found = run_experiment(small_cells(cells), folder, engine=engine, jobs=1, address=address, progress=False)
        wall = perf_counter() - start
        return Times(wall, sum(record.seconds for record in found))


class Cost(NamedTuple):
    """Milliseconds a cell."""

    besides: float
    computing: float

    @property
    def share(self) -> float:
        return self.besides / (self.besides + self.computing)


def cost(engine: str, address: str | None = None) -> Cost:
    """What a cell costs besides computing, from a long and a short run; the best of three."""
    timed(SHORT, engine, address)  # kernels
    found = []
    for _ in range(3):
        short, long = timed(SHORT, engine, address), timed(LONG, engine, address)
        computing = (long.computing - short.computing) / (LONG - SHORT)
        found.append(Cost(1e3 * ((long.wall - short.wall) / (LONG - SHORT) - computing), 1e3 * computing))
    return min(found)


@contextmanager
def one_by_one() -> Iterator[None]:
    """Without grouping, as it was before there was any."""
    with patch("spillover.experiments.grouping.group_seconds", return_value=0.0):
        yield


def costs(engine: str, address: str | None = None) -> dict[str, Cost]:
    """One by one and grouped."""
    with one_by_one():
        single = cost(engine, address)
    return {ALONE: single, GROUPED: cost(engine, address)}


RAY = """
import json, sys, tempfile
from pathlib import Path
from benchmarks.engines import costs
from benchmarks.local_clusters import start_ray_head
with tempfile.TemporaryDirectory() as folder:
    print(json.dumps(costs("ray", start_ray_head(Path(folder), 1))))
"""


def all_costs() -> dict[str, dict[str, Cost]]:
    found = {"serial": {ALONE: cost("serial")}, "loky": costs("loky")}
    with tempfile.TemporaryDirectory() as folder, dask_cluster(Path(folder), workers=1) as cluster:
        found["dask"] = costs("dask", cluster.address)
    if can_be_alone():
        done = alone(RAY)
        if done.returncode:
            raise RuntimeError(done.stderr)
        found["ray"] = {name: Cost(*value) for name, value in json.loads(done.stdout.splitlines()[-1]).items()}
    return found


def seconds_each(action: Callable[[Cell], object], cells: list[Cell]) -> float:
    """Processor and waiting time of an action for a cell."""
    start = perf_counter()
    for cell in cells:
        action(cell)
    return (perf_counter() - start) / len(cells)


class Client(NamedTuple):
    """Milliseconds a cell in the process that starts a run."""

    entering: float
    resuming: float
    writing: float


def client_costs(cells: int = 1000) -> Client:
    with tempfile.TemporaryDirectory() as folder:
        experiment, store = small_cells(cells), CellStore(folder)
        start = perf_counter()
        listed = experiment.cells()
        open_store(store, experiment, listed)
        entering = (perf_counter() - start) / cells
        computed = compute(listed[0].task)
        writing = seconds_each(lambda cell: write_cell(store, CellJob.of(cell), computed), listed)
        start = perf_counter()
        find_missing(store, listed)
        resuming = (perf_counter() - start) / cells
    return Client(1e3 * entering, 1e3 * resuming, 1e3 * writing)


MEMORY = """
import resource, sys, tempfile
from benchmarks.engines import small_cells
from spillover.experiments import run, run_experiment
if sys.argv[2] == "sent back":
    run.check_workers = lambda *given: False
for cells in (100, int(sys.argv[1])):
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(small_cells(cells, 10), folder, engine="loky", jobs=1, progress=False)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""

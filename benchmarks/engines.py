"""Measure what engines cost: time besides computing, memory of the process that collects, and 1,000 cores.

Cells are as small as they get (one learner, some rounds), so that the cost of each is seen.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from benchmarks.local_clusters import alone, can_be_alone, dask_cluster
from spillover.experiments import Experiment, parse_experiment, run_experiment
from spillover.experiments.engines import results, start_engine
from spillover.experiments.run import find_missing, open_store
from spillover.experiments.store import CellStore
from spillover.studies import load_experiment

CELLS = 200
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


class Cost(NamedTuple):
    """Milliseconds a cell."""

    besides: float  # scheduling and storing
    computing: float


def cost(engine: str, address: str | None = None) -> Cost:
    """Measure what a cell costs with one worker, whose first cell is not counted."""
    jobs = None if address else 1  # a cluster has one worker
    marks: list[float] = []
    with tempfile.TemporaryDirectory() as folder, start_engine(engine, jobs, address) as pool:
        list(results(pool, abs, [1]))
        marks.append(perf_counter())
        found = run_experiment(small_cells(CELLS), folder, engine=engine, jobs=jobs, address=address, progress=False)
        marks.append(perf_counter())
        computing = sum(record.seconds for record in found)
    return Cost(*(1e3 * seconds / CELLS for seconds in (marks[1] - marks[0] - computing, computing)))


RAY = """
import json, sys, tempfile
from pathlib import Path
from benchmarks.engines import cost
from benchmarks.local_clusters import start_ray_head
with tempfile.TemporaryDirectory() as folder:
    print(json.dumps(cost("ray", start_ray_head(Path(folder), 1))))
"""


def all_costs() -> dict[str, Cost]:
    found = {"serial": cost("serial"), "loky": cost("loky")}
    with tempfile.TemporaryDirectory() as folder, dask_cluster(Path(folder), workers=1) as cluster:
        found["dask"] = cost("dask", cluster.address)
    if can_be_alone():
        done = alone(RAY)
        if done.returncode:
            raise RuntimeError(done.stderr)
        found["ray"] = Cost(*json.loads(done.stdout.splitlines()[-1]))
    return found


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
        arrays, about = listed[0].task.compute()
        start = perf_counter()
        for cell in listed:
            store.write(cell.id, arrays, about)
        writing = (perf_counter() - start) / cells
        start = perf_counter()
        find_missing(store, listed, print)
        resuming = (perf_counter() - start) / cells
    return Client(1e3 * entering, 1e3 * resuming, 1e3 * writing)


MEMORY = """
import resource, sys, tempfile
from benchmarks.engines import small_cells
from spillover.experiments import run_experiment
for cells in (100, int(sys.argv[1])):
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(small_cells(cells, 10), folder, engine="loky", jobs=1, progress=False)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peaks(cells: int) -> tuple[float, float]:
    """The largest memory, in MB, of a process that collects 100 cells, and of one that collects many."""
    done = subprocess.run([sys.executable, "-c", MEMORY, str(cells)], capture_output=True, text=True, check=True)
    few, many = (float(line) for line in done.stdout.split())
    return few, many


def core_seconds(policy: str, learners: int = 100) -> float:
    """Processor seconds of a learner in the paper's setting (10 arms, 5,000 rounds), in cells of 100."""
    experiment = load_experiment("synthetic").changed(worlds=["fresh"], delays=["50"], replications=learners)
    entry = replace(experiment.policies["ndc-sem"], kind=policy, parameters={}, at={})
    task = replace(experiment.cells()[0].task, policy=entry.policy("50"), count=learners)
    replace(task, count=2).compute()  # kernels
    start = process_time()
    task.compute()
    return (process_time() - start) / learners


def print_costs(found: dict[str, Cost]) -> None:
    print("ms a cell of 40 rounds of one learner, with one worker:")
    for engine, cost in found.items():
        print(f"  {engine:6} scheduling and storing {cost.besides:.1f}, computing {cost.computing:.1f}")


CORES, LEARNERS, BLOCK = 1000, 1_000_000, 100


def print_large(client: Client, dispatch: float) -> None:
    """The arithmetic for a large cluster, from what was measured."""
    cells = LEARNERS // BLOCK
    print(f"{LEARNERS:,} learners of 5,000 rounds on {CORES:,} cores, {cells:,} cells of {BLOCK}, by arithmetic:")
    for policy in ("ndc-sem", "switching-sem"):
        each = core_seconds(policy)
        print(f"  {policy}: {each * LEARNERS:,.0f} core-seconds, {each * LEARNERS / CORES:,.0f} s of computing")
    print(f"  entering {cells * client.entering / 1e3:.1f} s, resuming {cells * client.resuming / 1e3:.1f} s (serial)")
    print(f"  writing {cells * client.writing / 1e3:.1f} s, by the process that starts the run")
    print(f"  a scheduler that takes {dispatch * 1e3:.1f} ms for a call: {cells * dispatch:.0f} s")


def dask_dispatch(calls: int = 1000) -> float:
    """Seconds that a Dask client, scheduler and worker take for a call that does nothing."""
    with (
        tempfile.TemporaryDirectory() as folder,
        dask_cluster(Path(folder), workers=1) as cluster,
        start_engine("dask", None, cluster.address) as pool,
    ):
        list(results(pool, abs, range(100)))
        start = perf_counter()
        list(results(pool, abs, range(calls)))
        return (perf_counter() - start) / calls


def main() -> None:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print_costs(all_costs())


def large() -> None:
    """What limits a large run, and the arithmetic for it."""
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    client = client_costs()
    print(
        f"the process that starts a run, ms a cell: entering {client.entering:.2f}, "
        f"resuming {client.resuming:.2f}, writing {client.writing:.2f}"
    )
    print_large(client, dask_dispatch())


def memory() -> None:
    """The memory of the process that starts a run."""
    few, many = peaks(10_000)
    print(f"MB at most: {few:.0f} with 100 cells, {many:.0f} with 10,000")


if __name__ == "__main__":
    main()

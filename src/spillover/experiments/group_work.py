"""What a worker does with a group of cells.

If it sees the store, it writes them there itself: then the process that started the run is no bottleneck, and never
holds a result. Otherwise it sends them back.
"""

import os
from pathlib import Path
from typing import NamedTuple

from spillover.experiments.compute import CellTask, Computed, compute
from spillover.experiments.fingerprint import describe, source_digest
from spillover.experiments.specification import Cell
from spillover.store import CellStore, Damaged


class Failed(RuntimeError):
    """A cell that could not be computed."""


class CellJob(NamedTuple):
    """A cell for a worker."""

    cell: str  # its id
    name: str
    task: CellTask
    source: str  # the hash of its source code

    @classmethod
    def of(cls, cell: Cell) -> "CellJob":
        return cls(cell.id, str(cell), cell.task, cell.source)


class Work(NamedTuple):
    """A group of cells for a worker."""

    folder: Path  # of the store
    session: str | None  # the file that the run keeps among the claims while it lasts; None: send all results back
    jobs: list[CellJob]


class Outcome(NamedTuple):
    """What became of a cell: `stored` by the worker, `computed` to be stored, an `error`, or none of these.

    None of these: another process computes it, or the run is over.
    """

    cell: str
    seconds: float = 0.0
    stored: bool = False
    computed: Computed | None = None
    error: Failed | None = None


def compute_group(work: Work) -> list[Outcome]:
    """Compute cells one by one, up to the first that fails, and store them if the store is here."""
    store, outcomes = CellStore(work.folder), list[Outcome]()
    here = work.session is not None and sees_store(store, work.session)
    for job in work.jobs:
        if here and not sees_store(store, str(work.session)):  # the run was stopped
            break
        try:
            outcomes.append(compute_and_store(store, job) if here else compute_cell(job))
        except Failed as error:
            outcomes.append(Outcome(job.cell, error=error))
            break
    return outcomes


def sees_store(store: CellStore, session: str) -> bool:
    """Whether the folder in this place is the one of the run, and may be written to."""
    writable = all(os.access(folder, os.W_OK) for folder in (store.cells, store.claims))
    return writable and (store.claims / session).exists()


def compute_and_store(store: CellStore, job: CellJob) -> Outcome:
    """Compute and store a cell, unless another process does or did."""
    if not store.claim(job.cell):
        return Outcome(job.cell)
    try:
        if is_whole(store, job.cell):
            return Outcome(job.cell, stored=True)
        done = compute_cell(job)
        if done.computed is not None:
            write_cell(store, job, done.computed)
        return done._replace(stored=True, computed=None)
    finally:
        store.release(job.cell)


def compute_cell(job: CellJob) -> Outcome:
    """Compute a cell in a worker, which must have the same source code as the process that made the cell's id."""
    if source_digest(job.task) != job.source:
        raise Failed(f"{job.name}: the worker has another version of spillover than this process; install the same")
    try:
        computed = compute(job.task)
    except Exception as error:
        raise Failed(f"{job.name}: {type(error).__name__}: {error}") from error
    return Outcome(job.cell, seconds=computed.about["seconds"], computed=computed)


def write_cell(store: CellStore, job: CellJob, computed: Computed) -> None:
    """Write a cell with what it depends on."""
    store.write(job.cell, computed.arrays, computed.about | {"source": job.source, "description": describe(job.task)})


def is_whole(store: CellStore, cell: str) -> bool:
    """Whether a cell exists and is not damaged."""
    try:
        store.read(cell)
    except (FileNotFoundError, Damaged):
        return False
    return True

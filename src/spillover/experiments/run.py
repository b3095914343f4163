"""Computes the missing cells of an experiment, and stores each as soon as it is ready."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

from spillover.experiments.compute import CellTask, Computed, compute
from spillover.experiments.engines import Mapping, start_engine
from spillover.experiments.fingerprint import source_digest
from spillover.experiments.parse import parse_experiment
from spillover.experiments.results import Results, about_experiment
from spillover.experiments.specification import Cell, Experiment
from spillover.store import CellStore, Damaged

SECONDS_BETWEEN_LOOKS = 0.2  # for cells that another process computes


class CellJob(NamedTuple):
    """A cell for a worker."""

    cell: str  # its id
    name: str
    task: CellTask
    source: str


class Failed(RuntimeError):
    """A cell that could not be computed."""


def do_nothing() -> None:
    """For those who need no notice."""


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    engine: str = "serial",
    jobs: int | None = None,
    address: str | None = None,
    progress: bool = True,
    begin: Callable[[], None] = do_nothing,
) -> Results:
    """Compute the cells of an experiment that a folder does not have yet.

    engine: "serial" (this process), "loky" (processes of this machine), "dask" or "ray". jobs: number of workers
    (default: the cores). address: of a running Dask or Ray cluster. progress: a bar on stderr, unless piped. begin:
    called before the first cell is computed, if there is one.
    A run can be interrupted at any time and continued later, and several processes can work on one folder.
    """
    store, cells = CellStore(folder), experiment.cells()
    open_store(store, experiment, cells)
    missing = find_missing(store, cells)
    if missing:
        total = sum(cell.count for cell in unique(cells).values())
        with progress_bar(total, missing, progress) as shown:
            try:
                with start_engine(engine, jobs, address) as mapping:
                    begin()
                    run_cells(store, missing, mapping, shown)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(interruption_message(store, cells)) from None
            finally:
                store.release_all()
    return Results(experiment, store, [store_entry(cell) for cell in cells])


def open_store(store: CellStore, experiment: Experiment, cells: list[Cell]) -> None:
    """Open the store for this experiment; raises a ValueError if it belongs to another one."""
    about = about_experiment(store)
    if about is not None and about["name"] != experiment.name:
        raise ValueError(
            f"folder = {str(store.folder)!r}: must be a new one, or that of {experiment.name!r}; "
            f"it holds the experiment {about['name']!r}"
        )
    again = parse_experiment(experiment.text, experiment.name, any_size=True).changed(**experiment.changes)
    if [store_entry(cell) for cell in again.cells()] != [store_entry(cell) for cell in cells]:
        raise ValueError(
            f"experiment = {experiment.name!r}: must come from load_experiment or parse_experiment and be changed only "
            "by changed(), because the store keeps its text"
        )
    about = {
        "name": experiment.name,
        "text": experiment.text,
        "changes": experiment.changes,
        "study": experiment.study,
        "cells": [store_entry(cell) for cell in cells],
    }
    store.open(about, experiment.text)


def store_entry(cell: Cell) -> dict[str, Any]:
    """A cell as `store.json` lists it."""
    return {name: getattr(cell, name) for name in ("world", "delay", "policy", "first", "count", "id")}


def unique(cells: list[Cell]) -> dict[str, Cell]:
    """The cells by id: policies with the same parameters share cells."""
    return {cell.id: cell for cell in cells}


def is_whole(store: CellStore, cell: str) -> bool:
    """Whether a cell exists and is not damaged."""
    try:
        store.read(cell)
    except (FileNotFoundError, Damaged):
        return False
    return True


def find_missing(store: CellStore, cells: list[Cell]) -> dict[str, Cell]:
    """The cells to compute; warns about damaged ones."""
    missing = {}
    for name, cell in unique(cells).items():
        try:
            store.read(name)
        except FileNotFoundError:
            missing[name] = cell
        except Damaged as error:
            warnings.warn(f"{error}; {cell} is computed again", stacklevel=3)
            missing[name] = cell
    return missing


def run_cells(store: CellStore, missing: dict[str, Cell], mapping: Mapping, shown: Any) -> None:
    """Compute the cells that no other process has claimed, then wait for the others, which may turn out to be dead."""
    left = dict(missing)
    while left:
        claimed = claim_jobs(store, left)
        first = next(claimed, None)
        if first is None:
            sleep(SECONDS_BETWEEN_LOOKS)
        else:
            with closing(mapping(compute_cell, chain([first], claimed))) as results:
                for name, result in results:
                    write_cell(store, missing[name], result)
                    shown.update(left.pop(name).count)
        for name in [name for name in left if is_whole(store, name)]:  # from another process
            shown.update(left.pop(name).count)


def write_cell(store: CellStore, cell: Cell, result: Computed) -> None:
    """Write a cell and release the claim on it."""
    store.write(
        cell.id, result.arrays, result.about | {"source": source_digest(cell.task), "description": cell.description}
    )
    store.release(cell.id)


def claim_jobs(store: CellStore, left: dict[str, Cell]) -> Iterator[CellJob]:
    """Jobs for the cells that this process can claim; each is claimed when it is yielded."""
    for name, cell in list(left.items()):
        if not store.claim(name):
            continue
        if is_whole(store, name):  # another process was faster
            store.release(name)
        else:
            yield CellJob(name, str(cell), cell.task, source_digest(cell.task))


def compute_cell(job: CellJob) -> tuple[str, Computed]:
    """Compute a cell in a worker, which must have the same source code as the process that made the cell's id."""
    if source_digest(job.task) != job.source:
        raise Failed(f"{job.name}: the worker has another version of spillover than this process; install the same")
    try:
        return job.cell, compute(job.task)
    except Exception as error:
        raise Failed(f"{job.name}: {type(error).__name__}: {error}") from error


def progress_bar(total: int, missing: dict[str, Cell], progress: bool) -> Any:
    """Replications done, with rate and time left, on stderr; silent when piped."""
    from tqdm import tqdm

    done = total - sum(cell.count for cell in missing.values())
    return tqdm(
        total=total,
        initial=done,
        unit=" replications",
        disable=None if progress else True,
        file=sys.stderr,
        smoothing=0.1,
        dynamic_ncols=True,
    )


def interruption_message(store: CellStore, cells: list[Cell]) -> str:
    """The message after an interruption of the run."""
    wanted = unique(cells)
    kept = sum(store.has(name) for name in wanted)
    return f"stopped: {kept} of {len(wanted)} cells are kept in {store.folder}; run the same command again to resume"

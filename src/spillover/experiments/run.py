"""Compute what is missing of an experiment, and keep each cell as soon as it is there."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

from spillover.experiments.compute import Computed, Task, compute
from spillover.experiments.engines import Mapping, start
from spillover.experiments.fingerprint import source_digest
from spillover.experiments.parse import parse_experiment
from spillover.experiments.results import Results
from spillover.experiments.specification import Cell, Experiment
from spillover.store import CellStore, Damaged

SECONDS_BETWEEN_LOOKS = 0.2  # at cells that another process computes


class Order(NamedTuple):
    """What goes to a worker."""

    cell: str  # its id
    name: str
    task: Task
    source: str


class Failed(RuntimeError):
    """A cell that could not be computed."""


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    engine: str = "serial",
    jobs: int | None = None,
    address: str | None = None,
    progress: bool = True,
) -> Results:
    """Compute what a folder lacks of an experiment; what is there already stays as it is.

    engine: "serial" (this process), "loky" (processes of this machine), "dask" or "ray". jobs: how many workers
    (default: the cores). address: of a Dask or Ray cluster that is running. progress: a bar on stderr, unless piped.
    It may be stopped at any moment, and several processes may work on one folder.
    """
    store, cells = CellStore(folder), experiment.cells()
    enter(store, experiment, cells)
    missing = find_missing(store, cells)
    if missing:
        total = sum(cell.count for cell in unique(cells).values())
        with bar(total, missing, progress) as shown:
            try:
                with start(engine, jobs, address) as mapping:
                    run_cells(store, missing, mapping, shown)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(interruption_message(store, cells)) from None
            finally:
                store.release_all()
    return Results(experiment, store, [listed(cell) for cell in cells])


def enter(store: CellStore, experiment: Experiment, cells: list[Cell]) -> None:
    """Open the store for this experiment, unless it is another one's."""
    about = store.about()
    if about is not None and about["name"] != experiment.name:
        raise ValueError(
            f"folder = {str(store.folder)!r}: must be a new one, or that of {experiment.name!r}; "
            f"it holds the experiment {about['name']!r}"
        )
    again = parse_experiment(experiment.text, experiment.name).changed(**experiment.changes)
    if [listed(cell) for cell in again.cells()] != [listed(cell) for cell in cells]:
        raise ValueError(
            f"experiment = {experiment.name!r}: must be what load_experiment or parse_experiment gave, changed by "
            "nothing but changed(): the store keeps its text"
        )
    about = {
        "name": experiment.name,
        "text": experiment.text,
        "changes": experiment.changes,
        "study": experiment.study,
        "cells": [listed(cell) for cell in cells],
    }
    store.open(about, experiment.text)


def listed(cell: Cell) -> dict[str, Any]:
    """A cell as `store.json` lists it."""
    return {name: getattr(cell, name) for name in ("world", "delay", "policy", "first", "count", "id")}


def unique(cells: list[Cell]) -> dict[str, Cell]:
    """Entries with the same parameters share a cell."""
    return {cell.id: cell for cell in cells}


def is_whole(store: CellStore, cell: str) -> bool:
    """Whether a cell is there and can be read."""
    try:
        store.read(cell)
    except (FileNotFoundError, Damaged):
        return False
    return True


def find_missing(store: CellStore, cells: list[Cell]) -> dict[str, Cell]:
    """What is to be computed; damaged cells are reported."""
    missing = {}
    for name, cell in unique(cells).items():
        try:
            store.read(name)
        except FileNotFoundError:
            missing[name] = cell
        except Damaged as error:
            warnings.warn(f"{error}; {cell} is computed anew", stacklevel=3)
            missing[name] = cell
    return missing


def run_cells(store: CellStore, missing: dict[str, Cell], mapping: Mapping, shown: Any) -> None:
    """Compute all that nobody else does, then look after what others had taken: they may have died."""
    left = dict(missing)
    while left:
        orders = claimed(store, left)
        first = next(orders, None)
        if first is None:
            sleep(SECONDS_BETWEEN_LOOKS)
        else:
            with closing(mapping(carry_out, chain([first], orders))) as results:
                for name, result in results:
                    keep(store, missing[name], result)
                    shown.update(left.pop(name).count)
        for name in [name for name in left if is_whole(store, name)]:  # from another process
            shown.update(left.pop(name).count)


def keep(store: CellStore, cell: Cell, result: Computed) -> None:
    """Write a cell; after that it is no longer this process's."""
    store.write(
        cell.id, result.arrays, result.about | {"source": source_digest(cell.task), "description": cell.description}
    )
    store.release(cell.id)


def claimed(store: CellStore, left: dict[str, Cell]) -> Iterator[Order]:
    """Orders for the cells that this process may compute, each claimed at the moment when it is handed out."""
    for name, cell in list(left.items()):
        if not store.claim(name):
            continue
        if is_whole(store, name):  # another process was faster
            store.release(name)
        else:
            yield Order(name, str(cell), cell.task, source_digest(cell.task))


def carry_out(order: Order) -> tuple[str, Computed]:
    """Compute in a worker, whose package must be the one that the cell's id was made with."""
    if source_digest(order.task) != order.source:
        raise Failed(f"{order.name}: the worker has another version of spillover than this process; install the same")
    try:
        return order.cell, compute(order.task)
    except Exception as error:
        raise Failed(f"{order.name}: {type(error).__name__}: {error}") from error


def bar(total: int, missing: dict[str, Cell], progress: bool) -> Any:
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
    """What to say when somebody stops the run."""
    wanted = unique(cells)
    kept = sum(store.has(name) for name in wanted)
    return f"stopped: {kept} of {len(wanted)} cells are kept in {store.folder}; run the same again to go on"

"""Compute the missing cells of an experiment, and store each as soon as it is ready."""

import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from spillover.experiments.compute import Computed, Job, compute_job, describe, versions
from spillover.experiments.engines import Pool, results, start_engine
from spillover.experiments.experiment import Cell, Experiment
from spillover.experiments.parse import parse_experiment
from spillover.experiments.results import Results, about_experiment
from spillover.experiments.store import CellStore, Damaged
from spillover.formatting import printable

SECONDS_BETWEEN_LOOKS = 0.2  # for cells that another process computes
SECONDS_WITHOUT_A_WORD = 5.0  # of waiting for them


def do_nothing(tasks: Sequence[Any]) -> None:
    """For those who need no notice."""


def to_stderr(message: str) -> None:
    """Write a message for people."""
    print(f"spillover: {printable(message)}", file=sys.stderr)


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    engine: str = "serial",
    jobs: int | None = None,
    address: str | None = None,
    progress: bool = True,
    begin: Callable[[Sequence[Any]], None] = do_nothing,
    notify: Callable[[str], None] = to_stderr,
) -> Results:
    """Compute the cells of an experiment that a folder does not have yet.

    engine: "serial" (this process), "loky" (processes of this machine), "dask" or "ray". jobs: number of workers
    (default: the cores). address: of a running Dask or Ray cluster. progress: a bar on stderr, unless piped. begin:
    called with the tasks to be computed before the first of them is, if there is one. notify: called with messages for
    people, such as that a cell is damaged, or that the run waits for another process.
    A run can be interrupted at any time and continued later, and several processes can work on one folder.

    >>> import tempfile
    >>> from spillover.experiments import example_results
    >>> quick = example_results().experiment.changed(replications=1, delays=["2"], policies=["random"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_experiment(quick, folder, progress=False).record("changing", "2", "random").regret.shape
    (1, 4)
    """
    store, cells = CellStore(folder), experiment.cells()
    open_store(store, experiment, cells)
    missing = find_missing(store, cells, notify)
    if missing:
        total = sum(cell.count for cell in unique(cells).values())
        with progress_bar(total, missing, progress) as bar:
            try:
                with start_engine(engine, jobs, address) as pool:
                    begin([cell.task for cell in missing.values()])
                    try:
                        run_cells(Progress(store, pool, missing, bar, notify))
                    except ConnectionError as error:
                        raise ConnectionError(f"{error}; {kept_message(store, cells)}") from error
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"stopped: {kept_message(store, cells)}") from None
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
    """Describe a cell as `store.json` lists it."""
    return {name: getattr(cell, name) for name in ("world", "delay", "policy", "first", "count", "id")}


def unique(cells: list[Cell]) -> dict[str, Cell]:
    """Sort the cells by id: policies with the same parameters share cells."""
    return {cell.id: cell for cell in cells}


def find_missing(store: CellStore, cells: list[Cell], notify: Callable[[str], None]) -> dict[str, Cell]:
    """Find the cells to compute; says which are damaged."""
    missing = {}
    for name, cell in unique(cells).items():
        try:
            store.read(name)
        except FileNotFoundError:
            missing[name] = cell
        except Damaged as error:
            notify(f"{error}; {cell} is computed again")
            missing[name] = cell
    return missing


class Progress(NamedTuple):
    """A run in its course."""

    store: CellStore
    pool: Pool
    left: dict[str, Cell]  # cells that are not stored
    bar: Any
    notify: Callable[[str], None]

    def done(self, name: str) -> None:
        """Note that a cell is stored."""
        self.bar.update(self.left.pop(name).count)


def run_cells(run: Progress) -> None:
    """Compute the cells that no other process computes, then wait for the others, which may turn out to be dead."""
    waiting = Waiting()
    while run.left:
        with closing(computed(run.pool, claimed(run.store, list(run.left.values())))) as finished:
            for job, (arrays, about) in finished:
                about |= {"source": job.source, "description": describe(job.task)}
                run.store.write(job.name, arrays, about)
                run.store.release(job.name)
                run.done(job.name)
        for name in [name for name in run.left if run.store.is_whole(name)]:  # from another process
            run.done(name)
        if run.left and not any(run.store.is_free(name) for name in run.left):
            waiting.look(run)
            sleep(SECONDS_BETWEEN_LOOKS)


def claimed(store: CellStore, cells: list[Cell]) -> Iterator[Job]:
    """Claim the cells that have to be computed, one when the workers have room for it."""
    for cell in cells:
        if not store.claim(cell.id):
            continue
        if store.is_whole(cell.id):  # another process was faster
            store.release(cell.id)
        else:
            yield Job(cell.id, str(cell), cell.task, cell.source)


def computed(pool: Pool, jobs: Iterable[Job]) -> Generator[tuple[Job, Computed], None, None]:
    """Compute jobs; warns of workers with other versions of Python, NumPy or Numba, once for each."""
    ours = versions()
    known = [ours]
    with closing(results(pool, compute_job, jobs)) as finished:
        for job, done, theirs in finished:
            if theirs not in known:
                known.append(theirs)
                other, here = (", ".join(f"{name} {each[name]}" for name in each) for each in (theirs, ours))
                warnings.warn(
                    f"a worker has {other}, while this process has {here}: results may differ in the last digits",
                    stacklevel=2,
                )
            yield job, done


class Waiting:
    """Says for whom a run waits: those who have had the same cells for some time."""

    def __init__(self) -> None:
        self.cells: set[str] = set()
        self.since = 0.0
        self.said: set[str] = set()

    def look(self, run: Progress) -> None:
        """Say it, once for each holder of cells."""
        if run.left.keys() != self.cells:
            self.cells, self.since = set(run.left), monotonic()
        holders = {run.store.holder(name) for name in run.left}
        if monotonic() - self.since < SECONDS_WITHOUT_A_WORD or holders <= self.said:
            return
        self.said |= holders
        cells = "1 cell" if len(run.left) == 1 else f"{len(run.left)} cells"
        who = "; ".join(sorted(holders))
        with run.bar.external_write_mode(file=sys.stderr):
            run.notify(f"waiting for {cells} claimed by {who}; a process that is ended gives up its cells")


def progress_bar(total: int, missing: dict[str, Cell], progress: bool) -> Any:
    """Show replications done, with rate and time left: a widget in a notebook, else on stderr; silent when piped."""
    from tqdm.auto import tqdm

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


def kept_message(store: CellStore, cells: list[Cell]) -> str:
    """Say how much of a run is there, and how to go on."""
    wanted = unique(cells)
    kept = sum(store.has(name) for name in wanted)
    return f"{kept} of {len(wanted)} cells are kept in {store.folder}; run the same command again to resume"


EXAMPLE = """
name = "small"
replications = 2
record = 10
[worlds.changing]
kind = "synthetic"
n_arms = 4
budget = 2
edge_density = 0.2
horizon = 40
changes = [21]
[delays.2]
kind = "constant"
rounds = 2
[delays.6]
kind = "constant"
rounds = 6
[policies.ndc-sem]
label = "NDC-SEM"
[policies.random]
label = "random"
"""


@cache
def example_results() -> Results:
    """Compute a small experiment, to try figures and tables on: two policies at two delays in worlds that change once.

    >>> [(record.delay, record.policy) for record in example_results().records()]
    [('2', 'ndc-sem'), ('2', 'random'), ('6', 'ndc-sem'), ('6', 'random')]
    """
    with tempfile.TemporaryDirectory() as folder:
        results = run_experiment(parse_experiment(EXAMPLE), folder, progress=False)
        results.records()  # all are in memory now, and the folder is not needed any more
    return results

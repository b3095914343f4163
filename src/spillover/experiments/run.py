"""Computes the missing cells of an experiment, and stores each as soon as it is ready."""

import errno
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from spillover.experiments.compute import CellTask
from spillover.experiments.duration import Load
from spillover.experiments.engines import start_engine
from spillover.experiments.group_work import CellJob, Outcome, Work, compute_group, is_whole, write_cell
from spillover.experiments.grouping import Pace, groups
from spillover.experiments.parse import parse_experiment
from spillover.experiments.pools import Pool, results
from spillover.experiments.results import Results, about_experiment
from spillover.experiments.specification import Cell, Experiment
from spillover.experiments.worker_check import check_workers
from spillover.printable import printable
from spillover.store import CellStore, Damaged

SECONDS_BETWEEN_LOOKS = 0.2  # for cells that another process computes
SECONDS_WITHOUT_A_WORD = 5.0  # of waiting for them
SECONDS_TO_APPEAR = 120.0  # network file systems remember for up to a minute that there was no such file


def do_nothing(loads: Sequence[Load]) -> None:
    """For those who need no notice."""


def to_stderr(message: str) -> None:
    print(f"spillover: {printable(message)}", file=sys.stderr)


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    engine: str = "serial",
    jobs: int | None = None,
    address: str | None = None,
    progress: bool = True,
    begin: Callable[[Sequence[Load]], None] = do_nothing,
    notify: Callable[[str], None] = to_stderr,
) -> Results:
    """Compute the cells of an experiment that a folder does not have yet.

    engine: "serial" (this process), "loky" (processes of this machine), "dask" or "ray". jobs: number of workers
    (default: the cores). address: of a running Dask or Ray cluster. progress: a bar on stderr, unless piped. begin:
    called with the cells to be computed before the first of them is, if there is one. notify: called with messages for
    people, such as that the run waits for another process.
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
    missing = find_missing(store, cells)
    if missing:
        total = sum(cell.count for cell in unique(cells).values())
        with progress_bar(total, missing, progress) as shown, store.session() as session:
            try:
                with start_engine(engine, jobs, address) as pool:
                    tasks = {cell.source: cell.task for cell in missing.values()}
                    shared = check_workers(pool, tasks, address, store.folder.resolve(), session)
                    begin([load_of(cell.task) for cell in missing.values()])
                    try:
                        run_cells(Progress(store, pool, shared, session, missing, Pace(), shown, notify))
                    except ConnectionError as error:
                        raise ConnectionError(f"{error}; {kept_message(store, cells)}") from error
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"stopped: {kept_message(store, cells)}") from None
    return Results(experiment, store, [store_entry(cell) for cell in cells])


def load_of(task: CellTask) -> Load:
    """What is to be computed, for those who want to know how long that takes."""
    return Load(task.environment, task.policy, task.seed, task.count, compiled=True)


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


class Progress(NamedTuple):
    """A run in its course."""

    store: CellStore
    pool: Pool
    shared: bool  # whether the workers see the store, and write to it
    session: str
    left: dict[str, Cell]  # cells that are not stored
    pace: Pace
    bar: Any
    notify: Callable[[str], None]


def run_cells(run: Progress) -> None:
    """Compute the cells that no other process computes, then wait for the others, which may turn out to be dead."""
    wanted = list(run.left)
    ready = list(run.left.values())
    waiting = Waiting()
    while run.left:
        with closing(results(run.pool, compute_group, work(run, ready))) as finished:
            for outcomes in finished:
                for outcome in outcomes:
                    keep(run, outcome)
        if not (run.store.claims / run.session).exists():
            raise FileNotFoundError(errno.ENOENT, "was removed during the run", str(run.store.claims))
        for name in [name for name in run.left if is_whole(run.store, name)]:  # from another process
            count(run, name)
        ready = [cell for name, cell in run.left.items() if is_free(run.store, name)]
        if run.left and not ready:
            waiting.look(run)
            sleep(SECONDS_BETWEEN_LOOKS)
    wait_for_files(run.store, wanted)


class Waiting:
    """Says for whom a run waits: those who have had the same cells for some time."""

    def __init__(self) -> None:
        self.cells: set[str] = set()
        self.since = 0.0
        self.said: set[str] = set()

    def look(self, run: Progress) -> None:
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


def wait_for_files(store: CellStore, names: list[str]) -> None:
    """A network file system may show what other machines have written only after some seconds."""
    deadline = monotonic() + SECONDS_TO_APPEAR
    for name in names:
        while not store.has(name):
            if monotonic() > deadline:
                raise FileNotFoundError(errno.ENOENT, "a worker wrote it, but it is not there", str(store.path(name)))
            sleep(SECONDS_BETWEEN_LOOKS)


def work(run: Progress, cells: list[Cell]) -> Iterator[Work]:
    """Groups of cells, made when a worker has room. Cells that workers cannot claim themselves are claimed here."""
    remaining = len(cells)

    def here() -> Iterator[Cell]:
        nonlocal remaining
        for cell in cells:
            if run.shared or claim(run.store, cell.id):
                yield cell
            remaining -= 1

    for group in groups(here(), run.pool, run.pace, lambda: remaining):
        jobs = [CellJob.of(cell) for cell in group]
        yield Work(run.store.folder.resolve(), run.session if run.shared else None, jobs)


def claim(store: CellStore, name: str) -> bool:
    """Claim a cell that has to be computed."""
    if not store.claim(name):
        return False
    if is_whole(store, name):  # another process was faster
        store.release(name)
        return False
    return True


def is_free(store: CellStore, name: str) -> bool:
    """Whether no other process computes a cell."""
    free = store.claim(name)
    store.release(name)
    return free


def keep(run: Progress, outcome: Outcome) -> None:
    """Store what a worker has not stored itself."""
    if outcome.error is not None:
        raise outcome.error
    cell = run.left[outcome.cell]
    if outcome.computed is not None:
        write_cell(run.store, CellJob.of(cell), outcome.computed)
        run.store.release(cell.id)
    if outcome.computed is not None or outcome.stored:
        run.pace.learn(cell, outcome.seconds)
        count(run, outcome.cell)


def count(run: Progress, name: str) -> None:
    run.bar.update(run.left.pop(name).count)


def progress_bar(total: int, missing: dict[str, Cell], progress: bool) -> Any:
    """Replications done, with rate and time left: a widget in a notebook, else on stderr; silent when piped."""
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
    """How much of a run is there, and how to go on."""
    wanted = unique(cells)
    kept = sum(store.has(name) for name in wanted)
    return f"{kept} of {len(wanted)} cells are kept in {store.folder}; run the same command again to resume"

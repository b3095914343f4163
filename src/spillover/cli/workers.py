"""Several worker processes on one socket: one that dies is replaced, and all end with the process that started them."""

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from spillover.cli.app import note
from spillover.files import MACHINE, is_running

PAUSE = 0.5  # seconds between looks at the workers
LONGEST_STOP = 20.0  # seconds that they have to end
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
PREFIX = f"spillover-metrics-{MACHINE}-"  # then the process that made the folder


def run_workers(target: Callable[[Any, Any], None], plan: Any, socket: Any, count: int) -> None:
    """Run until interrupted."""
    from prometheus_client.multiprocess import mark_process_dead

    context = multiprocessing.get_context("spawn")

    def started() -> BaseProcess:
        worker = context.Process(target=run_worker, args=(target, plan, socket))
        worker.start()
        return worker

    with metrics_folder() as folder:
        workers = [started() for _ in range(count)]
        try:
            while True:
                time.sleep(PAUSE)
                for place, worker in enumerate(workers):
                    if not worker.is_alive():
                        note(f"worker {worker.pid} ended with {worker.exitcode}: starting another one")
                        mark_process_dead(worker.pid, folder)  # type: ignore[no-untyped-call]
                        workers[place] = started()
        finally:
            stop(workers)


def run_worker(target: Callable[[Any, Any], None], plan: Any, socket: Any) -> None:
    """A worker, in its process."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    target(plan, socket)


def end_with_parent() -> None:
    """Wait for the end of the process that started this one, which may be killed, and then stop."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    shutil.rmtree(os.environ[METRICS_FOLDER], ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LONGEST_STOP)
    os._exit(1)


@contextmanager
def metrics_folder() -> Iterator[str]:
    """A folder in which workers keep their figures, so that each can show those of all."""
    remove_leftovers(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        os.environ[METRICS_FOLDER] = folder
        try:
            yield folder
        finally:
            del os.environ[METRICS_FOLDER]


def remove_leftovers(place: Path) -> None:
    """Remove the folders of servers that were killed together with all their workers."""
    for folder in place.glob(f"{PREFIX}*"):
        process = folder.name.removeprefix(PREFIX).partition("-")[0]
        if process.isdecimal() and not is_running(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def stop(workers: list[BaseProcess]) -> None:
    """End all of them, cleanly if they can."""
    for worker in workers:
        worker.terminate()
    end = time.monotonic() + LONGEST_STOP
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()))
        if worker.is_alive():
            worker.kill()
            worker.join()

"""Several worker processes on one socket: one that dies is replaced."""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from spillover.cli.app import note

PAUSE = 0.5  # seconds between looks at the workers
LONGEST_STOP = 20.0  # seconds that they have to end
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


def run_workers(target: Callable[[Any, Any], None], plan: Any, socket: Any, count: int) -> None:
    """Run until interrupted."""
    context = multiprocessing.get_context("spawn")

    def started() -> BaseProcess:
        worker = context.Process(target=target, args=(plan, socket))
        worker.start()
        return worker

    with tempfile.TemporaryDirectory(prefix="spillover-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder  # for the workers: figures of all of them together
        workers = [started() for _ in range(count)]
        try:
            while True:
                time.sleep(PAUSE)
                for place, worker in enumerate(workers):
                    if not worker.is_alive():
                        note(f"worker {worker.pid} ended with {worker.exitcode}: starting another one")
                        workers[place] = started()
        finally:
            del os.environ[METRICS_FOLDER]
            stop(workers)


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

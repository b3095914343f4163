"""Processes of this machine."""

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from time import sleep
from typing import Any

from spillover import kernels
from spillover.experiments.pools import CALLS_PER_WORKER, Attempt, attempt

# of libraries that would start as many threads as there are cores, in every worker
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
SECONDS_IDLE = 300


class LokyPool:
    """Worker processes, started with the first call. They wait for the next run, and end with this process."""

    overhead = 0.003
    dispatch = 0.0005

    def __init__(self, workers: int) -> None:
        from joblib.externals.loky import get_reusable_executor

        self.workers = workers
        self.executor = get_reusable_executor(
            workers, timeout=SECONDS_IDLE, initializer=follow_parent, initargs=(os.getpid(),), env=ONE_THREAD
        )

    def slots(self) -> int:
        return CALLS_PER_WORKER * self.workers

    def submit(self, function: Callable[[Any], Any], argument: Any) -> Any:
        with interrupts_held(), deaths_named():
            return self.executor.submit(attempt, (function, argument))

    def result(self, pending: Any) -> Attempt:
        with deaths_named():
            return Attempt(*pending.result())

    def cancel(self, pending: Iterable[Any]) -> None:
        for call in pending:
            call.cancel()

    def check(self) -> None:
        pass  # the executor fails all calls if a worker dies

    def on_every_worker(self, function: Callable[[Any], Any], argument: Any) -> dict[str, Any]:
        return {}

    def stop(self) -> None:
        """End the workers at once."""
        self.executor.shutdown(kill_workers=True)


@contextmanager
def deaths_named() -> Iterator[None]:
    """Say in a line that a worker process died: then the executor fails all calls."""
    try:
        yield
    except BrokenExecutor as error:
        codes = re.findall(r"[A-Z]+\(-?\d+\)", str(error))
        how = f" ({', '.join(codes)})" if codes else ""
        raise ConnectionError(f"a worker process died{how}, perhaps for lack of memory") from error


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Processes started in this context ignore Ctrl-C from the beginning, so that none dies while it starts.

    They inherit the setting; a Ctrl-C in the meantime interrupts this process at the end of the context. Only the main
    thread can change signal handlers, and a handler that was not set from Python cannot be restored.
    """
    elsewhere = threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None
    if os.name == "nt" or elsewhere:  # on Windows signal handlers are not inherited
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def follow_parent(parent: int) -> None:
    """Make a worker exit with the process that started it, and ignore Ctrl-C, which that process handles.

    And load what its first kernel needs, in less time than that would.
    """

    def exit_with_parent() -> None:
        while not is_orphan(parent):
            sleep(1.0)
        os._exit(1)

    kernels.preload_numba()
    threading.Thread(target=exit_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def is_orphan(parent: int) -> bool:
    if os.name == "nt":  # Windows keeps the id of a parent that has ended
        starter = multiprocessing.parent_process()
        return starter is not None and not starter.is_alive()
    return os.getppid() != parent

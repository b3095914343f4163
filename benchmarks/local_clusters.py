"""Dask and Ray clusters of separate processes that listen at 127.0.0.1 only, for measurements and tests.

Every process is in the list that is given back, and is killed in the end, whatever happens.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

LONGEST = 120.0  # seconds: nothing here takes so long on any machine
LOOPBACK = "127.0.0.1"
# a network of its own for a process and its children, which has the loopback interface only, and their own process ids:
# they end with the first of them
ALONE = ("unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
UP = "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sH14x', b'lo', 0x41))"


class DaskCluster(NamedTuple):
    """A scheduler and its workers."""

    address: str
    scheduler: "subprocess.Popen[bytes]"
    workers: "list[subprocess.Popen[bytes]]"
    folder: Path

    def add_worker(self, path: str | None = None) -> "subprocess.Popen[bytes]":
        """Start a worker; path: where it looks for the package, instead of where this process does."""
        options = ["--host", LOOPBACK, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory"]
        worker = dask_process("worker", self.folder, [self.address, *options, str(self.folder)], path)
        self.workers.append(worker)
        return worker


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[DaskCluster]:
    """A scheduler and workers of one thread each; `folder` is for their files."""
    about = folder / "scheduler.json"
    options = ["--host", LOOPBACK, "--port", "0", "--no-dashboard", "--scheduler-file", str(about)]
    scheduler = dask_process("scheduler", folder, options)
    started: list[subprocess.Popen[bytes]] = []
    try:
        cluster = DaskCluster(written_address(about, scheduler), scheduler, started, folder)
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in (scheduler, *started):
            stop(process)


def dask_process(what: str, folder: Path, options: list[str], path: str | None = None) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options]
    with open(folder / f"{what}.log", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment(path), start_new_session=True)


def environment(path: str | None = None) -> dict[str, str]:
    """The environment of a worker, which finds the modules that this process finds; `path`: only those in there."""
    return os.environ | {"PYTHONPATH": path or os.pathsep.join(filter(None, sys.path))}


def written_address(about: Path, scheduler: "subprocess.Popen[bytes]") -> str:
    """The address of a scheduler, as soon as it has written all of it into its file."""
    deadline = monotonic() + LONGEST
    while scheduler.poll() is None and monotonic() < deadline:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return str(json.loads(about.read_text())["address"])
        sleep(0.01)
    raise RuntimeError(f"the scheduler ended with code {scheduler.poll()} before it was ready")


def stop(process: "subprocess.Popen[Any]") -> None:
    """Kill a process and its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def can_be_alone() -> bool:
    """Whether this system allows a network without any interface but the loopback."""
    if shutil.which(ALONE[0]) is None:
        return False
    return subprocess.run([*ALONE, sys.executable, "-c", UP], capture_output=True).returncode == 0


def alone(script: str, *arguments: str, timeout: float | None = None) -> "subprocess.CompletedProcess[str]":
    """Run Python code in a network of its own, because a Ray head listens at the addresses of the machine."""
    command = [*ALONE, sys.executable, "-c", f"{UP}\n{script}", *arguments]
    settings = environment() | {"RAY_AUTH_MODE": "disabled"}  # whatever tokens this user has
    return subprocess.run(command, capture_output=True, text=True, env=settings, timeout=timeout)


def start_ray_head(folder: Path, processors: int, **settings: str) -> str:
    """Start a Ray head in a network of its own (see `alone`); returns its address. It ends with the network.

    folder: for its files; the path must be short, because sockets are among them.
    """
    options = ["--head", f"--node-ip-address={LOOPBACK}", "--port=0", f"--num-cpus={processors}"]
    options += ["--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={folder}"]
    return start_ray(options, **settings)


def add_ray_node(address: str, processors: int, path: str | None = None) -> None:
    start_ray([f"--address={address}", f"--node-ip-address={LOOPBACK}", f"--num-cpus={processors}"], path)


def start_ray(options: list[str], path: str | None = None, **settings: str) -> str:
    command = [str(Path(sys.executable).with_name("ray")), "start", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(path) | settings)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    _, _, rest = done.stdout.partition("--address='")
    return rest.partition("'")[0]

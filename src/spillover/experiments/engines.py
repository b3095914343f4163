"""Engines run the work: in this process, in processes of this machine (loky), or on a Dask or Ray cluster.

Every engine is a context in which a function is mapped over tasks. Results come back in the order in which they are
ready; they do not depend on the engine.
"""

import importlib
import multiprocessing
import os
import secrets
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from time import sleep
from typing import Any, TypeAlias

from spillover import validate

Mapping: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Generator[Any, None, None]]

SECONDS_TO_CONNECT = 5.0


@contextmanager
def start_engine(engine: str, jobs: int | None = None, address: str | None = None) -> Iterator[Mapping]:
    """Start an engine: serial, loky, dask or ray; `address`: of a running Dask or Ray cluster.

    >>> with start_engine("serial") as mapping:
    ...     list(mapping(abs, [-1, 2]))
    [1, 2]
    """
    validate.require(engine in ENGINES, "engine", engine, f"one of {', '.join(ENGINES)}")
    if jobs is not None:
        validate.whole("jobs", jobs, 1)
    clusters = engine in ("dask", "ray")
    validate.require(address is None or clusters, "address", address, "None: only dask and ray connect to a cluster")
    with ENGINES[engine](jobs, address) as mapping:
        yield mapping


@contextmanager
def serial(jobs: int | None, address: str | None) -> Iterator[Mapping]:
    yield one_by_one


@contextmanager
def loky(jobs: int | None, address: str | None) -> Iterator[Mapping]:
    """Processes of this machine, as many as it has cores."""
    import joblib

    workers: dict[str, Any] = {"n_jobs": jobs or joblib.cpu_count(), "inner_max_num_threads": 1}
    with joblib.parallel_config(backend="loky", **workers, initializer=follow_parent, initargs=(os.getpid(),)):
        yield through_joblib


@contextmanager
def dask(jobs: int | None, address: str | None) -> Iterator[Mapping]:
    """A running Dask cluster, or one inside of this process."""
    import joblib

    distributed = import_extra("distributed", "dask")
    cluster = None if address is not None else dask_inside(distributed, jobs or joblib.cpu_count())
    try:
        client = distributed.Client(cluster if address is None else address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise ConnectionError(unreachable(address, "Dask", "tcp://10.0.0.1:8786", error)) from None
    with client:
        try:
            with joblib.parallel_config(backend="dask", n_jobs=jobs or -1):
                yield through_joblib
        finally:
            if cluster is not None:
                cluster.close()


def dask_inside(distributed: Any, workers: int) -> Any:
    """A Dask cluster of threads in this process, which nobody else can reach.

    Its own processes would listen at a port of this machine, without any proof of who connects: every user of the
    machine could have them run code.
    """
    from dask import config

    nothing: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    with config.set(nothing):  # the servers of status pages cannot be turned off, but need not serve anything
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",  # any free port
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        )


@contextmanager
def ray(jobs: int | None, address: str | None) -> Iterator[Mapping]:
    """A running Ray cluster, or a temporary one on this machine."""
    import joblib

    library = import_extra("ray", "ray")
    backend = import_extra("ray.util.joblib.ray_backend", "ray").RayBackend()
    # The inherited value is for joblib's multiprocessing pool, which cannot return results one by one; Ray's can.
    backend.supports_return_generator = True
    started = not library.is_initialized()
    if started:
        if address is not None:
            check_reachable(address)
        with nullcontext() if address else own_ray_token():
            library.init(
                address=address or "local",
                num_cpus=None if address else jobs,
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level="error",
            )
    try:
        with joblib.parallel_config(backend=backend, n_jobs=jobs or -1):
            yield through_joblib
    finally:
        if started:
            library.shutdown()


@contextmanager
def own_ray_token() -> Iterator[None]:
    """A Ray cluster that is started in this context obeys only those who know a token, which only this process knows.

    Ray listens at all addresses of the machine and demands a token by default. Unless it is given one, it writes one
    into the user's folder, which his other clusters would then demand too. What the user has set stays as it is.
    """
    changed = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}
    before = {name: os.environ[name] for name in changed if name in os.environ}
    if not before:
        os.environ["RAY_AUTH_TOKEN"] = ray_token()
    try:
        yield
    finally:
        for name in changed - before.keys():
            os.environ.pop(name, None)


@cache
def ray_token() -> str:
    """The same for all runs of this process, because Ray remembers it."""
    return secrets.token_hex(32)


ENGINES = {"serial": serial, "loky": loky, "dask": dask, "ray": ray}


def one_by_one(function: Callable[[Any], Any], tasks: Iterable[Any]) -> Generator[Any, None, None]:
    for task in tasks:
        yield function(task)


def through_joblib(function: Callable[[Any], Any], tasks: Iterable[Any]) -> Generator[Any, None, None]:
    """Map on joblib's current backend; closing the generator stops the work."""
    import joblib

    parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
    with interrupts_held():
        results = parallel(joblib.delayed(function)(task) for task in tasks)
    try:
        for result in results:  # noqa: UP028 ("yield from" would close `results` before the lines below run)
            yield result
    finally:
        with warnings.catch_warnings():
            # joblib warns about tasks that are stopped or whose results are not used, which is intended here
            warnings.filterwarnings("ignore", "[0-9]+ tasks (which were still being|have been successfully)")
            results.close()


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
    """Make a worker exit with the process that started it, and ignore Ctrl-C, which that process handles."""

    def exit_with_parent() -> None:
        while not is_orphan(parent):
            sleep(1.0)
        os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def is_orphan(parent: int) -> bool:
    if os.name == "nt":  # Windows keeps the id of a parent that has ended
        starter = multiprocessing.parent_process()
        return starter is not None and not starter.is_alive()
    return os.getppid() != parent


def import_extra(module: str, name: str) -> Any:
    """Import an optional dependency."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ModuleNotFoundError(
            f"engine = {name!r}: needs a package that is not installed ({error}): pip install 'spillover[{name}]'"
        ) from None


def check_reachable(address: str) -> None:
    """Raise a ConnectionError if nothing listens at HOST:PORT; Ray itself would wait for minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(unreachable(address, "Ray", "10.0.0.1:6379", error)) from None


def unreachable(address: str | None, what: str, example: str, error: Exception) -> str:
    return (
        f"address = {address!r}: must be that of a {what} cluster that answers within {SECONDS_TO_CONNECT:.0f} s, "
        f"such as {example} ({error})"
    )

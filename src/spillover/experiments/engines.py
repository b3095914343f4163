"""Engines run the work: in this process, in processes of this machine (loky), or on a Dask or Ray cluster.

Every engine is a context that gives a pool of workers (see `pools`). Results do not depend on the engine.
"""

import importlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spillover import validate
from spillover.experiments.pools import Pool, SerialPool, one_line
from spillover.extras import needed_for

SECONDS_TO_CONNECT = 5.0


@contextmanager
def start_engine(engine: str, jobs: int | None = None, address: str | None = None) -> Iterator[Pool]:
    """Start an engine: serial, loky, dask or ray; `address`: of a running Dask or Ray cluster.

    >>> from spillover.experiments.pools import results
    >>> with start_engine("serial") as pool:
    ...     list(results(pool, abs, [-1, 2]))
    [1, 2]
    """
    validate.require(engine in ENGINES, "engine", engine, f"one of {', '.join(ENGINES)}")
    if jobs is not None:
        validate.whole("jobs", jobs, 1)
    clusters = engine in ("dask", "ray")
    validate.require(address is None or clusters, "address", address, "None: only dask and ray connect to a cluster")
    with ENGINES[engine](jobs, address) as pool:
        yield pool


@contextmanager
def serial(jobs: int | None, address: str | None) -> Iterator[Pool]:
    yield SerialPool()


@contextmanager
def loky(jobs: int | None, address: str | None) -> Iterator[Pool]:
    """Processes of this machine, as many as it has cores."""
    import joblib

    from spillover.experiments.loky_pool import LokyPool

    pool = LokyPool(jobs or joblib.cpu_count())
    try:
        yield pool
    except BaseException:
        pool.stop()
        raise


@contextmanager
def dask(jobs: int | None, address: str | None) -> Iterator[Pool]:
    """A running Dask cluster, or one inside of this process."""
    import joblib

    distributed = import_extra("distributed", "dask")
    from spillover.experiments.dask_pool import DaskPool, cluster_inside, quiet_logs

    with quiet_logs():
        cluster = None if address is not None else cluster_inside(distributed, jobs or joblib.cpu_count())
        try:
            client = distributed.Client(cluster if address is None else address, timeout=SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise ConnectionError(unreachable(address, "Dask", "tcp://10.0.0.1:8786", error)) from None
        try:
            with client:
                wait_for_workers(client, address)
                yield DaskPool(client, address, jobs)
        except BaseException:
            if cluster is not None:
                cluster.sync(leave_threads, cluster)
            raise
        finally:
            if cluster is not None:
                cluster.close()


async def leave_threads(cluster: Any) -> None:
    """Close the workers of a cluster inside of this process without waiting for what their threads are doing.

    Nothing can stop a thread: it goes on with the cell at hand. Dask would wait for it, half a minute for each worker.
    """
    for worker in cluster.workers.values():
        await worker.close(executor_wait=False)


def wait_for_workers(client: Any, address: str | None) -> None:
    """Raise a ConnectionError if a cluster has no workers, which would never compute anything."""
    try:
        client.wait_for_workers(1, SECONDS_TO_CONNECT)
    except TimeoutError:
        raise ConnectionError(
            f"address = {address!r}: must be a Dask cluster with workers; it has had none for "
            f"{SECONDS_TO_CONNECT:.0f} s (dask worker {address} starts one)"
        ) from None


@contextmanager
def ray(jobs: int | None, address: str | None) -> Iterator[Pool]:
    """A running Ray cluster, or a temporary one on this machine."""
    with few_attempts():
        library = import_extra("ray", "ray")
    from spillover.experiments.ray_pool import RayPool, own_token

    started = not library.is_initialized()
    if started and address is not None:
        connect_to_ray(library, address)
    elif started:
        options = {"num_cpus": jobs, "include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
        with own_token():
            library.init(address="local", **options)
    try:
        head = None if address is None else library.get_runtime_context().gcs_address  # of "auto", too
        yield RayPool(library, address, jobs, lambda: check_reachable(head))
    finally:
        if started:
            library.shutdown()


def connect_to_ray(library: Any, address: str) -> None:
    check_reachable(address)
    try:
        with no_complaints():
            library.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, RuntimeError, ValueError) as error:
        library.shutdown()
        raise ConnectionError(unreachable(address, "Ray", "10.0.0.1:6379", error)) from None


@contextmanager
def few_attempts() -> Iterator[None]:
    """Ray tries twenty times, for as many seconds, to connect with a token that is refused."""
    name = "RAY_NUM_REDIS_GET_RETRIES"  # read when Ray is imported
    before = os.environ.get(name)
    os.environ[name] = before or "2"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


@contextmanager
def no_complaints() -> Iterator[None]:
    """What Ray's compiled part writes to stderr about a connection is dropped: the error says it in a line."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


ENGINES = {"serial": serial, "loky": loky, "dask": dask, "ray": ray}


def import_extra(module: str, name: str) -> Any:
    """Import an optional dependency."""
    with needed_for(f"engine = {name!r}", name):
        return importlib.import_module(module)


def check_reachable(address: str | None) -> None:
    """Raise a ConnectionError if nothing listens at HOST:PORT; Ray itself would wait for minutes."""
    if address in (None, "auto", "local"):
        return
    host, _, port = str(address).removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(unreachable(address, "Ray", "10.0.0.1:6379", error)) from None


def unreachable(address: str | None, what: str, example: str, error: Exception) -> str:
    return (
        f"address = {address!r}: must be that of a {what} cluster that answers within {SECONDS_TO_CONNECT:.0f} s, "
        f"such as {example} ({one_line(error)})"
    )

"""Run calls in this process, in worker processes of this machine (loky), or on a Dask or Ray cluster.

All of them give futures of `concurrent.futures`, so one loop (`results`) serves every engine, and results do not depend
on it. joblib's backends for Dask and Ray do not serve: the one for Dask waits for ever if a worker dies or cannot load
a call, and the one for Ray returns no result before all are there.
"""

import importlib
import logging
import multiprocessing
import os
import pickle
import re
import secrets
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import cache
from itertools import islice
from time import monotonic, sleep
from typing import Any, NamedTuple

from spillover import kernels, validate
from spillover.registry import needed_for

SECONDS_TO_CONNECT = 5.0
SECONDS_BETWEEN_CHECKS = 2.0  # of how many workers there are
SECONDS_WITHOUT_WORKERS = 60.0  # a Dask cluster may be about to start others
SECONDS_UNREACHABLE = 20.0  # a Ray head that restarts is back by then; after 60 s Ray itself would end this process
SECONDS_IDLE = 300
CALLS_PER_WORKER = 2  # one that runs, and one that can start at once when it ends
RETRIES = 3  # of a call on Ray whose worker or machine died
# of libraries that would start as many threads as there are cores, in every worker
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
LOGGERS = ("distributed", "distributed.client")  # they log whole tracebacks when a connection breaks


class Pool(NamedTuple):
    """Workers, one or many.

    submit: start a call. room: how many calls to leave with the workers at a time, as they come and go; raises a
    ConnectionError if no result can come any more. failed: says in words why the workers lost a call.
    """

    submit: Callable[[Callable[[Any], Any], Any], "Future[Any]"]
    room: Callable[[], int]
    failed: Callable[[Exception], str]


def results(pool: Pool, function: Callable[[Any], Any], arguments: Iterable[Any]) -> Generator[Any, None, None]:
    """Call a function for each argument, and yield what it returns in the order in which it is ready.

    An argument is taken when the workers have room, so results never pile up. Closing the generator stops the work.
    """
    waiting, rest, checked, room = set[Future[Any]](), iter(arguments), float("-inf"), 0
    try:
        while True:
            if monotonic() - checked > SECONDS_BETWEEN_CHECKS:
                room, checked = pool.room(), monotonic()
            for argument in islice(rest, max(room - len(waiting), 0)):
                with failures_in_words(pool):
                    waiting.add(pool.submit(function, argument))
            if not waiting:
                return
            done, waiting = wait(waiting, SECONDS_BETWEEN_CHECKS, FIRST_COMPLETED)
            for future in done:
                with failures_in_words(pool):
                    value, error = future.result()
                if error is not None:
                    raise error
                yield value
    finally:
        for future in waiting:
            future.cancel()


@contextmanager
def failures_in_words(pool: Pool) -> Iterator[None]:
    """Raise a ConnectionError if the workers lost a call; what a call itself raises comes back as a value."""
    try:
        yield
    except Exception as error:
        pool.room()  # if the whole cluster is gone, that is the error
        raise ConnectionError(pool.failed(error)) from error


def attempt(function: Callable[[Any], Any], argument: Any) -> tuple[Any, Exception | None]:
    """Call a function in a worker; an error is a value, with its traceback, because clusters wrap those they raise."""
    try:
        return function(argument), None
    except Exception as error:
        error.add_note(f"in the worker:\n{traceback.format_exc()}")
        return None, error


@contextmanager
def start_engine(engine: str, jobs: int | None = None, address: str | None = None) -> Iterator[Pool]:
    """Start an engine: serial, loky, dask or ray; `address`: of a running Dask or Ray cluster.

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


def workers_of(engine: str, jobs: int | None, address: str | None) -> int | None:
    """Count the processes of this machine that an engine uses; None on a cluster."""
    import joblib

    return None if address is not None else 1 if engine == "serial" else jobs or int(joblib.cpu_count())


@contextmanager
def serial(jobs: int | None, address: str | None) -> Iterator[Pool]:
    """Make calls in this process, when they are submitted."""

    def submit(function: Callable[[Any], Any], argument: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        done.set_result(attempt(function, argument))
        return done

    yield Pool(submit, lambda: 1, one_line)


@contextmanager
def loky(jobs: int | None, address: str | None) -> Iterator[Pool]:
    """Start worker processes of this machine. They wait for the next run, and end with this process."""
    import joblib
    from joblib.externals.loky import get_reusable_executor

    workers = jobs or int(joblib.cpu_count())
    executor = get_reusable_executor(
        workers, timeout=SECONDS_IDLE, initializer=follow_parent, initargs=(os.getpid(),), env=ONE_THREAD
    )

    def submit(function: Callable[[Any], Any], argument: Any) -> "Future[Any]":
        with interrupts_held():
            started: Future[Any] = executor.submit(attempt, function, argument)
        return started

    def failed(error: Exception) -> str:
        codes = re.findall(r"[A-Z]+\(-?\d+\)", str(error))
        how = f" ({', '.join(codes)})" if codes else ""
        return f"a worker process died{how}, perhaps for lack of memory"

    try:
        yield Pool(submit, lambda: CALLS_PER_WORKER * workers, failed)
    except BaseException:
        executor.shutdown(kill_workers=True)
        raise


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let processes that are started in this context ignore Ctrl-C from the beginning, so that none dies at its start.

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

    def is_orphan() -> bool:
        if os.name == "nt":  # Windows keeps the id of a parent that has ended
            starter = multiprocessing.parent_process()
            return starter is not None and not starter.is_alive()
        return os.getppid() != parent

    def exit_with_parent() -> None:
        while not is_orphan():
            sleep(1.0)
        os._exit(1)

    kernels.preload_numba()
    threading.Thread(target=exit_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def dask(jobs: int | None, address: str | None) -> Iterator[Pool]:
    """Connect to a Dask cluster, or start one inside of this process."""
    import joblib

    distributed = import_extra("distributed", "dask")
    import cloudpickle  # classes of a script or a prompt go along as they are; it comes with Dask

    with quiet_logs():
        cluster = None if address is not None else cluster_inside(distributed, jobs or joblib.cpu_count())
        try:
            client = distributed.Client(cluster if address is None else address, timeout=SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise ConnectionError(unreachable(address, "Dask", "tcp://10.0.0.1:8786", error)) from None
        seen = monotonic()  # when there was a worker

        def room() -> int:
            nonlocal seen
            try:
                threads = sum(client.nthreads().values())
            except (OSError, ValueError) as error:
                raise ConnectionError(f"the Dask scheduler at {address} is gone: {one_line(error)}") from None
            seen = monotonic() if threads else seen
            if monotonic() - seen > SECONDS_WITHOUT_WORKERS:
                raise ConnectionError(
                    f"the Dask cluster at {address} has had no worker for {SECONDS_WITHOUT_WORKERS:.0f} s"
                )
            return calls_at_a_time(threads, jobs, address)

        try:
            with client:
                wait_for_workers(client, address)
                executor, call = client.get_executor(pure=False), pickled_call()
                yield Pool(
                    lambda function, argument: executor.submit(call, cloudpickle.dumps((attempt, function, argument))),
                    room,
                    lambda error: f"a Dask worker failed: {one_line(error)}",
                )
        except BaseException:
            if cluster is not None:
                cluster.sync(leave_threads, cluster)
            raise
        finally:
            if cluster is not None:
                cluster.close()


def pickled_call() -> Callable[[bytes], Any]:
    """Make a function that goes to workers as it is, because it is defined inside of another one.

    A Dask scheduler then needs no package of ours, and a worker without it fails inside of the call, and says so.
    """

    def call(pickled: bytes) -> Any:
        function, *arguments = pickle.loads(pickled)
        return function(*arguments)

    return call


def calls_at_a_time(workers: int, jobs: int | None, address: str | None) -> int:
    """Limit the calls on a cluster to `jobs`, which is the number of its workers if it is our own."""
    return jobs if address is not None and jobs is not None else CALLS_PER_WORKER * max(workers, 1)


def cluster_inside(distributed: Any, workers: int) -> Any:
    """Start a Dask cluster of threads of this process, without any port for others.

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
def quiet_logs() -> Iterator[None]:
    """Keep Dask from logging tracebacks: what it has to say about lost connections we say in one line."""
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def ray(jobs: int | None, address: str | None) -> Iterator[Pool]:
    """Connect to a Ray cluster, or start a temporary one on this machine."""
    library = import_extra("ray", "ray")
    started = not library.is_initialized()
    if started and address is not None:
        connect_to_ray(library, address)
    elif started:
        options = {"num_cpus": jobs, "include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
        with own_token():
            library.init(address="local", **options)
    run = library.remote(num_cpus=1, max_retries=RETRIES, name="spillover")(pickled_call())
    answered, processors = monotonic(), 1

    def submit(function: Callable[[Any], Any], argument: Any) -> "Future[Any]":
        reference = run.remote(library.cloudpickle.dumps((attempt, function, argument)))
        future: Future[Any] = reference.future()
        future.add_done_callback(lambda done: library.cancel(reference, force=True) if done.cancelled() else None)
        return future

    def room() -> int:
        nonlocal answered, processors
        try:
            check_reachable(head)
        except ConnectionError:  # ask nothing else of it: Ray would wait
            if monotonic() - answered > SECONDS_UNREACHABLE:
                raise ConnectionError(
                    f"the head of the Ray cluster at {address} has not answered for {SECONDS_UNREACHABLE:.0f} s"
                ) from None
        else:
            answered, processors = monotonic(), int(library.cluster_resources().get("CPU", 0))
        return calls_at_a_time(processors, jobs, address)

    try:
        head = None if address is None else library.get_runtime_context().gcs_address  # of "auto", too
        yield Pool(submit, room, lambda error: f"a Ray worker failed: {one_line(error)}")
    finally:
        if started:
            library.shutdown()


def connect_to_ray(library: Any, address: str) -> None:
    """Connect to a running cluster, or raise a ConnectionError that says why not."""
    check_reachable(address)
    try:
        with no_complaints():
            library.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, RuntimeError, ValueError) as error:
        library.shutdown()
        raise ConnectionError(unreachable(address, "Ray", "10.0.0.1:6379", error)) from None


@contextmanager
def no_complaints() -> Iterator[None]:
    """Drop what Ray's compiled part writes to stderr about a connection: the error says it in a line."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def own_token() -> Iterator[None]:
    """Let a Ray cluster that is started in this context obey only those who know a token of this process.

    Ray listens at all addresses of the machine and demands a token by default. Unless it is given one, it writes one
    into the user's folder, which his other clusters would then demand too. What the user has set stays as it is.
    """
    changed = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}
    before = {name: os.environ[name] for name in changed if name in os.environ}
    if not before:
        os.environ["RAY_AUTH_TOKEN"] = token()
    try:
        yield
    finally:
        for name in changed - before.keys():
            os.environ.pop(name, None)


@cache
def token() -> str:
    """Draw a token, once for all runs of this process, because Ray remembers it."""
    return secrets.token_hex(32)


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
    """Say that a cluster does not answer."""
    return (
        f"address = {address!r}: must be that of a {what} cluster that answers within {SECONDS_TO_CONNECT:.0f} s, "
        f"such as {example} ({one_line(error)})"
    )


def one_line(error: BaseException) -> str:
    """Take the last line of an error or of its cause, which says most: some libraries put whole tracebacks in one."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__

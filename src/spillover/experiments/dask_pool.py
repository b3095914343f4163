"""A Dask cluster: a running one, or one inside of this process."""

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from time import monotonic
from typing import Any

from spillover.experiments.pools import CALLS_PER_WORKER, Attempt, CallOnLoad, attempt_on_load, one_line

SECONDS_BETWEEN_COUNTS = 5.0  # of the workers, which come and go
SECONDS_WITHOUT_WORKERS = 60.0  # a cluster may be about to start others
LOGGERS = ("distributed", "distributed.client")  # what they have to say about lost connections we say in one line


class DaskPool:
    """Calls on the workers of a cluster.

    address: None if the cluster is inside of this process. jobs: calls at a time, on a cluster at an address.
    """

    overhead = 0.02
    dispatch = 0.005

    def __init__(self, client: Any, address: str | None, jobs: int | None) -> None:
        import cloudpickle  # classes of a script or a prompt go along as they are; it comes with Dask

        self.client, self.address, self.jobs, self.dumps = client, address, jobs, cloudpickle.dumps
        self.threads, self.counted = 0, float("-inf")
        self.seen = monotonic()  # when there was a worker

    def slots(self) -> int:
        """As many calls as jobs are allowed, or twice as many as there are threads of workers."""
        if self.address is not None and self.jobs is not None:
            return self.jobs
        if monotonic() - self.counted > SECONDS_BETWEEN_COUNTS:
            self.count()
        return CALLS_PER_WORKER * max(self.threads, 1)

    def count(self) -> None:
        self.threads = sum(self.client.nthreads().values())
        self.counted = monotonic()
        if self.threads:
            self.seen = self.counted

    def submit(self, function: Callable[[Any], Any], argument: Any) -> Any:
        return self.client.submit(pickle.loads, self.dumps(attempt_on_load(function, argument)), pure=False)

    def result(self, pending: Any) -> Attempt:
        try:
            return Attempt(*pending.result())
        except CancelledError:
            raise ConnectionError(f"the Dask scheduler at {self.address} is gone") from None
        except OSError as error:  # a connection broke: that of the scheduler, or of a worker
            self.check()
            raise ConnectionError(f"a Dask worker failed: {one_line(error)}") from error
        except Exception as error:  # of Dask itself, such as workers that die at the same call again and again
            raise ConnectionError(f"a Dask worker failed: {one_line(error)}") from error

    def cancel(self, pending: Iterable[Any]) -> None:
        if self.client.status == "running":
            self.client.cancel(list(pending), force=True)

    def check(self) -> None:
        try:
            self.count()
        except (OSError, ValueError) as error:
            raise ConnectionError(f"the Dask scheduler at {self.address} is gone: {one_line(error)}") from None
        if monotonic() - self.seen > SECONDS_WITHOUT_WORKERS:
            raise ConnectionError(
                f"the Dask cluster at {self.address} has had no worker for {SECONDS_WITHOUT_WORKERS:.0f} s"
            )

    def on_every_worker(self, function: Callable[[Any], Any], argument: Any) -> dict[str, Any]:
        if self.address is None:
            return {}
        return dict(self.client.run(pickle.loads, self.dumps(CallOnLoad(function, argument)), on_error="return"))


def cluster_inside(distributed: Any, workers: int) -> Any:
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
def quiet_logs() -> Iterator[None]:
    """Dask logs whole tracebacks when a connection breaks."""
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)

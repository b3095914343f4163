"""Pools: where calls run, in this process, in processes of this machine, or on a cluster.

A pool takes calls and gives their results back in the order in which they are ready. `results` keeps only as many calls
with the pool as it can work on, so results never pile up before whoever collects them.
"""

import traceback
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, Protocol

SECONDS_BETWEEN_CHECKS = 2.0  # of whether the workers are still there
CALLS_PER_WORKER = 2  # one that runs, and one that can start at once when it ends


class Pending(Protocol):
    """A call that a pool has taken."""

    def add_done_callback(self, callback: Callable[[Any], Any], /) -> Any: ...


class Pool(Protocol):
    """Workers, one or many.

    overhead: seconds between two calls in which a worker computes nothing, about, as `python -m benchmarks engines`
        measures it; 0 if there is no reason to group small calls.
    dispatch: seconds that the pool itself takes for a call, which limits how many workers it can keep busy.
    """

    overhead: float
    dispatch: float

    def slots(self) -> int:
        """How many calls to leave with the pool at a time; may change while workers come and go."""

    def submit(self, function: Callable[[Any], Any], argument: Any) -> Pending:
        """Start a call."""

    def result(self, pending: Any) -> Any:
        """What a call that is done returned; raises a ConnectionError if it was lost with the cluster."""

    def cancel(self, pending: Iterable[Any]) -> None:
        """Forget calls that are not done."""

    def check(self) -> None:
        """Raise a ConnectionError if no result can come any more."""

    def on_every_worker(self, function: Callable[[Any], Any], argument: Any) -> dict[str, Any]:
        """What a function returns on every machine or worker that may have other software than this process.

        By its name: the result, or the error. Nothing for workers that this process has started itself.
        """


class Attempt(NamedTuple):
    """What became of a call in a worker: errors are values, because each cluster wraps those that are raised."""

    value: Any
    error: Exception | None


def attempt(call: tuple[Callable[[Any], Any], Any]) -> Attempt:
    """Call a function in a worker; the traceback of an error goes along as a note."""
    function, argument = call
    try:
        return Attempt(function(argument), None)
    except Exception as error:
        error.add_note(f"in the worker:\n{traceback.format_exc()}")
        return Attempt(None, error)


def results(pool: Pool, function: Callable[[Any], Any], arguments: Iterable[Any]) -> Generator[Any, None, None]:
    """Call a function for each argument; an argument is taken when the pool has room. Closing stops the work."""
    waiting, done, rest = set[Any](), SimpleQueue[Any](), iter(arguments)
    checked = monotonic()
    try:
        while True:
            if monotonic() - checked > SECONDS_BETWEEN_CHECKS:
                pool.check()
                checked = monotonic()
            while len(waiting) < pool.slots():
                try:
                    argument = next(rest)
                except StopIteration:
                    break
                pending = pool.submit(function, argument)
                waiting.add(pending)
                pending.add_done_callback(done.put)
            if not waiting:
                return
            yield value_of(pool, next_of(done, pool), waiting)
    finally:
        pool.cancel(waiting)


def value_of(pool: Pool, finished: Any, waiting: set[Any]) -> Any:
    """The value of a call that is done, which is forgotten with it."""
    waiting.discard(finished)
    value, error = pool.result(finished)
    if error is not None:
        raise error
    return value


def next_of(done: SimpleQueue[Any], pool: Pool) -> Any:
    """Wait for the next call that is done."""
    while True:
        try:
            return done.get(timeout=SECONDS_BETWEEN_CHECKS)
        except Empty:
            pool.check()


class SerialPool:
    """This process: a call runs when it is submitted."""

    overhead = 0.0
    dispatch = 0.0

    def slots(self) -> int:
        return 1

    def submit(self, function: Callable[[Any], Any], argument: Any) -> "Future[Attempt]":
        done: Future[Attempt] = Future()
        try:
            done.set_result(Attempt(function(argument), None))
        except Exception as error:  # an interrupt goes its usual way
            done.set_result(Attempt(None, error))
        return done

    def result(self, pending: "Future[Attempt]") -> Any:
        return pending.result()

    def cancel(self, pending: Iterable[Any]) -> None:
        pass

    def check(self) -> None:
        pass

    def on_every_worker(self, function: Callable[[Any], Any], argument: Any) -> dict[str, Any]:
        return {}


class CallOnLoad:
    """A call to be pickled: unpickling it makes the call, and gives its result.

    A worker without the package can then say so: it fails inside of the call like any other error, where a function of
    the package that is sent as itself would be lost on the way. A Dask scheduler need not have the package at all.
    """

    def __init__(self, function: Callable[[Any], Any], argument: Any) -> None:
        self.function, self.argument = function, argument

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return self.function, (self.argument,)


def attempt_on_load(function: Callable[[Any], Any], argument: Any) -> CallOnLoad:
    return CallOnLoad(attempt, (function, argument))


def one_line(error: BaseException) -> str:
    """The last line of an error or of what caused it, which says most: some libraries put whole tracebacks in one."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__

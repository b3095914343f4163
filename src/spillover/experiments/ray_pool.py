"""A Ray cluster: a running one, or a temporary one on this machine."""

import os
import pickle
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Any

from spillover.experiments.pools import CALLS_PER_WORKER, Attempt, CallOnLoad, attempt_on_load, one_line

SECONDS_BETWEEN_COUNTS = 5.0  # of the processors, which come and go
SECONDS_UNREACHABLE = 20.0  # a head that restarts is back by then; after 60 s Ray itself would end this process
SECONDS_TO_ANSWER = 60.0  # a node that may have to start a worker first
RETRIES = 3  # of a call whose worker or machine died


class RayPool:
    """Calls on the workers of a cluster; a call whose worker dies is tried again.

    jobs: calls at a time, on a cluster at an address. reachable: raises a ConnectionError if nothing listens there.
    """

    overhead = 0.01
    dispatch = 0.002

    def __init__(self, library: Any, address: str | None, jobs: int | None, reachable: Callable[[], None]) -> None:
        self.library, self.address, self.jobs, self.reachable = library, address, jobs, reachable
        self.dumps = library.cloudpickle.dumps  # classes of a script or a prompt go along as they are
        # a lambda goes to the workers as it is, while a function of the package would have to be installed there
        self.run = library.remote(num_cpus=1, max_retries=RETRIES, name="spillover")(lambda call: pickle.loads(call))
        self.processors, self.counted = 0, float("-inf")
        self.answered = monotonic()
        self.submitted: dict[Any, Any] = {}  # by future, what Ray calls it

    def slots(self) -> int:
        """As many calls as jobs are allowed, or twice as many as there are processors."""
        if self.address is not None and self.jobs is not None:
            return self.jobs
        if monotonic() - self.counted > SECONDS_BETWEEN_COUNTS and self.head_answers():  # or else Ray would wait
            self.processors = int(self.library.cluster_resources().get("CPU", 0))
            self.counted = monotonic()
        return CALLS_PER_WORKER * max(self.processors, 1)

    def submit(self, function: Callable[[Any], Any], argument: Any) -> Any:
        reference = self.run.remote(self.dumps(attempt_on_load(function, argument)))
        future = reference.future()
        self.submitted[future] = reference
        return future

    def result(self, pending: Any) -> Attempt:
        self.submitted.pop(pending, None)
        try:
            return Attempt(*pending.result())
        except Exception as error:  # of Ray itself, such as workers that die at the same call again and again
            raise ConnectionError(f"a Ray worker failed: {one_line(error)}") from error

    def cancel(self, pending: Iterable[Any]) -> None:
        for future in pending:
            self.library.cancel(self.submitted.pop(future), force=True)

    def head_answers(self) -> bool:
        try:
            self.reachable()
        except ConnectionError:
            return False
        self.answered = monotonic()
        return True

    def check(self) -> None:
        if not self.head_answers() and monotonic() - self.answered > SECONDS_UNREACHABLE:
            raise ConnectionError(
                f"the head of the Ray cluster at {self.address} has not answered for {SECONDS_UNREACHABLE:.0f} s"
            )

    def on_every_worker(self, function: Callable[[Any], Any], argument: Any) -> dict[str, Any]:
        """Once on every machine that has processors: its workers share the software."""
        if self.address is None:
            return {}
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        call = self.dumps(CallOnLoad(function, argument))
        asked = {}
        for node in self.library.nodes():
            if node["Alive"] and node["Resources"].get("CPU"):
                there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                ask = self.run.options(num_cpus=0, max_retries=0, scheduling_strategy=there)
                asked[f"{node['NodeManagerAddress']} (node {node['NodeID'][:8]})"] = ask.remote(call)
        return {name: self.answer(reference) for name, reference in asked.items()}

    def answer(self, reference: Any) -> Any:
        try:
            return self.library.get(reference, timeout=SECONDS_TO_ANSWER)
        except Exception as error:
            return error


@contextmanager
def own_token() -> Iterator[None]:
    """A Ray cluster that is started in this context obeys only those who know a token, which only this process knows.

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
    """The same for all runs of this process, because Ray remembers it."""
    return secrets.token_hex(32)

"""Writing together: whoever comes while another one writes waits, and one of those who wait writes for all of them."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
MOST = 256  # jobs that are written together


class GroupCommit(Generic[Job, Result]):
    """commit: writes jobs together, with one sync to the disk; returns a result, or an exception, for each."""

    def __init__(self, commit: Callable[[Sequence[Job]], Sequence[Result | Exception]]) -> None:
        self.commit = commit
        self.waiting: deque[tuple[Job, Future[Result]]] = deque()
        self.writing = threading.Lock()
        self.closed = False

    def submit(self, job: Job) -> Result:
        """Write a job, with those of others that wait; returns when it is written."""
        future: Future[Result] = Future()
        self.waiting.append((job, future))
        while not future.done():
            with self.writing:
                if not future.done():
                    self.write_waiting()
        return future.result()

    def write_waiting(self) -> None:
        self.write([self.waiting.popleft() for _ in range(min(len(self.waiting), MOST))])

    def write(self, group: Sequence[tuple[Job, "Future[Result]"]]) -> None:
        try:
            if self.closed:
                raise RuntimeError("the writer is closed: nothing can be recorded")
            results = self.commit([job for job, _ in group])
        except BaseException as error:
            for _, future in group:
                future.set_exception(error)
            return
        for (_, future), result in zip(group, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def close(self) -> None:
        """Write what waits; nothing is written after that."""
        with self.writing:
            while self.waiting:
                self.write_waiting()
            self.closed = True

"""One thread that writes: what arrives while it writes is written together, with one sync to the disk."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
MOST = 256  # jobs that are written together


class GroupCommit(Generic[Job, Result]):
    """commit: writes jobs together; returns a result, or an exception, for each."""

    def __init__(self, commit: Callable[[Sequence[Job]], Sequence[Result | Exception]], name: str) -> None:
        self.commit = commit
        self.waiting: deque[tuple[Job, Future[Result]]] = deque()
        self.changed = threading.Condition()
        self.closed = False
        self.thread = threading.Thread(target=self.run, name=name, daemon=True)
        self.thread.start()

    def submit(self, job: Job) -> Result:
        """Wait until a job is written."""
        future: Future[Result] = Future()
        with self.changed:
            if self.closed:
                raise RuntimeError("the writer is closed: nothing can be recorded")
            self.waiting.append((job, future))
            self.changed.notify()
        return future.result()

    def run(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.closed)
                if not self.waiting:
                    return
                group = [self.waiting.popleft() for _ in range(min(len(self.waiting), MOST))]
            self.write([job for job, _ in group], [future for _, future in group])

    def write(self, jobs: Sequence[Job], futures: Sequence["Future[Result]"]) -> None:
        try:
            results = self.commit(jobs)
        except BaseException as error:
            for future in futures:
                future.set_exception(error)
            return
        for future, result in zip(futures, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def close(self) -> None:
        """Write what waits, and stop."""
        with self.changed:
            self.closed = True
            self.changed.notify()
        self.thread.join()

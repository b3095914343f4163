"""Linear algebra on one thread, as in `spillover next`: small matrices, and the same bits on every machine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def controller() -> Any:
    """Knows the libraries that are loaded; to look for them takes longer than a decision."""
    import scipy.linalg  # so that its library is among them  # noqa: F401

    return ThreadpoolController()


class OneThread:
    """The limit holds for the whole process, so it ends when the last of those that asked for it leaves."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limit: Any = None

    def enter(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = controller().limit(limits=1)
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.restore_original_limits()


LIMIT = OneThread()


@contextmanager
def one_thread() -> Iterator[None]:
    LIMIT.enter()
    try:
        yield
    finally:
        LIMIT.leave()

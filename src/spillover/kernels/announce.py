"""Say on a terminal that kernels are being compiled: a newcomer would wonder what takes so long."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from numba.core import event


def on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def show(line: str) -> None:
    """Put a line in the place of the last one."""
    print(f"\r{line:<60}\r", end="", file=sys.stderr, flush=True)


class Counter:
    """Which kernel of how many is being compiled, on one line that is gone at the end; nothing when piped."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    def __enter__(self) -> Self:
        self.advance(0)
        return self

    def advance(self, compiled: int) -> None:
        self.done += compiled
        if on_terminal() and self.done < self.total:
            show(f"compiling kernel {self.done + 1} of {self.total}")

    def __exit__(self, *_: Any) -> None:
        if on_terminal():
            show("")


class FirstPass(event.Listener):  # type: ignore[misc]
    """Notices that Numba compiles: a kernel from the cache goes through none of its passes."""

    compiled = 0  # kernels that this process has compiled

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.seen = name, total, False

    def on_start(self, event: Any) -> None:
        if not self.seen:
            self.seen = True
            FirstPass.compiled += 1
            show(f"compiling kernel {self.compiled} of {self.total}: {self.name}")

    def on_end(self, event: Any) -> None:
        """Nothing: one line a kernel."""


@contextmanager
def announced(name: str, total: int) -> Iterator[None]:
    """Say that a kernel is being compiled, for as long as it takes; nothing when it is cached, or when piped."""
    if not on_terminal():
        yield
        return
    listener = FirstPass(name, total)
    try:
        with event.install_listener("numba:run_pass", listener):
            yield
    finally:
        if listener.seen:
            show("")

"""A message on the terminal while kernels are compiled, which takes longer than most tasks.

When piped there is one line before many of them are compiled, so that nobody waits for a minute without knowing why.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from numba.core import event

PASS = "numba:run_pass"  # a step of Numba's compiler; kernels from the cache need none
WIDTH = 60
MANY = 8  # kernels that take long enough for a line even when piped


class Announcer:
    """One line on stderr: which kernel of how many is being compiled."""

    def __init__(self) -> None:
        self.silent = False
        self.compiled = 0  # by this process

    def is_shown(self) -> bool:
        return not self.silent and sys.stderr is not None and sys.stderr.isatty()

    def say_once(self, missing: int) -> None:
        """One line where no progress is shown, if many kernels have to be compiled."""
        if missing >= MANY and not self.silent and sys.stderr is not None and not sys.stderr.isatty():
            print(
                f"spillover: compiling {missing} kernels first, about a minute, once only", file=sys.stderr, flush=True
            )

    def show(self, number: int, total: int) -> None:
        self.replace_line(f"compiling kernel {number} of {total} (once only)")

    def replace_line(self, line: str) -> None:
        if self.is_shown():
            print(f"\r{line:<{WIDTH}}\r", end="", file=sys.stderr, flush=True)


ANNOUNCER = Announcer()


@contextmanager
def silence() -> Iterator[None]:
    """Print nothing, not even on a terminal."""
    before, ANNOUNCER.silent = ANNOUNCER.silent, True
    try:
        yield
    finally:
        ANNOUNCER.silent = before


class FirstPass(event.Listener):  # type: ignore[misc]
    """Detects that Numba compiles."""

    def __init__(self, total: int) -> None:
        self.total, self.seen = total, False

    def on_start(self, event: Any) -> None:
        if not self.seen:
            self.seen = True
            ANNOUNCER.compiled += 1
            ANNOUNCER.show(ANNOUNCER.compiled, self.total)

    def on_end(self, event: Any) -> None:
        """Nothing to do: one line for each kernel."""


@contextmanager
def announced(total: int) -> Iterator[None]:
    """Show a line while a kernel is being compiled; none if it comes from the cache."""
    listener = FirstPass(total)
    try:
        with event.install_listener(PASS, listener):
            yield
    finally:
        if listener.seen:
            ANNOUNCER.replace_line("")


class Counter:
    """Progress of the kernels that other processes compile."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0

    def __enter__(self) -> Self:
        self.advance(0)
        return self

    def advance(self, compiled: int) -> None:
        self.done += compiled
        if self.done < self.total:
            ANNOUNCER.show(self.done + 1, self.total)

    def __exit__(self, *_: Any) -> None:
        ANNOUNCER.replace_line("")

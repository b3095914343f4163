"""Compile kernels on first use, load them from the cache after that, and say so where somebody waits."""

import gc
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numba import guvectorize
from numba.core import event

from spillover.kernels.cache import OURS, cache_folder, stored

PASS = "numba:run_pass"  # a step of Numba's compiler; kernels from the cache need none
WIDTH = 60


class Announcer:
    """One line on stderr: which kernel of how many is being compiled."""

    def __init__(self) -> None:
        self.silent = False
        self.awaited = False  # whether a command runs whose answer somebody waits for
        self.said = False  # whether a line was printed although progress is not shown
        self.compiled = 0  # by this process

    def is_shown(self) -> bool:
        return not self.silent and sys.stderr is not None and sys.stderr.isatty()

    def say_once(self) -> None:
        """One line where no progress is shown."""
        if self.said or self.silent or sys.stderr is None or sys.stderr.isatty():
            return
        self.said = True
        print("spillover: compiling first, which may take about a minute, once only", file=sys.stderr, flush=True)

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


@contextmanager
def awaited() -> Iterator[None]:
    """Print a line before the first kernel is compiled, also when piped."""
    before, ANNOUNCER.awaited = ANNOUNCER.awaited, True
    try:
        yield
    finally:
        ANNOUNCER.awaited = before


class FirstPass(event.Listener):  # type: ignore[misc]
    """Detects that Numba compiles."""

    def __init__(self, total: int) -> None:
        self.total, self.seen = total, False

    def on_start(self, event: Any) -> None:
        if not self.seen:
            self.seen = True
            ANNOUNCER.compiled += 1
            if ANNOUNCER.awaited:
                ANNOUNCER.say_once()
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


class Kernel(NamedTuple):
    """A kernel that may not be compiled yet."""

    file: str  # the file of this folder that declares it, without .py
    function: Callable[..., None]
    make: Callable[[bool], np.ufunc]  # whether to use Numba's cache


KERNELS: dict[str, Kernel] = {}
# One thread at a time: where Numba caches, and how it compiles, are settings of the whole process.
LOADING = threading.RLock()


def gufunc(signature: tuple[Any, ...], layout: str, writes: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Declare a kernel. It becomes a plain NumPy ufunc: Numba's own wrapper costs a microsecond a call.

    A kernel is compiled, or loaded from Numba's cache, on first use (`spillover.kernels.NAME`): loading all of them
    would take longer than most commands. `writes`: inputs that the kernel rewrites in place, which must be C-contiguous
    arrays of the full batch.
    """

    def registered(function: Callable[..., None]) -> Callable[..., None]:
        def make(cached: bool) -> np.ufunc:
            ufunc: np.ufunc = guvectorize([signature], layout, writable_args=writes, cache=cached)(function).ufunc
            return ufunc

        OURS.add(function)
        KERNELS[function.__name__] = Kernel(function.__module__.rpartition(".")[2], function, make)
        return function

    return registered


@contextmanager
def uncollected() -> Iterator[None]:
    """Compile or load here: Numba makes so many objects that Python would look for garbage again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def build(name: str) -> np.ufunc:
    """A kernel, compiled or from the cache."""
    kernel = KERNELS[name]
    with LOADING, stored(kernel.function), uncollected():
        return kernel.make(cache_folder() is not None)


def load(name: str) -> np.ufunc:
    """A kernel; if it has to be compiled, the terminal shows it."""
    with announced(len(KERNELS)):
        return build(name)


def preload_numba() -> None:
    """Load what Numba loads with its first kernel, but not SciPy's linear algebra.

    Numba imports `scipy.linalg` only to check that it exists, which takes longer than all the rest. Since we depend on
    SciPy, it does exist, and code that needs it can still import it later. No other thread may import it meanwhile.
    """
    unneeded = "scipy.linalg"
    if unneeded in sys.modules:
        return
    sys.modules[unneeded] = None  # type: ignore[assignment]  # makes the import fail
    try:
        load("top_arms")
        import numba.np.arraymath

        numba.np.arraymath._HAVE_BLAS = True
    finally:
        del sys.modules[unneeded]


def compile_all() -> None:
    """Compile every kernel in advance, with one process for each core."""
    from joblib import Parallel, cpu_count, delayed

    files = sorted({kernel.file for kernel in KERNELS.values()}, key=source_size, reverse=True)  # the longest first
    side_by_side = Parallel(n_jobs=min(cpu_count(), len(files)), return_as="generator_unordered", batch_size=1)
    with Counter(len(KERNELS)) as counter, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped")  # to start anew with less memory, which is as well
        for compiled in side_by_side(delayed(compile_file)(file) for file in files):
            counter.advance(compiled)


def source_size(file: str) -> int:
    return Path(__file__).with_name(f"{file}.py").stat().st_size


def compile_file(file: str) -> int:
    """Compile the kernels of one file; returns how many there are."""
    names = [name for name, kernel in KERNELS.items() if kernel.file == file]
    for name in names:
        build(name)
    return len(names)

"""How kernels are declared, compiled on first use, and loaded from Numba's cache after that."""

import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import guvectorize

from spillover.kernels.announce import Counter, announced
from spillover.kernels.cache import cache_folder, compile_lock, mark_used, numba_asks_us
from spillover.kernels.quick_compiling import quick_compiling


class Kernel(NamedTuple):
    """A kernel that may not be compiled yet."""

    file: str  # the file of this folder that declares it, without .py
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

        KERNELS[function.__name__] = Kernel(function.__module__.rpartition(".")[2], make)
        return function

    return registered


def build(name: str) -> np.ufunc:
    """A kernel, compiled or from the cache."""
    kernel, folder = KERNELS[name], cache_folder()
    if folder is None:
        with LOADING, quick_compiling():
            return kernel.make(False)
    with LOADING, compile_lock(folder, kernel.file), numba_asks_us(), quick_compiling():
        ufunc = kernel.make(True)
        mark_used(folder, kernel.file)
    return ufunc


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

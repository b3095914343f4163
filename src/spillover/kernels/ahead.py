"""Compile the kernels that a task will need, on several cores, before it needs them.

The kernels are cached one after another in the order of the task otherwise, on one core, and the first decision on a
new machine waits for all of them.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spillover.kernels.announce import ANNOUNCER, MANY
from spillover.kernels.build import KERNELS, load, preload_numba
from spillover.kernels.cache import cache_folder, has_kernel, is_locked

PAUSE = 0.1  # seconds between looks at the processes that compile
WALK = "import sys; from spillover.kernels.ahead import compile_missing; compile_missing(sys.argv[1:])"


@contextmanager
def compiled_ahead(names: Sequence[str]) -> Iterator[None]:
    """Compile what is missing of some kernels, and go on when nothing is left to start with.

    Every process takes the first kernel of the list that is not compiled and that no other one compiles, so those that
    take longest should be at the front. Whatever the others have not finished is waited for where it is needed; if one
    of them dies, this process compiles what it left.
    """
    if len(missing(names)) >= MANY:
        ANNOUNCER.say_once()
    with helpers(names, besides=1) as others:
        if others:
            preload_numba()
        compile_missing(names)
        yield


def compile_apart(names: Sequence[str], stopped: threading.Event) -> None:
    """Compile what is missing of some kernels in other processes, so that this one stays free; until it is stopped."""
    with helpers(names, besides=0) as others:
        while not stopped.is_set() and any(process.poll() is None for process in others):
            stopped.wait(PAUSE)


@contextmanager
def helpers(names: Sequence[str], *, besides: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that compile what is missing, one for each core besides some; they end with the block."""
    from joblib import cpu_count

    files = {KERNELS[name].file for name in missing(names)}
    others = [start(names) for _ in range(min(cpu_count(), len(files)) - besides)]
    try:
        yield others
    finally:
        for process in others:
            process.kill()
            process.wait()


def start(names: Sequence[str]) -> subprocess.Popen[bytes]:
    nowhere = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-c", WALK, *names], stdin=nowhere, stdout=nowhere, stderr=nowhere)


def compile_missing(names: Sequence[str]) -> None:
    """Compile kernels that nobody has compiled or is compiling now."""
    folder = cache_folder()
    for name in missing(names):
        file = KERNELS[name].file
        if folder is not None and not is_locked(folder, file) and not has_kernel(folder, file, name):
            load(name)


def missing(names: Sequence[str]) -> list[str]:
    """The kernels that are not in the cache; none if there is no cache, where other processes could not help."""
    folder = cache_folder()
    return [] if folder is None else [name for name in names if not has_kernel(folder, KERNELS[name].file, name)]

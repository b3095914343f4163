"""Compile the kernels that a task will need, on several cores, before it needs them.

The kernels are cached one after another in the order of the task otherwise, on one core, and the first decision on a
new machine waits for all of them.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spillover.kernels.announce import ANNOUNCER
from spillover.kernels.build import KERNELS, load, preload_numba
from spillover.kernels.cache import cache_folder, has_kernel, is_locked

WALK = "import sys; from spillover.kernels.ahead import compile_missing; compile_missing(sys.argv[1:])"


@contextmanager
def compiled_ahead(names: Sequence[str]) -> Iterator[None]:
    """Compile what is missing of some kernels, and go on when nothing is left to start with.

    Every process takes the first kernel of the list that is not compiled and that no other one compiles, so those that
    take longest should be at the front. Whatever the others have not finished is waited for where it is needed; if one
    of them dies, this process compiles what it left.
    """
    from joblib import cpu_count

    lacking = missing(names)
    files = {KERNELS[name].file for name in lacking}
    ANNOUNCER.say_once(len(lacking))
    others = [start(names) for _ in range(min(cpu_count(), len(files)) - 1)]
    try:
        if others:
            preload_numba()
        compile_missing(names)
        yield
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

"""Where compiled kernels are stored, and the locks beside them."""

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from filelock import FileLock
from numba import config

BESIDE_THE_SOURCE = Path(__file__).parent / "__pycache__"
SECONDS_BETWEEN_TRIES = 0.01


def cache_folder() -> Path:
    """The first folder that can be written: NUMBA_CACHE_DIR, beside the source, the user's cache, a temporary one."""
    if config.CACHE_DIR and usable(Path(config.CACHE_DIR).absolute()):
        return Path(config.CACHE_DIR).absolute()
    if usable(BESIDE_THE_SOURCE):
        return BESIDE_THE_SOURCE
    of_user = user_cache()
    return of_user if usable(of_user) else temporary_cache()


@cache
def usable(folder: Path) -> bool:
    """Whether this process can write there and take its locks; the folder is created if needed."""
    if not folder.is_absolute():  # a user without a home
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return all(os.access(path, os.R_OK | os.W_OK) for path in folder.glob("spillover-*.lock"))


@cache
def user_cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("spillover") / "kernels"


@cache
def temporary_cache() -> Path:
    """A folder that only this user can enter, because code is loaded from it.

    It is the same in every process, unless another user has taken its name: then this process gets one of its own.
    """
    with tempfile.TemporaryFile() as ours:
        owner = os.fstat(ours.fileno()).st_uid
    folder = Path(tempfile.gettempdir()) / f"spillover-{owner}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if is_private(folder, owner) and usable(folder):
        return folder
    fresh = tempfile.mkdtemp(prefix="spillover-")
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return Path(fresh)


def is_private(folder: Path, owner: int) -> bool:
    found = folder.lstat()
    # Windows has neither owners nor modes here, but every user has a temporary folder
    closed = os.name == "nt" or (found.st_uid == owner and not found.st_mode & 0o077)
    return stat.S_ISDIR(found.st_mode) and closed


@contextmanager
def compile_lock(folder: Path, file: str) -> Iterator[None]:
    """One process at a time for each file of kernels.

    Numba caches a gufunc in two files. Two processes that fill an empty cache at once can leave halves of two builds
    there, and loading those crashes (a known bug of Numba). No other user can hold the lock: the file is private.
    """
    path = folder / f"spillover-{file}.lock"
    with FileLock(path, mode=0o600, poll_interval=SECONDS_BETWEEN_TRIES):
        yield


@contextmanager
def numba_caches_in(folder: Path) -> Iterator[None]:
    """Make Numba use a folder for our kernels only; by itself it knows only the first three."""
    config.reload_config()  # now, because Numba reloads a changed environment while it compiles
    before = config.CACHE_DIR
    config.CACHE_DIR = "" if folder == BESIDE_THE_SOURCE else str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before

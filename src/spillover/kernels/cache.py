"""Where compiled kernels are stored, and the locks beside them."""

import atexit
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Self

import numba
from filelock import FileLock, Timeout
from numba.core.caching import CacheImpl, _CacheLocator

BESIDE_THE_SOURCE = Path(__file__).parent / "__pycache__"
SECONDS_BETWEEN_TRIES = 0.01
IMPORT = re.compile(r"^from spillover\.kernels\.(\w+) import", re.MULTILINE)
DAYS_KEPT = 60
MACHINERY = {"build"}  # declares kernels, but none of its code is compiled


def cache_folder() -> Path | None:
    """The first folder that can be written: NUMBA_CACHE_DIR, the user's cache, beside the source, a temporary one.

    The user's cache comes before the source, because kernels are stored by what they are compiled from: clones,
    virtual environments and versions share what they have in common. None if there is no such folder: then kernels are
    compiled in every process.
    """
    if numba.config.CACHE_DIR and usable(Path(numba.config.CACHE_DIR).absolute()):
        return Path(numba.config.CACHE_DIR).absolute()
    for folder in (user_cache(), BESIDE_THE_SOURCE):
        if usable(folder):
            return folder
    return temporary_cache()


@cache
def usable(folder: Path) -> bool:
    """Whether this process can write there, and no other user can get in its way; the folder is created if needed."""
    if not folder.is_absolute():  # a user without a home
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as ours:
            owner = os.fstat(ours.fileno()).st_uid
        return is_trusted(folder, owner)
    except OSError:
        return False


def is_trusted(folder: Path, owner: int) -> bool:
    """Whether no other user can put code there for this one to load, or hold a lock that this one would wait for."""
    if os.name == "nt":  # neither owners nor modes
        return True
    open_to_all = folder.stat().st_mode & stat.S_IWOTH
    return not open_to_all and all(is_own(path.lstat(), owner) for path in folder.glob("spillover-*.lock"))


def is_own(lock: os.stat_result, owner: int) -> bool:
    """Whether a lock is a file of this user that no other one can open."""
    return stat.S_ISREG(lock.st_mode) and lock.st_uid == owner and not lock.st_mode & 0o077


@cache
def user_cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("spillover") / "kernels"


@cache
def temporary_cache() -> Path | None:
    """A folder that only this user can enter, because code is loaded from it; None if nothing can be written at all.

    It is the same in every process, unless another user has taken its name: then this process gets one of its own.
    """
    try:
        with tempfile.TemporaryFile() as ours:
            owner = os.fstat(ours.fileno()).st_uid
        folder = Path(tempfile.gettempdir()) / f"spillover-{owner}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if is_private(folder, owner) and usable(folder):
            return folder
        fresh = tempfile.mkdtemp(prefix="spillover-")
    except OSError:
        return None
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return Path(fresh)


def is_private(folder: Path, owner: int) -> bool:
    try:
        found = folder.lstat()
    except FileNotFoundError:  # whoever had it has removed it
        return False
    # Windows has neither owners nor modes here, but every user has a temporary folder
    closed = os.name == "nt" or (found.st_uid == owner and not found.st_mode & 0o077)
    return stat.S_ISDIR(found.st_mode) and closed


@cache
def own_folder(folder: Path, file: str) -> Path:
    """The folder of the kernels of one file, named by all that they are compiled from.

    That is the file, those that it imports (of which Numba knows nothing), and the version of Numba.
    """
    content = hashlib.sha256(numba.__version__.encode())
    for one in sorted(files_behind(file)):
        content.update(source_of(one))
    return folder / f"{file}-{content.hexdigest()[:16]}"


def files_behind(file: str) -> set[str]:
    """The file, and all files of kernels that it imports, directly or not."""
    found, waiting = set(), {file}
    while waiting:
        found.add(one := waiting.pop())
        waiting |= set(IMPORT.findall(source_of(one).decode())) - found - MACHINERY
    return found


@cache
def source_of(file: str) -> bytes:
    """The source of a file of kernels, as it was on the first call in this process."""
    return Path(__file__).with_name(f"{file}.py").read_bytes()


@contextmanager
def compile_lock(folder: Path, file: str) -> Iterator[None]:
    """One process at a time for each file of kernels; another version of the file does not wait.

    Numba caches a gufunc in two files. Two processes that fill an empty cache at once can leave halves of two builds
    there, and loading those crashes (a known bug of Numba). No other user can hold the lock: the file is private.
    """
    with FileLock(lock_of(own_folder(folder, file)), mode=0o600, poll_interval=SECONDS_BETWEEN_TRIES):
        yield


def lock_of(own: Path) -> Path:
    """The lock of the kernels in a folder, next to it."""
    return own.with_name(f"spillover-{own.name}.lock")


def is_locked(folder: Path, file: str) -> bool:
    """Whether another process loads or compiles kernels of a file at the moment."""
    try:
        with FileLock(lock_of(own_folder(folder, file)), mode=0o600, timeout=0):
            return False
    except Timeout:
        return True


def has_kernel(folder: Path, file: str, name: str) -> bool:
    """Whether a kernel was compiled before, by what the folder shows; only loading it tells for certain."""
    return any(own_folder(folder, file).glob(f"guf-{file}.{name}-*.nbi"))


class KernelLocator(_CacheLocator):  # type: ignore[misc]
    """Has Numba store our kernels in their `own_folder`, and nobody else's functions."""

    def __init__(self, function: Callable[..., None], folder: Path) -> None:
        self.folder = folder
        self.line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Callable[..., None], py_file: str) -> Self | None:
        folder = cache_folder() if Path(py_file).parent == Path(__file__).parent else None
        return cls(py_func, own_folder(folder, Path(py_file).stem)) if folder else None

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        """The folder's name already has a hash of the source, so a copy of the package finds the same kernels."""
        return self.folder.name

    def get_disambiguator(self) -> str:
        return str(self.line)


CacheImpl._locator_classes = [KernelLocator, *CacheImpl._locator_classes]


@contextmanager
def numba_asks_us() -> Iterator[None]:
    """Have Numba ask our locator for our kernels, even if the user has set another one (for other code)."""
    numba.config.reload_config()  # now, because Numba reloads a changed environment while it compiles
    before, numba.config.CACHE_LOCATOR_CLASSES = numba.config.CACHE_LOCATOR_CLASSES, ""
    try:
        yield
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before


def mark_used(folder: Path, file: str) -> None:
    """Note, once a day, that the kernels of a file are in use, and remove those that were compiled from other source
    and are not in use any more. The caller holds the file's lock.
    """
    own = own_folder(folder, file)
    with suppress(OSError):  # another process may have cleared the whole cache
        if days_since_use(own) > 1:
            os.utime(own)
            for other in folder.glob(f"{file}-" + "[0-9a-f]" * 16):
                if days_since_use(other) > DAYS_KEPT:
                    shutil.rmtree(other, ignore_errors=True)
                    lock_of(other).unlink(missing_ok=True)


def days_since_use(own: Path) -> float:
    return (time.time() - own.stat().st_mtime) / 86_400

"""Where compiled kernels are stored, and the locks beside them."""

import atexit
import hashlib
import os
import re
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
IMPORT = re.compile(r"^from spillover\.kernels\.(\w+) import", re.MULTILINE)
MACHINERY = {"build"}  # declares kernels, but none of its code is compiled


def cache_folder() -> Path | None:
    """The first folder that can be written: NUMBA_CACHE_DIR, beside the source, the user's cache, a temporary one.

    None if there is no such folder: then kernels are compiled in every process.
    """
    if config.CACHE_DIR and usable(Path(config.CACHE_DIR).absolute()):
        return Path(config.CACHE_DIR).absolute()
    if usable(BESIDE_THE_SOURCE):
        return BESIDE_THE_SOURCE
    of_user = user_cache()
    return of_user if usable(of_user) else temporary_cache()


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
    """The folder of the kernels of one file: a folder of its own if they call functions of other files.

    Numba compiles a kernel again when its own file has changed, but knows nothing of other files. Therefore the name
    of that folder has a hash of those.
    """
    others = sorted(files_behind(file) - {file})
    if not others:
        return folder
    content = b"".join(source_of(other) for other in others)
    return folder / f"{file}-{hashlib.sha256(content).hexdigest()[:16]}"


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

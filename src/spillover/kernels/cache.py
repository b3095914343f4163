"""Store compiled code under a hash of all that it is made of.

That is the bytecode of a function and of every function that it can reach, with the constants and records that they
use. Numba's own cache does not find functions again that are made inside of another one, and does not notice a change
in a function that is called.
"""

import atexit
import enum
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import types as python
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import llvmlite
import numba
import numpy as np
from filelock import FileLock
from numba import config
from numba.core.caching import CacheImpl, CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.extending import _Intrinsic

from spillover.kernels.decorators import ENTRY, HELPER, INNER, RARE

BESIDE_THE_SOURCE = Path(__file__).parent / "__pycache__"
SECONDS_BETWEEN_TRIES = 0.01
DAYS_KEPT = 60
PREFIX = "code-"  # of the folders of compiled functions
OURS: set[Callable[..., Any]] = set()  # our kernels
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)

FOREIGN = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite"}  # whose version is known


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


def own_folder(folder: Path, function: Callable[..., Any]) -> Path:
    """The folder of a compiled function."""
    return folder / f"{PREFIX}{mark_of(function)}"


def lock_of(own: Path) -> Path:
    """The lock of a compiled function, next to its folder."""
    return own.with_name(f"spillover-{own.name}.lock")


@contextmanager
def stored(function: Callable[..., Any]) -> Iterator[None]:
    """Load or compile a function here: one process at a time does, and the others find it in the cache.

    Numba caches a gufunc in two files. Two processes that fill an empty cache at once can leave halves of two builds
    there, and loading those crashes (a known bug of Numba). No other user can hold the lock: the file is private.
    """
    folder = cache_folder()
    if folder is None:
        yield
        return
    own = own_folder(folder, function)
    with FileLock(lock_of(own), mode=0o600, poll_interval=SECONDS_BETWEEN_TRIES), numba_asks_us():
        yield
        with suppress(OSError):  # another process may have cleared the whole cache
            note_use(own)


def note_use(own: Path) -> None:
    """Note, once a day, that a function is in use, and remove those that have not been used for long."""
    if days_since_use(own) > 1:
        os.utime(own)
        for other in own.parent.glob(f"{PREFIX}*"):
            if days_since_use(other) > DAYS_KEPT:
                shutil.rmtree(other, ignore_errors=True)
                lock_of(other).unlink(missing_ok=True)


def days_since_use(own: Path) -> float:
    return (time.time() - own.stat().st_mtime) / 86_400


@contextmanager
def numba_asks_us() -> Iterator[None]:
    """Have Numba ask our locator for our kernels, even if the user has set another one (for other code)."""
    numba.config.reload_config()  # now, because Numba reloads a changed environment while it compiles
    before, numba.config.CACHE_LOCATOR_CLASSES = numba.config.CACHE_LOCATOR_CLASSES, ""
    try:
        yield
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before


class Fingerprint:
    """A hash of all that a function can reach."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: dict[int, tuple[int, Any]] = {}  # kept, so that no other object gets the same place in memory
        self.note(numba.__version__, llvmlite.__version__, np.__version__, sys.version, INNER, HELPER, RARE, ENTRY)
        self.note(config.OPT, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)  # settings that change the code

    def note(self, *words: object) -> None:
        self.hash.update("\0".join(map(str, words)).encode() + b"\1")

    def add(self, thing: Any) -> None:
        """Add anything that compiled code may use."""
        if isinstance(thing, PLAIN):
            self.note(type(thing).__name__, repr(thing))
        elif isinstance(thing, tuple | list | set | frozenset):
            self.note(type(thing).__name__, len(thing))
            for each in sorted(thing, key=repr) if isinstance(thing, set | frozenset) else thing:
                self.add(each)
        elif isinstance(thing, np.ndarray):
            self.note(thing.dtype, thing.shape, thing.tobytes())
        elif id(thing) in self.seen:
            self.note("again", self.seen[id(thing)][0])
        else:
            self.seen[id(thing)] = len(self.seen), thing
            self.add_once(thing)

    def add_once(self, thing: Any) -> None:
        if isinstance(thing, Dispatcher):
            self.note(sorted(thing.targetoptions.items(), key=str))
            self.add(thing.py_func)
        elif isinstance(thing, _Intrinsic):
            self.add(thing._defn)
        elif isinstance(thing, python.FunctionType):
            self.add_function(thing)
        elif isinstance(thing, python.CodeType):
            self.add_code(thing)
        elif isinstance(thing, numba.types.Type):
            self.note(thing)
        elif isinstance(thing, type) and hasattr(thing, "_fields"):
            self.note(thing.__name__, thing._fields)
        elif isinstance(thing, enum.EnumType):
            self.note(thing.__name__, *thing.__members__, *(each.value for each in list[Any](thing)))
        else:  # modules, and what comes with Python and its libraries: of the versions above
            self.note(getattr(thing, "__module__", ""), getattr(thing, "__qualname__", type(thing).__qualname__))

    def add_function(self, function: python.FunctionType) -> None:
        self.add_code(function.__code__)
        self.add(function.__defaults__ or ())
        self.add(sorted((function.__kwdefaults__ or {}).items()))
        for cell in function.__closure__ or ():
            self.add(cell.cell_contents)
        if not is_foreign(function.__module__):
            self.note(function.__module__)  # which Numba imports when it loads the function
            self.add_names(names_in(function.__code__), function.__globals__)

    def add_names(self, names: set[str], known: dict[str, Any]) -> None:
        """Add the globals of these names, and what modules among them have of these names."""
        for name in sorted(names & known.keys()):
            value = known[name]
            self.note(name)
            if isinstance(value, python.ModuleType) and not is_foreign(value.__name__) and id(value) not in self.seen:
                self.seen[id(value)] = len(self.seen), value
                self.add_names(names, vars(value))
            else:
                self.add(value)

    def add_code(self, code: python.CodeType) -> None:
        self.note(code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars)
        documented = bool(code.co_consts) and isinstance(code.co_consts[0], str)
        self.add(code.co_consts[1:] if documented else code.co_consts)


def is_foreign(module: str) -> bool:
    return module.partition(".")[0] in FOREIGN


def names_in(code: python.CodeType) -> set[str]:
    """The names that a function, or one inside of it, uses."""
    inside = (constant for constant in code.co_consts if isinstance(constant, python.CodeType))
    return set(code.co_names).union(*(names_in(each) for each in inside))


def fingerprint(function: Callable[..., Any]) -> str:
    """The hash of a function and all that it can reach."""
    found = Fingerprint()
    found.add(function)
    return found.hash.hexdigest()[:24]


@cache
def mark_of(function: Callable[..., Any]) -> str:
    """The fingerprint of a function when it was asked for first."""
    return fingerprint(function)


class ContentLocator(_CacheLocator):  # type: ignore[misc]
    """Has Numba store a function by its fingerprint."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.mark = mark_of(function)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "ContentLocator":
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str((cache_folder() or Path()) / f"{PREFIX}{self.mark}")

    def get_source_stamp(self) -> str:
        return self.mark

    def get_disambiguator(self) -> str:
        return ""


class ContentImpl(CompileResultCacheImpl):  # type: ignore[misc]
    """Stores by content alone."""

    _locator_classes: ClassVar[list[type]] = [ContentLocator]


class ContentCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache with the fingerprint as its key: that of Numba is another one in every process for closures."""

    _impl_class = ContentImpl

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return sig, codegen.magic_tuple(), self._impl.locator.mark


class KernelLocator(ContentLocator):
    """Has Numba store our kernels by their fingerprint, and nobody else's functions."""

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "KernelLocator | None":  # type: ignore[override]
        return cls(py_func) if py_func in OURS and cache_folder() is not None else None


CacheImpl._locator_classes = [KernelLocator, *CacheImpl._locator_classes]

"""Compile functions of one learner, and store them on disk under a hash of all that they are made of.

That is the bytecode of a function and of every function that it can reach, with the constants and records that they use.
Numba's own cache does not find functions again that are made inside of another one, and does not notice a change in a
function that is called.
"""

import hashlib
import os
import shutil
import sys
import types as python
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
from filelock import FileLock
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.extending import _Intrinsic

from spillover.kernels.announce import announced
from spillover.kernels.build import KERNELS, LOADING
from spillover.kernels.cache import DAYS_KEPT, SECONDS_BETWEEN_TRIES, cache_folder, days_since_use
from spillover.kernels.quick_compiling import quick_compiling

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)

# For functions that compiled code calls, which are compiled into them. Dividing by 0 gives an infinity, as in NumPy.
INNER = {"error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "forceinline": True}
ENTRY = {"error_model": "numpy", "no_cfunc_wrapper": True, "nogil": True}  # for those that Python calls
inner = njit(**INNER, _nrt=False)
FOREIGN = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite"}  # whose version is known


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls: stored on disk, and other threads run beside it."""
    made = njit(**ENTRY)(function)
    folder = cache_folder()
    if folder is not None:
        made._cache = ContentCache(function)  # which is where Numba keeps it
    compile_once = made.compile

    def compile_announced(signature: Any) -> Any:
        with announced(len(KERNELS) + 1), LOADING, locked(folder, made._cache), quick_compiling():
            return compile_once(signature)

    made.compile = compile_announced
    return made


@contextmanager
def locked(folder: Path | None, cache: Any) -> Iterator[None]:
    """One process at a time compiles a function; the others find it in the cache."""
    if folder is None:
        yield
        return
    own = Path(cache.cache_path)
    with FileLock(own.with_name(f"spillover-{own.name}.lock"), mode=0o600, poll_interval=SECONDS_BETWEEN_TRIES):
        yield
        with suppress(OSError):  # another process may have cleared the whole cache
            note_use(own)


def note_use(own: Path) -> None:
    """Note, once a day, that a function is in use, and remove those that have not been used for long."""
    if days_since_use(own) > 1:
        os.utime(own)
    for other in own.parent.glob("core-*"):
        if days_since_use(other) > DAYS_KEPT:
            shutil.rmtree(other, ignore_errors=True)
            other.with_name(f"spillover-{other.name}.lock").unlink(missing_ok=True)


class Fingerprint:
    """A hash of all that a function can reach."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: dict[int, tuple[int, Any]] = {}  # kept, so that no other object gets the same place in memory
        self.note(numba.__version__, sys.version, ENTRY)

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
        else:  # modules, and what comes with Python and its libraries: of the versions above
            self.note(getattr(thing, "__module__", ""), getattr(thing, "__qualname__", type(thing).__qualname__))

    def add_function(self, function: python.FunctionType) -> None:
        self.add_code(function.__code__)
        self.add(function.__defaults__ or ())
        for cell in function.__closure__ or ():
            self.add(cell.cell_contents)
        if function.__module__.partition(".")[0] in FOREIGN:
            return
        names = names_in(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            self.note(name)
            self.add(value)
            if isinstance(value, python.ModuleType) and value.__name__.partition(".")[0] not in FOREIGN:
                for attribute in sorted(names & vars(value).keys()):
                    self.add(vars(value)[attribute])

    def add_code(self, code: python.CodeType) -> None:
        self.note(code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars)
        documented = bool(code.co_consts) and isinstance(code.co_consts[0], str)
        self.add(code.co_consts[1:] if documented else code.co_consts)


def names_in(code: python.CodeType) -> set[str]:
    """The names that a function, or one inside of it, uses."""
    inside = (constant for constant in code.co_consts if isinstance(constant, python.CodeType))
    return set(code.co_names).union(*(names_in(each) for each in inside))


def fingerprint(function: Callable[..., Any]) -> str:
    """The hash of a function and all that it can reach."""
    found = Fingerprint()
    found.add(function)
    return found.hash.hexdigest()[:24]


class ContentLocator(_CacheLocator):  # type: ignore[misc]
    """Has Numba store a function by its fingerprint."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.mark = fingerprint(function)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "ContentLocator":
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str((cache_folder() or Path()) / f"core-{self.mark}")

    def get_source_stamp(self) -> str:
        return self.mark

    def get_disambiguator(self) -> str:
        return ""


class ContentImpl(CompileResultCacheImpl):  # type: ignore[misc]
    """Stores by content alone."""

    _locator_classes = [ContentLocator]


class ContentCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache with the fingerprint as its key: that of Numba is another one in every process for closures."""

    _impl_class = ContentImpl

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return sig, codegen.magic_tuple(), self._impl.locator.mark

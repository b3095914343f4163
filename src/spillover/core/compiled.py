"""Compile functions of one learner, and store them on disk under a hash of all that they are made of.

That is the bytecode of a function and of every function that it can reach, with the constants and records that they
use. Numba's own cache does not find functions again that are made inside of another one, and does not notice a change
in a function that is called.
"""

import enum
import hashlib
import os
import re
import shutil
import sys
import types as python
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import llvmlite
import numba
import numpy as np
from filelock import FileLock
from numba import config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.extending import _Intrinsic, register_jitable

from spillover.kernels.announce import announced
from spillover.kernels.build import KERNELS, LOADING
from spillover.kernels.cache import (
    DAYS_KEPT,
    SECONDS_BETWEEN_TRIES,
    cache_folder,
    days_since_use,
    lock_of,
    numba_asks_us,
)
from spillover.kernels.quick_compiling import quick_compiling

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)

# For functions that compiled code calls, which are compiled into them. Dividing by 0 gives an infinity, as in NumPy.
INNER = {"error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "forceinline": True}
HELPER = {**INNER, "_nrt": True}  # for those that policies share, some of which make arrays
ENTRY = {"error_model": "numpy", "no_cfunc_wrapper": True, "nogil": True}  # for those that Python calls
FOREIGN = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite"}  # whose version is known
COLOUR = re.compile(r"\x1b\[\d*m")
NOT_A_REASON = re.compile(r"(\w+: )?Failed in |During: |File |<source ")  # in Numba's messages


def inner(function: Callable[..., Any]) -> Any:
    """Let the functions of a policy call another one: as it is in Python, and compiled into them if they are compiled.

    >>> @inner
    ... def share(part, whole):
    ...     return part / whole if whole > 0 else 0.0
    >>> share(1, 4)
    0.25
    """
    return register_jitable(**HELPER)(function)


def called(function: Callable[..., Any]) -> Any:
    """`inner` for a function that is too long to be compiled into each of its callers; it makes no arrays."""
    return register_jitable(**{**INNER, "forceinline": False, "_nrt": False})(function)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls: stored on disk, and other threads run beside it."""
    made = njit(**ENTRY)(function)
    compile_once = made.compile

    def compile_announced(signature: Any) -> Any:
        folder = cache_folder()
        with announced(len(KERNELS) + 1), LOADING:
            if folder is not None and not isinstance(made._cache, ContentCache):
                with numba_asks_us():
                    made._cache = ContentCache(function)  # which is where Numba keeps it
            with locked(folder, made._cache), quick_compiling():
                return compile_once(signature)

    made.compile = compile_announced
    return made


def compiled_part(name: str, function: Callable[..., Any], *, allocates: bool) -> Any:
    """Compile a function of a policy into the drivers; an error says which one it is, and why it cannot be compiled."""
    made = njit(**INNER, _nrt=allocates)(function)
    compile_once = made.compile

    def compile_named(signature: Any) -> Any:
        try:
            return compile_once(signature)
        except (NumbaError, UnsupportedBytecodeError, NotImplementedError) as error:
            raise TypeError(
                f"{name} = {function.__qualname__}: must be code that Numba can compile: {reason_of(error, function)}; "
                "with compiled = False Python runs it as it is"
            ) from error

    made.compile = compile_named
    return made


def reason_of(error: BaseException, function: Callable[..., Any]) -> str:
    """What Numba says is wrong, and where; its messages have many lines, those of an `inner` function at the end."""
    text = COLOUR.sub("", str(error)).rpartition("raised a specific error:")[2]
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not NOT_A_REASON.match(line)] or [type(error).__name__]
    reason = f"{said[0]} {said[1].lstrip('> ')}" if said[0].endswith(":") and len(said) > 1 else said[0]
    if "NRT required" in reason:
        reason = "it makes arrays, and so needs allocates = True"
    places = re.findall(r'^File "(.+)", line (\d+)', "\n".join(lines), re.MULTILINE)
    file, line = places[0] if places else (function.__code__.co_filename, function.__code__.co_firstlineno)
    return f"{reason} ({Path(file).name}, line {line})"


@contextmanager
def locked(folder: Path | None, cache: Any) -> Iterator[None]:
    """One process at a time compiles a function; the others find it in the cache."""
    if folder is None:
        yield
        return
    own = Path(cache.cache_path)
    with FileLock(lock_of(own), mode=0o600, poll_interval=SECONDS_BETWEEN_TRIES):
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
                lock_of(other).unlink(missing_ok=True)


class Fingerprint:
    """A hash of all that a function can reach."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: dict[int, tuple[int, Any]] = {}  # kept, so that no other object gets the same place in memory
        self.note(numba.__version__, llvmlite.__version__, np.__version__, sys.version, INNER, HELPER, ENTRY)
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

    _locator_classes: ClassVar[list[type]] = [ContentLocator]


class ContentCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache with the fingerprint as its key: that of Numba is another one in every process for closures."""

    _impl_class = ContentImpl

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return sig, codegen.magic_tuple(), self._impl.locator.mark

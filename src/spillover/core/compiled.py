"""Compile functions of one learner; `kernels/cache.py` stores them on disk under a hash of what they are made of.

Numba optimises every function by itself and turns it into machine code, and again for each function that calls it, at
every level: half of the time or more. With `one_pass` functions that only compiled code calls stay as they are until
they are linked into one that Python calls. This replaces private parts of Numba; a version that has them no longer
takes its own time.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.extending import register_jitable

from spillover.kernels.cache import ContentCache, cache_folder, stored
from spillover.kernels.compiling import KERNELS, LOADING, announced, uncollected
from spillover.kernels.decorators import ENTRY, HELPER, INNER, RARE

try:
    from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen
    from numba.core.typed_passes import BaseNativeLowering

    lower, finalize, set_env = BaseNativeLowering.run_pass, CPUCodeLibrary.finalize, JITCPUCodegen.set_env
    KNOWN = all(hasattr(CPUCodeLibrary, name) for name in ("_get_module_for_linking", "_finalize_dynamic_globals"))
except (AttributeError, ImportError):  # another version
    KNOWN = False
waiting: list[tuple[str, Any]] = []  # what Numba would have noted with functions that are not machine code yet


def lower_marked(self: Any, state: Any) -> Any:
    """Mark the library of a function that Python cannot call."""
    if state.library is None:
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.enable_object_caching()
    state.library.only_linked = state.flags.no_cpython_wrapper and state.flags.no_cfunc_wrapper
    return lower(self, state)


def finalize_marked(self: Any) -> None:
    """Only link it with what it calls."""
    if not getattr(self, "only_linked", False):
        finalize(self)
        noted, waiting[:] = list(waiting), []
        for name, env in noted:
            set_env_later(self._codegen, name, env)
        return
    seen = set()
    for library in self._linking_libraries:
        if library not in seen:
            self._reload_init.update(library._reload_init)
            seen.add(library)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
    self._finalize_dynamic_globals()
    self._finalized = True


def set_env_later(self: Any, name: str, env: Any) -> None:
    if self._engine.get_global_value_address(name):
        set_env(self, name, env)
    else:
        waiting.append((name, env))


@contextmanager
def one_pass() -> Iterator[None]:
    """Compile here; one thread at a time."""
    if not KNOWN or BaseNativeLowering.run_pass is lower_marked:  # inside of another function that is compiled so
        yield
        return
    BaseNativeLowering.run_pass, CPUCodeLibrary.finalize = lower_marked, finalize_marked
    JITCPUCodegen.set_env = set_env_later
    try:
        yield
    finally:
        BaseNativeLowering.run_pass, CPUCodeLibrary.finalize = lower, finalize
        JITCPUCodegen.set_env = set_env
        waiting.clear()


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


def rare(function: Callable[..., Any]) -> Any:
    """As `inner`, for what is long and rarely called: it is compiled by itself, and may make arrays."""
    return register_jitable(**RARE)(function)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls: stored on disk, and other threads run beside it."""
    made = njit(**ENTRY)(function)
    compile_once = made.compile

    def compile_announced(signature: Any) -> Any:
        with announced(len(KERNELS) + 1), LOADING, stored(function), uncollected(), one_pass():
            if cache_folder() is not None and not isinstance(made._cache, ContentCache):
                made._cache = ContentCache(function)  # which is where Numba keeps it
            return compile_once(signature)

    made.compile = compile_announced
    return made


@lru_cache(maxsize=4096)
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
        reason = "it makes arrays, so compiled must be True"
    places = re.findall(r'^File "(.+)", line (\d+)', "\n".join(lines), re.MULTILINE)
    file, line = places[0] if places else (function.__code__.co_filename, function.__code__.co_firstlineno)
    return f"{reason} ({Path(file).name}, line {line})"

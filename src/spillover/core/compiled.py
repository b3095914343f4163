"""Compile functions of one learner; `kernels/cache.py` stores them on disk under a hash of what they are made of."""

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.extending import register_jitable

from spillover.core.one_pass import one_pass
from spillover.kernels.cache import ContentCache, cache_folder, stored
from spillover.kernels.compiling import KERNELS, LOADING, announced, uncollected
from spillover.kernels.decorators import ENTRY, HELPER, INNER, RARE

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

"""Optimise functions that only compiled code calls once, together with the function that Python calls.

Numba optimises every function by itself and turns it into machine code, and again for each function that calls it, at
every level: half of the time or more. Here such a function stays as it is until it is linked into one Python calls.
This replaces private parts of Numba; a version that has them no longer takes its own time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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

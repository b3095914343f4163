"""Settings of this process with which Numba compiles the same code in less time."""

import copy
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import ir


def copied_scope(scope: Any, memo: dict[int, Any]) -> Any:
    """A copy of a table of variables, which can be added to on its own; the variables in it are not copied."""
    twin = memo[id(scope)] = copy.copy(scope)
    twin.localvars = ir.VarMap()
    twin.localvars._con = dict(scope.localvars._con)
    twin.redefined = scope.redefined.copy()
    twin.var_redefinitions = scope.var_redefinitions.copy()
    for name, versions in scope.var_redefinitions.items():
        twin.var_redefinitions[name] = set(versions)
    return twin


@contextmanager
def quick_compiling() -> Iterator[None]:
    """Compile or load kernels here; one thread at a time.

    Numba copies a function block by block before it inlines it, and with each block all variables of the function,
    though it needs their names only. With many inlined functions this takes as long as all the rest together. And it
    makes so many objects that Python looks for garbage again and again, where there is next to none.
    """
    collects, before = gc.isenabled(), vars(ir.Scope).get("__deepcopy__")
    gc.disable()
    ir.Scope.__deepcopy__ = copied_scope
    try:
        yield
    finally:
        if before is None:
            del ir.Scope.__deepcopy__
        else:
            ir.Scope.__deepcopy__ = before
        if collects:
            gc.enable()

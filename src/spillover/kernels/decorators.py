"""Declare compiled functions: into their callers, by themselves, or for Python; and memory on the stack."""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

# For functions that only compiled code calls: without what lets Python call them, which takes time to compile. A call
# from Python would end the process.
inside = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
# For functions that work on short rows: without the counting of references, an atomic operation for each view of an
# array, so they must not allocate any; and dividing by 0 gives an infinity, without a check before each division. They
# are not compiled into a caller because that is: Numba hands the setting down, to the first caller that it meets.
bare = njit(_nrt=False, error_model="numpy", forceinline=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
# The same, compiled into its callers: a call passes seven numbers for each array.
within = njit(_nrt=False, error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)

# For functions that compiled code calls, which are compiled into them. Dividing by 0 gives an infinity, as in NumPy.
INNER = {"error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "forceinline": True}
HELPER = {**INNER, "_nrt": True}  # for those that policies share, some of which make arrays
RARE = {**HELPER, "forceinline": False}
ENTRY = {"error_model": "numpy", "no_cfunc_wrapper": True, "nogil": True}  # for those that Python calls

# For functions that make arrays, and that functions without counts of references call; they are compiled by themselves.
allocating = njit(_nrt=True, error_model="numpy", forceinline=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)

# Where counting starts. Numba would compile the functions that a count is passed to twice if it started at a plain 0:
# first for this number, then for any other.
NONE_YET: Final[Any] = np.int64(0)

EIGHT: Final = 8


@intrinsic
def one_by_one(typingctx, word):
    """The same word; a loop that asks for it is not vectorised.

    It is the result of no instructions at all, of which the compiler knows nothing.
    """

    def build(context, builder, signature, arguments):
        kind = ir.IntType(64)
        return builder.asm(ir.FunctionType(kind, [kind]), "", "=r,0", arguments, False)

    return types.uint64(types.uint64), build


def on_stack(kind: Any) -> Any:
    """Room for eight numbers in the memory of the function that asks for it, which it must not outlive.

    Nothing is allocated, so functions may use it that must not.
    """
    array = types.Array(kind, 1, "C")

    def room(typingctx):
        def build(context, builder, signature, arguments):
            size, width = (ir.Constant(ir.IntType(64), number) for number in (EIGHT, kind.bitwidth // 8))
            start = cgutils.alloca_once(builder, context.get_data_type(kind), size=EIGHT)
            found = make_array(array)(context, builder)
            populate_array(found, data=start, shape=[size], strides=[width], itemsize=width, meminfo=None)
            return found._getvalue()

        return array(), build

    return intrinsic(room)


eight_doubles, eight_integers, eight_words = on_stack(types.float64), on_stack(types.int64), on_stack(types.uint64)

"""Four doubles at a time.

The compiler vectorises loops for long rows, 32 numbers at a time, and leaves the rows of a few arms to a scalar rest.
These operations say outright what the processor can do at once. Every lane is rounded like the scalar operation, so the
numbers are the same, bit for bit.
"""

from typing import Any, Final

from llvmlite import ir
from numba import float64, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES: Final = 4
DOUBLES: Final = ir.VectorType(ir.DoubleType(), LANES)
FLAGS: Final = ir.VectorType(ir.IntType(1), LANES)


class Four(types.Type):  # type: ignore[misc]
    """The type of four values side by side."""

    def __init__(self, name: str, vector: ir.VectorType) -> None:
        self.vector = vector
        super().__init__(name)


@register_model(Four)
class FourModel(models.PrimitiveModel):  # type: ignore[misc]
    """As the processor has it."""

    def __init__(self, manager: Any, kind: Four) -> None:
        super().__init__(manager, kind, kind.vector)


four, flags = Four("four", DOUBLES), Four("flags", FLAGS)


# The next ones write code, for intrinsics here and in other files.
def address(builder: Any, data: Any, at: Any) -> Any:
    """The address of four neighbours among doubles."""
    return builder.bitcast(builder.gep(data, [at]), DOUBLES.as_pointer())


def read(builder: Any, data: Any, at: Any) -> Any:
    return builder.load(address(builder, data, at), align=8)


def write(builder: Any, data: Any, at: Any, values: Any) -> None:
    builder.store(values, address(builder, data, at), align=8)


def packed(builder: Any, values: Any) -> Any:
    vector = ir.Constant(DOUBLES, ir.Undefined)
    for lane, value in enumerate(values):
        vector = builder.insert_element(vector, value, cgutils.int32_t(lane))
    return vector


def at_lane(builder: Any, values: Any, k: int) -> Any:
    return builder.extract_element(values, cgutils.int32_t(k))


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Where the numbers of a contiguous array start."""
    return context.make_array(kind)(context, builder, array).data


def constant(value: float) -> ir.Constant:
    """The same number four times."""
    return ir.Constant(DOUBLES, [value] * LANES)


@intrinsic
def load(typingctx, array, at):
    """array[at : at + 4]."""

    def build(context, builder, signature, arguments):
        array, at = arguments
        return read(builder, data_of(context, builder, signature.args[0], array), at)

    return four(array, at), build


@intrinsic
def store(typingctx, array, at, values):
    """array[at : at + 4] = values."""

    def build(context, builder, signature, arguments):
        array, at, values = arguments
        write(builder, data_of(context, builder, signature.args[0], array), at, values)
        return context.get_dummy_value()

    return types.void(array, at, values), build


@intrinsic
def pack(typingctx, a, b, c, d):
    """Four numbers side by side."""

    def build(context, builder, signature, arguments):
        return packed(builder, arguments)

    return four(float64, float64, float64, float64), build


@intrinsic
def splat(typingctx, value):
    """The same number four times."""

    def build(context, builder, signature, arguments):
        return packed(builder, [arguments[0]] * LANES)

    return four(float64), build


@intrinsic
def splat_at(typingctx, array, at):
    """array[at] four times."""

    def build(context, builder, signature, arguments):
        array, at = arguments
        data = data_of(context, builder, signature.args[0], array)
        return packed(builder, [builder.load(builder.gep(data, [at]))] * LANES)

    return four(array, at), build


@intrinsic
def lane(typingctx, values, k):
    """One of the four numbers; k must be a constant."""

    def build(context, builder, signature, arguments):
        return builder.extract_element(*arguments)

    return float64(values, k), build


def arithmetic(operation: str) -> Any:
    """An operation on the numbers of each lane."""

    def operate(typingctx, a, b):
        def build(context, builder, signature, arguments):
            return getattr(builder, operation)(*arguments)

        return four(four, four), build

    return intrinsic(operate)


plus, minus, times, over = (arithmetic(name) for name in ("fadd", "fsub", "fmul", "fdiv"))


def each(builder: Any, name: str, values: Any) -> Any:
    """A function of the processor for each lane."""
    kind = ir.FunctionType(DOUBLES, [DOUBLES] * len(values))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f64"), values)


@intrinsic
def root(typingctx, values):
    """Square roots."""

    def build(context, builder, signature, arguments):
        return each(builder, "sqrt", arguments)

    return four(four), build


@intrinsic
def magnitude(typingctx, values):
    """Absolute values."""

    def build(context, builder, signature, arguments):
        return each(builder, "fabs", arguments)

    return four(four), build


@intrinsic
def above(typingctx, a, b):
    """Where a > b."""

    def build(context, builder, signature, arguments):
        return builder.fcmp_ordered(">", *arguments)

    return flags(four, four), build


@intrinsic
def where(typingctx, given, a, b):
    """a where a flag is set, otherwise b."""

    def build(context, builder, signature, arguments):
        return builder.select(*arguments)

    return four(flags, four, four), build


@njit(inline="always")
def least(a, b):
    """The lower number of each lane."""
    return where(above(a, b), b, a)

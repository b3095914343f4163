"""Give compiled functions one row of a batch of named arrays, such as the state of one learner.

A state is a NamedTuple of arrays with a batch axis, possibly nested. A function of one learner sees its row: `s.sums`
is the array of this learner, `s.clock` a number, `s.graph.weights` an array of a part, and `s.clock = 2.0` writes it.
In Python that is a `Row`. In compiled code it is a pointer to a table of addresses, and a row: a learner of a hundred
arrays is passed as one argument, and code is compiled once for all numbers of arms.
"""

import hashlib
import math
from collections import namedtuple
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import UnsupportedError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

from spillover.core.compiled import compiled_part
from spillover.kernels.cache import fingerprint

WORD = ir.IntType(64)


class Leaf(NamedTuple):
    """An array of a record: the type of its numbers, and how many axes it has besides the batch."""

    kind: str
    axes: int

    @property
    def words(self) -> int:
        """How many words of a table describe it: its address, the bytes from row to row, and its shape."""
        return 2 + self.axes


class Fields(NamedTuple):
    """The fields of a record by name, in order, and the functions that take it first: `self.index(s, turn, found)`."""

    names: tuple[str, ...]
    parts: tuple[Any, ...]  # each a Leaf, or Fields
    methods: tuple[tuple[str, Any, bool], ...] = ()  # name, function, whether it makes arrays

    @property
    def words(self) -> int:
        return int(sum(part.words for part in self.parts))


def fields_of(arrays: Any, batch: int) -> Fields:
    """Describe the arrays of a NamedTuple whose first axes, `batch` of them, are the batch."""
    parts = [
        fields_of(part, batch) if isinstance(part, tuple) else Leaf(part.dtype.str, part.ndim - batch)
        for part in arrays
    ]
    return Fields(tuple(arrays._fields), tuple(parts), getattr(arrays, "methods", ()))


@lru_cache(maxsize=1024)
def record_class(names: tuple[str, ...], methods: tuple[tuple[str, Any, bool], ...] = ()) -> Any:
    """A NamedTuple of arrays with such fields, whose rows have these functions as methods."""
    made = namedtuple("Own", names)  # type: ignore[misc]
    return type("Own", (made,), {"__slots__": (), "methods": methods})


def table_of(arrays: Any, batch: int) -> NDArray[np.int64]:
    """The addresses of all arrays, for compiled code; the arrays must outlive it.

    They are in one piece each, or the same for all rows of one axis (`np.broadcast_to`).
    """
    words: list[int] = []
    add_words(words, arrays, batch)
    return np.array(words, np.int64)


def add_words(words: list[int], arrays: Any, batch: int) -> None:
    for part in arrays:
        if isinstance(part, tuple):
            add_words(words, part, batch)
            continue
        inside = part.shape[batch:]
        # not by the strides, which may be anything along an axis of one row
        row = part.itemsize * math.prod(inside) if part.flags.c_contiguous else 0
        words += (part.__array_interface__["data"][0], row, *inside)


class Row:
    """One row of a batch of named arrays, with one axis for the batch, for functions that Python runs.

    >>> class Counts(NamedTuple):
    ...     clock: Any
    ...     pulls: Any
    >>> counts = Counts(np.zeros(2), np.zeros((2, 3)))
    >>> s = Row(counts, 1)
    >>> s.clock = 5.0
    >>> s.pulls[2] += 1.0
    >>> counts.clock, counts.pulls[1]
    (array([0., 5.]), array([0., 0., 1.]))
    """

    __slots__ = ("_arrays", "_row")

    def __init__(self, arrays: Any, row: int) -> None:
        object.__setattr__(self, "_arrays", arrays)
        object.__setattr__(self, "_row", row)

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(self._arrays, name)
        except AttributeError:
            for own, function, _ in getattr(self._arrays, "methods", ()):
                if own == name:
                    return partial(function, self)
            seen = ", ".join(self._arrays._fields)
            raise AttributeError(f"{name}: must be one of what a function of one learner sees here: {seen}") from None
        return Row(found, self._row) if isinstance(found, tuple) else found[self._row]

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self._arrays, name)[self._row] = value


# --- compiled code ------------------------------------------------------------------------------------------------


class RecordType(types.Type):  # type: ignore[misc]
    """A row of named arrays in compiled code.

    first: the position of its first word in the table. fixed: nothing can be assigned.
    """

    def __init__(self, fields: Fields, first: int = 0, *, fixed: bool = False) -> None:
        self.fields, self.first, self.fixed = fields, first, fixed
        # the name is what tells types apart, and is shown in messages of Numba
        super().__init__(f"fields {', '.join(fields.names)} (#{mark_of(fields, first, fixed)})")

    def place(self, name: str) -> int:
        """The position of a field's first word in the table."""
        at = self.fields.names.index(name)
        return self.first + Fields(self.fields.names[:at], self.fields.parts[:at]).words

    def type_of(self, name: str) -> Any:
        """The type of a field: a record, an array or a number; None if there is no such field."""
        if name not in self.fields.names:
            found = [Method(self, own, part) for own, *part in self.fields.methods if own == name]
            return found[0] if found else None
        part = self.fields.parts[self.fields.names.index(name)]
        if isinstance(part, Fields):
            return RecordType(part, self.place(name), fixed=self.fixed)
        kind = from_dtype(np.dtype(part.kind))
        return types.Array(kind, part.axes, "C", readonly=self.fixed) if part.axes else kind


@lru_cache(maxsize=1024)
def mark_of(fields: Fields, first: int, fixed: bool) -> str:
    """A short hash of a record, the same in every process."""
    held = hashlib.sha256(repr((first, fixed)).encode())
    add_to_mark(held, fields)
    return held.hexdigest()[:8]


def add_to_mark(held: Any, fields: Fields) -> None:
    held.update(repr(fields.names).encode())
    for part in fields.parts:
        if isinstance(part, Fields):
            add_to_mark(held, part)
        else:
            held.update(repr(part).encode())
    for name, function, allocates in fields.methods:
        held.update(f"{name} {allocates} {fingerprint(function)}".encode())


class Method(types.Callable, types.Opaque):  # type: ignore[misc]
    """A function that takes a record first, as an attribute of the record."""

    def __init__(self, record: RecordType, name: str, part: Any) -> None:
        function, allocates = part
        self.record, self.dispatcher = record, compiled_part(name, function, allocates=allocates)
        super().__init__(f"{name} of {record.name}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        template, _, given, named = self.dispatcher.get_call_template((self.record, *args), kws)
        found = template(context).apply(given, named)
        return found.replace(recvr=found.args[0], args=found.args[1:], pysig=None)

    def get_call_signatures(self) -> Any:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return self.dispatcher.get_overload(sig.args)


@register_model(Method)
@register_model(RecordType)
class RecordModel(models.StructModel):  # type: ignore[misc]
    """Where the table is, and the number of the row."""

    def __init__(self, manager: Any, kind: RecordType) -> None:
        super().__init__(manager, kind, [("table", types.CPointer(types.int64)), ("row", types.int64)])


@infer_getattr
class RecordAttributes(AttributeTemplate):  # type: ignore[misc]
    """The types of fields."""

    key = RecordType

    def generic_resolve(self, record: RecordType, name: str) -> Any:
        return record.type_of(name)


def word(builder: Any, table: Any, at: int) -> Any:
    """A word of the table, of which the compiler is told that it never changes."""
    found = builder.load(builder.gep(table, [ir.Constant(WORD, at)]))
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


def start_of(context: Any, builder: Any, kind: RecordType, value: Any, name: str, stored: Any) -> tuple[Any, Any, int]:
    """Where the numbers of a field begin; the table, and the position of the field's shape in it."""
    own = cgutils.create_struct_proxy(kind)(context, builder, value)
    at = kind.place(name)
    rows = builder.mul(word(builder, own.table, at + 1), own.row)
    address = builder.add(word(builder, own.table, at), rows)
    return builder.inttoptr(address, stored.as_pointer()), own.table, at + 2


@lower_getattr_generic(RecordType)
def read_field(context: Any, builder: Any, kind: RecordType, value: Any, name: str) -> Any:
    """s.name"""
    found = kind.type_of(name)
    if isinstance(found, RecordType | Method):  # the same table and row
        return value
    number = found.dtype if isinstance(found, types.Array) else found
    stored = context.get_data_type(number)
    start, table, shape = start_of(context, builder, kind, value, name, stored)
    if not isinstance(found, types.Array):
        return context.unpack_value(builder, found, start)
    sizes = [word(builder, table, shape + axis) for axis in range(found.ndim)]
    width = context.get_constant(types.intp, context.get_abi_sizeof(stored))
    steps = [width]
    for size in reversed(sizes[1:]):
        steps.insert(0, builder.mul(steps[0], size))
    array = make_array(found)(context, builder)
    populate_array(array, data=start, shape=sizes, strides=steps, itemsize=width, meminfo=None)
    return array._getvalue()


@lower_setattr_generic(RecordType)
def write_field(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    """s.name = a number, or an array, whose numbers are copied, as `Row` does it"""
    (kind, given), (record, value) = signature.args, arguments
    found = kind.type_of(name)
    if kind.fixed:
        raise UnsupportedError(f"{name} of the policy cannot be assigned: what is learned belongs in the state")
    if isinstance(found, types.Array):
        own = read_field(context, builder, kind, record, name)
        context.compile_internal(builder, copy_into, types.void(found, given), (own, value))
        return
    start, _, _ = start_of(context, builder, kind, record, name, context.get_data_type(found))
    context.pack_value(builder, found, context.cast(builder, value, given, found), start)


def copy_into(own, value):
    own[...] = value


def row_opener(fields: Fields, *, fixed: bool = False) -> Any:
    """A function for compiled code: (table, row) -> the record; fixed: nothing in it can be changed."""
    kind = RecordType(fields, fixed=fixed)

    def open_row(typingctx, table, row):
        def build(context, builder, signature, arguments):
            made = cgutils.create_struct_proxy(kind)(context, builder)
            made.table = make_array(signature.args[0])(context, builder, arguments[0]).data
            made.row = arguments[1]
            return made._getvalue()

        return kind(table, types.int64), build

    return intrinsic(open_row)

"""The rank-one updates of an outcome and the weights of a graph for a few arms, as straight-line code.

A loop over two or three times four numbers takes longer to begin and to end than what it does. Here the outcome is in
registers, and a row of each matrix is read and written once. The numbers are those of `prediction` and `add_multiple`.
"""

from typing import Any, Final

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from spillover.kernels.lanes import LANES, at_lane, constant, packed, read, write

INTEGER: Final = ir.IntType(64)
NOTHING: Final = constant(0.0)
MOST_FOURS: Final = 4  # whole fours of a row; at most three numbers come after them


class Outcome:
    """The y of all arms in fours, in code that is being written; the last four overlap with those before them."""

    def __init__(self, builder: Any, y: Any, fours: int) -> None:
        self.builder = builder
        self.size = builder.extract_value(y.shape, 0)
        self.starts = [*(INTEGER(LANES * k) for k in range(fours)), builder.sub(self.size, INTEGER(LANES))]
        self.values = [read(builder, y.data, start) for start in self.starts]
        rest = builder.sub(self.size, INTEGER(LANES * fours))  # so many of the last four are in no other four
        later = [builder.icmp_signed(">", builder.add(rest, INTEGER(k)), INTEGER(LANES - 1)) for k in range(LANES)]
        end = [at_lane(builder, self.values[-1], k) for k in range(LANES)]
        zero = ir.Constant(ir.DoubleType(), 0.0)
        self.rest = packed(builder, [builder.select(*given) for given in zip(later, end, [zero] * LANES, strict=True)])

    def prediction(self, row: Any) -> Any:
        """row . y, added up as by `prediction`: zeros change nothing."""
        builder, sums = self.builder, NOTHING
        for start, values in zip(self.starts[:-1], self.values[:-1], strict=True):
            sums = builder.fadd(sums, builder.fmul(read(builder, row, start), values))
        rest = builder.fmul(read(builder, row, self.starts[-1]), self.rest)
        first, *others = (at_lane(builder, sums, k) for k in range(LANES))
        for k in range(1, LANES):
            first = builder.fadd(first, at_lane(builder, rest, k))
        return builder.fadd(builder.fadd(first, others[0]), builder.fadd(others[1], others[2]))

    def add_to(self, row: Any, factor: Any) -> None:
        """row += factor * y."""
        builder, factors = self.builder, packed(self.builder, [factor] * LANES)
        pairs = zip(self.starts, self.values, strict=True)
        found = [builder.fadd(read(builder, row, start), builder.fmul(factors, values)) for start, values in pairs]
        for start, values in zip(self.starts, found, strict=True):
            write(builder, row, start, values)


def absorb_by(fours: int) -> Any:
    """`absorb_outcome` for rows of so many whole fours, and up to three numbers more."""

    def absorb_rows(typingctx, gram, residual, adjacency, z, y, weight, errors):
        def build(context, builder, signature, arguments):
            kinds = signature.args
            arrays = [context.make_array(kinds[k])(context, builder, arguments[k]) for k in (0, 1, 2, 3, 4, 6)]
            gram, residual, adjacency, z, y, errors = arrays
            weight, outcome = arguments[5], Outcome(builder, y, fours)
            with cgutils.for_range(builder, outcome.size) as row:
                start = builder.mul(row.index, outcome.size)
                own, direct = (builder.load(builder.gep(line.data, [row.index])) for line in (y, z))
                explained = outcome.prediction(builder.gep(adjacency.data, [start]))
                error = builder.fmul(weight, builder.fsub(builder.fsub(own, direct), explained))
                builder.store(error, builder.gep(errors.data, [row.index]))
                outcome.add_to(builder.gep(residual.data, [start]), error)
                outcome.add_to(builder.gep(gram.data, [start]), builder.fmul(own, weight))
            return context.get_dummy_value()

        return types.void(gram, residual, adjacency, z, y, weight, errors), build

    return intrinsic(absorb_rows)


def weights_by(fours: int) -> Any:
    """`acyclic_weights` for rows of so many whole fours, and up to three numbers more.

    What is added on and below the diagonal is 0, and changes nothing.
    """

    def add_rows(typingctx, adjacency, weights):
        def build(context, builder, signature, arguments):
            arrays = zip(signature.args, arguments, strict=True)
            adjacency, weights = (context.make_array(kind)(context, builder, array) for kind, array in arrays)
            Weights(builder, adjacency.data, weights, fours).write()
            return context.get_dummy_value()

        return types.void(adjacency, weights), build

    return intrinsic(add_rows)


class Weights:
    """The weights of all arms, in code that is being written."""

    def __init__(self, builder: Any, adjacency: Any, weights: Any, fours: int) -> None:
        self.builder, self.adjacency, self.weights, self.fours = builder, adjacency, weights.data, fours
        self.size = builder.extract_value(weights.shape, 0)
        self.known: list[Any] = []

    def with_row(self, total: Any, i: Any, start: Any, weight: Any) -> Any:
        """Add four entries of row i times its weight."""
        builder = self.builder
        place = builder.add(builder.mul(i, self.size), start)
        entries = read(builder, self.adjacency, place)
        return builder.fadd(total, builder.fmul(entries, packed(builder, [weight] * LANES)))

    def from_known(self, start: Any) -> Any:
        """Four totals of 1 and of all rows whose weights are known."""
        total = constant(1.0)
        for i, weight in enumerate(self.known):
            total = self.with_row(total, INTEGER(i), start, weight)
        return total

    def write(self) -> None:
        builder, zero = self.builder, ir.Constant(ir.DoubleType(), 0.0)
        for first in range(0, LANES * self.fours, LANES):
            total = self.from_known(INTEGER(first))
            for k in range(LANES - 1):
                total = self.with_row(total, INTEGER(first + k), INTEGER(first), at_lane(builder, total, k))
            self.known += [at_lane(builder, total, k) for k in range(LANES)]
            write(builder, self.weights, INTEGER(first), total)
        last = builder.sub(self.size, INTEGER(LANES))  # the last four overlap with those before them
        total = self.from_known(last)
        for k in range(LANES - 1):
            row = builder.add(last, INTEGER(k))
            later = builder.icmp_signed(">=", row, INTEGER(LANES * self.fours))  # its weight is not known yet
            total = self.with_row(total, row, last, builder.select(later, at_lane(builder, total, k), zero))
        write(builder, self.weights, last, total)


absorb_1, absorb_2, absorb_3, absorb_4 = (absorb_by(fours) for fours in range(1, MOST_FOURS + 1))
weights_1, weights_2, weights_3, weights_4 = (weights_by(fours) for fours in range(1, MOST_FOURS + 1))


@njit(inline="always")
def are_few(n):
    """Whether there is code for so many arms."""
    return 1 <= n // LANES <= MOST_FOURS


@njit(inline="always")
def absorb_few(gram, residual, adjacency, z, y, weight, errors):
    """`absorb_outcome` for a few arms."""
    fours = y.shape[0] // LANES
    if fours == 1:
        absorb_1(gram, residual, adjacency, z, y, weight, errors)
    elif fours == 2:
        absorb_2(gram, residual, adjacency, z, y, weight, errors)
    elif fours == 3:
        absorb_3(gram, residual, adjacency, z, y, weight, errors)
    else:
        absorb_4(gram, residual, adjacency, z, y, weight, errors)


@njit(inline="always")
def weights_of_few(adjacency, weights):
    """`acyclic_weights` for a few arms."""
    fours = weights.shape[0] // LANES
    if fours == 1:
        weights_1(adjacency, weights)
    elif fours == 2:
        weights_2(adjacency, weights)
    elif fours == 3:
        weights_3(adjacency, weights)
    else:
        weights_4(adjacency, weights)

"""Newton steps of four rows side by side, as straight-line code for a given number of causes.

A loop over a few causes ends where the processor does not expect it, and its numbers pass through memory. Here all of
them are in registers, and the divisions of one group go on while those of the next one start.
"""

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from spillover.kernels.lanes import LANES, constant, data_of, each, four, packed, read, write
from spillover.kernels.row_solver import DEPENDENT

INTEGER: Final = ir.IntType(64)
INTEGERS: Final = ir.VectorType(INTEGER, LANES)


NOTHING, ONE, SMALLEST = constant(0.0), constant(1.0), constant(2.0**-1022)


class Rows:
    """Four rows and their first causes, in code that is being written."""

    def __init__(self, context: Any, builder: Any, kinds: Any, arguments: Any, most: int) -> None:
        self.context, self.builder = context, builder
        self.arrays = {
            name: context.make_array(kind)(context, builder, array)
            for name, kind, array in zip(("gram", "residual", "penalty", "adjacency"), kinds, arguments, strict=False)
        }
        causes, sizes, rows = arguments[4:7]
        self.rows = [builder.extract_value(rows, lane) for lane in range(LANES)]
        listed = context.make_array(kinds[4])(context, builder, causes)
        self.causes = [[builder.load(self.place(listed, row, INTEGER(p))) for row in self.rows] for p in range(most)]
        numbers = context.make_array(kinds[5])(context, builder, sizes)
        self.sizes = ir.Constant(INTEGERS, ir.Undefined)
        for lane, row in enumerate(self.rows):
            size = builder.load(builder.gep(numbers.data, [row]))
            self.sizes = builder.insert_element(self.sizes, size, ir.IntType(32)(lane))

    def place(self, matrix: Any, i: Any, j: Any) -> Any:
        """The address of an entry of a contiguous matrix."""
        width = self.builder.extract_value(matrix.shape, 1)
        return self.builder.gep(matrix.data, [self.builder.add(self.builder.mul(i, width), j)])

    def used(self, p: int) -> Any:
        """Which rows have a p-th cause."""
        return self.builder.icmp_signed(">", self.sizes, ir.Constant(INTEGERS, [p] * LANES))

    def pairs(self, p: int, q: int) -> Any:
        """G of the p-th and the q-th cause of each row."""
        gram, both = self.arrays["gram"], zip(self.causes[p], self.causes[q], strict=True)
        return packed(self.builder, [self.builder.load(self.place(gram, i, j)) for i, j in both])

    def at_cause(self, name: str, p: int) -> Any:
        """What a matrix has at the p-th cause of each row."""
        matrix, both = self.arrays[name], zip(self.rows, self.causes[p], strict=True)
        return packed(self.builder, [self.builder.load(self.place(matrix, i, j)) for i, j in both])

    def where(self, given: Any, a: Any, b: Any) -> Any:
        return self.builder.select(given, a, b)

    def above(self, a: Any, b: Any) -> Any:
        return self.builder.fcmp_ordered(">", a, b)

    def least(self, a: Any, b: Any) -> Any:
        return self.where(self.above(a, b), b, a)

    def less_product(self, a: Any, b: Any, c: Any) -> Any:
        """a - b c."""
        return self.builder.fsub(a, self.builder.fmul(b, c))

    def inverse(self, values: Any) -> Any:
        """1 / values; 1 where they are not above 0.

        The compiler would divide all of them and select afterwards, and NumPy would warn of a division by 0.
        """
        divided = self.builder.fdiv(ONE, each(self.builder, "maxnum", [values, SMALLEST]))
        return self.where(self.above(values, NOTHING), divided, ONE)

    def slack(self, p: int) -> Any:
        return self.builder.fsub(self.at_cause("residual", p), self.at_cause("penalty", p))


def steps_by_factors(rows: Rows, most: int) -> tuple[list[Any], Any]:
    """By L D L' without pivoting.

    A row with fewer causes than others has rows of the identity instead, which change nothing: its step is the same
    whichever rows are beside it.
    """
    builder, lowest = rows.builder, constant(float("inf"))
    factor: list[list[Any]] = []
    inverse: list[Any] = []
    steps: list[Any] = []
    for p in range(most):
        used = rows.used(p)
        own = rows.where(used, rows.pairs(p, p), ONE)
        pivot, rest = own, rows.where(used, rows.slack(p), NOTHING)
        line: list[Any] = []
        factor.append([])
        for q in range(p):
            value = rows.where(used, rows.pairs(p, q), NOTHING)
            for r in range(q):
                value = rows.less_product(value, line[r], factor[q][r])
            scaled = builder.fmul(value, inverse[q])
            line.append(value)
            factor[p].append(scaled)
            pivot = rows.less_product(pivot, value, scaled)
            rest = rows.less_product(rest, scaled, steps[q])
        lowest = rows.least(lowest, rows.less_product(pivot, own, constant(DEPENDENT)))
        inverse.append(rows.inverse(pivot))
        steps.append(rest)
    for p in range(most - 1, -1, -1):
        steps[p] = builder.fmul(steps[p], inverse[p])
        for q in range(p + 1, most):
            steps[p] = rows.less_product(steps[p], factor[q][p], steps[q])
    return steps, lowest


def checked(rows: Rows, steps: list[Any], good: Any, bound: Any) -> Any:
    """What is positive where a step is good, and ends inside of a >= 0 and not above the bound."""
    builder, total = rows.builder, NOTHING
    for p, step in enumerate(steps):
        used = rows.used(p)
        value = builder.fadd(rows.at_cause("adjacency", p), step)
        total = builder.fadd(total, rows.where(used, value, NOTHING))
        good = rows.least(good, rows.where(used, value, ONE))
    return rows.where(rows.above(total, packed(builder, [bound] * LANES)), NOTHING, good)


def newton_steps(most: int) -> Any:
    """Write the steps of four rows with at most so many causes to numbers[at:], and then what is positive if good."""

    def steps_of(typingctx, gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at):
        def build(context, builder, signature, arguments):
            group = Rows(context, builder, signature.args, arguments, most)
            steps, good = steps_by_factors(group, most)
            good = checked(group, steps, good, arguments[7])
            data = data_of(context, builder, signature.args[8], arguments[8])
            for p, values in enumerate([good, *steps]):
                write(builder, data, builder.add(arguments[9], INTEGER(p * LANES)), values)
            return context.get_dummy_value()

        given = (gram, residual, penalty, adjacency, causes, sizes, rows, bound, numbers, at)
        return types.void(*given), build

    return intrinsic(steps_of)


class Step:
    """A step of one row at so many causes, in code that is being written."""

    def __init__(self, context: Any, builder: Any, kinds: Any, arguments: Any, most: int) -> None:
        self.builder = builder
        arrays = [
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(kinds[:7], arguments[:7], strict=True)
        ]
        gram, *lines, causes, numbers = arrays
        self.residual, self.row, self.penalty, self.entering = (line.data for line in lines)
        self.size, at = builder.extract_value(lines[0].shape, 0), arguments[7]
        self.causes = [builder.load(builder.gep(causes.data, [INTEGER(p)])) for p in range(most)]
        self.columns = [builder.gep(gram.data, [builder.mul(cause, self.size)]) for cause in self.causes]
        places = [builder.add(at, INTEGER(p * LANES)) for p in range(most)]
        self.steps = [builder.load(builder.gep(numbers.data, [place])) for place in places]
        self.factors = [packed(builder, [step] * LANES) for step in self.steps]

    def block(self, j: Any) -> tuple[Any, Any]:
        """Four numbers of the residual after the step, from the j-th on, and their margins; see `margins_at`."""
        builder = self.builder
        after = read(builder, self.residual, j)
        for column, factor in zip(self.columns, self.factors, strict=True):
            after = builder.fsub(after, builder.fmul(read(builder, column, j), factor))
        slack = builder.fsub(after, read(builder, self.penalty, j))
        given = builder.fcmp_ordered(">", read(builder, self.row, j), NOTHING)
        off = builder.select(given, each(builder, "fabs", [slack]), slack)
        return after, builder.fsub(read(builder, self.entering, j), off)

    def take(self) -> Any:
        """Rewrite the residual, and then the row; returns the margins."""
        builder = self.builder
        last = builder.sub(self.size, INTEGER(LANES))
        end, margins = self.block(last)
        lowest = cgutils.alloca_once_value(builder, margins)
        with cgutils.for_range_slice(builder, INTEGER(0), last, INTEGER(LANES), INTEGER) as (j, _):
            after, margins = self.block(j)
            before = builder.load(lowest)
            builder.store(builder.select(builder.fcmp_ordered(">", before, margins), margins, before), lowest)
            write(builder, self.residual, j, after)
        write(builder, self.residual, last, end)
        for cause, step in zip(self.causes, self.steps, strict=True):
            entry = builder.gep(self.row, [cause])
            builder.store(builder.fadd(builder.load(entry), step), entry)
        return builder.load(lowest)


def row_step(most: int) -> Any:
    """Take a step at so many causes of a row; returns four margins, of which the lowest is that of `row_margin`.

    The last four numbers overlap with those before them, so they are computed first and stored last. A step that is
    good keeps what is above 0, so the row is read before it is changed: the processor would wait for the change.
    """

    def step_of(typingctx, gram, residual, row, penalty, entering, causes, numbers, at):
        def build(context, builder, signature, arguments):
            return Step(context, builder, signature.args, arguments, most).take()

        return four(gram, residual, row, penalty, entering, causes, numbers, at), build

    return intrinsic(step_of)


SIZES: Final = (2, 3, 4, 5, 6, 8)  # a group with 7 causes does the same as one with 8
steps_of_2, steps_of_3, steps_of_4, steps_of_5, steps_of_6, steps_of_8 = (newton_steps(most) for most in SIZES)
step_at_2, step_at_3, step_at_4, step_at_5, step_at_6, step_at_8 = (row_step(most) for most in SIZES)

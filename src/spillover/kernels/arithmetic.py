"""Arithmetic that a processor does for several numbers at once.

The logarithm, exponential and cosine of the library take one number a call, so a loop around them is not vectorised.
These have no branches: in a loop over an array they are about four times as fast, and give the same bits on every
machine. Their errors are below two units in the last place of the result (of 1 for the cosine). Products and sums of
rows have four partial sums, which the processor adds in parallel.
"""

from typing import Final

import numpy as np
from llvmlite import ir
from numba import float64, njit, uint64
from numba.extending import intrinsic

LN2_HIGH: Final = 0.693147180559663  # with zeros at its end, so that multiples of it are exact
LN2_LOW: Final = 2.8235290563031577e-13
LOG2_E: Final = 1.4426950408889634
ROOT_HALF: Final = np.uint64(0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
TO_ONE: Final = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
FRACTION: Final = np.uint64(0x000FFFFFFFFFFFFF)
FRACTION_BITS: Final = np.uint64(52)
INTEGER: Final = np.uint64(0x4330000000000000)  # the bits of 2^52: the last bits of 2^52 + k are those of k
OF_INTEGER: Final = 4503599627370496.0 + 1023.0
ROUNDING: Final = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to a whole number
BIAS: Final = np.uint64(1023)
LARGEST: Final = 700.0  # exponents count as at most that, and at least its negative


def reinterpreted(kind: ir.Type) -> object:
    """The same 64 bits as another type."""

    def build(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], kind)

    return build


@intrinsic
def bits_of(typingctx, value):
    """The bits of a double."""
    return uint64(float64), reinterpreted(ir.IntType(64))


@intrinsic
def double_of(typingctx, bits):
    """The double of some bits."""
    return float64(uint64), reinterpreted(ir.DoubleType())


@njit(inline="always", error_model="numpy")
def log_of(x):
    """log(x) of a positive double that is not subnormal: 2 artanh((m - 1) / (m + 1)) of its fraction m."""
    shifted = bits_of(x) + TO_ONE
    exponent = double_of((shifted >> FRACTION_BITS) | INTEGER) - OF_INTEGER
    m = double_of((shifted & FRACTION) + ROOT_HALF)  # from sqrt(1/2) to sqrt(2)
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    t2 = t * t
    even = 2.0 / 3.0 + t2 * (2.0 / 7.0 + t2 * (2.0 / 11.0 + t2 * (2.0 / 15.0 + t2 * (2.0 / 19.0))))
    odd = 2.0 / 5.0 + t2 * (2.0 / 9.0 + t2 * (2.0 / 13.0 + t2 * (2.0 / 17.0 + t2 * (2.0 / 21.0))))
    return exponent * LN2_HIGH + (2.0 * s + (s * t * (even + t * odd) + exponent * LN2_LOW))


@njit(inline="always", error_model="numpy")
def exp_of(x):
    """exp(x), from -700 to 700: 2^k times the series of the rest."""
    x = min(max(x, -LARGEST), LARGEST)
    shifted = x * LOG2_E + ROUNDING
    k = shifted - ROUNDING
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    r2 = r * r
    even = 1.0 / 2.0 + r2 * (
        1.0 / 24.0 + r2 * (1.0 / 720.0 + r2 * (1.0 / 40320.0 + r2 * (1.0 / 3628800.0 + r2 / 479001600.0)))
    )
    odd = 1.0 / 6.0 + r2 * (
        1.0 / 120.0 + r2 * (1.0 / 5040.0 + r2 * (1.0 / 362880.0 + r2 * (1.0 / 39916800.0 + r2 / 6227020800.0)))
    )
    return (1.0 + (r + r2 * (even + r * odd))) * double_of((bits_of(shifted) + BIAS) << FRACTION_BITS)


@njit(inline="always", error_model="numpy")
def cos_of_turns(turns):
    """cos(2 pi u) for u from 0 to 1: the series of the sine of a quarter turn less the angle."""
    whole = (turns + ROUNDING) - ROUNDING
    v = (0.25 - abs(turns - whole)) * 6.283185307179586  # from -pi / 2 to pi / 2
    v2 = v * v
    v4 = v2 * v2
    even = -1.0 / 6.0 + v4 * (
        -1.0 / 5040.0 + v4 * (-1.0 / 39916800.0 + v4 * (-1.0 / 1307674368000.0 + v4 * (-1.0 / 121645100408832000.0)))
    )
    odd = 1.0 / 120.0 + v4 * (
        1.0 / 362880.0 + v4 * (1.0 / 6227020800.0 + v4 * (1.0 / 355687428096000.0 + v4 / 51090942171709440000.0))
    )
    return v + v * v2 * (even + v2 * odd)


@njit(inline="always")
def product(row, y, start, end):
    """The sum of row[j] * y[j] for j from start, a multiple of 4, to end - 1."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = end - end % 4
    for j in range(start, whole, 4):
        first += row[j] * y[j]
        second += row[j + 1] * y[j + 1]
        third += row[j + 2] * y[j + 2]
        fourth += row[j + 3] * y[j + 3]
    for j in range(whole, end):
        first += row[j] * y[j]
    return (first + second) + (third + fourth)


@njit(inline="always")
def multiply(matrix, y, triangular, out):
    """out = matrix y, four rows at a time; if triangular, the matrix is 0 on its diagonal and below."""
    n = y.shape[0]
    whole = n - n % 4
    for i in range(0, whole, 4):
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for j in range(i + 1 if triangular else 0, n):
            first += matrix[i, j] * y[j]
            second += matrix[i + 1, j] * y[j]
            third += matrix[i + 2, j] * y[j]
            fourth += matrix[i + 3, j] * y[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = first, second, third, fourth
    for i in range(whole, n):
        total = 0.0
        for j in range(i + 1 if triangular else 0, n):
            total += matrix[i, j] * y[j]
        out[i] = total


@njit(inline="always")
def add_multiple(row, factor, y):
    """row += factor * y."""
    for j in range(y.shape[0]):
        row[j] += factor * y[j]


@njit(inline="always")
def add_columns(columns, factors, out):
    """out = the sum of factors[j] * columns[j], which are added in order."""
    n = out.shape[0]
    whole = n - n % 4
    for i in range(0, whole, 4):
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            first += factors[j] * columns[j, i]
            second += factors[j] * columns[j, i + 1]
            third += factors[j] * columns[j, i + 2]
            fourth += factors[j] * columns[j, i + 3]
        out[i], out[i + 1], out[i + 2], out[i + 3] = first, second, third, fourth
    for i in range(whole, n):
        total = 0.0
        for j in range(n):
            total += factors[j] * columns[j, i]
        out[i] = total


BLOCK: Final = 16


@njit(inline="always")
def enter(found, size, i, marked):
    """Add a position to a list if it is marked; the new length."""
    if marked:
        found[size] = i
    return size + marked


@njit
def listed(marks):
    """The positions whose mark is not 0, in order."""
    n, count, size = marks.shape[0], 0, 0
    for i in range(n):
        count += marks[i] != 0
    found = np.empty(count, np.int64)
    whole = n - n % BLOCK
    for start in range(0, whole, BLOCK):
        marked = 0
        for k in range(BLOCK):
            marked += marks[start + k] != 0
        if marked > 0:
            for i in range(start, start + BLOCK):
                size = enter(found, size, i, marks[i] != 0)
    for i in range(whole, n):
        size = enter(found, size, i, marks[i] != 0)
    return found

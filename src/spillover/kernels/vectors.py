"""Products, sums and multiples of rows of numbers; four sums at a time, which the processor adds in parallel."""

from numba import njit


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

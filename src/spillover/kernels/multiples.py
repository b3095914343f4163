"""Sums and multiples of short rows, four numbers at a time."""

from numba import njit

from spillover.kernels.lanes import LANES, lane, load, plus, splat, store, times


# All are inlined by Numba: a call for each row would take longer than what it does.
@njit(inline="always")
def prediction(row, y, start):
    """row . y in four partial sums, which the processor adds in parallel.

    start: a multiple of 4; the row is 0 before it.
    """
    n = row.shape[0]
    whole = n - n % LANES
    sums = splat(0.0)
    for j in range(start, whole, LANES):
        sums = plus(sums, times(load(row, j), load(y, j)))
    first = lane(sums, 0)
    for j in range(whole, n):
        first += row[j] * y[j]
    return (first + lane(sums, 1)) + (lane(sums, 2) + lane(sums, 3))


@njit(inline="always")
def add_multiple(row, factor, y):
    """row += factor * y."""
    n = y.shape[0]
    if n < LANES:
        for j in range(n):
            row[j] += factor * y[j]
        return
    # the last four overlap with those before them, so there is no rest to be added one by one
    factors, last = splat(factor), n - LANES
    end = plus(load(row, last), times(factors, load(y, last)))
    for j in range(0, last, LANES):
        store(row, j, plus(load(row, j), times(factors, load(y, j))))
    store(row, last, end)


@njit(inline="always")
def add_columns(columns, factors, out):
    """out = the sum of factors[j] * columns[j], which are added in order."""
    n = out.shape[0]
    if n < LANES:
        for i in range(n):
            out[i] = 0.0
            for j in range(n):
                out[i] += factors[j] * columns[j, i]
        return
    last = n - LANES
    for k in range(0, n, LANES):
        i = min(k, last)  # the last four overlap with those before them
        sums = splat(0.0)
        for j in range(n):
            sums = plus(sums, times(splat(factors[j]), load(columns[j], i)))
        store(out, i, sums)

"""Lists of few among many: what is not marked is passed over in blocks, which processors look at as a whole."""

from typing import Final

import numpy as np
from numba import njit

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

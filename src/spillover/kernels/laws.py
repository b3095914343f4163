"""Draws from normal, gamma and beta laws.

Words of the generator become numbers many at a time (`kernels/arithmetic.py`). Each draw has counters of its own, so it
is the same whatever is drawn beside it.
"""

import math
from typing import Final

import numpy as np
from numba import float64, njit, uint64

from spillover.kernels.arithmetic import add_columns, cos_of_turns, exp_of, log_of
from spillover.kernels.compiling import gufunc
from spillover.kernels.decorators import EIGHT, bare, eight_doubles, eight_integers, eight_words, one_by_one, within
from spillover.kernels.drawing import HALF_BITS, philox, philox_in_lanes, philox_inside, to_unit

ARMS_AT_ONCE: Final = EIGHT // 2  # beta draws, each from two gamma draws
NORMALS_AT_ONCE: Final = 1024  # of several rounds: few enough to stay in the processor's cache
SURE: Final = 0.0331  # of Marsaglia and Tsang's test that needs no logarithm


@njit(inline="always", error_model="numpy")
def normal_of(first, second):
    """A standard normal from two uniform numbers, in (0, 1] and [0, 1]: one of Box and Muller's pair."""
    return math.sqrt(-2.0 * log_of(first)) * cos_of_turns(second)


@bare
def fill_normals(start, key, call, at_round, purpose, out):
    """out[start : start + 8], as far as it reaches."""
    first, second, drawn = eight_doubles(), eight_doubles(), eight_doubles()
    size = min(out.shape[0] - start, EIGHT)
    for j in range(EIGHT):
        first[j], second[j] = 1.0, 0.0
    for j in range(size):
        a, b, _, _ = philox_inside(uint64(start + j), call, at_round, purpose, key[0], key[1])
        first[j], second[j] = 1.0 - to_unit(a), to_unit(b)
    for j in range(EIGHT):
        drawn[j] = normal_of(first[j], second[j])
    for j in range(size):
        out[start + j] = drawn[j]


@gufunc((uint64[:], uint64, uint64, uint64, float64[:], float64[:]), "(k),(),(),(),(n)->(n)")
def normal(key, call, at_round, purpose, size, out):
    """Standard normals, as many as the length of `size`."""
    for start in range(0, out.shape[0], EIGHT):
        fill_normals(start, key, call, at_round, purpose, out)


@bare
def normals_of_rounds(n, k0, k1, call, rounds, purpose, deviation, words, out):
    """n normals with this deviation for each round, one round after another; words: room for two for each of them.

    The words of all rounds come first, so that the rest is one long loop, many numbers at a time. Words are faster one
    by one: processors have no long product for several numbers.
    """
    for t in range(rounds.shape[0]):
        at_round = rounds[t]
        for i in range(n):
            a, b, _, _ = philox_inside(one_by_one(uint64(i)), call, at_round, purpose, k0, k1)
            words[0, t * n + i], words[1, t * n + i] = a, b
    for j in range(rounds.shape[0] * n):
        out[j] = deviation * normal_of(1.0 - to_unit(words[0, j]), to_unit(words[1, j]))


@gufunc(
    (uint64[:], uint64, uint64[:], uint64, float64[:, ::1], float64, float64[:, ::1]),
    "(k),(),(t),(),(n,n),()->(t,n)",
)
def spread_normals(key, call, rounds, purpose, columns, deviation, out):
    """Normals of some rounds, spread over a graph as by `spread_over`."""
    n = out.shape[1]
    together = max(NORMALS_AT_ONCE // n, 1)
    drawn, words = np.empty(together * n), np.empty((2, together * n), np.uint64)
    for start in range(0, out.shape[0], together):
        some = rounds[start : start + together]
        normals_of_rounds(n, key[0], key[1], call, some, purpose, deviation, words, drawn)
        for t in range(some.shape[0]):
            add_columns(columns, drawn[t * n : (t + 1) * n], out[start + t])


@gufunc((float64[:, ::1], float64[:], float64[::1]), "(n,n),(n)->(n)")
def spread_over(columns, own, out):
    """What arms have of their own, spread over a graph: the product with the matrix of these columns."""
    add_columns(columns, own, out)


@njit(inline="always", error_model="numpy")
def accepts(v, log_v, x, d, uniform):
    """Whether a draw of Marsaglia and Tsang's method is kept; their first test, without logarithms, mostly says so."""
    sure = uniform < 1.0 - SURE * x * x * x * x
    return (v > 0.0) & (sure | (log_of(uniform) < 0.5 * x * x + d * (1.0 - v * v * v + 3.0 * log_v)))


@within
def log_gammas(shapes, elements, call, at_round, purpose, k0, k1, logs):
    """Logarithms of eight Gamma(shape, 1) draws: Marsaglia and Tsang 2000, with their boost below shape 1.

    In logarithms, because draws with a small shape underflow and their ratio would be 0 / 0. For a shape that is not
    positive and finite NaN: no draw would ever be accepted. All arrays are of eight, on the stack of the caller: only
    then loops vectorise.
    """
    first, second, test, boost = eight_doubles(), eight_doubles(), eight_doubles(), eight_doubles()
    x, v, d, c = eight_doubles(), eight_doubles(), eight_doubles(), eight_doubles()
    log_v, refused = eight_doubles(), eight_doubles()
    for j in range(EIGHT):
        w0, w1, w2, w3 = philox_in_lanes(elements[j], call, at_round, purpose, k0, k1)
        first[j], second[j], test[j], boost[j] = 1.0 - to_unit(w0), to_unit(w1), 1.0 - to_unit(w2), 1.0 - to_unit(w3)
    for j in range(EIGHT):
        d[j] = shapes[j] + (0.0 if shapes[j] >= 1.0 else 1.0) - 1.0 / 3.0
        c[j] = 1.0 / math.sqrt(9.0 * d[j])
        x[j] = normal_of(first[j], second[j])
        v[j] = 1.0 + c[j] * x[j]
        log_v[j] = log_of(v[j])
        refused[j] = 0.0 if accepts(v[j], log_v[j], x[j], d[j], test[j]) else 1.0
    again, boosted = 0.0, False
    for j in range(EIGHT):
        again += refused[j]
        boosted |= shapes[j] < 1.0
    if again > 0.0:
        for j in range(EIGHT):
            attempt = uint64(0)
            while 0.0 < shapes[j] < math.inf and not accepts(v[j], log_v[j], x[j], d[j], test[j]):
                attempt += uint64(1)
                block = elements[j] | (attempt << HALF_BITS)
                w0, w1, w2, w3 = philox(block, call, at_round, purpose, k0, k1)
                x[j] = normal_of(1.0 - to_unit(w0), to_unit(w1))
                v[j] = 1.0 + c[j] * x[j]
                log_v[j] = log_of(v[j])
                test[j], boost[j] = 1.0 - to_unit(w2), 1.0 - to_unit(w3)
    for j in range(EIGHT):
        drawn = log_of(d[j]) + 3.0 * log_v[j]
        logs[j] = drawn if (shapes[j] > 0.0) & (shapes[j] < math.inf) else math.nan
    if boosted:
        for j in range(EIGHT):
            logs[j] += log_of(boost[j]) / shapes[j] if shapes[j] < 1.0 else 0.0


@bare
def draw_betas(a, b, arms, size, call, at_round, purpose, k0, k1, found):
    """Beta(a, b) draws for at most 4 arms from two Gamma draws each; all arrays are of eight.

    Each arm has counter blocks of its own for rejection sampling.
    """
    shapes, logs, elements = eight_doubles(), eight_doubles(), eight_words()
    for j in range(ARMS_AT_ONCE):
        here = j < size
        shapes[j], shapes[ARMS_AT_ONCE + j] = a[j] if here else 1.0, b[j] if here else 1.0
        element = uint64(2 * arms[j] if here else 0)
        elements[j], elements[ARMS_AT_ONCE + j] = element, element + uint64(1)
    log_gammas(shapes, elements, call, at_round, purpose, k0, k1, logs)
    for j in range(ARMS_AT_ONCE):
        gap = logs[ARMS_AT_ONCE + j] - logs[j]
        drawn = 1.0 / (1.0 + exp_of(gap))
        found[j] = drawn if gap == gap else math.nan


@njit(inline="always")
def fill_betas(a, b, key, call, at_round, purpose, out):
    """A Beta(a, b) draw for each arm."""
    ones, zeros = eight_doubles(), eight_doubles()
    found, arms = eight_doubles(), eight_integers()
    for start in range(0, out.shape[0], ARMS_AT_ONCE):
        size = min(out.shape[0] - start, ARMS_AT_ONCE)
        for j in range(size):
            ones[j], zeros[j], arms[j] = a[start + j], b[start + j], start + j
        draw_betas(ones, zeros, arms, size, call, at_round, purpose, key[0], key[1], found)
        for j in range(size):
            out[start + j] = found[j]


@gufunc((uint64[:], uint64, uint64, uint64, float64[:], float64[:], float64[:]), "(k),(),(),(),(n),(n)->(n)")
def beta(key, call, at_round, purpose, a, b, out):
    """Beta(a, b) draws."""
    fill_betas(a, b, key, call, at_round, purpose, out)

"""Every compiled line of the package.

All kernels live in this one file, which imports nothing of ours, because Numba's on-disk cache looks only at the file
of the function that it compiles. They are NumPy generalised ufuncs: the core dimensions stand in the layout
string, any leading axes are the batch. They trust their input; the callers check it.
"""

import fcntl
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numba import boolean, float64, guvectorize, int64, njit, uint64

MAKERS: dict[str, Callable[[], np.ufunc]] = {}


def gufunc(signature: tuple[Any, ...], layout: str, writes: tuple[str, ...] = ()) -> Callable[..., np.ufunc]:
    """Compile into a plain NumPy ufunc: Numba's own wrapper costs a live learner a microsecond a call.

    A kernel is compiled, or loaded from Numba's cache, when it is first asked for (`__getattr__` below): loading all of
    them would take longer than most commands. `writes` are inputs that the kernel rewrites in place: arrays of
    the full batch, C-contiguous.
    """

    def registered(function: Callable[..., None]) -> Any:
        def make() -> np.ufunc:
            ufunc: np.ufunc = guvectorize([signature], layout, writable_args=writes, cache=True)(function).ufunc
            return ufunc

        MAKERS[function.__name__] = make
        return function

    return registered


@contextmanager
def alone() -> Iterator[None]:
    """One process at a time.

    Numba caches a gufunc in two files. Two processes that fill an empty cache at once can leave halves of two builds
    there, and loading those crashes (a known bug of Numba).
    """
    path = os.path.join(tempfile.gettempdir(), f"spillover-kernels-{os.getuid()}.lock")
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def __getattr__(name: str) -> np.ufunc:
    if name not in MAKERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load(name)


def load(name: str) -> np.ufunc:
    with alone():
        kernel = MAKERS[name]()
    globals()[name] = kernel
    return kernel


def wake() -> None:
    """Load what Numba loads with the first kernel, whichever that is, without what no kernel of ours needs.

    Numba looks whether SciPy has linear algebra by importing it, which takes longer than all the rest. It is there,
    since we depend on it, and who compiles a function that needs it finds it. Nobody else may import it meanwhile.
    """
    unneeded = "scipy.linalg"
    if unneeded in sys.modules:
        return
    sys.modules[unneeded] = None  # type: ignore[assignment]  # what importing refuses
    try:
        load("top_arms")
        import numba.np.arraymath

        numba.np.arraymath._HAVE_BLAS = True
    finally:
        del sys.modules[unneeded]


def compile_all() -> None:
    """Every kernel, so that none has to be compiled when it is needed."""
    for name in MAKERS:
        getattr(sys.modules[__name__], name)


# --- random numbers: Philox4x64-10 (Salmon et al. 2011), the generator behind numpy.random.Philox --------------------

MULTIPLIER_0: Final = np.uint64(0xD2E7470EE14C6C93)
MULTIPLIER_1: Final = np.uint64(0xCA5A826395121157)
WEYL_0: Final = np.uint64(0x9E3779B97F4A7C15)
WEYL_1: Final = np.uint64(0xBB67AE8584CAA73B)
LOW_HALF: Final = np.uint64(0xFFFFFFFF)
HALF_BITS: Final = np.uint64(32)
MANTISSA_SHIFT: Final = np.uint64(11)
TO_UNIT: Final = 1.0 / 9007199254740992.0  # 2^-53


@njit(inline="always")
def high_word(a, b):
    """Upper 64 bits of the 128-bit product."""
    a_low, a_high = a & LOW_HALF, a >> HALF_BITS
    b_low, b_high = b & LOW_HALF, b >> HALF_BITS
    middle = a_high * b_low + ((a_low * b_low) >> HALF_BITS)
    carry = a_low * b_high + (middle & LOW_HALF)
    return a_high * b_high + (middle >> HALF_BITS) + (carry >> HALF_BITS)


@njit
def philox(c0, c1, c2, c3, k0, k1):
    """One block of four 64-bit words for a 256-bit counter and a 128-bit key."""
    for _ in range(10):
        high_0, low_0 = high_word(MULTIPLIER_0, c0), MULTIPLIER_0 * c0
        high_1, low_1 = high_word(MULTIPLIER_1, c2), MULTIPLIER_1 * c2
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0 += WEYL_0
        k1 += WEYL_1
    return c0, c1, c2, c3


@njit(inline="always")
def to_unit(word):
    """A 64-bit word as a double in [0, 1), as NumPy makes it."""
    return float64(word >> MANTISSA_SHIFT) * TO_UNIT


@gufunc((uint64[:], uint64[:], uint64[:]), "(k),(c)->(c)")
def philox_block(key, counter, block):
    """The raw block, for checking against numpy.random.Philox."""
    block[0], block[1], block[2], block[3] = philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@gufunc((uint64[:], uint64, uint64, uint64, float64[:], float64[:]), "(k),(),(),(),(n)->(n)")
def uniform(key, call, moment, purpose, size, out):
    """Doubles in [0, 1); `size` only lends its length."""
    n = out.shape[0]
    for start in range(0, n, 4):
        a, b, c, d = philox(uint64(start), call, moment, purpose, key[0], key[1])
        out[start] = to_unit(a)
        if start + 1 < n:
            out[start + 1] = to_unit(b)
        if start + 2 < n:
            out[start + 2] = to_unit(c)
        if start + 3 < n:
            out[start + 3] = to_unit(d)


@njit(inline="always")
def normal_pair(first, second):
    """Box and Muller: two words make two independent standard normals."""
    radius = math.sqrt(-2.0 * math.log(1.0 - to_unit(first)))
    angle = 2.0 * math.pi * to_unit(second)
    return radius * math.cos(angle), radius * math.sin(angle)


@gufunc((uint64[:], uint64, uint64, uint64, float64[:], float64[:]), "(k),(),(),(),(n)->(n)")
def normal(key, call, moment, purpose, size, out):
    """Standard normals; `size` only lends its length."""
    for i in range(out.shape[0]):
        a, b, _, _ = philox(uint64(i), call, moment, purpose, key[0], key[1])
        out[i] = normal_pair(a, b)[0]


@njit
def log_gamma_draw(shape, element, call, moment, purpose, k0, k1):
    """Logarithm of a Gamma(shape, 1) draw: Marsaglia and Tsang 2000, with their boost below shape 1.

    The logarithm, because a draw at a small shape underflows, and a ratio of two such draws must not be 0 / 0.
    """
    boosted = shape if shape >= 1.0 else shape + 1.0
    d = boosted - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = uint64(0)
    while True:
        block = uint64(element) | (attempt << HALF_BITS)
        w0, w1, w2, w3 = philox(block, call, moment, purpose, k0, k1)
        attempt += uint64(1)
        x = normal_pair(w0, w1)[0]
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        log_v = 3.0 * math.log(v)
        v = v * v * v
        if math.log(1.0 - to_unit(w2)) < 0.5 * x * x + d - d * v + d * log_v:
            result = math.log(d) + log_v
            if shape < 1.0:
                result += math.log(1.0 - to_unit(w3)) / shape
            return result


@gufunc((uint64[:], uint64, uint64, uint64, float64[:], float64[:], float64[:]), "(k),(),(),(),(n),(n)->(n)")
def beta(key, call, moment, purpose, a, b, out):
    """Beta(a, b) draws as a ratio of two Gamma draws; each element has blocks of its own for its rejections."""
    for i in range(out.shape[0]):
        log_x = log_gamma_draw(a[i], 2 * i, call, moment, purpose, key[0], key[1])
        log_y = log_gamma_draw(b[i], 2 * i + 1, call, moment, purpose, key[0], key[1])
        out[i] = 1.0 / (1.0 + math.exp(min(log_y - log_x, 700.0)))


# --- the world -------------------------------------------------------------------------------------------------------


@gufunc((float64[:, :], float64[:], boolean[:], float64[:], float64[:]), "(n,n),(n),(n)->(n),(n)")
def play(total, b, x, z, y):
    """z = diag(b) x and y = total z (eqs. 1 and 4), total = (I - A)^-1 F."""
    n = b.shape[0]
    for i in range(n):
        z[i] = b[i] if x[i] else 0.0
        y[i] = 0.0
    for j in range(n):
        if z[j] != 0.0:
            for i in range(n):
                y[i] += total[i, j] * z[j]


FINE: Final = 0
NOT_FINITE: Final = 1
NOT_PLAYED: Final = 2
OUT_OF_RANGE: Final = 3
IMPOSSIBLE_AGE: Final = 4
LARGEST_OUTCOME: Final = 1e40  # sums of products of six of them are still numbers


@gufunc(
    (boolean[:], float64[:], float64[:], float64[:], boolean, int64, int64, int64[:]),
    "(n),(n),(n),(r),(),(),()->()",
)
def feedback_fault(x, z, y, limits, arrived, age, rounds, fault):
    """The first thing wrong with a piece of feedback, as one of the codes above."""
    fault[0] = FINE
    if arrived:
        if age < 0 or age >= rounds:
            fault[0] = IMPOSSIBLE_AGE
            return
        for i in range(x.shape[0]):
            # not math.isfinite, which subtracts infinities and so leaves a floating-point warning
            if not (abs(z[i]) <= LARGEST_OUTCOME and abs(y[i]) <= LARGEST_OUTCOME):
                fault[0] = NOT_FINITE
                return
            if z[i] != 0.0 and not x[i]:
                fault[0] = NOT_PLAYED
                return
            if x[i] and (z[i] < limits[0] or z[i] > limits[1]):
                fault[0] = OUT_OF_RANGE
                return


# --- the graph problem: one non-negative lasso a row -----------------------------------------------------------------

# A row is solved again once one of its optimality conditions is off by this, relative to G_jj; a solved one is exact
# to far better than that.
WAKE: Final = 5e-9
# Coordinates enter the support while their condition is violated by more than this, relative to G_jj.
ENTER: Final = 1e-12
# Below this, relative to G_jj, a Cholesky pivot is rounding: the column depends on the ones before it.
DEPENDENT: Final = 1e-11
FROZEN: Final = 1e200
# An arm whose overall rewards are fainter than this explains nothing, and dividing by it would overflow.
FAINTEST: Final = 1e-200
SHORT_ROW: Final = 64
POLISHED: Final = 1e-11
MOST_POLISH: Final = 3
RUNAWAY: Final = 1e2


@njit(cache=True)
def prediction(row, y):
    """row . y in four partial sums: a single one would wait for itself at every addition."""
    n = row.shape[0]
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        first += row[j] * y[j]
        second += row[j + 1] * y[j + 1]
        third += row[j + 2] * y[j + 2]
        fourth += row[j + 3] * y[j + 3]
    for j in range(whole, n):
        first += row[j] * y[j]
    return (first + second) + (third + fourth)


@gufunc(
    (float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64, boolean[:]),
    "(n,n),(n,n),(n,n),(n),(n),()->()",
    writes=("gram", "residual"),
)
def absorb(gram, residual, adjacency, z, y, weight, absorbed):
    """Rank-one updates of G = sum y y' and Q = (Y - Z) Y' - A G, at the given weight; a weight of 0 changes nothing."""
    absorbed[0] = weight != 0.0
    if weight == 0.0:
        return
    n = y.shape[0]
    for i in range(n):
        error = weight * (y[i] - z[i] - prediction(adjacency[i], y))
        scaled = y[i] * weight
        # adding zeros to a short row is cheaper than a branch that cannot be foreseen
        if error != 0.0 or n < SHORT_ROW:
            for j in range(n):
                residual[i, j] += error * y[j]
        if scaled != 0.0 or n < SHORT_ROW:
            for j in range(n):
                gram[i, j] += scaled * y[j]


@njit(cache=True)
def row_is_optimal(allowed, residual, row, penalty, pressure):
    """Whether the optimality conditions of a row hold; counted without a way out, so that the loop vectorises."""
    violations = 0
    for j in range(row.shape[0]):
        slack = residual[j] - penalty[j] - pressure
        violations += (slack > allowed[j]) | ((row[j] > 0.0) & (slack < -allowed[j]))
    return violations == 0


@njit(cache=True)
def extend_cholesky(gram, support, done, size, factor, frozen):
    """Columns done..size-1 of the Cholesky factor of G on the support; says whether one of them is dependent.

    A dependent column gets a tiny pivot, a ridge far below the tolerance: a step through it is so long that a wall
    a >= 0 stops it, in effect a step along the null direction. `frozen` gives it a huge one, and so no step at all.
    """
    dependent = False
    for p in range(done, size):
        column = support[p]
        rest = gram[column, column]
        for q in range(p):
            value = gram[column, support[q]]
            for r in range(q):
                value -= factor[p, r] * factor[q, r]
            value /= factor[q, q]
            factor[p, q] = value
            rest -= value * value
        least = DEPENDENT * gram[column, column]
        if rest < least:
            dependent = True
            rest = FROZEN if frozen else least
        factor[p, p] = math.sqrt(rest)
    return dependent


@njit(cache=True)
def cholesky_solve(factor, size, vector):
    """Solve L L' v = vector in place."""
    for p in range(size):
        value = vector[p]
        for q in range(p):
            value -= factor[p, q] * vector[q]
        vector[p] = value / factor[p, p]
    for p in range(size - 1, -1, -1):
        value = vector[p]
        for q in range(p + 1, size):
            value -= factor[q, p] * vector[q]
        vector[p] = value / factor[p, p]


@njit(cache=True)
def newton_step(factor, support, size, residual, row, penalty, bound, guess, step, ones):
    """The step to the minimiser on the support with the row's sum at most `bound`; returns the bound's multiplier.

    Measured from a guess of the multiplier: with the right one the right-hand side is small, and so is what rounding
    does where the support is nearly dependent and the solutions are long.
    """
    total = 0.0
    for p in range(size):
        j = support[p]
        step[p] = residual[j] - penalty[j] - guess
    cholesky_solve(factor, size, step)
    for p in range(size):
        total += row[support[p]] + step[p]
    if guess == 0.0 and total <= bound:
        return 0.0
    ones_total = 0.0
    for p in range(size):
        ones[p] = 1.0
    cholesky_solve(factor, size, ones)
    for p in range(size):
        ones_total += ones[p]
    pressure = guess + (total - bound) / ones_total
    if pressure <= 0.0:  # the bound does not hold the minimiser back
        for p in range(size):
            step[p] += guess * ones[p]
        return 0.0
    total = 0.0
    for p in range(size):
        step[p] -= (pressure - guess) * ones[p]
        total += row[support[p]] + step[p]
    for p in range(size):  # what rounding left of the bound
        step[p] += (bound - total) / ones_total * ones[p]
    return pressure


@njit(cache=True)
def first_wall(support, size, row, step):
    """How much of a step stays inside a >= 0, and the place on the support where it ends (-1: all of it stays)."""
    length, wall = 1.0, -1
    for p in range(size):
        j = support[p]
        if row[j] + step[p] <= 0.0:
            reach = row[j] / -step[p] if step[p] < 0.0 else 0.0
            if reach < length or wall < 0:
                length, wall = min(reach, 1.0), p
    return length, wall


@njit(cache=True)
def runs_away(gram, support, size, step, largest):
    """Whether a step moves an arm's part in the prediction by far more than anything there is to predict."""
    far = 0
    for p in range(size):
        far += step[p] * step[p] * gram[support[p], support[p]] > RUNAWAY * RUNAWAY * largest
    return far > 0


@njit(cache=True)
def is_polished(gram, support, size, residual, penalty, pressure):
    """Whether the optimality conditions on the support hold far better than they have to."""
    off = 0
    for p in range(size):
        j = support[p]
        off += abs(residual[j] - penalty[j] - pressure) > POLISHED * gram[j, j]
    return off == 0


@njit(cache=True)
def solve_row(gram, residual, row, penalty, bound):
    """Minimise a'Ga/2 - (c - penalty)'a over a >= 0 with sum(a) <= bound; returns the bound's multiplier.

    Warm-started active-set method (Lawson and Hanson's, with one more constraint): exact minimisers on growing and
    shrinking supports. residual = c - G a is kept up to date.
    """
    n = row.shape[0]
    support = np.empty(n, np.int64)
    factor = np.empty((n, n))
    step = np.empty(n)
    ones = np.empty(n)
    refused = np.zeros(n, np.bool_)
    size, largest = 0, 0.0
    for j in range(n):
        largest = max(largest, gram[j, j])
        if row[j] > 0.0:
            support[size] = j
            size += 1
    done = 0
    pressure = 0.0
    entered = -1
    dependent = False
    polished = 0
    for _ in range(10 * n + 50):
        # 1. the minimiser on the support, or the first wall on the way to it
        while size > 0:
            dependent = extend_cholesky(gram, support, done, size, factor, False) or (dependent and done > 0)
            done = size
            pressure = newton_step(factor, support, size, residual, row, penalty, bound, pressure, step, ones)
            length, wall = first_wall(support, size, row, step)
            if dependent and wall < 0 and pressure == 0.0 and runs_away(gram, support, size, step, largest):
                # nothing stops the step along a null direction, so there is nothing to gain on it but rounding
                done = 0
                last = factor[size - 1, size - 1] ** 2
                if support[size - 1] == entered and last < 2.0 * DEPENDENT * gram[entered, entered]:
                    refused[entered] = True
                    size -= 1
                    continue
                extend_cholesky(gram, support, 0, size, factor, True)
                pressure = newton_step(factor, support, size, residual, row, penalty, bound, 0.0, step, ones)
                length, wall = first_wall(support, size, row, step)
            for p in range(size):
                change = length * step[p]
                if change != 0.0:
                    j = support[p]
                    if p == wall:
                        change = -row[j]
                    row[j] += change
                    for i in range(n):
                        residual[i] -= gram[j, i] * change
            if wall < 0:
                break
            gone = support[wall]
            row[gone] = 0.0
            if gone == entered and length == 0.0:
                refused[gone] = True  # entered by rounding alone
            for p in range(wall, size - 1):
                support[p] = support[p + 1]
            size -= 1
            done = wall
        if size == 0:
            pressure = 0.0
        # 2. the coordinate whose optimality condition is violated most
        entered = -1
        worst = ENTER
        for j in range(n):
            if row[j] == 0.0 and gram[j, j] > FAINTEST and not refused[j]:
                slack = (residual[j] - penalty[j] - pressure) / gram[j, j]
                if slack > worst:
                    worst, entered = slack, j
        if entered < 0:
            if polished == MOST_POLISH or is_polished(gram, support, size, residual, penalty, pressure):
                break
            polished += 1  # the same step again, from where rounding left the last one
            continue
        support[size] = entered
        size += 1
    return pressure


@njit(cache=True)
def step_on_small_support(gram, residual, row, penalty, bound):
    """Most rows have one or two causes and keep them: their minimiser in closed form; False where that does not do.

    Nothing is changed unless the step ends inside a >= 0 and below the bound.
    """
    n = row.shape[0]
    first, second = -1, -1
    for j in range(n):
        if row[j] > 0.0:
            if first < 0:
                first = j
            elif second < 0:
                second = j
            else:
                return False
    if first < 0:
        return False
    slack = residual[first] - penalty[first]
    if second < 0:
        step, other = slack / gram[first, first], 0.0
        second = first
    else:
        g11, g12, g22 = gram[first, first], gram[first, second], gram[second, second]
        determinant = g11 * g22 - g12 * g12
        if determinant <= DEPENDENT * g11 * g22:
            return False
        rest = residual[second] - penalty[second]
        step = (g22 * slack - g12 * rest) / determinant
        other = (g11 * rest - g12 * slack) / determinant
        if row[second] + other <= 0.0 or row[first] + step + row[second] + other > bound:
            return False
    if row[first] + step <= 0.0 or row[first] + step > bound:
        return False
    row[first] += step
    row[second] += other
    for j in range(n):
        residual[j] -= gram[first, j] * step + gram[second, j] * other
    return True


@njit(cache=True)
def acyclic_weights(adjacency, weights):
    """w = 1' (I - A)^-1 for a strictly upper triangular A."""
    n = weights.shape[0]
    for j in range(n):
        weights[j] = 1.0
    for i in range(n):  # w_i is final once all rows above it have been added
        for j in range(i + 1, n):
            weights[j] += adjacency[i, j] * weights[i]


@njit(cache=True)
def cyclic_weights(adjacency, weights):
    """w = 1' (I - A)^-1 by elimination; rows that sum to less than 1 make I - A dominant, so it needs no pivots."""
    n = weights.shape[0]
    matrix = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = (1.0 if i == j else 0.0) - adjacency[j, i]  # the transpose: (I - A)' w = 1
        weights[i] = 1.0
    for k in range(n):
        for i in range(k + 1, n):
            ratio = matrix[i, k] / matrix[k, k]
            if ratio != 0.0:
                for j in range(k + 1, n):
                    matrix[i, j] -= ratio * matrix[k, j]
                weights[i] -= ratio * weights[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            weights[k] -= matrix[k, j] * weights[j]
        weights[k] /= matrix[k, k]


@gufunc(
    (
        float64[:, ::1],
        float64[:, ::1],
        float64[:, ::1],
        float64[::1],
        float64[::1],
        float64[:, ::1],
        float64,
        boolean,
        boolean[:],
    ),
    "(n,n),(n,n),(n,n),(n),(n),(n,n),(),()->()",
    writes=("residual", "adjacency", "pressure", "weights"),
)
def fit(gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, changed):
    """Solve again the rows whose optimality conditions no longer hold, and bring the weights up to date."""
    changed[0] = False
    n = weights.shape[0]
    tolerances = np.empty((2, n))
    allowed, entering = tolerances[0], tolerances[1]
    for j in range(n):
        allowed[j], entering[j] = WAKE * gram[j, j], ENTER * gram[j, j]
    for i in range(n):
        if row_is_optimal(allowed, residual[i], adjacency[i], penalty[i], pressure[i]):
            continue
        changed[0] = True
        if step_on_small_support(gram, residual[i], adjacency[i], penalty[i], bound):
            pressure[i] = 0.0
            if row_is_optimal(entering, residual[i], adjacency[i], penalty[i], 0.0):
                continue
        pressure[i] = solve_row(gram, residual[i], adjacency[i], penalty[i], bound)
    if changed[0]:
        if acyclic:
            acyclic_weights(adjacency, weights)
        else:
            cyclic_weights(adjacency, weights)


@gufunc((float64[:, :], float64[:, :], float64[:], float64[:, :], float64[:]), "(n,n),(n,n),(n),(n,n)->()")
def squared_error(gram, cross, energy, adjacency, error):
    """sum ||y - A y - z||^2 over rounds of which only G = sum y y', C = sum (y - z) y' and sum (y - z)^2 are known."""
    n = energy.shape[0]
    error[0] = 0.0
    for i in range(n):
        error[0] += energy[i]
        for j in range(n):
            if adjacency[i, j] != 0.0:
                fitted = 0.0
                for k in range(n):
                    fitted += gram[j, k] * adjacency[i, k]
                error[0] += adjacency[i, j] * (fitted - 2.0 * cross[i, j])


# --- discounted means and the index ----------------------------------------------------------------------------------

# Bonuses stop here: above it only their order would matter, and a product with a weight must stay finite.
LARGEST_BONUS: Final = 1e100


@gufunc(
    (float64[:], float64[:], int64[:], boolean[:], float64[:], int64, float64, boolean, boolean[:]),
    "(n),(n),(n),(n),(n),(),(),()->()",
    writes=("sums", "counts", "stamps"),
)
def discounted_arrival(sums, counts, stamps, x, z, moment, discount, arrived, taken):
    """Add the rewards of a round played at `moment` to each played arm's discounted sum and count.

    Each arm's pair is kept as of its own stamp, the latest of its rounds that arrived: the weight of an observation
    depends on the time of its action only, and a count never underflows, however long ago the arm was played.
    """
    taken[0] = arrived
    if not arrived:
        return
    log_discount = math.log(discount)
    for i in range(x.shape[0]):
        if x[i]:
            lag = moment - stamps[i]
            if counts[i] == 0.0:
                sums[i], counts[i], stamps[i] = z[i], 1.0, moment
            elif lag >= 0:
                decay = math.exp(lag * log_discount)
                sums[i] = sums[i] * decay + z[i]
                counts[i] = counts[i] * decay + 1.0
                stamps[i] = moment
            else:
                decay = math.exp(-lag * log_discount)
                sums[i] += decay * z[i]
                counts[i] += decay


@gufunc(
    (float64[:], float64[:], int64[:], int64, float64, float64, float64, float64, float64, float64[:]),
    "(n),(n),(n),(),(),(),(),(),()->(n)",
)
def upper_index(sums, counts, stamps, now, clock, discount, width, unit, cap, index):
    """mean / unit + sqrt(width log(clock) / discounted count), at most `cap`, which is also for arms never observed."""
    log_discount = math.log(discount)
    width *= math.log(max(clock, 1.0))
    for i in range(sums.shape[0]):
        if counts[i] == 0.0:
            index[i] = cap
        else:
            value = sums[i] / (counts[i] * unit)
            if width > 0.0:
                growth = math.exp(min(-0.5 * (now - stamps[i]) * log_discount, 700.0))
                value += min(math.sqrt(width / counts[i]) * growth, LARGEST_BONUS)
            index[i] = min(value, cap)


# --- a sliding window ------------------------------------------------------------------------------------------------


@njit(cache=True)
def forget_before(sums, counts, rewards, chosen, holds, oldest, first):
    """Take the rounds from `oldest` up to, not including, `first` out of sums and counts."""
    window, n = rewards.shape
    for moment in range(max(oldest, first - window), first):
        slot = moment % window
        if oldest <= holds[slot] < first:  # this round, or after a long silence one a window or more before it
            for i in range(n):
                if chosen[slot, i]:
                    counts[i] -= 1.0
                    sums[i] = sums[i] - rewards[slot, i] if counts[i] > 0.0 else 0.0


@gufunc(
    (
        float64[::1],
        float64[::1],
        float64[:, ::1],
        boolean[:, ::1],
        int64[::1],
        int64[:],
        boolean[:],
        float64[:],
        int64,
        int64,
        boolean,
        boolean[:],
    ),
    "(n),(n),(w,n),(w,n),(w),(o),(n),(n),(),(),()->()",
    writes=("sums", "counts", "rewards", "chosen", "holds", "oldest"),
)
def window_arrival(sums, counts, rewards, chosen, holds, oldest, x, reward, moment, now, arrived, taken):
    """Put a round played at `moment` into the window of rounds after now - w; rounds that left it are forgotten."""
    taken[0] = False
    if not arrived:
        return
    window = holds.shape[0]
    first = now - window + 1
    forget_before(sums, counts, rewards, chosen, holds, oldest[0], first)
    oldest[0] = max(oldest[0], first)
    if moment < first:
        return
    taken[0] = True
    slot = moment % window
    holds[slot] = moment
    for i in range(x.shape[0]):
        chosen[slot, i] = x[i]
        rewards[slot, i] = reward[i]
        if x[i]:
            sums[i] += reward[i]
            counts[i] += 1.0


@gufunc(
    (
        float64[::1],
        float64[::1],
        float64[:, ::1],
        boolean[:, ::1],
        int64[::1],
        int64[:],
        int64,
        float64[:],
        float64[:],
    ),
    "(n),(n),(w,n),(w,n),(w),(o),()->(n),(n)",
)
def window_totals(sums, counts, rewards, chosen, holds, oldest, now, sums_now, counts_now):
    """Sums and counts of the rounds after now - w; nothing is rewritten, though some rounds may have left meanwhile."""
    for i in range(sums.shape[0]):
        sums_now[i], counts_now[i] = sums[i], counts[i]
    first = now - holds.shape[0] + 1
    forget_before(sums_now, counts_now, rewards, chosen, holds, oldest[0], first)


# --- the likelihood-ratio test for a change --------------------------------------------------------------------------


@njit(cache=True)
def bernoulli_divergence(p, q):
    """kl(p, q) of two Bernoulli laws, q inside (0, 1)."""
    divergence = 0.0
    if p > 0.0:
        divergence += p * math.log(p / q)
    if p < 1.0:
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return divergence


@njit(cache=True)
def likelihood_ratio(counts, totals, used, unit):
    """(n, max over borders of n_1 kl(mean_1, mean) + n_2 kl(mean_2, mean)) for observations held in buckets."""
    n, total = 0.0, 0.0
    for b in range(used):
        n += counts[b]
        total += totals[b] / unit
    mean = total / n
    best, left, left_total = 0.0, 0.0, 0.0
    if mean <= 0.0 or mean >= 1.0:
        return n, best  # all alike: no border tells them apart
    for b in range(used - 1):
        left += counts[b]
        left_total += totals[b] / unit
        right, right_total = n - left, total - left_total
        before = min(max(left_total / left, 0.0), 1.0)
        after = min(max(right_total / right, 0.0), 1.0)
        ratio = left * bernoulli_divergence(before, mean) + right * bernoulli_divergence(after, mean)
        best = max(best, ratio)
    return n, best


@njit(cache=True)
def merge_buckets(counts, totals):
    """Merge the two neighbours whose joint size is the smallest against the number of observations after them."""
    buckets = counts.shape[0]
    place, least, newer = 0, math.inf, 1.0
    for b in range(buckets - 2, -1, -1):
        size = (counts[b] + counts[b + 1]) / newer
        if size < least:
            place, least = b, size
        newer += counts[b + 1]
    counts[place] += counts[place + 1]
    totals[place] += totals[place + 1]
    for b in range(place + 1, buckets - 1):
        counts[b], totals[b] = counts[b + 1], totals[b + 1]


@gufunc(
    (
        float64[:, ::1],
        float64[:, ::1],
        int64[::1],
        boolean[:],
        float64[:],
        float64,
        float64,
        boolean,
        boolean[:],
    ),
    "(n,b),(n,b),(n),(n),(n),(),(),()->()",
    writes=("counts", "totals", "used"),
)
def detect_change(counts, totals, used, x, reward, unit, false_alarms, arrived, alarm):
    """Add a reward to the history of each played arm, and test that for a change at level `false_alarms`.

    A history is kept in buckets, so memory is constant: a new observation has one of its own, and when all are in use
    two neighbours are merged, such that borders are as far apart as they are old, in proportion.
    """
    alarm[0] = False
    if not arrived:
        return
    buckets = counts.shape[1]
    for i in range(x.shape[0]):
        if x[i]:
            if used[i] == buckets:
                merge_buckets(counts[i], totals[i])
                used[i] -= 1
            counts[i, used[i]], totals[i, used[i]] = 1.0, reward[i]
            used[i] += 1
            n, ratio = likelihood_ratio(counts[i], totals[i], used[i], unit)
            if ratio > math.log(3.0 / false_alarms) + 1.5 * math.log(n):
                alarm[0] = True


# --- from scores to a set --------------------------------------------------------------------------------------------


@gufunc((float64[:], int64, uint64[:], uint64, uint64, uint64, boolean[:]), "(n),(),(k),(),(),()->(n)")
def top_arms(scores, budget, key, call, moment, purpose, x):
    """The at most `budget` arms with the highest positive scores; ties at the border are broken uniformly at random."""
    n = scores.shape[0]
    best = np.empty(budget)
    held = 0
    for i in range(n):  # best[:held] is kept sorted, highest first
        score = scores[i]
        if score > 0.0 and (held < budget or score > best[held - 1]):
            place = held if held < budget else budget - 1
            while place > 0 and best[place - 1] < score:
                best[place] = best[place - 1]
                place -= 1
            best[place] = score
            held = min(held + 1, budget)
    if held == 0:
        for i in range(n):
            x[i] = False
        return
    border = best[held - 1]
    places, tied = 0, 0
    for p in range(held):
        places += best[p] == border
    for i in range(n):
        x[i] = scores[i] > border
        tied += scores[i] == border
    for i in range(n):  # each tied arm in turn: taken with probability places left / tied arms left
        if scores[i] == border:
            take = places == tied
            if not take and places > 0:
                take = to_unit(philox(uint64(i), call, moment, purpose, key[0], key[1])[0]) * tied < places
            x[i] = take
            places -= take
            tied -= 1


# --- FTRL: the marginals of its hybrid regulariser, and a set drawn with them ----------------------------------------

# The multiplier is found once the two sides that it balances differ by less than this, relative to each other: the last
# Newton step, taken to first order, leaves an error of about the square.
BALANCED: Final = 1e-7
# Likewise for a step in a logit, whose error is of the third order.
LAST_STEP: Final = 1e-5
# A step in a logit that is smaller than this, relative to the logit, is rounding.
ROUNDING: Final = 1e-14
# Losses that are further apart count as this far apart: marginals of 1e-301 and 1.
FARTHEST: Final = 1e150


@njit(inline="always")
def hybrid_slope(logit, mixture):
    """(x, 1 - x, h, -h', h'') at a logit, for h = 1 / (2 sqrt(x)) + mixture log(1 - x), which falls in x."""
    small = math.exp(-abs(logit))
    major = 1.0 / (1.0 + small)
    minor = small * major
    x, rest = (major, minor) if logit >= 0.0 else (minor, major)
    root = 0.5 / math.sqrt(x)
    height = root - mixture * (max(logit, 0.0) + math.log(1.0 + small))  # absolute precision will do: log1p is slow
    half = 0.5 * root * rest
    return x, rest, height, half + mixture * x, half * (x + 0.5 * rest) - mixture * x * rest


@njit(inline="always")
def rough_logit(height, mixture):
    """A logit at which h has about a given height, by its asymptotes: never off by more than about 2."""
    at_zero = math.sqrt(0.5) - mixture * math.log(2.0)
    if height < at_zero:
        return (at_zero - height) / mixture
    return -2.0 * math.log(2.0 * (height + mixture * math.log(2.0)))


@njit(inline="always")
def hybrid_logit(height, mixture, guess):
    """The logit at which h takes a given height, with x, 1 - x and -h' there.

    Newton steps with Halley's correction; once both sides of the solution were seen, a step stays between them.
    """
    low, high, logit = -math.inf, math.inf, guess
    for _ in range(100):
        x, rest, found, fall, curvature = hybrid_slope(logit, mixture)
        if found > height:
            low = logit
        else:
            high = logit
        step = (found - height) / fall
        step /= max(1.0 - 0.5 * step * curvature / fall, 0.5)
        if not low <= logit + step <= high:
            step = 0.5 * (low + high) - logit
        logit += step
        if abs(step) <= LAST_STEP + ROUNDING * abs(logit):
            break
    step += 0.5 * step * step * (rest - x)  # x and 1 - x follow the last step to second order
    return logit, x + x * rest * step, rest - x * rest * step, fall


@njit(cache=True)
def ranked(values, rank):
    """The value that would stand at place `rank` if they were sorted: Hoare's selection, which shuffles them."""
    first, last = 0, values.shape[0] - 1
    while first < last:
        pivot = values[(first + last) // 2]
        left, right = first, last
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if rank <= right:
            last = right
        elif rank >= left:
            first = left
        else:
            break
    return values[rank]


@njit(cache=True)
def mark_cheapest(losses, budget, cheapest):
    """Mark the `budget` arms with the smallest losses, of equal ones the first; returns the largest loss of them."""
    border = ranked(losses.copy(), budget - 1)
    places = budget
    for i in range(losses.shape[0]):
        cheapest[i] = losses[i] < border
        places -= cheapest[i]
    for i in range(losses.shape[0]):
        if places > 0 and losses[i] == border:
            cheapest[i] = True
            places -= 1
    return border


@njit(cache=True)
def balance(gaps, cheapest, mixture, multiplier, moved, logits, slopes):
    """Bring the logits to a multiplier; returns what is missing inside, what is outside, and their derivatives."""
    missing, outside, falls, rises = 0.0, 0.0, 0.0, 0.0
    for i in range(gaps.shape[0]):
        height = min(max(gaps[i] - multiplier, -FARTHEST), FARTHEST)
        change = moved * slopes[i]
        guess = logits[i] + change if abs(change) < 1.0 else rough_logit(height, mixture)
        logits[i], x, rest, fall = hybrid_logit(height, mixture, guess)
        slopes[i] = 1.0 / fall
        if cheapest[i]:
            missing += rest
            falls += x * rest / fall
        else:
            outside += x
            rises += x * rest / fall
    return missing, outside, falls, rises


@njit(cache=True)
def multiplier_bracket(gaps, cheapest, budget, mixture):
    """Two multipliers between which the marginals sum to the budget.

    The last arm inside has a marginal of at least 1 / (n - s + 1), the first one outside at most s / (s + 1).
    """
    least, most = 1.0 / (gaps.shape[0] - budget + 1.0), budget / (budget + 1.0)
    nearest = FARTHEST
    for i in range(gaps.shape[0]):
        if not cheapest[i]:
            nearest = min(nearest, gaps[i])
    low = -0.5 / math.sqrt(least) - mixture * math.log(1.0 - least)
    high = nearest - 0.5 / math.sqrt(most) - mixture * math.log(1.0 - most)
    return low, min(high, 2.0 * math.log(2.0 * FARTHEST))


@njit(cache=True)
def solve_multiplier(gaps, cheapest, budget, mixture, logits):
    """Find the multiplier of sum(x) = budget: the arms outside hold what those inside lack.

    Newton's method on the logarithm of the ratio of the two, which is nearly linear however small both are; a bracket
    keeps it in check.
    """
    n = gaps.shape[0]
    slopes = np.full(n, math.inf)  # no logits to start from yet
    low, high = multiplier_bracket(gaps, cheapest, budget, mixture)
    share = budget / n
    multiplier = min(max(-0.5 / math.sqrt(share) - mixture * math.log(1.0 - share), low), high)
    step = 1.0
    for _ in range(200):
        missing, outside, falls, rises = balance(gaps, cheapest, mixture, multiplier, step, logits, slopes)
        if outside < missing:
            low = multiplier
        else:
            high = multiplier
        step = 0.5 * (low + high) - multiplier
        if missing > 0.0:
            newton = math.log(missing / outside) / (rises / outside + falls / missing)
            if abs(outside - missing) <= BALANCED * outside:
                step = newton
                break
            if low <= multiplier + newton <= high:
                step = newton
        multiplier += step
    for i in range(n):
        logits[i] += step * slopes[i]


@gufunc((float64[:], float64, int64, float64, float64[:], float64[:]), "(n),(),(),()->(n),(n)")
def hybrid_marginals(losses, rate, budget, mixture, marginals, logits):
    """Minimise <x, losses> + sum(-sqrt(x) + mixture (1 - x) log(1 - x)) / rate over x in [0, 1]^n, sum(x) = budget.

    Also the logits of x, which tell 1 - x where x rounds to 1.
    """
    n = losses.shape[0]
    if budget == n:
        marginals[:] = 1.0
        logits[:] = math.inf
        return
    gaps = np.empty(n)
    cheapest = np.empty(n, np.bool_)
    # Measured from the last arm inside, losses that matter and the multiplier are small: nothing is lost to rounding.
    border = mark_cheapest(losses, budget, cheapest)
    for i in range(n):
        gaps[i] = rate * (losses[i] - border)
    solve_multiplier(gaps, cheapest, budget, mixture, logits)
    for i in range(n):
        marginals[i] = hybrid_slope(logits[i], mixture)[0]


@gufunc((float64[:], int64, uint64[:], uint64, uint64, uint64, boolean[:]), "(n),(),(k),(),(),()->(n)")
def systematic_sample(marginals, budget, key, call, moment, purpose, x):
    """Exactly `budget` arms, each with its marginal probability: Madow's systematic sampling in a random order.

    The marginals stand end to end on a line; an arm is taken if it covers one of the points u, u + 1, u + 2, ...
    """
    n = marginals.shape[0]
    order = np.arange(n)
    words = philox(uint64(0), call, moment, purpose, key[0], key[1])
    point = to_unit(words[0])
    covered, taken = 0.0, 0
    for k in range(n):
        block, word = divmod(k + 1, 4)
        if word == 0:
            words = philox(uint64(block), call, moment, purpose, key[0], key[1])
        other = k + int64(to_unit(words[word]) * (n - k))
        i = order[other]
        order[other] = order[k]
        covered += marginals[i]
        x[i] = point < covered and taken < budget
        if x[i]:
            point += 1.0
            taken += 1
    while taken < budget:  # the sum fell short by rounding, and the last point into the gap
        likeliest = -1
        for i in range(n):
            if not x[i] and (likeliest < 0 or marginals[i] > marginals[likeliest]):
                likeliest = i
        x[likeliest] = True
        taken += 1


# --- switching means: which hypotheses "the last change was at round r" the rewards speak for ------------------------

# An arm's evidence for a change against none is kept within these bounds, so that no product of many over- or
# underflows; beyond them nothing is left to learn.
LEAST_RATIO: Final = 1e-30
MOST_RATIO: Final = 1e30
MOST_PRECISE: Final = 20.0  # Bernoulli draws that a continuous reward is worth at most
MOST_STRENGTH: Final = 1e9  # observations that a summary is worth at most; beyond, its variance is rounding
MOST_ALONE: Final = 0.4  # probability, at most, that an idle arm changed alone, given that nothing else did
CERTAIN: Final = 0.99  # probability from which a change counts as noticed
SAME_CHANGE: Final = 20  # rounds by which two hypotheses of the same change may differ
NEGLIGIBLE: Final = 1e-6  # probability of a hypothesis below which it does not move a decision


@njit(inline="always")
def changed_probability(prior, ratio):
    """Posterior probability of a change with this prior and this evidence for it."""
    return prior * ratio / (prior * ratio + 1.0 - prior)


@njit(inline="always")
def likelihood(p, reward, precision):
    """p^z (1 - p)^(1 - z) to the power of the precision: Bernoulli at the ends of the range with precision 1."""
    if precision == 1.0:
        if reward == 1.0:
            return p
        if reward == 0.0:
            return 1.0 - p
    return math.exp(precision * (reward * math.log(p) + (1.0 - reward) * math.log(1.0 - p)))


@njit
def precision_of(spread):
    """How many Bernoulli draws a reward is worth: their variance m (1 - m) over the rewards'.

    That is m (1 - m) - E z (1 - z), so rewards of 0 and 1 are worth 1, exactly, whatever is known of the means.
    """
    return min(spread[0] / max(spread[0] - spread[1], spread[0] / MOST_PRECISE), MOST_PRECISE)


@njit
def weakest(mass):
    """The hypothesis with the least probability."""
    place, least = 0, math.inf
    for k in range(mass.shape[0]):
        total = 0.0
        for g in range(mass.shape[1]):
            total += mass[k, g]
        if total < least:
            place, least = k, total
    return place


@njit
def normalise(mass):
    total = 0.0
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            total += mass[k, g]
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] /= total


@njit(error_model="numpy")
def add_moments(weight, kept, fresh, changed, mean, square):
    """Add what one hypothesis says of every arm, times its weight; one division a Beta law, as they take the time."""
    for i in range(changed.shape[0]):
        ones_kept, ones_fresh = kept[i, 0], fresh[i, 0]
        n_kept, n_fresh = ones_kept + kept[i, 1], ones_fresh + fresh[i, 1]
        gone = weight * changed[i]
        stay = (weight - gone) / (n_kept * (n_kept + 1.0))
        gone /= n_fresh * (n_fresh + 1.0)
        mean[i] += stay * ones_kept * (n_kept + 1.0) + gone * ones_fresh * (n_fresh + 1.0)
        square[i] += stay * ones_kept * (ones_kept + 1.0) + gone * ones_fresh * (ones_fresh + 1.0)


@njit
def summarise(mass, kept, fresh, changed, summary):
    """(successes, failures) of Beta laws with the mean and variance of what all hypotheses together say of an arm."""
    n = changed.shape[1]
    mean, square = np.zeros(n), np.zeros(n)
    total = 0.0
    for k in range(mass.shape[0]):
        weight = 0.0
        for g in range(mass.shape[1]):
            weight += mass[k, g]
        if weight > 0.0:
            total += weight
            add_moments(weight, kept[k], fresh[k], changed[k], mean, square)
    for i in range(n):
        m = mean[i] / total
        most = m * (1.0 - m)
        # relative to the mean: near 0 and 1 an absolute floor would take almost all observations away
        variance = max(square[i] / total - m * m, most / MOST_STRENGTH)
        strength = max(most / variance - 1.0, 2.0)
        summary[i, 0], summary[i, 1] = m * strength, (1.0 - m) * strength


@njit
def open_hypothesis(
    born, mass, kept, fresh, ratio, silent, changed, seen, x, moment, elapsed, hazard, idle_hazard, prior
):
    """A change just before `moment`: of a share of all arms, or (type 0) of an arm that was idle until now."""
    slot = weakest(mass)
    n = x.shape[0]
    summary = np.empty((n, 2))
    summarise(mass, kept, fresh, changed, summary)
    total_silent = 0.0
    for i in range(n):
        gap = moment - seen[i]
        silent[slot, i] = 1.0 - (1.0 - idle_hazard) ** gap if x[i] and gap > 0 else 0.0
        total_silent += silent[slot, i]
        ratio[slot, i] = 1.0
        for side in range(2):
            kept[slot, i, side] = summary[i, side]
            fresh[slot, i, side] = 1.0
    for i in range(n):
        silent[slot, i] /= max(total_silent, 1e-300)
    born[slot] = moment
    shared = 1.0 - (1.0 - hazard) ** elapsed
    alone = min(total_silent, MOST_ALONE * (1.0 - shared))
    for g in range(mass.shape[1]):
        mass[slot, g] = 0.0
    normalise(mass)
    for k in range(mass.shape[0]):
        for g in range(mass.shape[1]):
            mass[k, g] *= 1.0 - shared - alone
    mass[slot, 0] = alone
    for g in range(1, mass.shape[1]):
        mass[slot, g] = shared * prior[g]


@njit
def weigh_reward(born, mass, kept, fresh, ratio, silent, shares, arm, reward, moment, precision):
    """One arm's reward: what every hypothesis predicted, and its counts.

    For a hypothesis that changed later than the reward was earned (feedback out of order) it is one more observation
    of the time before, and as probable as the hypotheses that were there find it.
    """
    told, known = 0.0, 0.0
    for k in range(born.shape[0]):
        before = born[k] > moment
        p_kept = kept[k, arm, 0] / (kept[k, arm, 0] + kept[k, arm, 1])
        kept[k, arm, 0] += precision * reward
        kept[k, arm, 1] += precision * (1.0 - reward)
        if before:
            continue
        p_fresh = fresh[k, arm, 0] / (fresh[k, arm, 0] + fresh[k, arm, 1])
        fresh[k, arm, 0] += precision * reward
        fresh[k, arm, 1] += precision * (1.0 - reward)
        like_kept, like_fresh = likelihood(p_kept, reward, precision), likelihood(p_fresh, reward, precision)
        for g in range(mass.shape[1]):
            if mass[k, g] == 0.0:
                continue
            c = 0.0
            if born[k] > 0:
                c = changed_probability(silent[k, arm] if g == 0 else shares[g], ratio[k, arm])
            known += mass[k, g]
            mass[k, g] *= c * like_fresh + (1.0 - c) * like_kept
            told += mass[k, g]
        ratio[k, arm] = min(max(ratio[k, arm] * like_fresh / like_kept, LEAST_RATIO), MOST_RATIO)
    if told > 0.0:  # else they have all but vanished, and say nothing of the others
        for k in range(born.shape[0]):
            if born[k] > moment:
                for g in range(mass.shape[1]):
                    mass[k, g] *= told / known
    normalise(mass)


@njit
def note_spread(mass, kept, fresh, changed, arm, reward, spread):
    """What the variance of rewards is measured by; means as they stood before the round."""
    mean, total = 0.0, 0.0
    for k in range(mass.shape[0]):
        weight = mass[k].sum()
        if weight > 0.0:
            m_kept = kept[k, arm, 0] / (kept[k, arm, 0] + kept[k, arm, 1])
            m_fresh = fresh[k, arm, 0] / (fresh[k, arm, 0] + fresh[k, arm, 1])
            mean += weight * (m_kept + changed[k, arm] * (m_fresh - m_kept))
            total += weight
    mean /= total
    spread[0] += mean * (1.0 - mean)
    spread[1] += reward * (1.0 - reward)


@njit
def update_changed(born, mass, ratio, silent, shares, changed):
    """How probable each hypothesis finds it that its change was one of each arm."""
    for k in range(born.shape[0]):
        total = 0.0
        for g in range(mass.shape[1]):
            total += mass[k, g]
        for i in range(changed.shape[1]):
            changed[k, i] = 0.0
        if total == 0.0 or born[k] == 0:
            continue
        for g in range(mass.shape[1]):
            share = mass[k, g] / total
            if share == 0.0:
                continue
            if g == 0:
                for i in range(changed.shape[1]):
                    changed[k, i] += share * changed_probability(silent[k, i], ratio[k, i])
            else:
                for i in range(changed.shape[1]):
                    changed[k, i] += share * changed_probability(shares[g], ratio[k, i])


@njit
def note_change(born, mass, noticed):
    """Count a change once it is all but certain, hypotheses of neighbouring rounds together; date it anew."""
    date, most = 0, 0.0
    for k in range(born.shape[0]):
        total = mass[k].sum()
        if born[k] > 0 and total > most:
            date, most = born[k], total
    near = 0.0
    for k in range(born.shape[0]):
        if born[k] > 0 and abs(born[k] - date) <= SAME_CHANGE:
            near += mass[k].sum()
    if near > CERTAIN:
        if noticed[0] == 0 or date > noticed[1] + SAME_CHANGE:
            noticed[0] += 1
            noticed[1] = date
        elif date >= noticed[1] - SAME_CHANGE:
            noticed[1] = date


@gufunc(
    (
        int64[::1],
        float64[:, ::1],
        float64[:, :, ::1],
        float64[:, :, ::1],
        float64[:, ::1],
        float64[:, ::1],
        float64[:, ::1],
        int64[::1],
        int64[::1],
        int64[::1],
        float64[::1],
        boolean[:],
        float64[:],
        int64,
        float64[:],
        float64[:],
        float64,
        float64,
        boolean,
        boolean[:],
    ),
    "(k),(k,g),(k,n,t),(k,n,t),(k,n),(k,n),(k,n),(n),(o),(t),(t),(n),(n),(),(g),(g),(),(),()->()",
    writes=("born", "mass", "kept", "fresh", "ratio", "silent", "changed", "seen", "latest", "noticed", "spread"),
)
def switching_arrival(
    born,
    mass,
    kept,
    fresh,
    ratio,
    silent,
    changed,
    seen,
    latest,
    noticed,
    spread,
    x,
    reward,
    moment,
    shares,
    prior,
    hazard,
    idle_hazard,
    arrived,
    taken,
):
    """Weigh all hypotheses by the rewards of a round, whenever it arrives."""
    taken[0] = arrived
    if not arrived:
        return
    precision = precision_of(spread)
    for i in range(x.shape[0]):
        if x[i]:
            note_spread(mass, kept, fresh, changed, i, reward[i], spread)
    if moment > latest[0]:
        if latest[0] > 0:
            elapsed = moment - latest[0]
            open_hypothesis(
                born, mass, kept, fresh, ratio, silent, changed, seen, x, moment, elapsed, hazard, idle_hazard, prior
            )
        latest[0] = moment
    for i in range(x.shape[0]):
        if x[i]:
            weigh_reward(born, mass, kept, fresh, ratio, silent, shares, i, reward[i], moment, precision)
            seen[i] = max(seen[i], moment)
    update_changed(born, mass, ratio, silent, shares, changed)
    note_change(born, mass, noticed)


@gufunc((float64[:], boolean[:], float64, int64, boolean, float64[:]), "(n),(n),(),(),()->(n)")
def end_pulls(flight, x, fade, age, arrived, left):
    """Pulls in flight without those of a round that has arrived, of each of which fade^age was left."""
    remains = fade**age if arrived else 0.0
    for i in range(flight.shape[0]):
        left[i] = max(flight[i] - remains, 0.0) if x[i] else flight[i]


@njit(inline="always")
def expected_excess(ones, zeros, level):
    """E[(m - level)+] for a mean m with this Beta law, taken as normal."""
    n = ones + zeros
    mean = ones / n
    deviation = math.sqrt(mean * (1.0 - mean) / (n + 1.0))
    z = (mean - level) / deviation
    if z < -6.0:
        return 0.0
    return deviation * (math.exp(-0.5 * z * z) * 0.3989422804014327 + 0.5 * z * math.erfc(-z * 0.7071067811865476))


@njit
def mixture_mean(totals, kept, fresh, changed, arm):
    mean = 0.0
    for k in range(totals.shape[0]):
        if totals[k] > 0.0:
            m_kept = kept[k, arm, 0] / (kept[k, arm, 0] + kept[k, arm, 1])
            m_fresh = fresh[k, arm, 0] / (fresh[k, arm, 0] + fresh[k, arm, 1])
            mean += totals[k] * (m_kept + changed[k, arm] * (m_fresh - m_kept))
    return mean


@njit
def mixture_missed(sharpened, kept, fresh, changed, arm, level, inside):
    """E[(m - level)+], what leaving an arm out may miss; of a chosen one E[(level - m)+], what keeping it may."""
    missed = 0.0
    side, other = (1, 0) if inside else (0, 1)
    height = 1.0 - level if inside else level
    for k in range(sharpened.shape[0]):
        if sharpened[k] < NEGLIGIBLE:
            continue
        of_fresh = sharpened[k] * changed[k, arm]
        if of_fresh > NEGLIGIBLE:
            missed += of_fresh * expected_excess(fresh[k, arm, side], fresh[k, arm, other], height)
        of_kept = sharpened[k] - of_fresh
        if of_kept > NEGLIGIBLE:
            missed += of_kept * expected_excess(kept[k, arm, side], kept[k, arm, other], height)
    return missed


@gufunc(
    (
        float64[:, :],
        float64[:, :, :],
        float64[:, :, :],
        float64[:, :],
        float64[:],
        int64[:],
        float64[:],
        int64,
        int64,
        float64,
        float64,
        float64,
        float64[:],
        float64[:],
    ),
    "(k,g),(k,n,t),(k,n,t),(k,n),(n),(n),(n),(),(),(),(),()->(n),(n)",
)
def switching_index(
    mass, kept, fresh, changed, weights, pulled, flight, now, budget, offset, idle_hazard, horizon, mean, index
):
    """Expected rewards, and the same plus what finding out may be worth over `horizon` rounds; in [0, 1] + offset.

    An arm outside the s best in expectation gains horizon E[(w m - threshold)+] / w, the threshold being the score of
    the s-th best; one of the s best horizon E[(threshold - w m)+] / w, with that of the next one: what is at stake as
    long as it is not known better. Both over (1 + pulls in flight)^2: what is under way need not be asked again.
    """
    hypotheses, n = mass.shape[0], weights.shape[0]
    totals = np.empty(hypotheses)
    squares = 0.0
    for k in range(hypotheses):
        totals[k] = 0.0
        for g in range(mass.shape[1]):
            totals[k] += mass[k, g]
        squares += totals[k] * totals[k]
    scores = np.empty(n)
    idle = np.empty(n)
    for i in range(n):
        idle[i] = 1.0 - (1.0 - idle_hazard) ** (now - pulled[i])
        mean[i] = (1.0 - idle[i]) * mixture_mean(totals, kept, fresh, changed, i) + idle[i] * 0.5
        index[i] = mean[i]
        scores[i] = weights[i] * (mean[i] + offset)
    ordered = np.sort(scores)
    threshold = max(ordered[n - budget], 0.0)
    runner_up = max(ordered[n - budget - 1], 0.0) if budget < n else 0.0
    for k in range(hypotheses):
        totals[k] *= totals[k] / squares  # squared: a change that is hardly likely shows itself in pulls under way
    for i in range(n):
        inside = scores[i] >= threshold and scores[i] > 0.0
        rival = runner_up if inside else threshold
        if weights[i] <= 0.0 or weights[i] * (1.0 + offset) <= rival:
            continue  # out of reach even with the best mean
        level = max(rival / weights[i] - offset, 0.0)
        if inside and level == 0.0:
            continue  # nothing can be better
        missed = 0.5 * level**2 if inside else 0.5 * (1.0 - level) ** 2  # by a mean of which nothing is known
        missed = idle[i] * missed + (1.0 - idle[i]) * mixture_missed(totals, kept, fresh, changed, i, level, inside)
        index[i] += horizon * missed / (1.0 + flight[i]) ** 2


# --- the graph problem where spill-over may hurt: one plain lasso a row ----------------------------------------------


@njit(cache=True)
def signed_row_is_optimal(allowed, residual, row, penalty, pressure):
    """Whether the optimality conditions of a row hold whose entries may have either sign."""
    violations = 0
    for j in range(row.shape[0]):
        hold = penalty[j] + pressure
        if row[j] > 0.0:
            violations += abs(residual[j] - hold) > allowed[j]
        elif row[j] < 0.0:
            violations += abs(residual[j] + hold) > allowed[j]
        else:
            violations += abs(residual[j]) - hold > allowed[j]
    return violations == 0


@njit(cache=True)
def solve_signed_row(gram, residual, row, penalty, bound):
    """Minimise a'Ga/2 - c'a + penalty'|a| with sum(|a|) <= bound; returns the bound's multiplier.

    With the signs given it is the non-negative problem on columns turned by their signs. An entry that stays 0 though
    the other sign would gain is turned, and the problem solved again: each time the objective falls, so it ends.
    """
    n = row.shape[0]
    signs = np.empty(n)
    turned = np.empty((n, n))
    for j in range(n):
        signs[j] = 1.0 if row[j] > 0.0 or (row[j] == 0.0 and residual[j] >= 0.0) else -1.0
    pressure = 0.0
    for _ in range(10 * n + 50):
        for i in range(n):
            row[i] *= signs[i]
            residual[i] *= signs[i]
            for j in range(n):
                turned[i, j] = signs[i] * signs[j] * gram[i, j]
        pressure = solve_row(turned, residual, row, penalty, bound)
        worst, other = ENTER, -1
        for j in range(n):
            if row[j] == 0.0 and gram[j, j] > FAINTEST:
                slack = (-residual[j] - penalty[j] - pressure) / gram[j, j]
                if slack > worst:
                    worst, other = slack, j
        for j in range(n):
            row[j] *= signs[j]
            residual[j] *= signs[j]
        if other < 0:
            break
        signs[other] = -signs[other]
    return pressure


@gufunc(
    (
        float64[:, ::1],
        float64[:, ::1],
        float64[:, ::1],
        float64[::1],
        float64[::1],
        float64[:, ::1],
        float64,
        boolean,
        boolean[:],
    ),
    "(n,n),(n,n),(n,n),(n),(n),(n,n),(),()->()",
    writes=("residual", "adjacency", "pressure", "weights"),
)
def fit_signed(gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, changed):
    """`fit` for entries of either sign."""
    changed[0] = False
    n = weights.shape[0]
    allowed = np.empty(n)
    for j in range(n):
        allowed[j] = WAKE * gram[j, j]
    for i in range(n):
        if not signed_row_is_optimal(allowed, residual[i], adjacency[i], penalty[i], pressure[i]):
            changed[0] = True
            pressure[i] = solve_signed_row(gram, residual[i], adjacency[i], penalty[i], bound)
    if changed[0]:
        if acyclic:
            acyclic_weights(adjacency, weights)
        else:
            cyclic_weights(adjacency, weights)


# --- regression on z: total effects with neither order, sparsity nor acyclicity --------------------------------------

# Alternatives of the test for a change: by how much the variance of a residual may have grown.
GROWTHS: Final = (2.0, 10.0, 1e4)
FEWEST_FREE: Final = 5.0  # degrees of freedom below which a noise level says nothing
MANY_FREE: Final = 50.0  # from which on its own error is small
SHIFT: Final = 0.5
LARGEST_LOG: Final = 100.0
# Below this, relative to the largest entry, a pivot is rounding.
NO_PIVOT: Final = 1e-12


@njit(cache=True)
def projected(root, z, phi):
    """phi = root' z, and 1 / (1 + z' P z) for P = root root'."""
    n = z.shape[0]
    for k in range(n):
        phi[k] = 0.0
    for j in range(n):
        if z[j] != 0.0:
            for k in range(n):
                phi[k] += root[j, k] * z[j]
    return 1.0 / (1.0 + prediction(phi, phi))


@njit(cache=True)
def find_residuals(effects, z, y, residuals):
    """y - effects z. Few arms are chosen where there are many: only their columns are looked at then."""
    n = z.shape[0]
    held = np.empty(n, np.int64)
    count = 0
    for j in range(n):
        if z[j] != 0.0:
            held[count] = j
            count += 1
    for i in range(y.shape[0]):
        if 4 * count < n:
            told = 0.0
            for place in range(count):
                told += effects[i, held[place]] * z[held[place]]
        else:
            told = prediction(effects[i], z)
        residuals[i] = y[i] - told


@njit(cache=True)
def learn_effects(root, effects, scatter, phi, residuals, weight):
    """Recursive least squares; phi = root' z. Says how much of the outcome the past could have predicted.

    P = root root' is the inverse of Z Z' + ridge. Its root is what is kept (Potter's update), so that P stays positive
    and exact however many rounds come. scatter sums the outer products of recursive residuals: uncorrelated, and of
    the variance of the noise, whatever z was (Brown, Durbin and Evans 1975).
    """
    n, m = phi.shape[0], residuals.shape[0]
    amount = math.sqrt(weight)
    for k in range(n):
        phi[k] *= amount
    share = 1.0 / (1.0 + prediction(phi, phi))
    narrowing = 1.0 / (1.0 + math.sqrt(share))
    step, recursive = np.empty(n), np.empty(m)
    for j in range(n):
        step[j] = share * prediction(root[j], phi)
    for j in range(n):
        change = narrowing * step[j]
        for k in range(n):
            root[j, k] -= change * phi[k]
    for i in range(m):
        error = amount * residuals[i]
        recursive[i] = error * math.sqrt(share)
        for k in range(n):
            effects[i, k] += error * step[k]
    for i in range(m):
        for k in range(m):
            scatter[i, k] += recursive[i] * recursive[k]
    return share


@gufunc(
    (float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:], float64[:], float64, float64[:]),
    "(n,n),(m,n),(m,m),(n),(m),()->()",
    writes=("root", "effects", "scatter"),
)
def regress(root, effects, scatter, z, y, weight, certainty):
    """Learn the effects of z on y from a round at the given weight, which may be 0."""
    certainty[0] = 0.0
    if weight != 0.0:
        phi, residuals = np.empty(z.shape[0]), np.empty(y.shape[0])
        projected(root, z, phi)
        find_residuals(effects, z, y, residuals)
        certainty[0] = learn_effects(root, effects, scatter, phi, residuals, weight)


@njit(cache=True)
def evidence_of_growth(ratio, freedom):
    """How much likelier a residual is if the variance grew, on average over the growths; ratio is its square over it.

    Student's law, since the variance is itself an estimate with so many degrees of freedom.
    """
    total = 0.0
    for k in range(3):
        growth = GROWTHS[k]
        tails = math.log((1.0 + ratio / freedom) / (1.0 + ratio / (growth * freedom)))
        total += math.exp(min(0.5 * (freedom + 1.0) * tails - 0.5 * math.log(growth), LARGEST_LOG))
    return total / 3.0


@njit(cache=True)
def shift_effects(risen, fallen, z, unit, standing, limit):
    """Whether a statistic for a shift in one effect, up or down, reaches the limit after these standardised residuals.

    Page's cumulative sums for a shift of SHIFT standard deviations in what a whole unit of z does.
    """
    reached = 0  # counted, since the largest of them would have to wait for itself
    for j in range(z.shape[0]):
        shift = SHIFT * unit * z[j]
        if shift != 0.0:
            for i in range(standing.shape[0]):
                risen[j, i] = max(0.0, risen[j, i] + shift * (standing[i] - 0.5 * shift))
                fallen[j, i] = max(0.0, fallen[j, i] - shift * (standing[i] + 0.5 * shift))
                reached += (risen[j, i] >= limit) + (fallen[j, i] >= limit)
    return reached > 0


@njit(cache=True)
def is_surprising(scatter, suspicion, risen, fallen, freedom, z, residuals, share, floor, size, limit):
    """Test residuals against the noise learned so far.

    Two tests, each with at least 2 `limit` arrivals between false alarms on average: a Shiryaev-Roberts statistic for
    each outcome, whose variance may have grown (its mean grows by 1 an arrival while nothing changes), and cumulative
    sums for each single effect, which see small shifts sooner. Residuals in directions that the past did not show
    count for nothing.
    """
    n, m = z.shape[0], residuals.shape[0]
    alarm = False
    unmoved = evidence_of_growth(0.0, freedom)
    standing = np.empty(m)
    caution = 1.0 + 3.0 * math.sqrt(2.0 / freedom)  # the variance may be underestimated
    for i in range(m):
        error = math.sqrt(share) * residuals[i]
        variance = max(scatter[i, i] / freedom, floor)
        ratio = error * error / variance
        standing[i] = error / math.sqrt(caution * variance)
        evidence = unmoved if ratio < 1e-12 else evidence_of_growth(ratio, freedom)
        suspicion[i] = min((suspicion[i] + 1.0) * evidence, 1e100)
        alarm |= suspicion[i] >= 2.0 * m * limit
    if freedom >= MANY_FREE:
        unit = math.sqrt(share) / size
        alarm |= shift_effects(risen, fallen, z, unit, standing, math.log(4.0 * n * m * limit))
    return alarm


@gufunc(
    (
        float64[:, ::1],
        float64[:, ::1],
        float64[:, ::1],
        float64[::1],
        boolean[::1],
        float64[::1],
        float64[:, ::1],
        float64[:, ::1],
        float64[:],
        float64[:],
        float64,
        float64,
        float64,
        float64,
        boolean[:],
        float64[:],
    ),
    "(n,n),(m,n),(m,m),(o),(o),(m),(n,m),(n,m),(n),(m),(),(),(),()->(),()",
    writes=("root", "effects", "scatter", "freedom", "halted", "suspicion", "risen", "fallen"),
)
def watched_regress(
    root,
    effects,
    scatter,
    freedom,
    halted,
    suspicion,
    risen,
    fallen,
    z,
    y,
    floor,
    size,
    limit,
    weight,
    alarm,
    certainty,
):
    """Test a round for a change of the effects, and learn from it unless there is an alarm: what was known is over.

    `halted` says that there was one; from then on nothing is taken in.
    """
    alarm[0], certainty[0] = False, 0.0
    if halted[0] or weight == 0.0:
        return
    phi, residuals = np.empty(z.shape[0]), np.empty(y.shape[0])
    share = projected(root, z, phi)
    find_residuals(effects, z, y, residuals)
    if freedom[0] >= FEWEST_FREE:
        alarm[0] = is_surprising(scatter, suspicion, risen, fallen, freedom[0], z, residuals, share, floor, size, limit)
    if alarm[0]:
        halted[0] = True
        return
    certainty[0] = learn_effects(root, effects, scatter, phi, residuals, weight)
    freedom[0] += certainty[0]


@njit(cache=True)
def invert(matrix, inverse):
    """Gauss and Jordan with row pivots; False where the matrix is singular to rounding. Rewrites the matrix."""
    n = matrix.shape[0]
    largest = 0.0
    for i in range(n):
        for j in range(n):
            inverse[i, j] = 1.0 if i == j else 0.0
            largest = max(largest, abs(matrix[i, j]))
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if not abs(matrix[pivot, k]) > NO_PIVOT * largest:
            return False
        if pivot != k:
            for j in range(n):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
                inverse[k, j], inverse[pivot, j] = inverse[pivot, j], inverse[k, j]
        scale = 1.0 / matrix[k, k]
        for j in range(n):
            matrix[k, j] *= scale
            inverse[k, j] *= scale
        for i in range(n):
            ratio = matrix[i, k]
            if i != k and ratio != 0.0:
                for j in range(n):
                    matrix[i, j] -= ratio * matrix[k, j]
                    inverse[i, j] -= ratio * inverse[k, j]
    return True


@njit(cache=True)
def spread_of_inverse(root, inverse):
    """M = H' P H for H = inverse, P = root root': what the standard errors of the graph are made of."""
    n = root.shape[0]
    half, spread = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for k in range(n):
            if root[i, k] != 0.0:
                for j in range(n):
                    half[k, j] += root[i, k] * inverse[i, j]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                spread[i, j] += half[k, i] * half[k, j]
    return spread


@njit(cache=True)
def structural_variance(row, i, scatter, freedom, floor):
    """Variance of the noise in structural equation i, whose coefficients are `row`, from that of y given z."""
    n = row.shape[0]
    total = 0.0
    for j in range(n):
        inner = scatter[i, j]
        for k in range(n):
            inner -= row[k] * scatter[k, j]
        total += inner * ((1.0 if i == j else 0.0) - row[j])
    return max(total / max(freedom, 1.0), floor)


@gufunc(
    (
        float64[:, :],
        float64[:, :],
        float64[:, :],
        float64,
        float64[:, :],
        float64[:],
        float64,
        boolean,
        float64[:, :],
        float64[:],
        float64[:],
    ),
    "(n,n),(n,n),(n,n),(),(n,n),(n),(),()->(n,n),(n),(n)",
)
def structure(effects, root, scatter, freedom, bars, gain_bars, floor, signed, adjacency, gain, weights):
    """The graph behind total effects B = (I - A)^-1 F: A = I - F H, F = 1 / diag(H), H = B^-1.

    An edge is kept if it exceeds `bars` standard errors, a gain if it differs from 1 by `gain_bars` of them.
    """
    n = weights.shape[0]
    inverse, work = np.empty((n, n)), effects.copy()
    regular = invert(work, inverse)
    for j in range(n):
        gain[j], weights[j] = 1.0, 0.0
        for i in range(n):
            weights[j] += effects[i, j]
            adjacency[i, j] = 0.0
    if not regular:
        return
    spread = spread_of_inverse(root, inverse)
    for i in range(n):
        if not inverse[i, i] > NO_PIVOT:
            continue
        direct = 1.0 / inverse[i, i]
        for j in range(n):
            adjacency[i, j] = 0.0 if i == j else -direct * inverse[i, j]
        variance = structural_variance(adjacency[i], i, scatter, freedom, floor)
        off = gain_bars[i] * direct * math.sqrt(variance * spread[i, i])
        gain[i] = direct if abs(direct - 1.0) > off else 1.0
        for j in range(n):
            edge = adjacency[i, j]
            around = max(spread[j, j] + edge * (2.0 * spread[i, j] + edge * spread[i, i]), 0.0)
            size = abs(edge) if signed else edge
            if i == j or not size > bars[i, j] * math.sqrt(variance * around):
                adjacency[i, j] = 0.0
    for i in range(n):
        for j in range(n):
            work[i, j] = (1.0 if i == j else 0.0) - adjacency[i, j]
    if not invert(work, inverse):
        return
    dies_out = True
    for i in range(n):
        for j in range(n):
            dies_out &= signed or inverse[i, j] >= -NO_PIVOT
    if dies_out:
        for j in range(n):
            weights[j] = 0.0
            for i in range(n):
                weights[j] += inverse[i, j] * gain[j]


@gufunc(
    (float64[:, :], float64[:], float64, float64, float64, float64[:]),
    "(n,n),(n),(),(),()->(n)",
)
def shrunk_weights(root, effects, scatter, freedom, prior, weights):
    """Each weight drawn to 1 as its own uncertainty asks: by variance / (variance + prior variance)."""
    variance = scatter / max(freedom, 1.0)
    for j in range(effects.shape[0]):
        own = variance * prediction(root[j], root[j])
        weights[j] = 1.0 + (effects[j] - 1.0) * prior / (prior + own)


# --- constrained decisions: greedy with limits on groups, a first feasible set, and an exact search ------------------

# Sums of a few hundred doubles of about 1 differ from the exact ones by less than this.
SUM_ROUNDING: Final = 1e-11


@njit(cache=True)
def row_bound(used, total, low, high, price, rate_up, rate_down):
    """The least that the deviations so far, and what some row still needs, take from the bound of the relaxation.

    A row outside of its limits must be mended by later deviations: rate_up and rate_down are the least that these cost
    for one unit up or down. A row inside has slack, which costs its price or the deviations that use it up.
    """
    worst = 0.0
    for i in range(total.shape[0]):
        over, under = total[i] - high[i], low[i] - total[i]
        cost = 0.0
        if over > SUM_ROUNDING:
            cost = over * rate_down[i]
        elif under > SUM_ROUNDING:
            cost = under * rate_up[i]
        elif price[i] > 0.0 and over < -SUM_ROUNDING:
            cost = -over * min(price[i], rate_up[i])
        elif price[i] < 0.0 and under < -SUM_ROUNDING:
            cost = -under * min(-price[i], rate_down[i])
        worst = max(worst, cost)
    return used + worst


@njit(cache=True)
def inside(total, low, high):
    for i in range(total.shape[0]):
        if total[i] > high[i] + SUM_ROUNDING or total[i] < low[i] - SUM_ROUNDING:
            return False
    return True


@njit(cache=True)
def mending_rates(change, cost, rate_up, rate_down):
    """rate_up[k, i]: the least cost of one unit more in row i by the deviations from k on; likewise one unit less."""
    for k in range(change.shape[0] - 1, -1, -1):
        for i in range(change.shape[1]):
            rate_up[k, i], rate_down[k, i] = rate_up[k + 1, i], rate_down[k + 1, i]
            if change[k, i] > 0.0:
                rate_up[k, i] = min(rate_up[k, i], cost[k] / change[k, i])
            elif change[k, i] < 0.0:
                rate_down[k, i] = min(rate_down[k, i], -cost[k] / change[k, i])


@gufunc(
    (
        *(float64[:, :], float64[:], float64[:], float64[:], float64[:], float64[:], float64[:]),
        *(float64, float64, float64, float64, int64, boolean[:], float64[:], int64[:]),
    ),
    "(k,m),(k),(k),(m),(m),(m),(m),(),(),(),(),()->(k),(),()",
)
def search_deviations(
    change, cost, gain, start, low, high, price, value, bound, gap, least, effort, deviates, best, steps
):
    """The best feasible set within `gap` of the bound of a relaxation, as deviations from the relaxation's own set.

    Every set's value is the bound less the costs of its deviations and the prices of its slack. Depth first over sets
    of deviations, cheapest first; `gap` shrinks with every better set. Differences below `least` do not count. best
    is -inf when there is none; steps is above effort when the search was broken off.
    """
    k_all, m = change.shape
    rate_up, rate_down = np.full((k_all + 1, m), np.inf), np.full((k_all + 1, m), np.inf)
    mending_rates(change, cost, rate_up, rate_down)
    totals, used, values = np.empty((k_all + 1, m)), np.zeros(k_all + 1), np.empty(k_all + 1)
    path, following = np.zeros(k_all + 1, np.int64), np.zeros(k_all + 1, np.int64)
    totals[0], values[0] = start, value
    deviates[:] = False
    best[0], steps[0] = -np.inf, 0
    depth, fresh = 0, True
    while depth >= 0:
        steps[0] += 1
        if steps[0] > effort:
            break
        total = totals[depth]
        good = fresh and values[depth] > best[0] + least and values[depth] >= bound - gap - least
        if good and inside(total, low, high):
            best[0] = values[depth]
            gap = min(gap, bound - best[0])
            deviates[:] = False
            for p in range(depth):
                deviates[path[p]] = True
        fresh = False
        k = following[depth]
        if k == k_all or used[depth] + cost[k] > gap - least:
            depth -= 1
            continue
        if row_bound(used[depth], total, low, high, price, rate_up[k], rate_down[k]) > gap - least:
            depth -= 1
            continue
        path[depth], following[depth] = k, k + 1
        for i in range(m):
            totals[depth + 1, i] = total[i] + change[k, i]
        used[depth + 1], values[depth + 1] = used[depth] + cost[k], values[depth] + gain[k]
        depth += 1
        following[depth], fresh = k + 1, True


@njit(cache=True)
def fits(total, column, sign, low, high):
    for i in range(total.shape[0]):
        after = total[i] + sign * column[i]
        # what is outside already may stay outside, if it comes nearer
        if after > high[i] + SUM_ROUNDING and after >= total[i]:
            return False
        if after < low[i] - SUM_ROUNDING and after <= total[i]:
            return False
    return True


@njit(cache=True)
def exchange(columns, low, high, scores, x, total):
    """One exchange of a chosen arm for another one that brings more; whether there was one."""
    n, m = columns.shape
    for j in range(n):
        if not x[j]:
            continue
        for k in range(n):
            if x[k] or scores[k] <= scores[j] + 1e-12 * abs(scores[j]):
                continue
            good = True
            for i in range(m):
                after = total[i] - columns[j, i] + columns[k, i]
                if after > high[i] + SUM_ROUNDING or after < low[i] - SUM_ROUNDING:
                    good = False
                    break
            if good:
                x[j], x[k] = False, True
                total += columns[k] - columns[j]
                return True
    return False


@gufunc(
    (float64[:, :], float64[:], float64[:], float64[:], boolean[:], boolean[:], boolean[:]),
    "(n,m),(m),(m),(n),(n)->(n),()",
)
def fill_and_exchange(columns, low, high, scores, start, x, feasible):
    """A good set from a start: arms with positive scores that fit, in order, then exchanges of one for another."""
    n, m = columns.shape
    x[:] = start
    total = np.zeros(m)
    for j in range(n):
        if x[j]:
            total += columns[j]
    for _ in range(50):
        for j in range(n):
            if not x[j] and scores[j] > 0.0 and fits(total, columns[j], 1.0, low, high):
                x[j] = True
                total += columns[j]
        if not inside(total, low, high) or not exchange(columns, low, high, scores, x, total):
            break
    feasible[0] = inside(total, low, high)


@njit(cache=True)
def no_worse(ours, theirs, low, high):
    """Whether an arm can take another one's place in any feasible set."""
    for i in range(ours.shape[0]):
        if ours[i] > theirs[i] and high[i] < np.inf:
            return False
        if ours[i] < theirs[i] and low[i] > -np.inf:
            return False
    return True


@gufunc(
    (float64[:, :], float64[:], float64[:], boolean[:], int64[:], boolean[:]),
    "(n,m),(m),(m),(m),(n)->(n)",
)
def dispensable_arms(columns, low, high, positive, order, dispensable):
    """Arms that some best set does without: so many others are no worse that a row has no room for all of them.

    Then one of these is not chosen, and can take the arm's place. `order` has arms that are no worse before those that
    are no better; `positive` are the rows without negative coefficients.
    """
    n, m = columns.shape
    taken = np.empty(m)
    for q in range(n):
        b = order[q]
        dispensable[b] = False
        taken[:] = columns[b]
        for p in range(q):
            a = order[p]
            if dispensable[a] or not no_worse(columns[a], columns[b], low, high):
                continue
            for i in range(m):
                taken[i] += columns[a, i]
                if positive[i] and taken[i] > high[i] + SUM_ROUNDING:
                    dispensable[b] = True
            if dispensable[b]:
                break


@gufunc(
    (float64[:, :], float64[:], int64[:], float64[:], boolean[:], boolean[:]),
    "(m,n),(m),(n),(n),(n)->(n)",
)
def greedy_arms(groups, limits, order, scores, start, x):
    """The start and, in order, every arm with a positive score whose groups have room: exact on a matroid."""
    m, n = groups.shape
    x[:] = start
    room = limits.copy()
    for j in range(n):
        if start[j]:
            room -= groups[:, j]
    for j in order:
        if x[j] or not scores[j] > 0.0:
            continue
        free = True
        for i in range(m):
            if groups[i, j] > 0.0 and room[i] < 1.0:
                free = False
                break
        if free:
            x[j] = True
            room -= groups[:, j]


# --- pulls in flight -------------------------------------------------------------------------------------------------


@gufunc(
    (float64[:], int64[:], boolean[:], int64, float64, float64[:], int64[:]),
    "(n),(n),(n),(),()->(n),(n)",
)
def count_pulls(pulls, stamps, x, moment, discount, counted, stamped):
    """Each played arm's discounted number of pulls, as of its own stamp, the latest of them."""
    log_discount = math.log(discount)
    for i in range(x.shape[0]):
        counted[i], stamped[i] = pulls[i], stamps[i]
        if x[i]:
            decay = math.exp((moment - stamps[i]) * log_discount)
            counted[i] = pulls[i] * decay + 1.0
            stamped[i] = moment


@gufunc(
    (
        *(float64[:], float64[:], int64[:], float64[:], int64[:]),
        *(int64, float64, float64, float64, float64, float64[:]),
    ),
    "(n),(n),(n),(n),(n),(),(),(),(),()->(n)",
)
def pending_index(sums, counts, stamps, pulls, latest, now, clock, discount, width, top, index):
    """mean + sqrt(width log(clock) / discounted pulls, heard of or not); `top` for a mean that nothing is known of.

    Outcomes of rounds that were never said to be played count as pulls too: of the two numbers the larger one holds.
    """
    log_discount = math.log(discount)
    width *= math.log(max(clock, 1.0))
    for i in range(sums.shape[0]):
        if counts[i] == 0.0 and pulls[i] == 0.0:
            index[i] = math.inf
            continue
        value = sums[i] / counts[i] if counts[i] > 0.0 else top
        if width > 0.0:
            bonus = LARGEST_BONUS
            if counts[i] > 0.0:
                growth = math.exp(min(-0.5 * (now - stamps[i]) * log_discount, 700.0))
                bonus = min(bonus, math.sqrt(width / counts[i]) * growth)
            if pulls[i] > 0.0:
                growth = math.exp(min(-0.5 * (now - latest[i]) * log_discount, 700.0))
                bonus = min(bonus, math.sqrt(width / pulls[i]) * growth)
            value += bonus
        index[i] = value


# --- several discounts side by side ----------------------------------------------------------------------------------


@gufunc(
    (
        *(float64[:, :], float64[:, :], int64[:], float64[:], float64[:], float64),
        *(boolean[:], float64[:], float64[:], int64, int64, boolean, boolean[:]),
    ),
    "(d,n),(d,n),(n),(d),(d),(),(n),(n),(r),(),(),()->()",
    writes=("sums", "counts", "stamps", "evidence"),
)
def side_by_side_arrival(
    sums, counts, stamps, evidence, discounts, evidence_discount, x, z, limits, moment, heard, arrived, taken
):
    """Predict the rewards of a round under every discount, add what the predictions were worth, then the rewards.

    Sums and counts are as of each arm's stamp, the evidence as of `heard`, the latest round heard of before this one.
    A reward is the share of its range, u; a prediction p is the mean under a Beta(1, 1) prior, and its worth the
    logarithm of p^u (1 - p)^(1 - u).
    """
    taken[0] = arrived
    if not arrived:
        return
    fading = math.exp(abs(moment - heard) * math.log(evidence_discount))
    weight = 1.0
    if moment < heard:
        weight = fading
    else:
        for k in range(discounts.shape[0]):
            evidence[k] *= fading
    for k in range(discounts.shape[0]):
        log_discount = math.log(discounts[k])
        worth = 0.0
        for i in range(x.shape[0]):
            if x[i]:
                lag = moment - stamps[i]
                decay = math.exp(abs(lag) * log_discount)
                total, count = sums[k, i] * decay, counts[k, i] * decay
                reward = min(max((z[i] - limits[0]) / (limits[1] - limits[0]), 0.0), 1.0)
                if reward > 0.0:  # a reward at an end of the range needs one logarithm
                    worth += reward * math.log((total + 1.0) / (count + 2.0))
                if reward < 1.0:
                    worth += (1.0 - reward) * math.log((count - total + 1.0) / (count + 2.0))
                if lag >= 0:
                    sums[k, i], counts[k, i] = total + reward, count + 1.0
                else:
                    sums[k, i] += decay * reward
                    counts[k, i] += decay
        evidence[k] += weight * worth
    for i in range(x.shape[0]):
        if x[i] and moment > stamps[i]:
            stamps[i] = moment


@gufunc(
    (float64[:, :], int64[:], float64[:], boolean[:], int64, float64[:, :], int64[:]),
    "(d,n),(n),(d),(n),()->(d,n),(n)",
)
def side_by_side_pulls(pulls, stamps, discounts, x, moment, counted, stamped):
    """Each played arm's discounted number of pulls under every discount, as of its own stamp, the latest of them."""
    for i in range(x.shape[0]):
        stamped[i] = moment if x[i] else stamps[i]
    for k in range(discounts.shape[0]):
        log_discount = math.log(discounts[k])
        for i in range(x.shape[0]):
            counted[k, i] = pulls[k, i]
            if x[i]:
                counted[k, i] = pulls[k, i] * math.exp((moment - stamps[i]) * log_discount) + 1.0


@gufunc(
    (
        *(float64[:, :], float64[:, :], int64[:], float64[:, :], int64[:], float64[:], float64[:]),
        *(int64, int64, uint64[:], uint64, uint64, uint64),
        *(float64[:], float64[:], float64[:], float64[:], int64[:]),
    ),
    "(d,n),(d,n),(n),(d,n),(n),(d),(d),(),(),(k),(),(),()->(n),(n),(n),(n),()",
)
def side_by_side_draw(
    sums, counts, stamps, pulls, latest, evidence, discounts, now, heard, key, call, moment, purpose,
    draw, mean, count, flying, leader,
):  # fmt: skip
    """A discount in proportion to exp(evidence), and a draw of each arm's mean under it.

    The posterior is as of `heard`, the latest round heard of: that no news has come since says nothing of the arms. Its
    deviation shrinks as if the pulls in flight had already been heard of.
    """
    n = draw.shape[0]
    best = evidence[0]
    for k in range(evidence.shape[0]):
        best = max(best, evidence[k])
    total = 0.0
    for k in range(evidence.shape[0]):
        total += math.exp(evidence[k] - best)
    point = total * to_unit(philox(uint64(2 * n), call, moment, purpose, key[0], key[1])[0])
    lead = 0
    while lead < evidence.shape[0] - 1 and point >= math.exp(evidence[lead] - best):
        point -= math.exp(evidence[lead] - best)
        lead += 1
    leader[0] = lead
    log_discount = math.log(discounts[lead])
    for i in range(n):
        decay = math.exp((heard - stamps[i]) * log_discount)
        good, seen = sums[lead, i] * decay, counts[lead, i] * decay
        played = pulls[lead, i] * math.exp((now - latest[i]) * log_discount)
        flying[i] = max(played - counts[lead, i] * math.exp((now - stamps[i]) * log_discount), 0.0)
        count[i] = seen
        mean[i] = (good + 1.0) / (seen + 2.0)
        log_x = log_gamma_draw(good + 1.0, 2 * i, call, moment, purpose, key[0], key[1])
        log_y = log_gamma_draw(seen - good + 1.0, 2 * i + 1, call, moment, purpose, key[0], key[1])
        drawn = 1.0 / (1.0 + math.exp(min(log_y - log_x, 700.0)))
        draw[i] = mean[i] + (drawn - mean[i]) * math.sqrt((seen + 2.0) / (seen + 2.0 + flying[i]))


# From here on a kernel is what __getattr__ makes of it.
for registered_name in MAKERS:
    del globals()[registered_name]

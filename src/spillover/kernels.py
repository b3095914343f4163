"""Every compiled line of the package.

All kernels live in this one file, which imports nothing of ours, because Numba's on-disk cache looks only at the file
of the function that it compiles. They are NumPy generalised ufuncs: the core dimensions stand in the layout
string, any leading axes are the batch. They trust their input; the callers check it.
"""

import math
from typing import Final

import numpy as np
from numba import boolean, float64, guvectorize, int64, njit, uint64

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


@guvectorize([(uint64[:], uint64[:], uint64[:])], "(k),(c)->(c)", cache=True)
def philox_block(key, counter, block):
    """The raw block, for checking against numpy.random.Philox."""
    block[0], block[1], block[2], block[3] = philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@guvectorize([(uint64[:], uint64, uint64, uint64, float64[:], float64[:])], "(k),(),(),(),(n)->(n)", cache=True)
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


@guvectorize([(uint64[:], uint64, uint64, uint64, float64[:], float64[:])], "(k),(),(),(),(n)->(n)", cache=True)
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


@guvectorize(
    [(uint64[:], uint64, uint64, uint64, float64[:], float64[:], float64[:])],
    "(k),(),(),(),(n),(n)->(n)",
    cache=True,
)
def beta(key, call, moment, purpose, a, b, out):
    """Beta(a, b) draws as a ratio of two Gamma draws; each element has blocks of its own for its rejections."""
    for i in range(out.shape[0]):
        log_x = log_gamma_draw(a[i], 2 * i, call, moment, purpose, key[0], key[1])
        log_y = log_gamma_draw(b[i], 2 * i + 1, call, moment, purpose, key[0], key[1])
        out[i] = 1.0 / (1.0 + math.exp(min(log_y - log_x, 700.0)))


# --- the world -------------------------------------------------------------------------------------------------------


@guvectorize([(float64[:, :], float64[:], boolean[:], float64[:], float64[:])], "(n,n),(n),(n)->(n),(n)", cache=True)
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


@guvectorize(
    [(boolean[:], float64[:], float64[:], float64[:], boolean, int64[:])],
    "(n),(n),(n),(r),()->()",
    cache=True,
)
def feedback_fault(x, z, y, limits, arrived, fault):
    """The first thing wrong with a piece of feedback, as one of the codes above."""
    fault[0] = FINE
    if arrived:
        for i in range(x.shape[0]):
            if not (math.isfinite(z[i]) and math.isfinite(y[i])):
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
WAKE: Final = 1e-9
# Coordinates enter the support while their condition is violated by more than this, relative to G_jj.
ENTER: Final = 1e-12
# Below this, relative to G_jj, a Cholesky pivot is rounding: the column depends on the ones before it.
DEPENDENT: Final = 1e-11


@guvectorize(
    [(float64[:, :], float64[:, :], float64[:, :], float64[:], float64[:], float64, boolean[:])],
    "(n,n),(n,n),(n,n),(n),(n),()->()",
    writable_args=("gram", "residual"),
    cache=True,
)
def absorb(gram, residual, adjacency, z, y, weight, absorbed):
    """Rank-one updates of G = sum y y' and Q = (Y - Z) Y' - A G, at the given weight; a weight of 0 changes nothing."""
    absorbed[0] = False
    if weight == 0.0:
        return
    n = y.shape[0]
    for i in range(n):
        error = y[i] - z[i]
        for j in range(n):
            error -= adjacency[i, j] * y[j]
        error *= weight
        scaled = y[i] * weight
        if error != 0.0:
            for j in range(n):
                residual[i, j] += error * y[j]
        if scaled != 0.0:
            for j in range(n):
                gram[i, j] += scaled * y[j]
            absorbed[0] = True


@njit(cache=True)
def row_is_optimal(gram, residual, row, penalty, pressure):
    """Whether the optimality conditions of a row hold to WAKE."""
    for j in range(row.shape[0]):
        slack = residual[j] - penalty[j] - pressure
        allowed = WAKE * gram[j, j]
        if slack > allowed or (row[j] > 0.0 and slack < -allowed):
            return False
    return True


@njit(cache=True)
def extend_cholesky(gram, support, done, size, factor):
    """Columns done..size-1 of the Cholesky factor of G on the support; dependent columns get a tiny pivot.

    That is a ridge far below the tolerance. A step through it is so long that the walls a >= 0 stop it: in effect
    a step along the null direction, without a case of its own.
    """
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
        factor[p, p] = math.sqrt(max(rest, DEPENDENT * gram[column, column]))


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
def newton_step(factor, support, size, residual, row, penalty, bound, step, ones):
    """The step to the minimiser on the support with the row's sum at most `bound`; returns the bound's multiplier."""
    total = 0.0
    for p in range(size):
        j = support[p]
        step[p] = residual[j] - penalty[j]
    cholesky_solve(factor, size, step)
    for p in range(size):
        total += row[support[p]] + step[p]
    if total <= bound:
        return 0.0
    ones_total = 0.0
    for p in range(size):
        ones[p] = 1.0
    cholesky_solve(factor, size, ones)
    for p in range(size):
        ones_total += ones[p]
    pressure = (total - bound) / ones_total
    total = 0.0
    for p in range(size):
        step[p] -= pressure * ones[p]
        total += row[support[p]] + step[p]
    for p in range(size):  # what rounding left of the bound, when the support is nearly dependent
        step[p] += (bound - total) / ones_total * ones[p]
    return pressure


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
    size = 0
    for j in range(n):
        if row[j] > 0.0:
            support[size] = j
            size += 1
    done = 0
    pressure = 0.0
    entered = -1
    for _ in range(10 * n + 50):
        # 1. the minimiser on the support, or the first wall on the way to it
        while size > 0:
            extend_cholesky(gram, support, done, size, factor)
            done = size
            pressure = newton_step(factor, support, size, residual, row, penalty, bound, step, ones)
            length, wall = 1.0, -1
            for p in range(size):
                j = support[p]
                if row[j] + step[p] <= 0.0:
                    reach = row[j] / -step[p] if step[p] < 0.0 else 0.0
                    if reach < length or wall < 0:
                        length, wall = min(reach, 1.0), p
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
            if row[j] == 0.0 and gram[j, j] > 0.0 and not refused[j]:
                slack = (residual[j] - penalty[j] - pressure) / gram[j, j]
                if slack > worst:
                    worst, entered = slack, j
        if entered < 0:
            break
        support[size] = entered
        size += 1
    return pressure


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


@guvectorize(
    [
        (
            float64[:, :],
            float64[:, :],
            float64[:, :],
            float64[:],
            float64[:],
            float64[:, :],
            float64,
            boolean,
            boolean,
            boolean[:],
        )
    ],
    "(n,n),(n,n),(n,n),(n),(n),(n,n),(),(),()->()",
    writable_args=("residual", "adjacency", "pressure", "weights"),
    cache=True,
)
def fit(gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, wanted, changed):
    """Solve again the rows whose optimality conditions no longer hold, and bring the weights up to date."""
    changed[0] = False
    if not wanted:
        return
    for i in range(weights.shape[0]):
        if not row_is_optimal(gram, residual[i], adjacency[i], penalty[i], pressure[i]):
            pressure[i] = solve_row(gram, residual[i], adjacency[i], penalty[i], bound)
            changed[0] = True
    if changed[0]:
        if acyclic:
            acyclic_weights(adjacency, weights)
        else:
            cyclic_weights(adjacency, weights)


@guvectorize(
    [(float64[:, :], float64[:, :], float64[:], float64[:, :], float64[:])],
    "(n,n),(n,n),(n),(n,n)->()",
    cache=True,
)
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


@guvectorize(
    [(float64[:], float64[:], int64[:], boolean[:], float64[:], int64, float64, boolean, boolean[:])],
    "(n),(n),(n),(n),(n),(),(),()->()",
    writable_args=("sums", "counts", "stamps"),
    cache=True,
)
def discounted_arrival(sums, counts, stamps, x, z, moment, log_discount, arrived, taken):
    """Add the rewards of a round played at `moment` to each played arm's discounted sum and count.

    Each arm's pair is kept as of its own stamp, the latest of its rounds that arrived: the weight of an observation
    depends on the time of its action only, and a count never underflows, however long ago the arm was played.
    """
    taken[0] = arrived
    if not arrived:
        return
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


@guvectorize(
    [(float64[:], float64[:], int64[:], int64, float64, float64, float64[:])],
    "(n),(n),(n),(),(),()->(n)",
    cache=True,
)
def upper_index(sums, counts, stamps, now, log_discount, width, index):
    """mean + sqrt(width / discounted count); +inf for an arm that was never observed, and only for such a one."""
    for i in range(sums.shape[0]):
        if counts[i] == 0.0:
            index[i] = math.inf
        else:
            index[i] = sums[i] / counts[i]
            if width > 0.0:
                growth = math.exp(min(-0.5 * (now - stamps[i]) * log_discount, 700.0))
                index[i] += min(math.sqrt(width / counts[i]) * growth, LARGEST_BONUS)


# --- from scores to a set --------------------------------------------------------------------------------------------


@guvectorize(
    [(float64[:], int64, uint64[:], uint64, uint64, uint64, boolean[:])],
    "(n),(),(k),(),(),()->(n)",
    cache=True,
)
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

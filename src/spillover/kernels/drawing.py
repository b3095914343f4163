"""Random numbers: uniform ones, and what is chosen by them; `kernels/laws.py` has draws from other laws.

The generator is Philox4x64-10 (Salmon et al. 2011), the one behind numpy.random.Philox. A draw is addressed by key,
call, round and purpose.
"""

from typing import Final

import numpy as np
from llvmlite import ir
from numba import boolean, float64, int64, njit, types, uint64
from numba.extending import intrinsic

from spillover.kernels.arithmetic import bits_of, double_of
from spillover.kernels.compiling import gufunc
from spillover.kernels.decorators import bare, within

MULTIPLIER_0: Final = np.uint64(0xD2E7470EE14C6C93)
MULTIPLIER_1: Final = np.uint64(0xCA5A826395121157)
WEYL_0: Final = np.uint64(0x9E3779B97F4A7C15)
WEYL_1: Final = np.uint64(0xBB67AE8584CAA73B)
HALF_BITS: Final = np.uint64(32)
LOW_HALF: Final = np.uint64(0xFFFFFFFF)
MANTISSA_SHIFT: Final = np.uint64(11)
TO_UNIT: Final = 1.0 / 9007199254740992.0  # 2^-53
FIRST: Final = np.uint64(0)  # the first call of a round for random numbers of a purpose, and the second one
SECOND: Final = np.uint64(1)
SAMPLED: Final = 32  # one in so many scores tells where the highest ones are
SMALL_BUDGET: Final = 16  # up to this the highest scores are found fastest by keeping them sorted


@intrinsic
def long_product(typingctx, a, b):
    """Upper and lower 64 bits of the 128-bit product: one instruction, which Python has no name for."""

    def build(context, builder, signature, arguments):
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(factor, wide) for factor in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(product, word)))

    return types.UniTuple(uint64, 2)(uint64, uint64), build


@within
def philox_inside(c0, c1, c2, c3, k0, k1):
    """`philox`, compiled into its callers: where one block follows another, a call takes half as long as a block."""
    for _ in range(10):
        high_0, low_0 = long_product(MULTIPLIER_0, c0)
        high_1, low_1 = long_product(MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0 += WEYL_0
        k1 += WEYL_1
    return c0, c1, c2, c3


@bare
def philox(c0, c1, c2, c3, k0, k1):
    """One block of four 64-bit words for a 256-bit counter and a 128-bit key."""
    return philox_inside(c0, c1, c2, c3, k0, k1)


@within
def both_words(a, b):
    """The upper and the lower 64 bits of the 128-bit product, from products of halves."""
    low_a, high_a, low_b, high_b = a & LOW_HALF, a >> HALF_BITS, b & LOW_HALF, b >> HALF_BITS
    lowest = low_a * low_b
    middle = low_a * high_b + (lowest >> HALF_BITS)
    other = high_a * low_b + (middle & LOW_HALF)
    return high_a * high_b + (middle >> HALF_BITS) + (other >> HALF_BITS), (other << HALF_BITS) | (lowest & LOW_HALF)


@within
def philox_in_lanes(c0, c1, c2, c3, k0, k1):
    """`philox` for a loop over eight counters: processors multiply halves of words for several of them at once."""
    for _ in range(10):
        high_0, low_0 = both_words(MULTIPLIER_0, c0)
        high_1, low_1 = both_words(MULTIPLIER_1, c2)
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
    """The raw block, to compare with numpy.random.Philox."""
    block[0], block[1], block[2], block[3] = philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@gufunc((uint64[:], uint64, uint64, uint64, float64[:], float64[:]), "(k),(),(),(),(n)->(n)")
def uniform(key, call, at_round, purpose, size, out):
    """Doubles in [0, 1), as many as the length of `size`."""
    n = out.shape[0]
    for start in range(0, n, 4):
        a, b, c, d = philox(uint64(start), call, at_round, purpose, key[0], key[1])
        out[start] = to_unit(a)
        if start + 1 < n:
            out[start + 1] = to_unit(b)
        if start + 2 < n:
            out[start + 2] = to_unit(c)
        if start + 3 < n:
            out[start + 3] = to_unit(d)


@gufunc((uint64[:], uint64, uint64, uint64, float64[:], float64[:]), "(k),(),(),(),(n)->(n)")
def bernoulli(key, call, at_round, purpose, mean, out):
    """1 with the given probabilities, otherwise 0: whether `uniform` draws are below them."""
    n = out.shape[0]
    for start in range(0, n, 4):
        words = philox(uint64(start), call, at_round, purpose, key[0], key[1])
        for i in range(start, min(start + 4, n)):
            out[i] = 1.0 if to_unit(words[i - start]) < mean[i] else 0.0


@gufunc(
    (uint64[:], uint64, uint64, uint64, float64[:], boolean[:], float64[:]),
    "(k),(),(),(),(n),(n)->(n)",
)
def chosen_bernoulli(key, call, at_round, purpose, mean, chosen, out):
    """`bernoulli` of the chosen arms alone, 0 for all others: each draw has an address of its own."""
    n = out.shape[0]
    for i in range(n):
        out[i] = 0.0
        if chosen[i]:
            words = philox(uint64(i // 4 * 4), call, at_round, purpose, key[0], key[1])
            out[i] = 1.0 if to_unit(words[i % 4]) < mean[i] else 0.0


@njit(inline="always")
def sorted_border(scores, budget, best):
    """The lowest of the `budget` highest positive scores, and how many are that high; 0 if none is positive.

    The highest are kept sorted in `best`, which is fastest for a small budget.
    """
    held = 0
    for i in range(scores.shape[0] if budget > 0 else 0):  # best[:held] is kept sorted, highest first
        score = scores[i]
        if score > 0.0 and (held < budget or score > best[held - 1]):
            place = held if held < budget else budget - 1
            while place > 0 and best[place - 1] < score:
                best[place] = best[place - 1]
                place -= 1
            best[place] = score
            held = min(held + 1, budget)
    return (best[held - 1] if held > 0 else 0.0), held


@njit
def ranked(bits, rank):
    """The rank-th largest of some numbers by radix selection; rewrites them.

    Eight passes at most, each over the numbers that agree with the answer so far.
    """
    size, different = bits.shape[0], uint64(0)
    count = np.empty(256, np.int64)
    for p in range(size):
        different |= bits[p] ^ bits[0]
    for byte in range(7, -1, -1):
        shift = uint64(8 * byte)
        if (different >> shift) & uint64(255) == uint64(0):
            continue  # all agree
        for digit in range(256):
            count[digit] = 0
        for p in range(size):
            count[(bits[p] >> shift) & uint64(255)] += 1
        digit = 255
        while rank > count[digit]:
            rank -= count[digit]
            digit -= 1
        kept = 0
        for p in range(size):
            if (bits[p] >> shift) & uint64(255) == uint64(digit):
                bits[kept] = bits[p]
                kept += 1
        size = kept
        if size == 1:
            break
    return bits[0]


@njit
def above(scores, least, room):
    """The bits of the scores above `least`, in order; of `room` of them at most."""
    found = np.empty(room, np.uint64)
    size = 0
    for i in range(scores.shape[0]):
        if scores[i] > least:
            if size == room:
                return found[:0]
            found[size] = bits_of(scores[i])
            size += 1
    return found[:size]


@njit(_nrt=True)  # it allocates, also where its caller may not
def selected_border(scores, budget):
    """The same in O(n), whatever the scores: doubles > 0 are ordered like their bits.

    If there are many scores, a sample tells above which one there are a little more than `budget` of them, mostly.
    """
    n = scores.shape[0]
    if n > SAMPLED * SAMPLED and budget * 4 < n:
        sample = above(scores[: n // SAMPLED * SAMPLED : SAMPLED], 0.0, n // SAMPLED)
        rank = int64(1.3 * budget / SAMPLED) + 4
        if sample.shape[0] > rank:
            few = above(scores, double_of(ranked(sample, rank)), 4 * budget + 256)
            if few.shape[0] >= budget:
                return double_of(ranked(few, budget)), budget
    positive = above(scores, 0.0, n)
    held = min(positive.shape[0], budget)
    if held == 0:
        return 0.0, 0
    return double_of(ranked(positive, held)), held


@bare
def break_ties(scores, border, places, tied, call, at_round, purpose, k0, k1, x):
    """Take as many as there are places of the arms at the border, uniformly at random.

    Each in turn, with probability places left / tied arms left.
    """
    for i in range(scores.shape[0]):
        if scores[i] == border and places > 0:
            take = places == tied
            if not take:
                take = to_unit(philox_inside(uint64(i), call, at_round, purpose, k0, k1)[0]) * tied < places
            x[i] = take
            places -= take
            tied -= 1


@njit(inline="always")
def take_top(scores, budget, key, call, at_round, purpose, best, x):
    """The at most `budget` arms with the highest positive scores; ties at the border are broken uniformly at random.

    best: room for `budget` scores, if there are at most `SMALL_BUDGET`.
    """
    n = scores.shape[0]
    if budget <= SMALL_BUDGET:
        border, held = sorted_border(scores, budget, best)
    else:
        border, held = selected_border(scores, budget)
    higher, tied = 0, 0
    for i in range(n):
        higher += scores[i] > border
        tied += scores[i] == border
    places = held - higher
    everyone = held > 0 and places == tied
    for i in range(n):
        x[i] = (held > 0) & ((scores[i] > border) | (everyone & (scores[i] == border)))
    if places > 0 and not everyone:
        break_ties(scores, border, places, tied, call, at_round, purpose, key[0], key[1], x)


@gufunc((float64[::1], int64, uint64[:], uint64, uint64, uint64, boolean[::1]), "(n),(),(k),(),(),()->(n)")
def top_arms(scores, budget, key, call, at_round, purpose, x):
    """The at most `budget` arms with the highest positive scores; ties at the border are broken uniformly at random."""
    take_top(scores, budget, key, call, at_round, purpose, np.empty(min(budget, SMALL_BUDGET)), x)


@njit(inline="always")
def take_sample(marginals, budget, key, call, at_round, purpose, order, x):
    """Exactly `budget` arms, each with its marginal probability: Madow's systematic sampling in a random order.

    The marginals are laid end to end on a line; an arm is taken if it covers one of the points u, u + 1, u + 2, ...
    order: room for n positions.
    """
    n = marginals.shape[0]
    for i in range(n):
        order[i] = i
    words = philox(uint64(0), call, at_round, purpose, key[0], key[1])
    point = to_unit(words[0])
    covered, taken = 0.0, 0
    for k in range(n):
        block, word = divmod(k + 1, 4)
        if word == 0:
            words = philox(uint64(block), call, at_round, purpose, key[0], key[1])
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

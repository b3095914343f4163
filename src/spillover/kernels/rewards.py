"""The rewards of a round, drawn for the arms that are chosen."""

from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit, uint64

from spillover.kernels.build import gufunc
from spillover.kernels.drawing import FIRST, philox_inside, to_unit
from spillover.kernels.inner import bare, eight_doubles, eight_integers
from spillover.kernels.laws import ARMS_AT_ONCE, draw_betas

# how rewards follow from what a course has for each arm and round
DRAWN: Final = 0  # they are that
BERNOULLI: Final = 1  # it is their mean
BETA: Final = 2  # it is their mean; a + b is the concentration
LEAST_PARAMETER: Final = 1e-9  # of a beta law

WORLD: Final = np.uint64(0)  # the purpose of their streams, see `rng.Purpose`; they are the first draw of a round
BLOCK: Final = 4


@njit(inline="always")
def bernoulli_of(word, mean, chosen):
    """1 or 0, without a branch: nobody can tell which way it would go."""
    return float64(chosen & (to_unit(word) < mean))


@njit(inline="always")
def draw_bernoulli(means, key, at_round, x, z):
    """Whether `uniform` draws are below the means; blocks of the generator that no chosen arm needs are skipped."""
    n, k0, k1 = x.shape[0], key[0], key[1]
    for start in range(0, n, BLOCK):
        wanted = False
        for i in range(start, min(start + BLOCK, n)):
            z[i] = 0.0
            wanted |= x[i]
        if wanted:
            a, b, c, d = philox_inside(uint64(start), FIRST, at_round, WORLD, k0, k1)
            z[start] = bernoulli_of(a, means[start], x[start])
            if start + 1 < n:
                z[start + 1] = bernoulli_of(b, means[start + 1], x[start + 1])
            if start + 2 < n:
                z[start + 2] = bernoulli_of(c, means[start + 2], x[start + 2])
            if start + 3 < n:
                z[start + 3] = bernoulli_of(d, means[start + 3], x[start + 3])


@bare
def draw_beta(means, concentration, key, at_round, x, z):
    """As `SEMWorld.rewards` draws them: a mean of 0 or 1 is a constant."""
    a, b = eight_doubles(), eight_doubles()
    found, arms = eight_doubles(), eight_integers()
    n, waiting = x.shape[0], 0
    for i in range(n):
        z[i] = 1.0 if x[i] and means[i] >= 1.0 else 0.0
        if x[i] and 0.0 < means[i] < 1.0:
            a[waiting] = max(concentration * means[i], LEAST_PARAMETER)
            b[waiting] = max(concentration * (1.0 - means[i]), LEAST_PARAMETER)
            arms[waiting] = i
            waiting += 1
        if waiting == ARMS_AT_ONCE or (waiting > 0 and i == n - 1):
            draw_betas(a, b, arms, waiting, FIRST, at_round, WORLD, key[0], key[1], found)
            for j in range(waiting):
                z[arms[j]] = found[j]
            waiting = 0


@njit(inline="always")
def draw_chosen(law, given, concentration, key, at_round, x, z):
    """z: the rewards of the arms x, and 0 for the others."""
    if law == BERNOULLI:
        draw_bernoulli(given, key, at_round, x, z)
    elif law == BETA:
        draw_beta(given, concentration, key, at_round, x, z)
    else:
        for i in range(x.shape[0]):
            z[i] = given[i] if x[i] else 0.0


@gufunc(
    (int64, float64[:], float64, uint64[:], uint64, boolean[:], float64[:]),
    "(),(n),(),(k),(),(n)->(n)",
)
def draw_rewards(law, given, concentration, key, at_round, x, z):
    """The rewards of the arms x in a round of the world, and 0 for the others."""
    draw_chosen(law, given, concentration, key, at_round, x, z)

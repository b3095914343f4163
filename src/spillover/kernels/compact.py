"""One live learner of the policies in `kernels/rounds.py`, with all that it has learned in two blocks of numbers.

For few arms a call takes longer than its arithmetic, and the longer the more arguments it has. The steps are the
kernels of other files, so both forms give the same numbers, bit for bit.
"""

import numpy as np
from numba import boolean, float64, int64, njit, uint64

from spillover.kernels.averages import count_pulls, discounted_arrival
from spillover.kernels.build import gufunc
from spillover.kernels.gram import absorb
from spillover.kernels.graph import fit, fit_signed
from spillover.kernels.rounds import ASSUMED_DELAY, CHOICE, GRAPH, NO_GRAPH, PENDING, SIGNED, choose_by_means, date_of
from spillover.kernels.world import feedback_fault

choose_by_means, discounted_arrival, count_pulls = njit(choose_by_means), njit(discounted_arrival), njit(count_pulls)
absorb, fit, fit_signed, feedback_fault = njit(absorb), njit(fit), njit(fit_signed), njit(feedback_fault)


@njit(inline="always")
def line(block, k, n):
    """The k-th of the arrays of n numbers that a block begins with."""
    return block[k * n : (k + 1) * n]


@njit(inline="always")
def square(reals, k, n):
    """The k-th of the (n, n) arrays in the block of reals, after five lines."""
    start = 5 * n + k * n * n
    return reals[start : start + n * n].reshape(n, n)


@gufunc(
    (float64[::1], int64[::1], boolean[:, ::1], uint64[::1], boolean[::1]),
    "(f),(i),(n,n),(k)->(n)",
)
def compact_choice(reals, whole, plan, key, x):
    """The decision for the next round."""
    n = x.shape[0]
    rest, counts = reals[5 * n + 4 * n * n :], whole[2 * n :]
    choose_by_means(
        line(reals, 0, n), line(reals, 1, n), line(whole, 0, n), line(reals, 2, n), line(whole, 1, n),
        counts[0], rest[0], counts[1], rest[2:4], rest[4], rest[5], rest[6], counts[3:7],
        line(reals, 3, n), plan, reals[:0], key, uint64(0), uint64(counts[0] + 1), CHOICE, x,
    )  # fmt: skip


@gufunc(
    (float64[::1], int64[::1], boolean[:], int64[:]),
    "(f),(i),(n)->()",
    writes=("reals", "whole"),
)
def compact_play(reals, whole, x, now):
    """A round was played; returns its number."""
    n = x.shape[0]
    rest, counts = reals[5 * n + 4 * n * n :], whole[2 * n :]
    counts[0] += 1
    rest[0] = rest[4] * rest[0] + 1.0
    if counts[3 + PENDING]:
        pulls, latest = line(reals, 2, n), line(whole, 1, n)
        count_pulls(pulls, latest, x, counts[0], rest[4], pulls, latest)
    now[0] = counts[0]


@gufunc(
    (float64[::1], int64[::1], boolean[:], float64[:], float64[:], int64, int64[:]),
    "(f),(i),(n),(n),(n),()->()",
    writes=("reals", "whole"),
)
def compact_lesson(reals, whole, x, z, y, age, fault):
    """Learn the outcome of a round, unless something is wrong with it."""
    n = x.shape[0]
    rest, counts = reals[5 * n + 4 * n * n :], whole[2 * n :]
    feedback_fault(x, z, y, rest[2:4], True, age, counts[0], fault)
    if fault[0] != 0:
        return
    done = np.empty(1, np.bool_)
    played_at = date_of(counts[0] - age, counts[0], counts[3 + ASSUMED_DELAY])
    sums, seen, stamps = line(reals, 0, n), line(reals, 1, n), line(whole, 0, n)
    discounted_arrival(sums, seen, stamps, x, z, played_at, rest[4], True, done)
    if counts[3 + GRAPH] == NO_GRAPH:
        return
    gram, residual, adjacency, penalty = (
        square(reals, 0, n),
        square(reals, 1, n),
        square(reals, 2, n),
        square(reals, 3, n),
    )
    weights, pressure, acyclic = line(reals, 3, n), line(reals, 4, n), counts[2] != 0
    absorb(gram, residual, adjacency, z, y, 1.0, done)
    if counts[3 + GRAPH] == SIGNED:
        fit_signed(gram, residual, adjacency, pressure, weights, penalty, rest[1], acyclic, done)
    else:
        fit(gram, residual, adjacency, pressure, weights, penalty, rest[1], acyclic, done)

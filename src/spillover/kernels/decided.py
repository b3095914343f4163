"""Rounds whose decisions do not depend on outcomes: random sets, and what many decided rounds bring."""

import numpy as np
from numba import boolean, float64, int64, uint64

from spillover.kernels.arrivals import delay_of, post, post_arms
from spillover.kernels.build import gufunc
from spillover.kernels.drawing import philox, to_unit
from spillover.kernels.inner import bare
from spillover.kernels.outcomes import columns_of, fill_outcome
from spillover.kernels.rewards import BLOCK
from spillover.kernels.world import FINE, LARGEST_OUTCOME, NOT_FINITE


@gufunc((uint64[:], uint64, uint64, uint64, int64, float64[:], boolean[:]), "(k),(),(),(),(),(n)->(n)")
def random_set(key, call, at_round, purpose, budget, size, x):
    """A uniformly random set of `budget` arms, as many as the length of `size`: `argsort(uniform draws) < budget`.

    So the arms of the set are the ranks of the first draws; they are counted, which is fast for few arms.
    """
    n = x.shape[0]
    draws = np.empty(n)
    for start in range(0, n, BLOCK):
        words = philox(uint64(start), call, at_round, purpose, key[0], key[1])
        for i in range(start, min(start + BLOCK, n)):
            draws[i] = to_unit(words[i - start])
            x[i] = False
    for j in range(budget):
        rank = 0
        for i in range(n):
            rank += (draws[i] < draws[j]) | ((draws[i] == draws[j]) & (i < j))
        x[rank] = True


@bare
def fill_rounds(
    now, key, course, concentration, columns, rewards, shocks, baseline, ring_x, ring_z, ring_y
):  # fmt: skip
    """`decided_rounds` of one learner; returns the fault."""
    mask = ring_x.shape[0] - 1
    fault = FINE
    for r in range(rewards.shape[0]):
        slot = (now + r + 1) & mask
        y = ring_y[slot]
        fill_outcome(
            r, now + r + 1, key, course, concentration, columns, rewards, shocks, baseline,
            ring_x[slot], ring_z[slot], y,
        )  # fmt: skip
        for i in range(y.shape[0]):
            if not abs(y[i]) <= LARGEST_OUTCOME:
                fault = NOT_FINITE
    return fault


@gufunc(
    (
        *(int64, uint64[:], int64[::1], float64, float64[:, :], float64[:, :], float64[:, :], float64[:, :]),
        *(boolean[:, ::1], float64[:, ::1], float64[:, ::1], int64[:]),
    ),
    "(),(k),(q),(),(n,n),(t,n),(t,n),(t,n),(c,n),(c,n),(c,n)->(t)",
    writes=("ring_z", "ring_y"),
)
def decided_rounds(
    now, key, course, concentration, total, rewards, shocks, baseline, ring_x, ring_z, ring_y, faults
):  # fmt: skip
    """The outcomes of the rounds now + 1, ..., for the decisions in the rings; all `faults` are what is wrong with one.

    There is a fault for each round because NumPy lets other threads run only beside kernels that return 500 numbers.
    """
    fault = fill_rounds(
        now, key, course, concentration, columns_of(total), rewards, shocks, baseline, ring_x, ring_z, ring_y
    )  # fmt: skip
    for r in range(faults.shape[0]):
        faults[r] = fault


@gufunc(
    (
        *(int64, int64[:], int64[:], int64[:], boolean[:, :], int64[:, :], int64, boolean),
        *(boolean[:, ::1], float64[:, ::1], int64[::1], int64[::1], int64[:, ::1], int64[:, ::1]),
        *(int64[:, :], int64[:]),
    ),
    "(),(m),(t),(t),(t,s),(t,b),(),(),(c,n),(c,n),(c),(c),(c,p),(c,a)->(t,m),(m)",
    writes=("first", "last", "following", "arrival"),
)
def newest_arrivals(
    now, known, delays, slowest, silent, by_arm, horizon, ahead, ring_x, ring_z, first, last, following, arrival,
    newest, after,
):  # fmt: skip
    """The latest round that has arrived before each of the rounds now + 1, ...; `known` before the first.

    That is one number for all arms, or one for each. after: the same after the last of them. The lists are those of
    `post`, or of `post_arms` if arms report at different times; rewards in the rings matter only if delays depend on
    them. ahead: leave the lists as they are, and see only what is in them already.
    """
    mask, parts, apart = first.shape[0] - 1, following.shape[1], arrival.shape[1] > 0
    each = apart and after.shape[0] == arrival.shape[1]
    for i in range(after.shape[0]):
        after[i] = known[i]
    for r in range(delays.shape[0]):
        t = now + r + 1
        slot = t & mask
        x, z = ring_x[slot], ring_z[slot]
        for i in range(after.shape[0]):
            newest[r, i] = after[i]
        if apart and not ahead:
            post_arms(
                t, x, z, delays[r], slowest[r], silent[r], by_arm[r], horizon, first, last, following, arrival
            )  # fmt: skip
        elif not ahead:
            post(t, delay_of(x, z, delays[r], slowest[r], silent[r]), horizon, first, last, following[:, 0])
        part = first[slot]
        if not ahead:
            first[slot] = 0
        while part != 0:
            played, home = part // parts, (part // parts) & mask
            for i in range(after.shape[0]):
                if not each or arrival[home, i] == t:
                    after[i] = max(after[i], played)
            part = following[home, part % parts]

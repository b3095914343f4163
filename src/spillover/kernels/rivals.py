"""Whole rounds of the policies without a graph: one call plays many rounds of a learner of CUCB, CTS or FTRL.

What it does in a round are the functions that their own kernels are made of, or the operations of `policies/`, arm by
arm: both give the same numbers, bit for bit. Every kernel returns a fault for each round because NumPy lets other
threads run only beside kernels that return 500 numbers.
"""

import math
from typing import Final

import numpy as np
from numba import float64, int64, njit, uint64

from spillover.kernels.averages import add_rewards, upper_bounds
from spillover.kernels.build import gufunc
from spillover.kernels.drawing import FIRST, SECOND, SMALL_BUDGET, philox, still_top, take_top, to_unit
from spillover.kernels.inner import bare
from spillover.kernels.laws import fill_betas
from spillover.kernels.outcomes import COURSE_LAYOUT, COURSE_SIGNATURE, RINGS, bring_outcome, columns_of
from spillover.kernels.rewards import BLOCK
from spillover.kernels.rounds import CHOICE
from spillover.kernels.scaled import SCALE_LAYOUT, SCALE_SIGNATURE, amounts_above_low, rank, unit_or_one
from spillover.kernels.world import FINE, fault_of

LEARNING: Final = np.uint64(4)  # the purpose of the streams of CTS's Bernoulli draws, see `rng.Purpose`
CAP: Final = 1.0  # of CUCB's index


@bare
def play_cucb_learner(
    sums, counts, stamps, clock, discount, width, powers, growths,
    weights, low, unit, declared, knows_graph, now, budget, reward_range, key,
    course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, lines, best,
):  # fmt: skip
    """`play_cucb` in memory that it is given; returns the clock, the unit and the fault."""
    mask, log_discount = ring_x.shape[0] - 1, math.log(discount)
    scores, amounts = lines[0], lines[1]
    for r in range(delays.shape[0]):
        t = now + r + 1
        slot = t & mask
        x = ring_x[slot]
        clock = discount * clock + 1.0
        upper_bounds(
            sums, counts, stamps, t - 1, clock, log_discount, width, unit_or_one(unit), CAP, 1.0, growths, scores
        )  # fmt: skip
        rank(weights, low, unit, knows_graph, scores)
        if not still_top(scores, budget, ring_x[(t - 1) & mask], x):
            take_top(scores, budget, key, FIRST, uint64(t), CHOICE, best, x)
        played = bring_outcome(
            r, t, key, course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
            x, ring_z[slot], ring_y[slot], first, last, following,
        )  # fmt: skip
        while played != 0:
            home = played & mask
            x, z, y = ring_x[home], ring_z[home], ring_y[home]
            fault = fault_of(x, z, y, reward_range, t - played, t)
            if fault != FINE:
                return clock, unit, fault
            unit = amounts_above_low(z if knows_graph else y, x, low, unit, declared, amounts)
            add_rewards(sums, counts, stamps, x, amounts, played, log_discount, powers)
            played = following[home]
    return clock, unit, FINE


@gufunc(
    (
        *(float64[::1], float64[::1], int64[::1], float64, float64, float64, float64[::1], float64[::1]),
        *(*SCALE_SIGNATURE, *COURSE_SIGNATURE, float64[:], float64[:], int64[:]),
    ),
    f"(n),(n),(n),(),(),(),(l),(l),{SCALE_LAYOUT},{COURSE_LAYOUT}->(),(),(t)",
    writes=("sums", "counts", "stamps", *RINGS),
)
def play_cucb(
    sums, counts, stamps, clock, discount, width, powers, growths,
    weights, low, unit, declared, knows_graph, now, budget, reward_range, key,
    course, concentration, total, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, clock_after, unit_after, faults,
):  # fmt: skip
    """Play the rounds now + 1, ... of one learner of CUCB; all `faults` are the first thing wrong with an outcome."""
    clock_after[0], unit_after[0], fault = play_cucb_learner(
        sums, counts, stamps, clock, discount, width, powers, growths,
        weights, low, unit, declared, knows_graph, now, budget, reward_range, key,
        course, concentration, columns_of(total), rewards, shocks, baseline, delays, slowest, silent, horizon,
        ring_x, ring_z, ring_y, first, last, following,
        np.empty((2, sums.shape[0])), np.empty(min(budget, SMALL_BUDGET)),
    )  # fmt: skip
    for r in range(faults.shape[0]):
        faults[r] = fault


@njit(inline="always")
def count_draws(successes, failures, amounts, unit, x, key, played):
    """A Bernoulli draw for each arm of a round, whose mean is its reward."""
    for start in range(0, x.shape[0], BLOCK):
        end = min(start + BLOCK, x.shape[0])
        wanted = False
        for i in range(start, end):
            wanted |= x[i]
        if wanted:
            words = philox(uint64(start), FIRST, played, LEARNING, key[0], key[1])
            for i in range(start, end):
                if x[i]:
                    success = to_unit(words[i - start]) < amounts[i] / unit
                    successes[i] += success
                    failures[i] += not success


@bare
def play_cts_learner(
    successes, failures, weights, low, unit, declared, knows_graph, now, budget, reward_range, key,
    course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, lines, best,
):  # fmt: skip
    """`play_cts` in memory that it is given; returns the unit and the fault."""
    mask = ring_x.shape[0] - 1
    scores, amounts = lines[0], lines[1]
    for r in range(delays.shape[0]):
        t = now + r + 1
        slot = t & mask
        x = ring_x[slot]
        fill_betas(successes, failures, key, FIRST, uint64(t), CHOICE, scores)
        rank(weights, low, unit, knows_graph, scores)
        take_top(scores, budget, key, SECOND, uint64(t), CHOICE, best, x)
        played = bring_outcome(
            r, t, key, course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
            x, ring_z[slot], ring_y[slot], first, last, following,
        )  # fmt: skip
        while played != 0:
            home = played & mask
            x, z, y = ring_x[home], ring_z[home], ring_y[home]
            fault = fault_of(x, z, y, reward_range, t - played, t)
            if fault != FINE:
                return unit, fault
            unit = amounts_above_low(z if knows_graph else y, x, low, unit, declared, amounts)
            count_draws(successes, failures, amounts, unit_or_one(unit), x, key, uint64(played))
            played = following[home]
    return unit, FINE


@gufunc(
    (float64[::1], float64[::1], *SCALE_SIGNATURE, *COURSE_SIGNATURE, float64[:], int64[:]),
    f"(n),(n),{SCALE_LAYOUT},{COURSE_LAYOUT}->(),(t)",
    writes=("successes", "failures", *RINGS),
)
def play_cts(
    successes, failures, weights, low, unit, declared, knows_graph, now, budget, reward_range, key,
    course, concentration, total, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, unit_after, faults,
):  # fmt: skip
    """Play the rounds now + 1, ... of one learner of CTS; all `faults` are the first thing wrong with an outcome."""
    unit_after[0], fault = play_cts_learner(
        successes, failures, weights, low, unit, declared, knows_graph, now, budget, reward_range, key,
        course, concentration, columns_of(total), rewards, shocks, baseline, delays, slowest, silent, horizon,
        ring_x, ring_z, ring_y, first, last, following,
        np.empty((2, weights.shape[0])), np.empty(min(budget, SMALL_BUDGET)),
    )  # fmt: skip
    for r in range(faults.shape[0]):
        faults[r] = fault

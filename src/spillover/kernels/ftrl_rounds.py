"""Whole rounds of FTRL: one call plays many rounds of a learner, as `kernels/rivals.py` does for CUCB and CTS."""

import math
from typing import Final

import numpy as np
from numba import float64, int64, njit, uint64

from spillover.kernels.build import gufunc
from spillover.kernels.drawing import FIRST, take_sample
from spillover.kernels.ftrl import ROWS, blocks, marginals_into
from spillover.kernels.inner import EIGHT, bare
from spillover.kernels.outcomes import COURSE_LAYOUT, COURSE_SIGNATURE, RINGS, bring_outcome, columns_of
from spillover.kernels.rounds import CHOICE
from spillover.kernels.scaled import SCALE_LAYOUT, SCALE_SIGNATURE, amounts_above_low, unit_or_one
from spillover.kernels.world import FINE, fault_of

IMPROBABLE: Final = 5  # a fault that only FTRL knows: an arm was played that had no probability
LEAST_PROBABILITY: Final = 1e-100  # sums of inverses must stay finite, even for decisions made by someone else


@njit(inline="always")
def share_of_scale(amount, share, low, unit, knows_graph):
    """The reward in [0, 1]; with a known graph that of w z / max(w), from its lowest to its highest possible value."""
    reward = amount / unit
    if knows_graph:
        floor = min(low, 0.0)
        reward = (share * (low + amount) - floor) / (low + unit - floor)
    return min(max(reward, 0.0), 1.0)


@njit(inline="always")
def add_losses(losses, inverse, share, amounts, low, before, unit, knows_graph, x, probability):
    """Add the losses of an outcome to those so far, on the scale after it; before: the unit until then.

    Returns whether something is wrong with a probability.
    """
    one = unit_or_one(unit)
    kept = before / one if unit > 0.0 else 1.0
    if kept != 1.0:
        for i in range(x.shape[0]):
            losses[i] = kept * losses[i] + (1.0 - kept) * inverse[i]
    for i in range(x.shape[0]):
        if x[i]:
            if not 0.0 < probability[i] <= 1.0:
                return IMPROBABLE
            weight = 2.0 / max(probability[i], LEAST_PROBABILITY)
            losses[i] += weight * (1.0 - share_of_scale(amounts[i], share[i], low, one, knows_graph))
            inverse[i] += weight
    return FINE


@bare
def play_ftrl_learner(
    losses, inverse, mixture, memos, share, low, unit, declared, knows_graph, now, budget, reward_range, key,
    course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, amounts, order, room,
):  # fmt: skip
    """`play_ftrl` in memory that it is given; returns the unit and the fault."""
    mask = ring_x.shape[0] - 1
    for r in range(delays.shape[0]):
        t = now + r + 1
        slot = t & mask
        x, probability = ring_x[slot], memos[slot, 0]
        marginals_into(losses, 1.0 / math.sqrt(float64(t)), budget, mixture, probability, room)
        take_sample(probability, budget, key, FIRST, uint64(t), CHOICE, order, x)
        played = bring_outcome(
            r, t, key, course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
            x, ring_z[slot], ring_y[slot], first, last, following,
        )  # fmt: skip
        while played != 0:
            home = played & mask
            x, z, y = ring_x[home], ring_z[home], ring_y[home]
            fault = fault_of(x, z, y, reward_range, t - played, t)
            before = unit
            if fault == FINE:
                unit = amounts_above_low(z if knows_graph else y, x, low, unit, declared, amounts)
                fault = add_losses(
                    losses, inverse, share, amounts, low, before, unit, knows_graph, x, memos[home, 0]
                )  # fmt: skip
            if fault != FINE:
                return unit, fault
            played = following[home]
    return unit, FINE


@gufunc(
    (
        *(float64[::1], float64[::1], float64, float64[:, :, ::1]),
        *(*SCALE_SIGNATURE, *COURSE_SIGNATURE, float64[:], int64[:]),
    ),
    f"(n),(n),(),(c,p,n),{SCALE_LAYOUT},{COURSE_LAYOUT}->(),(t)",
    writes=("losses", "inverse", "memos", *RINGS),
)
def play_ftrl(
    losses, inverse, mixture, memos, share, low, unit, declared, knows_graph, now, budget, reward_range, key,
    course, concentration, total, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, unit_after, faults,
):  # fmt: skip
    """Play the rounds now + 1, ... of one learner of FTRL; all `faults` are the first thing wrong with an outcome.

    memos: the probabilities of the arms in each round, which its outcome is divided by.
    """
    n = losses.shape[0]
    unit_after[0], fault = play_ftrl_learner(
        losses, inverse, mixture, memos, share, low, unit, declared, knows_graph, now, budget, reward_range, key,
        course, concentration, columns_of(total), rewards, shocks, baseline, delays, slowest, silent, horizon,
        ring_x, ring_z, ring_y, first, last, following,
        np.empty(n), np.empty(n, np.int64), np.empty((blocks(n), ROWS, EIGHT)),
    )  # fmt: skip
    for r in range(faults.shape[0]):
        faults[r] = fault

"""All that one learner of SwitchingSEM knows in three blocks: real numbers, whole numbers, flags.

A kernel can have 64 arguments, and the state of this policy on an adaptive graph has more arrays than that. They follow
each other in the blocks in the order of the state's fields (`policies/switching_block.py`); a test compares the two.
"""

from collections import namedtuple
from typing import Final

from numba import njit

CANDIDATES: Final = 4  # whose predictions of the payoff from z are compared: three with a graph, and none
GIVEN_X: Final = 2  # whose predictions from the decision alone are

Reals = namedtuple(
    "Reals",
    "reward_range in_flight longest_delay typical_delay rewards_seen prior "
    "mass untried counts ratio idle_prior changed mean square spread changes redrawn "
    "track drifts answers odds "
    "gram residual adjacency pressure sparse_weights penalty bound "
    "root effects scatter freedom ridge new_information bars gain_bars instrument_adjacency gain instrument_weights "
    "full_root full_effects full_scatter full_freedom full_ridge full_weights "
    "errors lead doubt cross power observed suspicion risen fallen weights "
    "moments tested solved unit noise k_adjacency k_variance k_probability k_baseline k_baseline_variance trust "
    "log_confounding log_baseline k_weights k_weights_variance "
    "x_errors x_lead x_doubt x_cross x_power x_observed",
)
Whole = namedtuple("Whole", "rounds budget last_pull change_round seen latest detected drift_latest alarms since used")
Flags = namedtuple("Flags", "acyclic possible required ordered declared baseline confounded noisy")


@njit(inline="always")
def line(block, at, size):
    return block[at : at + size]


@njit(inline="always")
def square(block, at, rows, columns):
    return block[at : at + rows * columns].reshape(rows, columns)


@njit(inline="always")
def cube(block, at, pages, rows, columns):
    return block[at : at + pages * rows * columns].reshape(pages, rows, columns)


@njit(inline="always")
def reals_of(block, at, n, k, g):
    """The arrays in a block of real numbers, for n arms, k hypotheses and g shares; at: where each begins."""
    c, x, m = CANDIDATES, GIVEN_X, 3 * n + 1
    return Reals(
        line(block, at[0], 2),  # reward_range
        line(block, at[1], n),  # in_flight
        line(block, at[2], 1),  # longest_delay
        line(block, at[3], 1),  # typical_delay
        line(block, at[4], n),  # rewards_seen
        line(block, at[5], n),  # prior
        square(block, at[6], g, k),  # mass
        square(block, at[7], 2, 2 * k),  # untried
        cube(block, at[8], n, 2, 2 * k),  # counts
        square(block, at[9], n, k),  # ratio
        square(block, at[10], n, k),  # idle_prior
        cube(block, at[11], n, g, k),  # changed
        line(block, at[12], n),  # mean
        line(block, at[13], n),  # square
        line(block, at[14], 2),  # spread
        line(block, at[15], k),  # changes
        line(block, at[16], 2),  # redrawn
        square(block, at[17], n, 5),  # track
        line(block, at[18], 1),  # drifts
        square(block, at[19], n, 3),  # answers
        line(block, at[20], 1),  # odds
        square(block, at[21], n, n),  # gram
        square(block, at[22], n, n),  # residual
        square(block, at[23], n, n),  # adjacency
        line(block, at[24], n),  # pressure
        line(block, at[25], n),  # sparse_weights
        square(block, at[26], n, n),  # penalty
        line(block, at[27], 1),  # bound
        square(block, at[28], n, n),  # root
        square(block, at[29], n, n),  # effects
        square(block, at[30], n, n),  # scatter
        line(block, at[31], 1),  # freedom
        line(block, at[32], 1),  # ridge
        line(block, at[33], 1),  # new_information
        square(block, at[34], n, n),  # bars
        line(block, at[35], n),  # gain_bars
        square(block, at[36], n, n),  # instrument_adjacency
        line(block, at[37], n),  # gain
        line(block, at[38], n),  # instrument_weights
        square(block, at[39], n, n),  # full_root
        square(block, at[40], 1, n),  # full_effects
        square(block, at[41], 1, 1),  # full_scatter
        line(block, at[42], 1),  # full_freedom
        line(block, at[43], 1),  # full_ridge
        line(block, at[44], n),  # full_weights
        line(block, at[45], c),  # errors
        line(block, at[46], c),  # lead
        line(block, at[47], c),  # doubt
        line(block, at[48], c),  # cross
        line(block, at[49], c),  # power
        line(block, at[50], 1),  # observed
        line(block, at[51], n),  # suspicion
        square(block, at[52], n, n),  # risen
        square(block, at[53], n, n),  # fallen
        line(block, at[54], n),  # weights
        square(block, at[55], m, m),  # moments
        line(block, at[56], 1),  # tested
        line(block, at[57], 1),  # solved
        line(block, at[58], 1),  # unit
        line(block, at[59], n),  # noise
        square(block, at[60], n, n),  # k_adjacency
        square(block, at[61], n, n),  # k_variance
        square(block, at[62], n, n),  # k_probability
        line(block, at[63], n),  # k_baseline
        line(block, at[64], n),  # k_baseline_variance
        line(block, at[65], n),  # trust
        line(block, at[66], 1),  # log_confounding
        line(block, at[67], 1),  # log_baseline
        line(block, at[68], n),  # k_weights
        line(block, at[69], n),  # k_weights_variance
        line(block, at[70], x),  # x_errors
        line(block, at[71], x),  # x_lead
        line(block, at[72], x),  # x_doubt
        line(block, at[73], x),  # x_cross
        line(block, at[74], x),  # x_power
        line(block, at[75], 1),  # x_observed
    )


@njit(inline="always")
def whole_of(block, at, n, k):
    """The arrays in a block of whole numbers."""
    return Whole(
        line(block, at[0], 1),  # rounds
        line(block, at[1], 1),  # budget
        line(block, at[2], n),  # last_pull
        line(block, at[3], k),  # change_round
        line(block, at[4], n),  # seen
        line(block, at[5], 1),  # latest
        line(block, at[6], 2),  # detected
        line(block, at[7], 1),  # drift_latest
        line(block, at[8], 1),  # alarms
        line(block, at[9], 1),  # since
        line(block, at[10], 1),  # used
    )


@njit(inline="always")
def flags_of(block, at, n):
    """The arrays in a block of flags."""
    return Flags(
        line(block, at[0], 1),  # acyclic
        square(block, at[1], n, n),  # possible
        square(block, at[2], n, n),  # required
        line(block, at[3], 1),  # ordered
        line(block, at[4], 1),  # declared
        line(block, at[5], 1),  # baseline
        line(block, at[6], 1),  # confounded
        line(block, at[7], 1),  # noisy
    )

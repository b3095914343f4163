"""All that one learner of SwitchingSEM knows in three blocks: real numbers, whole numbers, flags.

A kernel can have 64 arguments, and the state of this policy on an adaptive graph has more arrays than that. They follow
each other in the blocks in the order of the state's fields (`policies/switching_block.py`); a test compares the two.
"""

from collections import namedtuple
from typing import Final

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

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


@intrinsic
def view(typing_context, block, at, shape):
    """An array of this shape that begins at a place of a block; `reshape` does the same with ten times the code."""
    found = types.Array(block.dtype, len(shape), "C")

    def generate(context, builder, signature, arguments):
        source = make_array(signature.args[0])(context, builder, arguments[0])
        sizes = cgutils.unpack_tuple(builder, arguments[2])
        width = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(block.dtype)))
        steps = [width]
        for size in reversed(sizes[1:]):
            steps.insert(0, builder.mul(steps[0], size))
        array = make_array(found)(context, builder)
        start = builder.gep(source.data, [arguments[1]])
        populate_array(array, data=start, shape=sizes, strides=steps, itemsize=width, meminfo=None)
        return array._getvalue()

    return found(block, at, shape), generate


@njit(inline="always")
def reals_of(block, at, n, k, g):
    """The arrays in a block of real numbers, for n arms, k hypotheses and g shares; at: where each begins."""
    c, x, m = CANDIDATES, GIVEN_X, 3 * n + 1
    return Reals(
        view(block, at[0], (2,)),  # reward_range
        view(block, at[1], (n,)),  # in_flight
        view(block, at[2], (1,)),  # longest_delay
        view(block, at[3], (1,)),  # typical_delay
        view(block, at[4], (n,)),  # rewards_seen
        view(block, at[5], (n,)),  # prior
        view(block, at[6], (g, k)),  # mass
        view(block, at[7], (2, 2 * k)),  # untried
        view(block, at[8], (n, 2, 2 * k)),  # counts
        view(block, at[9], (n, k)),  # ratio
        view(block, at[10], (n, k)),  # idle_prior
        view(block, at[11], (n, g, k)),  # changed
        view(block, at[12], (n,)),  # mean
        view(block, at[13], (n,)),  # square
        view(block, at[14], (2,)),  # spread
        view(block, at[15], (k,)),  # changes
        view(block, at[16], (2,)),  # redrawn
        view(block, at[17], (n, 5)),  # track
        view(block, at[18], (1,)),  # drifts
        view(block, at[19], (n, 3)),  # answers
        view(block, at[20], (1,)),  # odds
        view(block, at[21], (n, n)),  # gram
        view(block, at[22], (n, n)),  # residual
        view(block, at[23], (n, n)),  # adjacency
        view(block, at[24], (n,)),  # pressure
        view(block, at[25], (n,)),  # sparse_weights
        view(block, at[26], (n, n)),  # penalty
        view(block, at[27], (1,)),  # bound
        view(block, at[28], (n, n)),  # root
        view(block, at[29], (n, n)),  # effects
        view(block, at[30], (n, n)),  # scatter
        view(block, at[31], (1,)),  # freedom
        view(block, at[32], (1,)),  # ridge
        view(block, at[33], (1,)),  # new_information
        view(block, at[34], (n, n)),  # bars
        view(block, at[35], (n,)),  # gain_bars
        view(block, at[36], (n, n)),  # instrument_adjacency
        view(block, at[37], (n,)),  # gain
        view(block, at[38], (n,)),  # instrument_weights
        view(block, at[39], (n, n)),  # full_root
        view(block, at[40], (1, n)),  # full_effects
        view(block, at[41], (1, 1)),  # full_scatter
        view(block, at[42], (1,)),  # full_freedom
        view(block, at[43], (1,)),  # full_ridge
        view(block, at[44], (n,)),  # full_weights
        view(block, at[45], (c,)),  # errors
        view(block, at[46], (c,)),  # lead
        view(block, at[47], (c,)),  # doubt
        view(block, at[48], (c,)),  # cross
        view(block, at[49], (c,)),  # power
        view(block, at[50], (1,)),  # observed
        view(block, at[51], (n,)),  # suspicion
        view(block, at[52], (n, n)),  # risen
        view(block, at[53], (n, n)),  # fallen
        view(block, at[54], (n,)),  # weights
        view(block, at[55], (m, m)),  # moments
        view(block, at[56], (1,)),  # tested
        view(block, at[57], (1,)),  # solved
        view(block, at[58], (1,)),  # unit
        view(block, at[59], (n,)),  # noise
        view(block, at[60], (n, n)),  # k_adjacency
        view(block, at[61], (n, n)),  # k_variance
        view(block, at[62], (n, n)),  # k_probability
        view(block, at[63], (n,)),  # k_baseline
        view(block, at[64], (n,)),  # k_baseline_variance
        view(block, at[65], (n,)),  # trust
        view(block, at[66], (1,)),  # log_confounding
        view(block, at[67], (1,)),  # log_baseline
        view(block, at[68], (n,)),  # k_weights
        view(block, at[69], (n,)),  # k_weights_variance
        view(block, at[70], (x,)),  # x_errors
        view(block, at[71], (x,)),  # x_lead
        view(block, at[72], (x,)),  # x_doubt
        view(block, at[73], (x,)),  # x_cross
        view(block, at[74], (x,)),  # x_power
        view(block, at[75], (1,)),  # x_observed
    )


@njit(inline="always")
def whole_of(block, at, n, k):
    """The arrays in a block of whole numbers."""
    return Whole(
        view(block, at[0], (1,)),  # rounds
        view(block, at[1], (1,)),  # budget
        view(block, at[2], (n,)),  # last_pull
        view(block, at[3], (k,)),  # change_round
        view(block, at[4], (n,)),  # seen
        view(block, at[5], (1,)),  # latest
        view(block, at[6], (2,)),  # detected
        view(block, at[7], (1,)),  # drift_latest
        view(block, at[8], (1,)),  # alarms
        view(block, at[9], (1,)),  # since
        view(block, at[10], (1,)),  # used
    )


@njit(inline="always")
def flags_of(block, at, n):
    """The arrays in a block of flags."""
    return Flags(
        view(block, at[0], (1,)),  # acyclic
        view(block, at[1], (n, n)),  # possible
        view(block, at[2], (n, n)),  # required
        view(block, at[3], (1,)),  # ordered
        view(block, at[4], (1,)),  # declared
        view(block, at[5], (1,)),  # baseline
        view(block, at[6], (1,)),  # confounded
        view(block, at[7], (1,)),  # noisy
    )

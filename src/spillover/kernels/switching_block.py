"""All that one learner of SwitchingSEM knows in one block of numbers.

A kernel can have 64 arguments, and the state of this policy on an adaptive graph has more arrays than that. They follow
each other in the block: real numbers, whole numbers, flags, each in the order of the state's fields
(`policies/switching_block.py`); a test compares the two. Before them are the places where they begin and the constants
of the policy, after them is scratch memory: for few arms each argument of a call, and each array that a kernel
allocates, takes as long as a part of its arithmetic.
The arrays are views of the block, made where they are needed: to pass all of them on takes longer than to make them.
"""

from collections import namedtuple
from typing import Final

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

CANDIDATES: Final = 4  # whose predictions of the payoff from z are compared: three with a graph, and none
GIVEN_X: Final = 2  # whose predictions from the decision alone are

Learner = namedtuple("Learner", "block arms")  # few fields: each is copied with every call of a step
Constants = namedtuple("Constants", "settings hazards shares share_prior hypotheses")
Own = namedtuple("Own", "reward_range in_flight longest_delay typical_delay rewards_seen prior")
Belief = namedtuple("Belief", "mass untried counts ratio idle_prior changed mean square spread changes redrawn")
Drift = namedtuple("Drift", "track drifts")
Silence = namedtuple("Silence", "answers odds")
Sparse = namedtuple("Sparse", "gram residual adjacency pressure weights penalty bound")
Instrument = namedtuple(
    "Instrument",
    "root effects scatter freedom ridge new_information bars gain_bars adjacency gain weights",
)
FullHistory = namedtuple("FullHistory", "root effects scatter freedom ridge weights")
Evidence = namedtuple("Evidence", "errors lead doubt cross power observed")
Changes = namedtuple("Changes", "suspicion risen fallen weights")
KClass = namedtuple(
    "KClass",
    "moments tested solved unit noise adjacency variance probability baseline baseline_variance trust "
    "log_confounding log_baseline weights weights_variance",
)
GivenX = namedtuple("GivenX", "errors lead doubt cross power observed")
Whole = namedtuple("Whole", "rounds budget last_pull change_round seen latest detected drift_latest alarms since used")
Flags = namedtuple("Flags", "acyclic possible required ordered declared baseline confounded noisy")
OF_REALS: Final = (Own, Belief, Drift, Silence, Sparse, Instrument, FullHistory, Evidence, Changes, KClass, GivenX)
REALS: Final = sum(len(part._fields) for part in OF_REALS)
WHOLES: Final = len(Whole._fields)
FLAGS: Final = len(Flags._fields)
WHOLE, FLAG = REALS, REALS + WHOLES  # where the places of whole numbers and of flags begin
POLICY_SETTINGS: Final = 26  # of the policy: `switching_steps.SETTINGS` has their names
HAZARDS: Final = 2
# The head of a block: where each array begins, where the constants do and how many they are, and where the rest begins:
# the report of one call, whole numbers, and scratch memory.
CONSTANTS: Final = REALS + WHOLES + FLAGS
HEAD: Final = CONSTANTS + 3
AGE, UNRECORDED, FOUND, STOPPED = range(4)  # positions in the report
REPORT: Final = 4
Scratch = namedtuple("Scratch", "laws index lines expected squares held payoff done one marks")
LINES: Final = 10
SQUARES: Final = 5
MARKS: Final = 2  # lines of flags, eight of which take the place of a real


def scratch_size(arms: int, hypotheses: int, kinds: int) -> int:
    """Numbers of the scratch memory of a learner, the report included."""
    laws, index = (4 + kinds) * 2 * hypotheses, 8 * max(2 * hypotheses, arms + 1)
    return REPORT + laws + index + (LINES + 1 + SQUARES + 1) * arms + 3 + (MARKS * arms + 7) // 8


def array_at(block, kind, shape):
    """What an intrinsic returns for an array of this kind and shape that begins at a place of a block."""
    found = types.Array(kind, len(shape), "C")

    def generate(context, builder, signature, arguments):
        source = make_array(signature.args[0])(context, builder, arguments[0])
        sizes = cgutils.unpack_tuple(builder, arguments[2])
        stored = context.get_data_type(kind)
        width = context.get_constant(types.intp, context.get_abi_sizeof(stored))
        steps = [width]
        for size in reversed(sizes[1:]):
            steps.insert(0, builder.mul(steps[0], size))
        array = make_array(found)(context, builder)
        start = builder.gep(builder.bitcast(source.data, stored.as_pointer()), [arguments[1]])
        populate_array(array, data=start, shape=sizes, strides=steps, itemsize=width, meminfo=None)
        return array._getvalue()

    return found, generate


@intrinsic
def view(typing_context, block, at, shape):
    """An array of this shape that begins at a place of a block; `reshape` does the same with ten times the code."""
    found, generate = array_at(block, block.dtype, shape)
    return found(block, at, shape), generate


@intrinsic
def view_whole(typing_context, block, at, shape):
    """The same of whole numbers, of a block of reals."""
    found, generate = array_at(block, types.int64, shape)
    return found(block, at, shape), generate


@intrinsic
def view_flags(typing_context, block, at, shape):
    """The same of flags, eight of which take the place of a real."""
    found, generate = array_at(block, types.boolean, shape)
    return found(block, at, shape), generate


@njit(inline="always")
def starts_of(learner):
    """The head of the block."""
    return view_whole(learner.block, 0, (HEAD,))


@njit(inline="always")
def constants_of(learner):
    """The constants of the policy: settings, of which the number of hypotheses is the first, hazards, and shares."""
    block, at = learner.block, starts_of(learner)
    start = at[CONSTANTS]
    hazards = start + POLICY_SETTINGS
    shares, kinds = hazards + HAZARDS, (at[CONSTANTS + 1] - POLICY_SETTINGS - HAZARDS) // 2
    return Constants(
        view(block, start, (POLICY_SETTINGS,)),
        view(block, hazards, (HAZARDS,)),
        view(block, shares, (kinds,)),
        view(block, shares + kinds, (kinds,)),
        int(block[start]),
    )


@njit(inline="always")
def report_of(learner):
    """What is said of a call, and what it says."""
    return view_whole(learner.block, starts_of(learner)[CONSTANTS + 2], (REPORT,))


@njit(inline="always")
def scratch_of(learner):
    """Memory for the steps of a round."""
    constants, block = constants_of(learner), learner.block
    n, k, g = learner.arms, constants.hypotheses, constants.shares.shape[0]
    at = starts_of(learner)[CONSTANTS + 2] + REPORT
    wide = max(2 * k, n + 1)
    expected = at
    lines = expected + n
    laws = lines + LINES * n
    index = laws + (4 + g) * 2 * k
    squares = index + 8 * wide
    held = squares + SQUARES * n
    rest = held + n
    return Scratch(
        view(block, laws, (4 + g, 2 * k)),  # of `learn_rewards`
        view(block, index, (8, wide)),  # of `value_arms`
        view(block, lines, (LINES, n)),
        view(block, expected, (n,)),  # of z; Python reads it
        view(block, squares, (SQUARES, n)),  # of the regressions
        view_whole(block, held, (n,)),
        view(block, rest, (1,)),
        view_flags(block, 8 * (rest + 1), (1,)),
        view(block, rest + 2, (1,)),
        view_flags(block, 8 * (rest + 3), (MARKS, n)),
    )


@njit(inline="always")
def own_of(learner):
    """What it knows of pulls and delays."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return Own(
        view(block, at[0], (2,)),  # reward_range
        view(block, at[1], (n,)),  # in_flight
        view(block, at[2], (1,)),  # longest_delay
        view(block, at[3], (1,)),  # typical_delay
        view(block, at[4], (n,)),  # rewards_seen
        view(block, at[5], (n,)),  # prior
    )


@njit(inline="always")
def belief_of(learner):
    """Hypotheses about changes of the means."""
    block, at = learner.block, starts_of(learner)
    constants = constants_of(learner)
    n, k, g = learner.arms, constants.hypotheses, constants.shares.shape[0]
    return Belief(
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
    )


@njit(inline="always")
def drift_of(learner):
    """Means that drift."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return Drift(
        view(block, at[17], (n, 5)),  # track
        view(block, at[18], (1,)),  # drifts
    )


@njit(inline="always")
def silence_of(learner):
    """Arms that do not report."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return Silence(
        view(block, at[19], (n, 3)),  # answers
        view(block, at[20], (1,)),  # odds
    )


@njit(inline="always")
def sparse_of(learner):
    """The sparse graph."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return Sparse(
        view(block, at[21], (n, n)),  # gram
        view(block, at[22], (n, n)),  # residual
        view(block, at[23], (n, n)),  # adjacency
        view(block, at[24], (n,)),  # pressure
        view(block, at[25], (n,)),  # weights
        view(block, at[26], (n, n)),  # penalty
        view(block, at[27], (1,)),  # bound
    )


@njit(inline="always")
def instrument_of(learner):
    """The regression of y on z, and the graph from it."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return Instrument(
        view(block, at[28], (n, n)),  # root
        view(block, at[29], (n, n)),  # effects
        view(block, at[30], (n, n)),  # scatter
        view(block, at[31], (1,)),  # freedom
        view(block, at[32], (1,)),  # ridge
        view(block, at[33], (1,)),  # new_information
        view(block, at[34], (n, n)),  # bars
        view(block, at[35], (n,)),  # gain_bars
        view(block, at[36], (n, n)),  # adjacency
        view(block, at[37], (n,)),  # gain
        view(block, at[38], (n,)),  # weights
    )


@njit(inline="always")
def full_history_of(learner):
    """The regression of the payoff on z."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return FullHistory(
        view(block, at[39], (n, n)),  # root
        view(block, at[40], (1, n)),  # effects
        view(block, at[41], (1, 1)),  # scatter
        view(block, at[42], (1,)),  # freedom
        view(block, at[43], (1,)),  # ridge
        view(block, at[44], (n,)),  # weights
    )


@njit(inline="always")
def evidence_of(learner):
    """How well the candidates predict the payoff from z."""
    block, at = learner.block, starts_of(learner)
    return Evidence(
        view(block, at[45], (CANDIDATES,)),  # errors
        view(block, at[46], (CANDIDATES,)),  # lead
        view(block, at[47], (CANDIDATES,)),  # doubt
        view(block, at[48], (CANDIDATES,)),  # cross
        view(block, at[49], (CANDIDATES,)),  # power
        view(block, at[50], (1,)),  # observed
    )


@njit(inline="always")
def changes_of(learner):
    """Evidence of a change of the graph, and the weights in use."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return Changes(
        view(block, at[51], (n,)),  # suspicion
        view(block, at[52], (n, n)),  # risen
        view(block, at[53], (n, n)),  # fallen
        view(block, at[54], (n,)),  # weights
    )


@njit(inline="always")
def k_class_of(learner):
    """Moments and estimates of the k-class graph."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return KClass(
        view(block, at[55], (3 * n + 1, 3 * n + 1)),  # moments
        view(block, at[56], (1,)),  # tested
        view(block, at[57], (1,)),  # solved
        view(block, at[58], (1,)),  # unit
        view(block, at[59], (n,)),  # noise
        view(block, at[60], (n, n)),  # adjacency
        view(block, at[61], (n, n)),  # variance
        view(block, at[62], (n, n)),  # probability
        view(block, at[63], (n,)),  # baseline
        view(block, at[64], (n,)),  # baseline_variance
        view(block, at[65], (n,)),  # trust
        view(block, at[66], (1,)),  # log_confounding
        view(block, at[67], (1,)),  # log_baseline
        view(block, at[68], (n,)),  # weights
        view(block, at[69], (n,)),  # weights_variance
    )


@njit(inline="always")
def given_x_of(learner):
    """How well two candidates predict from the decision alone."""
    block, at = learner.block, starts_of(learner)
    return GivenX(
        view(block, at[70], (GIVEN_X,)),  # errors
        view(block, at[71], (GIVEN_X,)),  # lead
        view(block, at[72], (GIVEN_X,)),  # doubt
        view(block, at[73], (GIVEN_X,)),  # cross
        view(block, at[74], (GIVEN_X,)),  # power
        view(block, at[75], (1,)),  # observed
    )


@njit(inline="always")
def whole_of(learner):
    """Rounds, and other whole numbers."""
    block, at = learner.block, starts_of(learner)
    n, k = learner.arms, constants_of(learner).hypotheses
    return Whole(
        view_whole(block, at[WHOLE + 0], (1,)),  # rounds
        view_whole(block, at[WHOLE + 1], (1,)),  # budget
        view_whole(block, at[WHOLE + 2], (n,)),  # last_pull
        view_whole(block, at[WHOLE + 3], (k,)),  # change_round
        view_whole(block, at[WHOLE + 4], (n,)),  # seen
        view_whole(block, at[WHOLE + 5], (1,)),  # latest
        view_whole(block, at[WHOLE + 6], (2,)),  # detected
        view_whole(block, at[WHOLE + 7], (1,)),  # drift_latest
        view_whole(block, at[WHOLE + 8], (1,)),  # alarms
        view_whole(block, at[WHOLE + 9], (1,)),  # since
        view_whole(block, at[WHOLE + 10], (1,)),  # used
    )


@njit(inline="always")
def flags_of(learner):
    """Flags."""
    block, at = learner.block, starts_of(learner)
    n = learner.arms
    return Flags(
        view_flags(block, at[FLAG + 0], (1,)),  # acyclic
        view_flags(block, at[FLAG + 1], (n, n)),  # possible
        view_flags(block, at[FLAG + 2], (n, n)),  # required
        view_flags(block, at[FLAG + 3], (1,)),  # ordered
        view_flags(block, at[FLAG + 4], (1,)),  # declared
        view_flags(block, at[FLAG + 5], (1,)),  # baseline
        view_flags(block, at[FLAG + 6], (1,)),  # confounded
        view_flags(block, at[FLAG + 7], (1,)),  # noisy
    )

"""When the outcome of a round arrives, and the lists of rounds that are in flight."""

from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.build import gufunc

NEVER: Final = np.iinfo(np.int64).max  # the delay of an outcome that is lost


@njit(inline="always")
def slow_bad_news(x, z, good, bad):
    """From `good` rounds for rewards of 1 to `bad` for rewards of 0, linear in the average of the arms played."""
    total, played = 0.0, 0
    for i in range(x.shape[0]):
        if x[i]:
            total += z[i]
            played += 1
    share = min(max(1.0 - total / max(played, 1), 0.0), 1.0)
    return int64(np.rint(good + (bad - good) * share))


@gufunc((boolean[:], float64[:], int64, int64, int64[:]), "(n),(n),(),()->()")
def bad_news_delay(x, z, good, bad, late):
    """The delay of a round under `BadNewsDelay`."""
    late[0] = slow_bad_news(x, z, good, bad)


@njit(inline="always")
def common_delay(x, z, late, slowest):
    """The delay of the arms that report, which is the same for all; see `delay_of`."""
    return late if late == NEVER or slowest == late else slow_bad_news(x, z, late, slowest)


@njit(inline="always")
def delay_of(x, z, late, slowest, silent):
    """The delay of a round that brought the rewards z.

    late: the delay if all rewards are 1; slowest: if all are 0, the same if it does not depend on them; silent: the
    arms that never report a reward of 0, (0,) if there are none.
    """
    for i in range(silent.shape[0]):
        if silent[i] and x[i] and z[i] == 0.0:
            return NEVER
    return common_delay(x, z, late, slowest)


@njit(inline="always")
def post(t, late, horizon, first, last, following):
    """Enter round t into the list of the round in which its outcome arrives, if that is within the horizon.

    first, last: of the list of each round of arrival; following: the next one in the list of each round of play. All
    are rings, whose length is a power of 2; 0 is no round.
    """
    if late <= horizon - t:
        mask = first.shape[0] - 1
        slot = (t + late) & mask
        following[t & mask] = 0
        if first[slot] == 0:
            first[slot] = t
        else:
            following[last[slot] & mask] = t
        last[slot] = t


@njit(inline="always")
def post_part(t, part, late, horizon, first, last, following, parts):
    """`post` of a part of round t, the first of its arms, unless another arm is in that list; see `types.Flight`."""
    if late <= horizon - t:
        mask = first.shape[0] - 1
        slot, entry = (t + late) & mask, t * parts + part
        following[t & mask, part] = 0
        if first[slot] == 0:
            first[slot] = last[slot] = entry
        elif last[slot] // parts != t:
            following[(last[slot] // parts) & mask, last[slot] % parts] = entry
            last[slot] = entry


@njit(inline="always")
def post_arms(t, x, z, late, slowest, silent, by_arm, horizon, first, last, following, arrival):
    """Post the outcomes of the arms of round t, each for its own round of arrival, which goes into the ring `arrival`.

    by_arm: the delay of each arm, (0,) if they report together, unless they are `silent`.
    """
    home, common = t & (first.shape[0] - 1), common_delay(x, z, late, slowest)
    for i in range(x.shape[0]):
        own = common
        if by_arm.shape[0] > 0:
            own = by_arm[i]
        elif silent.shape[0] > 0 and silent[i] and x[i] and z[i] == 0.0:
            own = NEVER
        arrival[home, i] = t + own if own <= NEVER - t else NEVER
        post_part(t, i, own, horizon, first, last, following, following.shape[1])

"""Rounds of SwitchingSEM on an adaptive graph: many in one call, or one of a live learner, step by step.

What is rare and long (a change of the graph, the k-class estimate) is left to Python: the kernel stops, says why and
where, and goes on from there in the next call.
"""

from numba import boolean, float64, int64, uint64

from spillover.kernels.arrivals import delay_of, post_arms, post_part
from spillover.kernels.build import gufunc
from spillover.kernels.outcomes import columns_of, fill_outcome
from spillover.kernels.switching_block import (
    AGE,
    FOUND,
    STOPPED,
    UNRECORDED,
    Learner,
    own_of,
    report_of,
    scratch_of,
    whole_of,
)
from spillover.kernels.switching_steps import (
    DONE,
    FAULT,
    compiled,
    copy_graph,
    decide,
    learn_round,
    record_play,
    remember,
)
from spillover.kernels.world import fault_of


@compiled
def play_on(
    learner, key, course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, by_arm, horizon,
    ring_x, ring_z, ring_y, first, last, following, memos, arrivals, recorded, snapshots, start, after,
):  # fmt: skip
    """Play rounds of one learner from the `start`-th on; returns in which it stopped, after which arrival, and why."""
    mask, rounds, parts = ring_x.shape[0] - 1, rewards.shape[0], following.shape[1]
    counter, reward_range = whole_of(learner).rounds, own_of(learner).reward_range
    for r in range(start, rounds):
        if after == 0:
            slot = (counter[0] + 1) & mask
            x, z, y = ring_x[slot], ring_z[slot], ring_y[slot]
            decide(learner, key, x)
            remember(learner, memos[slot])
            now = record_play(learner, x)
            fill_outcome(r, now, key, course, concentration, columns, rewards, shocks, baseline, x, z, y)
            if arrivals.shape[1] > 0:
                post_arms(
                    now, x, z, delays[r], slowest[r], silent[r], by_arm[r], horizon, first, last, following, arrivals
                )  # fmt: skip
            else:
                late = delay_of(x, z, delays[r], slowest[r], silent[r])
                post_part(now, 0, late, horizon, first, last, following)
            part = first[slot]
            first[slot] = 0
        else:
            part = following[(after // parts) & mask, after % parts]
            after = 0
        now = counter[0]
        while part != 0:
            played = part // parts
            home = played & mask
            x, z, y = ring_x[home], ring_z[home], ring_y[home]
            if fault_of(x, z, y, reward_range, now - played, now) != 0:
                return r, part, FAULT
            why = learn_round(learner, x, z, y, memos[home], arrivals[home], played, scratch_of(learner).expected)
            if why != DONE:
                return r, part, why
            part = following[home, part % parts]
        if recorded[r] >= 0:
            copy_graph(learner, snapshots[recorded[r]])
    return rounds, 0, DONE


@gufunc(
    (
        *(float64[::1], uint64[::1], int64[::1], float64, float64[:, :], float64[:, :], float64[:, :], float64[:, :]),
        *(int64[:], int64[:], boolean[:, :], int64[:, :], int64),
        *(boolean[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int64[::1], int64[:, ::1]),
        *(float64[:, :, ::1], int64[:, ::1], int64[::1], float64[:, :, ::1], int64, int64),
        *(int64[:], int64[:], int64[:], float64[:]),
    ),
    "(f),(k),(q),(),(n,n),(t,n),(t,n),(t,n),(t),(t),(t,a),(t,b),(),(c,n),(c,n),(c,n),(c),(c),(c,p),(c,m,n),(c,d),(t),"
    "(v,n,n),(),()->(),(),(),(n)",
    writes=("block", "ring_x", "ring_z", "ring_y", "first", "last", "following", "memos", "arrivals", "snapshots"),
)
def play_switching(
    block, key, course, concentration, total, rewards, shocks, baseline, delays, slowest, silent, by_arm, horizon,
    ring_x, ring_z, ring_y, first, last, following, memos, arrivals, recorded, snapshots, start, after,
    reached, arrival, why, expected,
):  # fmt: skip
    """Play rounds of one learner from the `start`-th on; where and why it stopped, and what it expected of z then.

    after: what had arrived when it stopped last, as in `types.Flight`; 0: it did not, or begins a round. Decisions and
    outcomes go into the rings. In rounds with `recorded` >= 0 the graph is copied to that snapshot.
    """
    reached[0], arrival[0], why[0] = rewards.shape[0], 0, DONE
    if start < rewards.shape[0]:
        learner = Learner(block, total.shape[0])
        reached[0], arrival[0], why[0] = play_on(
            learner, key, course, concentration, columns_of(total), rewards, shocks, baseline, delays, slowest, silent,
            by_arm, horizon, ring_x, ring_z, ring_y, first, last, following, memos, arrivals, recorded, snapshots,
            start, after,
        )  # fmt: skip
        for i in range(expected.shape[0]):
            expected[i] = scratch_of(learner).expected[i]


@gufunc((float64[::1], uint64[::1], boolean[::1], float64[:, ::1]), "(f),(k),(n),(m,n)", writes=("block", "x", "memo"))
def switching_choice(block, key, x, memo):
    """The decision for the next round of a live learner, and what it wants back with the outcome.

    Of the block, only scratch memory is rewritten. Kernels of a live learner have no outputs: arrays that NumPy makes
    for a call take longer than those that it is given.
    """
    learner = Learner(block, x.shape[0])
    decide(learner, key, x)
    remember(learner, memo)


@gufunc((float64[::1], boolean[::1]), "(f),(n)", writes=("block",))
def switching_play(block, x):
    """A round of a live learner was played."""
    record_play(Learner(block, x.shape[0]), x)


@gufunc(
    (float64[::1], boolean[::1], boolean[::1], float64[::1], float64[::1], float64[:, ::1]),
    "(f),(n),(n),(n),(n),(m,n)",
    writes=("block",),
)
def switching_lesson(block, played, x, z, y, memo):
    """Learn the outcome of a round of a live learner, unless something is wrong with it.

    The report in the block says how old it is, and whether another round was `played` that is to be recorded first. It
    is then told what was found to be wrong, and why Python must do the rest, if it must.
    """
    learner = Learner(block, x.shape[0])
    report = report_of(learner)
    if report[UNRECORDED] != 0:
        record_play(learner, played)
    now = whole_of(learner).rounds[0]
    report[STOPPED], report[FOUND] = DONE, fault_of(x, z, y, own_of(learner).reward_range, report[AGE], now)
    if report[FOUND] == 0:
        at_once = report[:0]
        played = now - report[AGE]
        report[STOPPED] = learn_round(learner, x, z, y, memo, at_once, played, scratch_of(learner).expected)

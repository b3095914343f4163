"""Whole rounds of DiscountedTS: one call plays many rounds of a learner.

What it does in a round are the functions that its own kernels are made of, so both give the same numbers, bit for bit.
"""

import numpy as np
from numba import boolean, float64, int64, njit, uint64

from spillover.kernels.build import gufunc
from spillover.kernels.discounts import add_pulls_side_by_side, add_side_by_side, fill_means
from spillover.kernels.drawing import FIRST, SECOND, SMALL_BUDGET, take_top
from spillover.kernels.gram import absorb_outcome
from spillover.kernels.graph import note_moves, refit, room_for_refit
from spillover.kernels.inner import bare
from spillover.kernels.outcomes import COURSE_LAYOUT, COURSE_SIGNATURE, RINGS, bring_outcome, columns_of
from spillover.kernels.rounds import CHOICE, NO_GRAPH, SIGNED, take_snapshot, weigh
from spillover.kernels.world import FINE, fault_of


@njit(inline="always")
def choose_by_draw(
    sums, counts, stamps, pulls, latest, evidence, discounts, powers, t, latest_observed, reward_range, weights,
    budget, plan, key, lines, best, x,
):  # fmt: skip
    """The decision of round t: that of the plan, or the arms with the highest weights times drawn means."""
    n = x.shape[0]
    if t <= n:
        for i in range(n):
            x[i] = plan[t - 1, i]
        return
    scores, low, high = lines[0], reward_range[0], reward_range[1]
    fill_means(
        sums, counts, stamps, pulls, latest, evidence, discounts, powers, t - 1, latest_observed, key, FIRST,
        uint64(t), CHOICE, scores, lines[1], lines[2], lines[3],
    )  # fmt: skip
    for i in range(n):
        scores[i] = low + (high - low) * scores[i]
    weigh(weights, scores)
    take_top(scores, budget, key, SECOND, uint64(t), CHOICE, best, x)


@bare
def play_discounted_learner(
    sums, counts, stamps, evidence, latest_observed, pulls, latest, discounts, evidence_discount, powers,
    now, budget, reward_range, plan, key, kind,
    weights, gram, residual, adjacency, pressure, penalty, bound, acyclic,
    course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, recorded, snapshots,
    lines, best, room,
):  # fmt: skip
    """`play_discounted` in memory that it is given; returns the latest round observed and the fault."""
    mask = ring_x.shape[0] - 1
    for r in range(delays.shape[0]):
        t = now + r + 1
        slot = t & mask
        x = ring_x[slot]
        choose_by_draw(
            sums, counts, stamps, pulls, latest, evidence, discounts, powers, t, latest_observed, reward_range,
            weights, budget, plan, key, lines, best, x,
        )  # fmt: skip
        add_pulls_side_by_side(pulls, latest, discounts, powers, x, t)
        played = bring_outcome(
            r, t, key, course, concentration, columns, rewards, shocks, baseline, delays, slowest, silent, horizon,
            x, ring_z[slot], ring_y[slot], first, last, following,
        )  # fmt: skip
        while played != 0:
            home = played & mask
            x, z, y = ring_x[home], ring_z[home], ring_y[home]
            fault = fault_of(x, z, y, reward_range, t - played, t)
            if fault != FINE:
                return latest_observed, fault
            add_side_by_side(
                sums, counts, stamps, evidence, discounts, evidence_discount, powers, x, z, reward_range, played,
                latest_observed,
            )  # fmt: skip
            latest_observed = max(latest_observed, played)
            if kind != NO_GRAPH:
                absorb_outcome(gram, residual, adjacency, z, y, 1.0, acyclic, lines[0])
                if note_moves(y, lines[0], room):
                    refit(
                        gram, residual, adjacency, pressure, weights, penalty, bound, acyclic, kind == SIGNED, room,
                        True,
                    )  # fmt: skip
            played = following[home]
        if recorded[r] >= 0:
            take_snapshot(adjacency, snapshots[recorded[r]])
    return latest_observed, FINE


@gufunc(
    (
        *(float64[:, ::1], float64[:, ::1], int64[::1], float64[::1], int64, float64[:, ::1], int64[::1]),
        *(float64[::1], float64, float64[:, ::1], int64, int64, float64[::1], boolean[:, ::1], uint64[::1], int64),
        *(float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1]),
        *(float64, boolean, *COURSE_SIGNATURE, int64[::1], float64[:, :, ::1], int64[:], int64[:]),
    ),
    "(d,n),(d,n),(n),(d),(),(d,n),(n),(d),(),(d,l),(),(),(r),(n,n),(k),(),"
    f"(n),(n,n),(n,n),(n,n),(n),(n,n),(),(),{COURSE_LAYOUT},(t),(s,n,n)->(),(t)",
    writes=(
        *("sums", "counts", "stamps", "evidence", "pulls", "latest"),
        *("weights", "gram", "residual", "adjacency", "pressure", *RINGS, "snapshots"),
    ),
)
def play_discounted(
    sums, counts, stamps, evidence, latest_observed, pulls, latest, discounts, evidence_discount, powers,
    now, budget, reward_range, plan, key, kind,
    weights, gram, residual, adjacency, pressure, penalty, bound, acyclic,
    course, concentration, total, rewards, shocks, baseline, delays, slowest, silent, horizon,
    ring_x, ring_z, ring_y, first, last, following, recorded, snapshots, latest_after, faults,
):  # fmt: skip
    """Play the rounds now + 1, ... of one learner of DiscountedTS; see `play_rounds`. kind: of the graph, as there."""
    n = weights.shape[0]
    latest_after[0], fault = play_discounted_learner(
        sums, counts, stamps, evidence, latest_observed, pulls, latest, discounts, evidence_discount, powers,
        now, budget, reward_range, plan, key, kind,
        weights, gram, residual, adjacency, pressure, penalty, bound, acyclic,
        course, concentration, columns_of(total), rewards, shocks, baseline, delays, slowest, silent, horizon,
        ring_x, ring_z, ring_y, first, last, following, recorded, snapshots,
        np.empty((4, n)), np.empty(min(budget, SMALL_BUDGET)), room_for_refit(n),
    )  # fmt: skip
    for r in range(faults.shape[0]):
        faults[r] = fault

"""Constrained decisions: greedy with limits on groups, a first feasible set, and an exact search."""

from typing import Final

import numpy as np
from numba import boolean, float64, int64, njit

from spillover.kernels.compiling import gufunc

# Sums of a few hundred doubles of about 1 differ from the exact ones by less than this.
SUM_ROUNDING: Final = 1e-11


@njit
def row_bound(used, total, low, high, price, rate_up, rate_down):
    """The least total cost of the deviations so far and of what some row still needs, relative to the relaxation.

    A violated row must be repaired by later deviations: rate_up and rate_down are their least cost for one unit up or
    down. A row with slack costs its price, or the deviations that use the slack up.
    """
    worst = 0.0
    for i in range(total.shape[0]):
        over, under = total[i] - high[i], low[i] - total[i]
        cost = 0.0
        if over > SUM_ROUNDING:
            cost = over * rate_down[i]
        elif under > SUM_ROUNDING:
            cost = under * rate_up[i]
        elif price[i] > 0.0 and over < -SUM_ROUNDING:
            cost = -over * min(price[i], rate_up[i])
        elif price[i] < 0.0 and under < -SUM_ROUNDING:
            cost = -under * min(-price[i], rate_down[i])
        worst = max(worst, cost)
    return used + worst


@njit
def inside(total, low, high):
    for i in range(total.shape[0]):
        if total[i] > high[i] + SUM_ROUNDING or total[i] < low[i] - SUM_ROUNDING:
            return False
    return True


@njit
def repair_rates(change, cost, rate_up, rate_down):
    """rate_up[k, i]: the least cost of one unit more in row i by the deviations from k on; rate_down: one unit less."""
    for k in range(change.shape[0] - 1, -1, -1):
        for i in range(change.shape[1]):
            rate_up[k, i], rate_down[k, i] = rate_up[k + 1, i], rate_down[k + 1, i]
            if change[k, i] > 0.0:
                rate_up[k, i] = min(rate_up[k, i], cost[k] / change[k, i])
            elif change[k, i] < 0.0:
                rate_down[k, i] = min(rate_down[k, i], -cost[k] / change[k, i])


@gufunc(
    (
        *(float64[:, :], float64[:], float64[:], float64[:], float64[:], float64[:], float64[:]),
        *(float64, float64, float64, float64, int64, boolean[:], float64[:], int64[:]),
    ),
    "(k,m),(k),(k),(m),(m),(m),(m),(),(),(),(),()->(k),(),()",
)
def search_deviations(
    change, cost, gain, start, low, high, price, value, bound, gap, least, effort, deviates, best, steps
):
    """The best feasible set within `gap` of the bound of a relaxation, as deviations from the relaxation's own set.

    The value of a set is the bound minus the costs of its deviations and the prices of its slack. Depth-first search
    over sets of deviations, cheapest first; `gap` shrinks with every better set. Differences below `least` do not
    count. best is -inf if there is none; steps exceeds effort if the search was stopped early.
    """
    k_all, m = change.shape
    rate_up, rate_down = np.full((k_all + 1, m), np.inf), np.full((k_all + 1, m), np.inf)
    repair_rates(change, cost, rate_up, rate_down)
    totals, used, values = np.empty((k_all + 1, m)), np.zeros(k_all + 1), np.empty(k_all + 1)
    path, following = np.zeros(k_all + 1, np.int64), np.zeros(k_all + 1, np.int64)
    totals[0], values[0] = start, value
    deviates[:] = False
    best[0], steps[0] = -np.inf, 0
    depth, fresh = 0, True
    while depth >= 0:
        steps[0] += 1
        if steps[0] > effort:
            break
        total = totals[depth]
        good = fresh and values[depth] > best[0] + least and values[depth] >= bound - gap - least
        if good and inside(total, low, high):
            best[0] = values[depth]
            gap = min(gap, bound - best[0])
            deviates[:] = False
            for p in range(depth):
                deviates[path[p]] = True
        fresh = False
        k = following[depth]
        if k == k_all or used[depth] + cost[k] > gap - least:
            depth -= 1
            continue
        if row_bound(used[depth], total, low, high, price, rate_up[k], rate_down[k]) > gap - least:
            depth -= 1
            continue
        path[depth], following[depth] = k, k + 1
        for i in range(m):
            totals[depth + 1, i] = total[i] + change[k, i]
        used[depth + 1], values[depth + 1] = used[depth] + cost[k], values[depth] + gain[k]
        depth += 1
        following[depth], fresh = k + 1, True


@njit
def fits(total, column, sign, low, high):
    for i in range(total.shape[0]):
        after = total[i] + sign * column[i]
        # a row that is already violated may stay so, if it gets closer
        if after > high[i] + SUM_ROUNDING and after >= total[i]:
            return False
        if after < low[i] - SUM_ROUNDING and after <= total[i]:
            return False
    return True


@njit
def exchange(columns, low, high, scores, x, total):
    """Exchange one chosen arm for another with a higher score; returns whether there was such an exchange."""
    n, m = columns.shape
    for j in range(n):
        if not x[j]:
            continue
        for k in range(n):
            if x[k] or scores[k] <= scores[j] + 1e-12 * abs(scores[j]):
                continue
            good = True
            for i in range(m):
                after = total[i] - columns[j, i] + columns[k, i]
                if after > high[i] + SUM_ROUNDING or after < low[i] - SUM_ROUNDING:
                    good = False
                    break
            if good:
                x[j], x[k] = False, True
                total += columns[k] - columns[j]
                return True
    return False


@gufunc(
    (float64[:, :], float64[:], float64[:], float64[:], boolean[:], boolean[:], boolean[:]),
    "(n,m),(m),(m),(n),(n)->(n),()",
)
def fill_and_exchange(columns, low, high, scores, start, x, feasible):
    """A good set from a start: arms with positive scores that fit, in order, then exchanges of one for another."""
    n, m = columns.shape
    x[:] = start
    total = np.zeros(m)
    for j in range(n):
        if x[j]:
            total += columns[j]
    for _ in range(50):
        for j in range(n):
            if not x[j] and scores[j] > 0.0 and fits(total, columns[j], 1.0, low, high):
                x[j] = True
                total += columns[j]
        if not inside(total, low, high) or not exchange(columns, low, high, scores, x, total):
            break
    feasible[0] = inside(total, low, high)


@njit
def no_worse(ours, theirs, low, high):
    """Whether an arm can replace another one in any feasible set."""
    for i in range(ours.shape[0]):
        if ours[i] > theirs[i] and high[i] < np.inf:
            return False
        if ours[i] < theirs[i] and low[i] > -np.inf:
            return False
    return True


@gufunc(
    (float64[:, :], float64[:], float64[:], boolean[:], int64[:], boolean[:]),
    "(n,m),(m),(m),(m),(n)->(n)",
)
def dispensable_arms(columns, low, high, positive, order, dispensable):
    """Arms that some best set leaves out: so many others are no worse that a row has no room for all of them.

    Then one of those is not chosen and can replace the arm. `order` lists arms that are no worse before those that
    are no better; `positive` are the rows without negative coefficients.
    """
    n, m = columns.shape
    taken = np.empty(m)
    for q in range(n):
        b = order[q]
        dispensable[b] = False
        taken[:] = columns[b]
        for p in range(q):
            a = order[p]
            if dispensable[a] or not no_worse(columns[a], columns[b], low, high):
                continue
            for i in range(m):
                taken[i] += columns[a, i]
                if positive[i] and taken[i] > high[i] + SUM_ROUNDING:
                    dispensable[b] = True
            if dispensable[b]:
                break


@gufunc(
    (float64[:, :], float64[:], int64[:], float64[:], boolean[:], boolean[:]),
    "(m,n),(m),(n),(n),(n)->(n)",
)
def greedy_arms(groups, limits, order, scores, start, x):
    """The start and, in order, every arm with a positive score whose groups have room: exact on a matroid."""
    m, n = groups.shape
    x[:] = start
    room = limits.copy()
    for j in range(n):
        if start[j]:
            room -= groups[:, j]
    for j in order:
        if x[j] or not scores[j] > 0.0:
            continue
        free = True
        for i in range(m):
            if groups[i, j] > 0.0 and room[i] < 1.0:
                free = False
                break
        if free:
            x[j] = True
            room -= groups[:, j]

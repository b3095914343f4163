"""The exact maximiser of a total score under linear rows: a relaxation, and a search among the sets near its bound.

The prices of the rows in the relaxation (0 <= x <= 1) bound every set from above: the value of a set is that bound, 
less the reduced score of every arm on which it deviates from the relaxation's own set, less prices times slack. So the
sets within a given gap of the bound deviate on few arms, and all of them can be looked at. The gap grows until it holds a
feasible set: then that set is proved to be the best. The proof does not rest on the tolerances of the solver of the
relaxation: any prices give a bound, good ones a near one.
"""

from typing import NamedTuple

import numpy as np

from spillover import kernels
from spillover.constraints import Rows
from spillover.types import Array, BoolArray, IntArray

EFFORT = 600_000  # steps of the search, some 0.1 us each
FEW_ARMS = 12  # so many that all sets can be looked at without a relaxation
DIFFERENCE = 1e-11  # totals that differ by less than this part of the largest score are equal
SMALL = 1e-5  # arms with scores below this part of the largest are decided after the others, on their own scale
SOLVER_UNIT = 1e5  # the largest score as the solver sees it: its tolerances are absolute
FIRST_CORE = 10


class Answer(NamedTuple):
    """The best set; `bound` is what no feasible set exceeds, the value itself when the set is proved to be the best."""

    x: BoolArray
    value: float
    bound: float


class Free(NamedTuple):
    """What is left to decide: arms that no row fixes, and rows that can be broken."""

    x: BoolArray  # (n,): the fixed arms' decisions
    arms: IntArray  # the free ones
    matrix: Array
    low: Array
    high: Array


def maximise(scores: Array, rows: Rows, *, effort: int = EFFORT) -> Answer | None:
    """The best feasible set for finite scores, (n,); None when no set is feasible."""
    fixed = np.full(len(scores), -1, np.int8)
    value, bound = 0.0, 0.0
    while True:
        free = presolve(rows, fixed, scores)
        if free is None:
            return None
        weights = level(scores[free.arms])
        found = solve(free, weights, effort)
        if found is None:
            return None
        part, best, above = found
        x = free.x.copy()
        x[free.arms] = part
        value, bound = float(scores[x].sum()), bound + max(above - best, 0.0)
        if not scores[free.arms].any():
            return Answer(x, value, value + bound)
        small = np.abs(scores[free.arms]) < SMALL * np.abs(weights).max(initial=0.0)
        open_arms = free.arms[small]
        # arms of no score matter only if some were taken: perhaps fewer would do
        if not (scores[open_arms] != 0).any() and not x[open_arms].any():
            return Answer(x, value, value + bound)
        fixed = x.astype(np.int8)
        fixed[open_arms] = -1


def level(scores: Array) -> Array:
    """The scores that decide on the scale of the largest; when all are 0, as few arms as possible."""
    return scores if scores.any() else np.full(scores.shape, -1.0)


def presolve(rows: Rows, fixed: IntArray | Array, scores: Array) -> Free | None:
    """Fix what the rows leave no choice about, and arms that bring and help nothing; None if a row must break."""
    lower, upper = np.where(fixed == 1, 1.0, 0.0), np.where(fixed == 0, 0.0, 1.0)
    matrix, up = rows.matrix, np.maximum(rows.matrix, 0.0)
    down = matrix - up
    edge = kernels.SUM_ROUNDING
    while True:
        least, most = up @ lower + down @ upper, up @ upper + down @ lower
        if (least > rows.high + edge).any() or (most < rows.low - edge).any():
            return None
        spare, need = (rows.high - least + edge)[:, None], (most - rows.low + edge)[:, None]
        off = ((up > spare) | (-down > need)).any(axis=0) & (upper > lower)
        on = ((-down > spare) | (up > need)).any(axis=0) & (upper > lower)
        if (off & on).any():
            return None
        if not (off | on).any():
            break
        upper[off], lower[on] = 0.0, 1.0
    binding = (most > rows.high + edge) | (least < rows.low - edge)
    needed = matrix[binding]
    useful = ((needed > 0) & np.isfinite(rows.low[binding])[:, None]).any(axis=0)
    useful |= ((needed < 0) & np.isfinite(rows.high[binding])[:, None]).any(axis=0)
    upper[(scores <= 0) & ~useful & (upper > lower)] = 0.0
    arms = np.flatnonzero(upper > lower)
    taken = needed @ lower
    return Free(lower > 0, arms, needed[:, arms], rows.low[binding] - taken, rows.high[binding] - taken)


def solve(free: Free, scores: Array, effort: int) -> tuple[BoolArray, float, float] | None:
    """The best set of the free arms, its value and the bound on it; None when there is none."""
    if not len(free.arms):
        return np.zeros(0, np.bool_), 0.0, 0.0
    if not len(free.matrix):
        x = scores > 0
        return x, float(scores[x].sum()), float(scores[x].sum())
    if len(free.arms) <= FEW_ARMS:
        return search(free, scores, np.zeros(len(free.matrix)), None, 2**62)
    relaxed = relaxation(free, scores)
    if relaxed is None:
        return None
    prices, share = relaxed
    x, feasible = kernels.fill_and_exchange(free.matrix.T, free.low, free.high, scores, share > 1 - 1e-6)
    return search(free, scores, prices, x if feasible else None, effort)


def relaxation(free: Free, scores: Array) -> tuple[Array, Array] | None:
    """Prices of the rows and shares of the arms in the best fractional set; None when not even such a one exists."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    above, below = np.isfinite(free.high), np.isfinite(free.low)
    matrix = csr_array(np.vstack([free.matrix[above], -free.matrix[below]]))
    limits = np.concatenate([free.high[above], -free.low[below]])
    unit = SOLVER_UNIT / np.abs(scores).max()
    found = linprog(-unit * scores, A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs")
    if found.status == 2:
        return None
    if found.status != 0:
        raise RuntimeError(f"the relaxation has no answer: {found.message}")
    duals, prices = -found.ineqlin.marginals / unit, np.zeros(len(free.matrix))
    prices[above] += duals[: above.sum()]
    prices[below] -= duals[above.sum() :]
    return prices, found.x


def search(
    free: Free, scores: Array, prices: Array, x: BoolArray | None, effort: int
) -> tuple[BoolArray, float, float] | None:
    """Look at the sets within a gap of the bound that the prices give, a wider one until the best is in it."""
    prices = np.where(prices > 0, np.where(np.isfinite(free.high), prices, 0.0), prices)
    prices = np.where(prices < 0, np.where(np.isfinite(free.low), prices, 0.0), prices)
    side = np.where(prices > 0, free.high, np.where(prices < 0, free.low, 0.0))
    reduced = scores - prices @ free.matrix
    own = reduced > 0
    bound = float(prices @ side + reduced[own].sum())
    # one row more, all prices at once: its slack is what all slack together costs
    matrix = np.vstack([free.matrix, prices @ free.matrix])
    low, high = np.append(free.low, -np.inf), np.append(free.high, prices @ side)
    start, price = matrix[:, own].sum(axis=1), np.append(prices, 1.0)
    sign = np.where(own, -1.0, 1.0)
    order = np.argsort(np.abs(reduced), kind="stable")
    costs = np.abs(reduced)[order]
    least = DIFFERENCE * float(np.abs(scores).max())
    everything = bound - float(scores[scores < 0].sum()) + 2 * least
    best = -np.inf if x is None else float(scores[x].sum())
    gap = min(max(float(costs[min(len(costs) - 1, FIRST_CORE)]), 2 * least), bound - best, everything)
    if len(costs) <= FEW_ARMS:
        gap = min(bound - best, everything)
    proved = bound
    while effort > 0 and best < bound - least:
        core = order[: max(1, int(np.searchsorted(costs, gap, side="right")))]
        change = matrix[:, core] * sign[core]
        # rows without a price that these arms cannot break need no watching
        most, fewest = start + np.maximum(change, 0).sum(axis=1), start + np.minimum(change, 0).sum(axis=1)
        watched = (price != 0) | (most > high) | (fewest < low)
        deviates, value, steps = kernels.search_deviations(
            np.ascontiguousarray(change[watched].T),
            *(costs[: len(core)], scores[core] * sign[core]),
            *(start[watched], low[watched], high[watched], price[watched]),
            *(float(scores[own].sum()), bound, gap, least, effort),
        )
        effort -= int(steps)
        if value > best:
            x, best = own.copy(), float(value)
            x[core[deviates]] ^= True
        if effort > 0 and (best >= bound - gap - least or gap >= everything):
            return None if x is None else (x, best, best)
        if effort > 0:
            proved = bound - gap  # no set is within the gap
        gap = min(2.0 * gap, bound - best, everything)
    if x is None:
        return any_set(free, scores, proved)
    return x, best, best if best >= proved - least else proved


def any_set(free: Free, scores: Array, bound: float) -> tuple[BoolArray, float, float] | None:
    """Some feasible set where the search met none, from a general solver; None when there is none."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = LinearConstraint(free.matrix, free.low, free.high)
    found = milp(np.zeros(len(scores)), constraints=rows, integrality=np.ones(len(scores)), bounds=Bounds(0, 1))
    if found.status == 2:
        return None
    if found.x is None:
        raise RuntimeError(f"no feasible set was found, nor that there is none: {found.message}")
    x, _ = kernels.fill_and_exchange(free.matrix.T, free.low, free.high, scores, found.x > 0.5)
    return x, float(scores[x].sum()), bound

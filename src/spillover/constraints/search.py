"""Search for the feasible set of arms with the highest total score, exactly where the effort allows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spillover import kernels, validate
from spillover.constraints.kinds import BUDGET, Constraint, Rows, check_constraints, compile_rows
from spillover.rng import Rng
from spillover.types import Array, BoolArray, IntArray

EFFORT = 800_000  # steps of the search, some 0.1 us each
MOST_EFFORT = 10**15  # some three years; the kernels count in 64 bits
FEW_ARMS = 12  # with so few arms all sets can be searched without a relaxation
DIFFERENCE = 1e-11  # totals that differ by less than this, relative to the largest score, count as equal
SMALL = 1e-5  # arms with scores below this, relative to the largest, are decided after the others, on their own scale
SOLVER_UNIT = 1e5  # the largest score is scaled to this for the solver, whose tolerances are absolute
FIRST_CORE = 10  # arms that the first full search may deviate on
PROBE_ARMS = 25  # arms that the quick first search may deviate on
PROBE = 6  # the quick first search gets this fraction of the effort: 1 / 6
WIDER = 1.4  # factor from the gap of one search to that of the next


class Answer(NamedTuple):
    """The best set found; `bound` is an upper bound on every feasible set, equal to the value if the set is optimal.

    Arms with infinite scores come first and do not count in the value. The bound is inf unless it is proved that no
    set does better on them.
    """

    x: BoolArray
    value: float
    bound: float


class Free(NamedTuple):
    """The open part of a search: arms that no row fixes, and rows that can be violated."""

    x: BoolArray  # (n,): the fixed arms' decisions
    arms: IntArray  # the free ones
    matrix: Array
    low: Array
    high: Array


def maximise(scores: Array, rows: Rows, *, effort: int = EFFORT) -> Answer | None:
    """The best feasible set for finite scores, (n,); None if no set is feasible."""
    fixed = np.full(len(scores), -1, np.int8)
    open_gap = 0.0  # the gap to the bound that the searches so far have left
    while True:
        free = presolve(rows, fixed, scores)
        if free is None:
            return None
        weights = decisive_scores(scores[free.arms])
        # in units of a power of 2, so that one tolerance of sums fits all scores, and no unit of rewards matters
        exponent = int(np.frexp(np.abs(weights).max(initial=0.0))[1])
        found = solve(free, np.ldexp(weights, -exponent), effort)
        if found is None:
            return None
        part, *totals = found
        best, above = np.ldexp(totals, exponent).tolist()
        x = free.x.copy()
        x[free.arms] = part
        value = float(scores[x].sum())
        if not scores[free.arms].any():  # the last search minimised the number of arms, which leaves the total as it is
            return Answer(x, value, value + open_gap)
        open_gap += max(above - best, 0.0)
        small = np.abs(scores[free.arms]) < SMALL * np.abs(weights).max(initial=0.0)
        open_arms = free.arms[small]
        # arms with a score of 0 matter only if some were chosen: fewer of them may be enough
        if not (scores[open_arms] != 0).any() and not x[open_arms].any():
            return Answer(x, value, value + open_gap)
        fixed = x.astype(np.int8)
        fixed[open_arms] = -1


def decisive_scores(scores: Array) -> Array:
    """The scores to maximise; if all are 0, as few arms as possible."""
    return scores if scores.any() else np.full(scores.shape, -1.0)


def presolve(rows: Rows, fixed: NDArray[np.int8], scores: Array) -> Free | None:
    """Fix arms that the rows decide, and arms that are useless; None if the rows are infeasible."""
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
    """The best set of the free arms, its value and a bound; None if there is none."""
    if not len(free.arms):
        return np.zeros(0, np.bool_), 0.0, 0.0
    if not len(free.matrix):
        x = scores > 0
        return x, float(scores[x].sum()), float(scores[x].sum())
    if len(free.arms) <= FEW_ARMS:
        return search(free, scores, np.zeros(len(free.matrix)), scores > 0, None, 2**62)
    kept = indispensable(free, scores)
    fewer, worth = free._replace(arms=free.arms[kept], matrix=free.matrix[:, kept]), scores[kept]
    relaxed = relaxation(fewer, worth)
    if relaxed is None:
        return None
    prices, share = relaxed
    first, feasible = kernels.fill_and_exchange(fewer.matrix.T, fewer.low, fewer.high, worth, share > 1 - 1e-6)
    found = search(fewer, worth, prices, share > 0.5, first if feasible else None, effort)
    if found is None:
        return None
    x = np.zeros(len(scores), np.bool_)
    x[kept] = found[0]
    return x, found[1], found[2]


def indispensable(free: Free, scores: Array) -> BoolArray:
    """The arms left after removing those that some best set does not need, because others are no worse."""
    burden = np.where(np.isfinite(free.high), 1.0, 0.0) - np.where(np.isfinite(free.low), 1.0, 0.0)
    order = np.lexsort((burden @ free.matrix, -scores))
    positive = (free.matrix >= 0).all(axis=1)
    return np.asarray(~kernels.dispensable_arms(free.matrix.T, free.low, free.high, positive, order))


def relaxation(free: Free, scores: Array) -> tuple[Array, Array] | None:
    """Prices of the rows and shares of the arms in the best fractional set; None if there is none."""
    from scipy.optimize import linprog

    above, below = np.isfinite(free.high), np.isfinite(free.low)
    matrix = np.vstack([free.matrix[above], -free.matrix[below]])
    limits = np.concatenate([free.high[above], -free.low[below]])
    unit = SOLVER_UNIT / (float(np.abs(scores).max()) or 1.0)
    found = linprog(-unit * scores, A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs")
    if found.status == 2:
        return None
    if found.status != 0:
        raise RuntimeError(f"the relaxation has no solution: {found.message}")
    duals, prices = -found.ineqlin.marginals / unit, np.zeros(len(free.matrix))
    prices[above] += duals[: above.sum()]
    prices[below] -= duals[above.sum() :]
    return prices, np.asarray(found.x)


class Frame(NamedTuple):
    """The input of the search kernel: sets as deviations from the relaxation's own set, the cheapest arms first."""

    own: BoolArray  # (n,): the relaxation's own set, in general arms with a positive reduced score
    bound: float  # upper bound on every feasible set
    order: IntArray  # arms by the cost of a deviation
    costs: Array  # these costs, sorted
    gains: Array  # what each deviation adds to the value
    change: Array  # (rows, n): and to the rows
    start: Array
    low: Array
    high: Array
    price: Array
    least: float  # smaller differences do not count


def search_frame(free: Free, scores: Array, prices: Array, near: BoolArray) -> Frame:
    """The input of the search; `near` decides arms whose reduced score is 0, which the prices do not decide."""
    least = DIFFERENCE * float(np.abs(scores).max())
    side = np.where(prices > 0, free.high, np.where(prices < 0, free.low, 0.0))
    reduced = scores - prices @ free.matrix
    open_arms = np.abs(reduced) <= least
    own = np.where(open_arms, near, reduced > 0)
    # one more row, the priced sum of all others: its slack is the total cost of slack, in units of its largest number
    priced, most = prices @ free.matrix, float(prices @ side)
    unit = max(float(np.abs(priced).max()), abs(most)) or 1.0
    matrix = np.vstack([free.matrix, priced / unit])
    costs = np.where(open_arms, 0.0, np.abs(reduced))
    # at equal costs arms that leave the set come first: after them a total that is too large stays too large
    order = np.lexsort((~own, costs))
    sign = np.where(own, -1.0, 1.0)[order]
    return Frame(
        own=own,
        bound=most + float(np.maximum(reduced, 0.0).sum()),
        order=order,
        costs=costs[order],
        gains=scores[order] * sign,
        change=matrix[:, order] * sign,
        start=matrix[:, own].sum(axis=1),
        low=np.append(free.low, -np.inf),
        high=np.append(free.high, most / unit),
        price=np.append(prices, unit),
        least=least,
    )


def search_within(at: Frame, value: float, gap: float, effort: int, most_arms: int) -> tuple[BoolArray, float, int]:
    """The best set within a gap of the bound, its value (-inf if none) and the steps; `value` is that of `own`."""
    k = min(max(1, int(np.searchsorted(at.costs, gap, side="right"))), most_arms)
    change = at.change[:, :k]
    # rows without a price that these arms cannot violate are left out
    most, fewest = at.start + np.maximum(change, 0).sum(axis=1), at.start + np.minimum(change, 0).sum(axis=1)
    used = (at.price != 0) | (most > at.high) | (fewest < at.low)
    deviates, best, steps = kernels.search_deviations(
        np.ascontiguousarray(change[used].T),
        *(at.costs[:k], at.gains[:k], at.start[used], at.low[used], at.high[used], at.price[used]),
        *(value, at.bound, gap, at.least, effort),
    )
    x = at.own.copy()
    x[at.order[:k][deviates]] ^= True
    return x, float(best), int(steps)


def search(
    free: Free, scores: Array, prices: Array, near: BoolArray, x: BoolArray | None, effort: int
) -> tuple[BoolArray, float, float] | None:
    """Search the sets within a gap of the bound that the prices give, and widen the gap until it contains the best."""
    prices = np.where(np.isfinite(np.where(prices > 0, free.high, free.low)), prices, 0.0)
    at = search_frame(free, scores, prices, near)
    value, bound, least = float(scores[at.own].sum()), at.bound, at.least
    everything = bound - float(scores[scores < 0].sum()) + 2 * least
    best, proved = -np.inf if x is None else float(scores[x].sum()), bound
    gap = max(float(at.costs[min(len(at.costs) - 1, FIRST_CORE)]), 2 * least)
    n = len(at.costs)
    if n > FEW_ARMS and best < bound - least:
        # a quick first search of the cheapest deviations: a better set leaves less to prove
        found, total, steps = search_within(at, value, min(bound - best, everything), effort // PROBE, PROBE_ARMS)
        effort -= steps
        if total > best:
            x, best = found, total
    while effort > 0 and best < bound - least:
        wide = min(bound - best, everything)
        near_arms, all_arms = np.searchsorted(at.costs, [gap, wide], side="right")
        if n > FEW_ARMS and near_arms < all_arms:  # otherwise a narrower search would cover the same arms
            wide = min(gap, wide)
        found, total, steps = search_within(at, value, wide, effort, n)
        finished, effort = steps <= effort, effort - steps
        if total > best:
            x, best = found, total
        if finished and (best >= bound - wide - least or wide >= everything):
            return None if x is None else (x, best, best)
        if finished:
            proved, gap = bound - wide, WIDER * wide  # no feasible set is within the gap
    if x is None:
        return any_set(free, scores, proved)
    return x, best, best if best >= proved - least else proved


def any_set(free: Free, scores: Array, bound: float) -> tuple[BoolArray, float, float] | None:
    """Some feasible set from a general solver, if the search found none; None if there is none."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = LinearConstraint(free.matrix, free.low, free.high)
    found = milp(
        np.zeros(len(scores)), constraints=rows, integrality=np.ones(len(scores), np.int64), bounds=Bounds(0, 1)
    )
    if found.status == 2:
        return None
    if found.x is None:
        raise RuntimeError(f"the solver neither found a feasible set nor proved that there is none: {found.message}")
    x, _ = kernels.fill_and_exchange(free.matrix.T, free.low, free.high, scores, found.x > 0.5)
    return x, float(scores[x].sum()), bound


ONE_ARM = 1 - 1e-6  # counts are whole numbers: a bound closer than this proves the count


def top_arms(scores: Array, budget: int | IntArray, rng: Rng) -> BoolArray:
    """The at most `budget` arms with the highest positive scores; ties are broken uniformly at random.

    The payoff is linear in the decision, so this is the exact maximiser of Eq. 12.

    >>> top_arms(np.array([0.1, np.inf, -1.0, 0.3]), 2, Rng(0)).astype(int)
    array([0, 1, 0, 1])
    """
    return np.asarray(kernels.top_arms(np.ascontiguousarray(scores), budget, *rng.address()))


def best_set(
    scores: Array,
    budget: int | IntArray,
    constraints: Sequence[Constraint] = (),
    rng: Rng | None = None,
    *,
    arms: Sequence[str] | None = None,
    effort: int = EFFORT,
) -> BoolArray:
    """The feasible set with the highest total score, `(*batch, n)`; without constraints that is `top_arms`.

    Arms with scores <= 0 are chosen only if a constraint requires it. As many arms as possible with a score of +inf
    (never tried) come first, then the rest. Ties are broken at random: interchangeable arms are equally likely.
    arms: the names of the arms, if constraints use them. effort: limit on the steps of the search, which then returns
    the best set found; `best_answer` also returns a bound on the optimum.

    >>> from spillover.constraints import Costs, Requires
    >>> best_set(np.array([0.9, 0.5, 0.6, 0.2]), 3, (Costs([3, 1, 2, 1], limit=4),)).astype(int)
    array([1, 1, 0, 0])
    >>> best_set(np.array([0.9, 0.5, 0.6, 0.2]), 2, (Requires(0, needs=[3]),)).astype(int)
    array([0, 1, 1, 0])
    """
    return searched_set(scores, budget, constraints, rng, arms=arms, effort=effort)[0]


def searched_set(
    scores: Array,
    budget: int | IntArray,
    constraints: Sequence[Constraint] = (),
    rng: Rng | None = None,
    *,
    arms: Sequence[str] | None = None,
    effort: int = EFFORT,
) -> tuple[BoolArray, Array]:
    """`best_set`, and an upper bound on what another feasible set could add, `(*batch,)`: 0 if the set is optimal.

    It is inf if another set could do better on arms with infinite scores.
    """
    scores, rng = checked_scores(scores, budget, effort), rng or Rng(0)
    given = check_constraints(constraints)
    could_gain = np.zeros(scores.shape[:-1])
    if not given:
        return top_arms(scores, budget, rng), could_gain
    names = None if arms is None else tuple(arms)
    n = scores.shape[-1]
    budgets = np.broadcast_to(np.asarray(budget), scores.shape[:-1])
    keys = np.broadcast_to(rng.uniform(n), scores.shape)
    x = np.empty(scores.shape, np.bool_)
    for s in np.unique(budgets):
        rows, here = compile_rows(given, n, int(s), names), budgets == s
        if rows.matroid:
            found = greedy(scores[here], keys[here], rows)
        else:
            lines = zip(scores[here], keys[here], strict=True)
            answers = [answer for line, key in lines if (answer := best_row(line, key, rows, effort))]
            found = np.array([answer.x for answer in answers]) if len(answers) == here.sum() else None
            if found is not None:
                could_gain[here] = [answer.bound - answer.value for answer in answers]
        if found is None:
            raise Infeasible(conflict(given, n, int(s), names))
        x[here] = found.reshape(x[here].shape)
    return x, could_gain


def checked_scores(scores: Any, budget: Any, effort: int) -> Array:
    """The scores as an array; what a search is given is checked."""
    found = np.asarray(scores, float)
    validate.require(bool((np.asarray(budget) >= 0).all()), "budget", budget, "whole numbers >= 0")
    validate.require(not np.isnan(found).any(), "scores", found, "numbers, not NaN: every arm needs a score")
    check_effort(effort)
    return found


def check_effort(effort: int) -> None:
    validate.whole("effort", effort, 1, MOST_EFFORT)


class Infeasible(ValueError):
    """No set of arms satisfies all constraints; the message names a minimal set of conflicting ones."""


def greedy(scores: Array, keys: Array, rows: Rows) -> BoolArray | None:
    """The highest scores first, as far as they fit: exact if limits are on groups that are nested or disjoint."""
    always: BoolArray = np.any(rows.matrix[rows.low > 0.0], axis=0)  # on a matroid only fixed arms have a lower bound
    never = rows.matrix[rows.high == 0.0].any(axis=0)
    if not rows.holds(always):
        return None
    limited = np.isfinite(rows.high)
    order = np.lexsort((keys, -scores), axis=-1)
    usable = np.where(never, -np.inf, scores)
    return np.asarray(kernels.greedy_arms(rows.matrix[limited], rows.high[limited], order, usable, always))


def best_answer(
    scores: Array,
    budget: int,
    constraints: Sequence[Constraint] = (),
    rng: Rng | None = None,
    *,
    arms: Sequence[str] | None = None,
    effort: int = EFFORT,
) -> Answer:
    """The best set for one row of scores, (n,), with its total and an upper bound, equal if the set is optimal.

    >>> from spillover.constraints import Costs
    >>> answer = best_answer(np.array([0.9, 0.5, 0.75]), 2, (Costs([3, 1, 2], limit=4),))
    >>> answer.x.astype(int), answer.value, answer.bound
    (array([1, 1, 0]), 1.4, 1.4)
    """
    scores, rng = checked_scores(scores, budget, effort), rng or Rng(0)
    validate.require(scores.ndim == 1, "shape of scores", scores.shape, "(n,): no batch")
    given, names = check_constraints(constraints), None if arms is None else tuple(arms)
    rows = compile_rows(given, len(scores), int(budget), names)
    answer = best_row(scores, rng.uniform(len(scores)), rows, effort)
    if answer is None:
        raise Infeasible(conflict(given, len(scores), int(budget), names))
    return answer


def best_row(scores: Array, keys: Array, rows: Rows, effort: int) -> Answer | None:
    """The best set for one row of scores. Arms are shuffled first, so that equal arms have equal chances."""
    shuffle = np.argsort(keys, kind="stable")
    answer = in_tiers(scores[shuffle], rows._replace(matrix=rows.matrix[:, shuffle]), effort)
    if answer is None:
        return None
    x = np.zeros(len(scores), np.bool_)
    x[shuffle] = answer.x
    if not rows.holds(x):
        raise RuntimeError("the set that was found violates a constraint")
    return answer._replace(x=x)


def in_tiers(scores: Array, rows: Rows, effort: int) -> Answer | None:
    """Infinite scores first: as few arms with -inf as possible, as many with +inf, then the best total of the rest."""
    proved = True
    for worth, tier in ((-1.0, scores == -np.inf), (1.0, scores == np.inf)):
        if tier.any():
            first = maximise(np.where(tier, worth, 0.0), rows, effort=effort)
            if first is None:
                return None
            most = float((first.x & tier).sum())
            proved &= first.bound < first.value + ONE_ARM
            low, high = (most, np.inf) if worth > 0 else (-np.inf, most)
            rows = with_row(rows, tier.astype(float), low, high)
    answer = maximise(np.where(np.isfinite(scores), scores, 0.0), rows, effort=effort)
    return answer if proved or answer is None else answer._replace(bound=np.inf)


def with_row(rows: Rows, coefficients: Array, low: float, high: float) -> Rows:
    return rows._replace(
        matrix=np.vstack([rows.matrix, coefficients]),
        low=np.append(rows.low, low),
        high=np.append(rows.high, high),
        owner=np.append(rows.owner, BUDGET),
    )


def check_feasible(constraints: Sequence[Constraint], n: int, budget: int, arms: Sequence[str] | None = None) -> None:
    """Raise `Infeasible`, which names the conflicting constraints, if there is no feasible set."""
    names = None if arms is None else tuple(arms)
    given = check_constraints(constraints)
    if given and maximise(np.zeros(n), compile_rows(given, n, budget, names)) is None:
        raise Infeasible(conflict(given, n, budget, names))


def conflicting(constraints: tuple[Constraint, ...], n: int, budget: int, arms: Any = None) -> list[int]:
    """Positions of a minimal set of conflicting constraints; BUDGET stands for the budget.

    A deletion filter: drop each constraint in turn if the remaining ones are still infeasible.
    """
    rows = compile_rows(constraints, n, budget, arms)
    for owner in [*range(len(constraints)), BUDGET]:
        fewer = rows.without(owner)
        if maximise(np.zeros(n), fewer) is None:
            rows = fewer
    return sorted({int(owner) for owner in rows.owner})


def conflict(constraints: tuple[Constraint, ...], n: int, budget: int, arms: Any = None) -> str:
    """A description of the conflict."""

    def arm_name(arm: int | str) -> str:
        return validate.quoted(arm if isinstance(arm, str) else arms[arm] if arms else f"arm {arm}")

    found = conflicting(constraints, n, budget, arms)
    words = [
        f"choose at most {budget} of the {n} arms" if k == BUDGET else constraints[k].words(arm_name) for k in found
    ]
    if len(words) == 1:
        return f"constraints: no set of arms can keep this one: {words[0]}"
    together = f"no set of arms can keep these together: {'; '.join(words)}"
    return f"constraints: {together}. Without any one of them there is a set"

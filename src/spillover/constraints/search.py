"""Search for the feasible set of arms with the highest total score."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spillover import kernels, validate
from spillover.constraints.exact import EFFORT, MOST_EFFORT, Answer, maximise
from spillover.constraints.kinds import Constraint
from spillover.constraints.rows import BUDGET, Rows, check_constraints, compile_rows
from spillover.rng import Rng
from spillover.types import Array, BoolArray, IntArray

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
    scores, rng = np.asarray(scores, float), rng or Rng(0)
    validate.require(bool((np.asarray(budget) >= 0).all()), "budget", budget, "whole numbers >= 0")
    given = check_constraints(constraints)
    validate.require(not np.isnan(scores).any(), "scores", scores, "numbers, not NaN: every arm needs a score")
    check_effort(effort)
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
    scores, rng = np.asarray(scores, float), rng or Rng(0)
    validate.require(bool((np.asarray(budget) >= 0).all()), "budget", budget, "whole numbers >= 0")
    validate.require(scores.ndim == 1, "shape of scores", scores.shape, "(n,): no batch")
    validate.require(not np.isnan(scores).any(), "scores", scores, "numbers, not NaN: every arm needs a score")
    check_effort(effort)
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

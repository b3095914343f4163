"""From scores to a feasible set of arms."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spillover import kernels, validate
from spillover.constraints import BUDGET, Constraint, Rows, check_constraints, compile_rows
from spillover.rng import Rng
from spillover.set_search.exact import EFFORT, MOST_EFFORT, Answer, maximise
from spillover.types import Array, BoolArray, IntArray

ONE_ARM = 1 - 1e-6  # arms are counted: a bound that is nearer than this proves the count


def top_arms(scores: Array, budget: int | IntArray, rng: Rng) -> BoolArray:
    """The at most `budget` arms with the highest positive scores; ties are broken uniformly at random.

    The payoff is linear in the decision, so this is the exact maximiser of eq. Optimization-x.

    >>> top_arms(np.array([0.1, np.inf, -1.0, 0.3]), 2, Rng(0)).astype(int)
    array([0, 1, 0, 1])
    """
    return np.asarray(kernels.top_arms(scores, budget, *rng.address()))


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

    Arms with scores <= 0 are taken only where a constraint asks for them. Of arms with a score of +inf (never tried) as
    many as possible come first, then the rest. Ties are broken at random: arms that can stand for each other are
    equally likely. arms: the names of the arms, if constraints use them. effort: after so many steps the search for
    the best set ends with the best one so far; `best_answer` also says how good it is proved to be.

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
    """`best_set`, and how much more another feasible set could score at most, `(*batch,)`: 0 where it is proved.

    It is inf where another set could do better on arms with infinite scores.
    """
    scores, rng = np.asarray(scores, float), rng or Rng(0)
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
    """No set of arms keeps all constraints; the message names some that collide, none of which could be spared."""


def greedy(scores: Array, keys: Array, rows: Rows) -> BoolArray | None:
    """The highest scores first, where there is room: exact when limits are on groups that are nested or apart."""
    single = np.count_nonzero(rows.matrix, axis=1) == 1
    always = rows.matrix[single & (rows.low == 1.0)].any(axis=0)
    never = rows.matrix[single & (rows.high == 0.0)].any(axis=0)
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
    """The best set of one learner, (n,), with its total and a bound that no set exceeds: equal when it is proved.

    >>> from spillover.constraints import Costs
    >>> answer = best_answer(np.array([0.9, 0.5, 0.75]), 2, (Costs([3, 1, 2], limit=4),))
    >>> answer.x.astype(int), answer.value, answer.bound
    (array([1, 1, 0]), 1.4, 1.4)
    """
    scores, rng = np.asarray(scores, float), rng or Rng(0)
    validate.require(scores.ndim == 1, "shape of scores", scores.shape, "(n,): one learner")
    validate.require(not np.isnan(scores).any(), "scores", scores, "numbers, not NaN: every arm needs a score")
    check_effort(effort)
    given, names = check_constraints(constraints), None if arms is None else tuple(arms)
    rows = compile_rows(given, len(scores), int(budget), names)
    answer = best_row(scores, rng.uniform(len(scores)), rows, effort)
    if answer is None:
        raise Infeasible(conflict(given, len(scores), int(budget), names))
    return answer


def best_row(scores: Array, keys: Array, rows: Rows, effort: int) -> Answer | None:
    """The best set of one learner. The arms are shuffled first: then equal arms have equal chances."""
    shuffle = np.argsort(keys, kind="stable")
    answer = in_tiers(scores[shuffle], rows._replace(matrix=rows.matrix[:, shuffle]), effort)
    if answer is None:
        return None
    x = np.zeros(len(scores), np.bool_)
    x[shuffle] = answer.x
    if not rows.holds(x):
        raise RuntimeError("the set that was found breaks a constraint")
    return answer._replace(x=x)


def in_tiers(scores: Array, rows: Rows, effort: int) -> Answer | None:
    """Infinite scores first: as few arms of -inf as possible, as many of +inf, then the best total of the rest."""
    sure = True
    for worth, tier in ((-1.0, scores == -np.inf), (1.0, scores == np.inf)):
        if tier.any():
            first = maximise(np.where(tier, worth, 0.0), rows, effort=effort)
            if first is None:
                return None
            most = float((first.x & tier).sum())
            sure &= first.bound < first.value + ONE_ARM
            limits = (most, np.inf) if worth > 0 else (-np.inf, most)
            rows = with_row(rows, tier.astype(float), *limits)
    answer = maximise(np.where(np.isfinite(scores), scores, 0.0), rows, effort=effort)
    return answer if sure or answer is None else answer._replace(bound=np.inf)


def with_row(rows: Rows, coefficients: Array, low: float, high: float) -> Rows:
    return rows._replace(
        matrix=np.vstack([rows.matrix, coefficients]),
        low=np.append(rows.low, low),
        high=np.append(rows.high, high),
        owner=np.append(rows.owner, BUDGET),
    )


def check_feasible(constraints: Sequence[Constraint], n: int, budget: int, arms: Sequence[str] | None = None) -> None:
    """Raise `Infeasible`, which says what collides, unless there is a feasible set."""
    names = None if arms is None else tuple(arms)
    given = check_constraints(constraints)
    if maximise(np.zeros(n), compile_rows(given, n, budget, names)) is None:
        raise Infeasible(conflict(given, n, budget, names))


def conflicting(constraints: tuple[Constraint, ...], n: int, budget: int, arms: Any = None) -> list[int]:
    """Positions of constraints that cannot be kept together, none of which could be spared; BUDGET for the budget.

    A deletion filter: leave out one after another, and leave it out for good if what remains still has no set.
    """
    rows = compile_rows(constraints, n, budget, arms)
    for owner in [*range(len(constraints)), BUDGET]:
        fewer = rows.without(owner)
        if maximise(np.zeros(n), fewer) is None:
            rows = fewer
    return sorted({int(owner) for owner in rows.owner})


def conflict(constraints: tuple[Constraint, ...], n: int, budget: int, arms: Any = None) -> str:
    """What collides, in words."""

    def shown(arm: int | str) -> str:
        return validate.quoted(arm if isinstance(arm, str) else arms[arm] if arms else f"arm {arm}")

    found = conflicting(constraints, n, budget, arms)
    said = [f"at most {budget} arms (the budget)" if k == BUDGET else constraints[k].words(shown) for k in found]
    if len(said) == 1:
        return f"constraints: no set of arms can keep this one: {said[0]}"
    together = f"no set of arms can keep these together: {'; '.join(said)}"
    return f"constraints: {together}. Without any one of them there is a set"

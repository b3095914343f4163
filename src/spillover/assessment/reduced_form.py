"""The reduced form: least squares of each outcome on (1, context, choices), with robust standard errors.

It needs no graph and no model of the policy, so it is an independent reference for what a policy says: choices were
made before the outcomes, and E[outcome | choices, context] is what a decision changes.
"""

from typing import NamedTuple

import numpy as np

from spillover.assessment.data import Data
from spillover.types import Array, BoolArray, IntArray

DIMENSION = 1e-9  # eigenvalues below this share of the largest add no dimension
IDENTIFIED = 1e-6  # an effect is identified if its direction is in the row space up to this
FEWEST_FREEDOM = 3  # rounds beyond the unknowns, without which there are no standard errors
ROUNDING = 1e-12  # of the largest outcome: a smaller effect is rounding
MOST_LEVERAGE = 0.99  # a round that alone decides an effect has no residual to judge it by


class ReducedForm(NamedTuple):
    """Effects of choices on outcomes. Where the design is singular they are the part that the data determine.

    >>> from spillover.assessment import assess
    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 5, [[3, 2], [1, 4], [3, 5], [1, 1]] * 5, arms=["web", "shop"])
    >>> found.reduced.effects.round(2)
    array([[2., 0.],
           [1., 3.]])
    """

    effects: Array  # (outcomes, arms): effects[i, j]: of choosing j on outcome i
    errors: Array  # (outcomes, arms): standard errors; NaN where nothing is known, or no rounds are left to judge by
    own: Array  # (arms,): diagonal of `effects`; NaN where outcomes are not those of arms
    own_error: Array
    spill: Array  # (arms,): on all other outcomes together
    spill_error: Array
    total: Array  # (arms,)
    total_error: Array
    projector: Array  # (arms, arms): row j says which combination of effects the entry of arm j is
    freedom: IntArray  # (outcomes,): rounds minus unknowns
    residuals: Array  # (rounds, outcomes)
    inflation: Array  # (arms,): variance inflation of each arm's effect; inf where it is not identified
    rounds: int  # with all outcomes

    @property
    def identified(self) -> BoolArray:
        """Arms whose effects are determined by the data, not only sums or differences with other arms."""
        return np.asarray(np.diagonal(self.projector) > 1.0 - IDENTIFIED)


class Design(NamedTuple):
    """Choices with (1, context) partialled out, for some rounds."""

    rows: IntArray
    choices: Array  # (rows, arms): what (1, context) do not explain of them
    estimator: Array  # (rows, arms): effects = estimator' y
    fixed: Array  # (rows, 1 + k): an orthonormal basis of (1, context)
    projector: Array
    leverage: Array  # (rows,)
    rank: int
    inflation: Array

    @property
    def seen(self) -> BoolArray:
        """Arms of which the data say anything."""
        return np.asarray(np.diagonal(self.projector) > IDENTIFIED)


def reduced_form(data: Data) -> ReducedForm:
    """Least squares of every outcome; rounds in which an outcome is not known are left out for that outcome."""
    n, m = len(data.arms), len(data.outcomes)
    effects, errors = np.full((m, n), np.nan), np.full((m, n), np.nan)
    residuals, freedom = np.full(data.y.shape, np.nan), np.zeros(m, np.int64)
    with_context = np.asarray(np.isfinite(data.context).all(axis=1))
    usable = np.asarray(np.isfinite(data.y) & with_context[:, None])
    for columns in alike(usable):
        design = design_of(data, np.flatnonzero(usable[:, columns[0]]))
        effects[columns], rest = fit(design, data.y[np.ix_(design.rows, columns)])
        errors[columns] = robust_errors(design, rest)
        residuals[np.ix_(design.rows, columns)] = rest
        freedom[columns] = len(design.rows) - design.rank
    rows = np.flatnonzero(usable.all(axis=1))
    whole = design if len(rows) == len(design.rows) else design_of(data, rows)  # those of an outcome contain them
    own, spill, total = sums_of_outcomes(data, whole)
    return ReducedForm(
        effects=effects,
        errors=errors,
        own=own[0],
        own_error=own[1],
        spill=spill[0],
        spill_error=spill[1],
        total=total[0],
        total_error=total[1],
        projector=whole.projector,
        freedom=freedom,
        residuals=residuals,
        inflation=whole.inflation,
        rounds=len(whole.rows),
    )


def unknown_form(data: Data) -> ReducedForm:
    """A reduced form of which nothing is known."""
    n, m = len(data.arms), len(data.outcomes)
    pairs, single = np.broadcast_to(np.nan, (m, n)), np.full(n, np.nan)  # no memory for all pairs of many arms
    return ReducedForm(
        effects=pairs,
        errors=pairs,
        own=single,
        own_error=single,
        spill=single,
        spill_error=single,
        total=single,
        total_error=single,
        projector=np.broadcast_to(0.0, (n, n)),
        freedom=np.zeros(m, np.int64),
        residuals=np.full(data.y.shape, np.nan),
        inflation=np.full(n, np.inf),
        rounds=0,
    )


def alike(usable: BoolArray) -> list[IntArray]:
    """Groups of outcomes that are known in the same rounds: they share a design."""
    groups: dict[bytes, list[int]] = {}
    for i, column in enumerate(np.packbits(usable, axis=0).T):
        groups.setdefault(column.tobytes(), []).append(i)
    return [np.array(group, np.int64) for group in groups.values()]


def design_of(data: Data, rows: IntArray) -> Design:
    """The design of some rounds: choices as deviations from what (1, context) explain."""
    amounts = data.amounts[rows]
    fixed = basis_of(data.context[rows])
    choices = amounts - fixed @ (fixed.T @ amounts)
    values, vectors = np.linalg.eigh(choices.T @ choices)
    keep = values > DIMENSION * max(float((amounts**2).sum(axis=0).max(initial=0.0)), np.finfo(float).tiny)
    kept = vectors[:, keep]
    inverse, projector = (kept / values[keep]) @ kept.T, kept @ kept.T
    estimator = choices @ inverse
    spread = amounts.var(axis=0) * len(rows) if len(rows) else np.zeros(len(data.arms))
    identified = np.diagonal(projector) > 1.0 - IDENTIFIED
    return Design(
        rows=rows,
        choices=choices,
        estimator=estimator,
        fixed=fixed,
        projector=projector,
        leverage=(fixed**2).sum(axis=1) + (estimator * choices).sum(axis=1),
        rank=fixed.shape[1] + int(keep.sum()),
        inflation=np.where(identified, spread * np.diagonal(inverse), np.inf),
    )


def basis_of(context: Array) -> Array:
    """An orthonormal basis of (1, context)."""
    if not len(context):
        return np.zeros((0, 1))
    centred = context - context.mean(axis=0)
    scale = np.abs(centred).max(axis=0, initial=0.0)
    given = np.column_stack([np.ones(len(context)), centred / np.where(scale > 0, scale, 1.0)])
    basis, size, _ = np.linalg.svd(given, full_matrices=False)
    return np.asarray(basis[:, size > DIMENSION * size[0]])


def fit(design: Design, y: Array) -> tuple[Array, Array]:
    """The effects on outcomes (rows, m), as (m, arms), and the residuals (rows, m)."""
    effects = y.T @ design.estimator
    rest = y - design.fixed @ (design.fixed.T @ y) - design.choices @ effects.T
    size = ROUNDING * np.abs(y).max(axis=0, initial=0.0)[:, None]
    return np.where(design.seen, np.where(np.abs(effects) > size, effects, 0.0), np.nan), rest


def inflated_squares(design: Design, residual: Array) -> Array:
    """Squared residuals, larger where a round pulls the fit towards itself (HC3)."""
    return np.asarray((residual / (1.0 - np.minimum(design.leverage, MOST_LEVERAGE))[:, None]) ** 2)


def robust_errors(design: Design, residual: Array) -> Array:
    """Standard errors, (m, arms), that allow for noise of a different size in each round."""
    errors = np.sqrt(inflated_squares(design, residual).T @ design.estimator**2)  # 0 for a perfect fit
    return np.where(design.seen & judged(design), errors, np.nan)


def judged(design: Design) -> bool:
    """Whether enough rounds are left to judge effects by."""
    return len(design.rows) >= design.rank + FEWEST_FREEDOM


Estimates = tuple[Array, Array]  # and their standard errors


def sums_of_outcomes(data: Data, design: Design) -> tuple[Estimates, Estimates, Estimates]:
    """The effect of each arm on its own outcome, on all others together, and on all, from the complete rounds."""
    y = data.y[design.rows]
    effect, rest = fit(design, y.sum(axis=1, keepdims=True))
    total = effect[0], robust_errors(design, rest)[0]
    if not data.own:
        unknown = np.full(len(data.arms), np.nan), np.full(len(data.arms), np.nan)
        return unknown, unknown, total
    effects, rests = fit(design, y)
    own = np.diagonal(effects).copy()

    def errors(residual: Array) -> Array:
        """Of the effect of arm j on the sum whose residuals are column j."""
        squares = (inflated_squares(design, residual) * design.estimator**2).sum(axis=0)
        return np.where(design.seen & judged(design), np.sqrt(squares), np.nan)

    return (own, errors(rests)), (effect[0] - own, errors(rest - rests)), total

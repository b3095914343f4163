"""Whether the context moves what arms do, or only what comes out anyway."""

import numpy as np

from spillover.assessment.data import Data
from spillover.assessment.reduced_form import design_of
from spillover.types import Array, BoolArray, IntArray

STRONG = 6.0  # twice the log of the odds, by the Bayesian information criterion, from which on evidence is strong
FEWEST = 2  # rounds for each unknown that is left, to judge by


def context_moves(data: Data) -> BoolArray:
    """Arms whose effect changes with the context, (arms,): choices times context explain more than their number costs.

    Each arm is judged by its own outcome, or by the sum of all outcomes where there are none of its own, against a
    regression on (1, context, all choices).
    """
    n, k = len(data.arms), data.context.shape[1]
    found = np.zeros(n, np.bool_)
    if not k:
        return found
    total = data.y.sum(axis=1)
    for j in range(n):
        y = data.y[:, j] if data.own else total
        rows = np.flatnonzero(np.isfinite(y) & np.isfinite(data.context).all(axis=1))
        if len(rows) > FEWEST * (1 + 2 * k + n):
            found[j] = evidence(data, rows, y[rows], j) > STRONG
    return found


def evidence(data: Data, rows: IntArray, y: Array, j: int) -> float:
    """Twice the log odds that the effect of arm j changes with the context."""
    design = design_of(data, rows)
    context = data.context[rows]
    moved = data.amounts[rows, j : j + 1] * (context - context.mean(axis=0))
    columns, plain = (rest_of(design.fixed, design.choices, part) for part in (moved, y[:, None]))
    before = float((plain**2).sum())
    basis = basis_of_columns(columns)
    after = before - float(((basis.T @ plain) ** 2).sum())
    if before <= 0 or not basis.shape[1]:
        return float("-inf")
    if after <= 0:
        return float("inf")
    return float(len(rows) * np.log(before / after) - basis.shape[1] * np.log(len(rows)))


def rest_of(fixed: Array, choices: Array, part: Array) -> Array:
    """What (1, context) and all choices leave unexplained of some columns."""
    rest = part - fixed @ (fixed.T @ part)
    return np.asarray(rest - choices @ np.linalg.lstsq(choices, rest, rcond=1e-9)[0])


def basis_of_columns(columns: Array) -> Array:
    """An orthonormal basis of some columns; none of those that are 0 up to rounding."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(basis[:, size > 1e-9 * max(float(size.max(initial=0.0)), 1e-300)])

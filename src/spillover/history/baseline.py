"""Signs of a baseline in a history with own rewards z: outcomes that no decision explains."""

import numpy as np

from spillover.types import Array, BoolArray

ROUNDS_FOR_EACH_ARM = 2  # rounds that are looked at, the last ones; at least FEWEST
FEWEST = 1_000
SURE = 5.0  # standard errors from which on an intercept is no chance
SINGULAR = 1e-5  # of the scaled design, from which on its columns count as dependent
EXACT = 1e-9  # share of the largest outcome below which an intercept is rounding


def shows_baseline(x: BoolArray, z: Array, y: Array, arrived: BoolArray) -> bool:
    """Whether outcomes differ from 0 where nothing is chosen, or would by extrapolation.

    Without a baseline y is a linear function of z: the intercept of a regression of y on z is 0 for every arm.
    """
    known = np.flatnonzero(arrived)[-max(FEWEST, ROUNDS_FOR_EACH_ARM * x.shape[1]) :]
    nothing = known[~x[known].any(axis=1)]
    if len(nothing) and bool((y[nothing] != 0.0).any()):
        return True
    count = len(known)
    used = np.flatnonzero((z[known] != 0.0).any(axis=0))
    if count <= len(used) + 1 or not len(used):
        return False
    design = np.column_stack([np.ones(count), z[np.ix_(known, used)]])
    scale = np.sqrt((design**2).sum(axis=0))
    gram = (design / scale).T @ (design / scale)
    try:
        root = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    if root.diagonal().min() < SINGULAR:  # such as rewards of constant sum: the intercept cannot be told
        return False
    products = design.T @ y[known] / scale[:, None]
    solved = np.linalg.solve(gram, np.column_stack([np.eye(len(gram))[:, 0], products]))
    variance, weights = solved[0, 0] / count, solved[:, 1:] / scale[:, None]
    residual = y[known] - design @ weights
    error = np.sqrt(variance * (residual**2).sum(axis=0) / max(count - len(used) - 1, 1))
    size = np.abs(y[known]).max(axis=0, initial=0.0)
    return bool((np.abs(weights[0]) > np.maximum(SURE * error, EXACT * size)).any())

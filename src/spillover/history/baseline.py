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
    design /= np.sqrt((design**2).sum(axis=0))
    gram = design.T @ design
    try:
        root = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    if root.diagonal().min() < SINGULAR:  # such as rewards of constant sum: the intercept cannot be told
        return False
    from scipy.linalg import cho_solve  # imported here, because live decisions do not need SciPy

    factors = cho_solve((root, True), np.eye(len(gram), 1)[:, 0])
    intercepts = np.abs(design @ factors @ y[known]) / np.sqrt(count)
    doubtful = np.flatnonzero(intercepts > EXACT * np.abs(y[known]).max(axis=0, initial=0.0))
    if not len(doubtful):
        return False
    outcomes = y[np.ix_(known, doubtful)]
    residual = outcomes - design @ cho_solve((root, True), design.T @ outcomes)
    variance = (residual**2).sum(axis=0) / max(count - len(used) - 1, 1)
    return bool((intercepts[doubtful] > SURE * np.sqrt(factors[0] / count * variance)).any())

"""Outcomes that are most often mistakes: single ones far from all others, and totals among the arms."""

from collections.abc import Iterator

import numpy as np

from spillover.assessment.data import Data
from spillover.assessment.finding import WARNING, Finding
from spillover.formatting import count_of, short_number
from spillover.types import Array, IntArray
from spillover.validate import quoted

FEWEST = 20  # outcomes from which on one can be far from the usual
FAR = 20.0  # distances between the 10% and the 90% quantile, from the nearer of the two
ROUNDED = 1e-3  # of the largest total: parts are often rounded
SAMPLED = 2_000
SINGLE = 0.01  # share of the outcomes up to which those far away are single ones


def outlier_findings(data: Data) -> Iterator[Finding]:
    """One finding for all outcomes far from the others of their column; the farthest is named."""
    found = [(far_away(values), k) for k, values in enumerate(data.y.T)]
    found = [(rows, k) for rows, k in found if len(rows)]
    if not found:
        return
    rows, k = max(found, key=lambda some: relative_size(data.y[:, some[1]], some[0][0]))
    whose = f" of {quoted(data.outcomes[k])}" if data.own else ""
    low, high = usual(data.y[:, k])
    count = sum(len(some) for some, _ in found)
    others = f" ({count_of(count - 1, 'more outcome')} like this)" if count > 1 else ""
    sentence = (
        f"The outcome{whose} in round {data.rounds[rows[0]]} is {short_number(float(data.y[rows[0], k]))}, where "
        f"{short_number(low)} to {short_number(high)} is usual{others}. It outweighs all others: if it is a mistake, "
        "correct the cell or leave it empty."
    )
    names = tuple(data.outcomes[j] for _, j in found)
    yield Finding("outlier", WARNING, sentence, names if data.own else ())


def total_findings(data: Data) -> Iterator[Finding]:
    """An outcome that is the sum of all others counts everything twice."""
    idle = np.flatnonzero(~data.x.any(axis=0))
    if not data.own or not len(idle) or data.y.shape[1] < 3 or data.complete.sum() < 3:
        return
    y = data.y[data.complete]
    total, some = y.sum(axis=1, keepdims=True), y[:, idle]
    apart = np.abs(2.0 * some - total).max(axis=0)
    same = (apart <= ROUNDED * np.abs(some).max(axis=0)) & (np.ptp(some, axis=0) > 0.0)
    for name in (data.arms[j] for j in idle[same]):
        sentence = (
            f"The outcome of {quoted(name)} is the sum of all others, and it was never chosen: it seems to be a total, "
            "no arm. Leave it out, or every effect counts twice."
        )
        yield Finding("total-among-arms", WARNING, sentence, (name,))


def usual(values: Array) -> tuple[float, float]:
    """The 10% and the 90% quantile; of many values, those of evenly spaced ones."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known[:: 1 + len(known) // SAMPLED], (0.1, 0.9))
    return float(low), float(high)


def far_away(values: Array) -> IntArray:
    """The rows of single outcomes that are far from the others, the farthest first; none in a column of hardly any."""
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < FEWEST:
        return known[:0]
    low, high = usual(values)
    most = FAR * (high - low)
    if np.nanmax(values) - high <= most and low - np.nanmin(values) <= most:
        return known[:0]
    beyond = np.maximum(values[known] - high, low - values[known])
    far = np.flatnonzero(beyond > most) if high > low else known[:0]
    if len(far) > max(SINGLE * len(known), 1):
        return known[:0]
    return np.asarray(known[far[np.argsort(-beyond[far], kind="stable")]])


def relative_size(values: Array, row: int) -> float:
    """How far an outcome is from the usual ones, in units of how far these are apart."""
    low, high = usual(values)
    return float(max(values[row] - high, low - values[row]) / (high - low))

"""What it costs, and what it may bring, to try an arm instead of the one that looks better."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spillover.regression import Effects
from spillover.types import Array, BoolArray

HORIZON = 20  # rounds in which what was learned pays off, the trial included
LENGTHS = (1, 2, 4, 8)  # rounds that a trial may take
MATERIAL = 0.01  # of what the best set brings over the horizon: a trial that gains less is not worth a word


class Trial(NamedTuple):
    """A trial that is expected to pay; numbers are in the units of the outcomes."""

    arm: str
    instead_of: str | None  # None: beside the others
    rounds: int
    cost: float
    brings: float  # over the horizon
    horizon: int = HORIZON

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


def best_trial(
    score: Array, best: BoolArray, budget: int, effects: Effects, allowed: Callable[[BoolArray], bool]
) -> tuple[int, int, Trial] | None:
    """The swap of one arm that is expected to bring most beyond its cost; None if none pays.

    score: (n,), what each arm is expected to bring. best: the set to choose by that. effects: what the scores are from.
    Returns the positions of the arm and of the one that it replaces (-1: none), and the trial without names.
    """
    least = MATERIAL * HORIZON * abs(float(score[best].sum()))
    chosen = np.flatnonzero(best)
    outs = chosen[np.argsort(score[chosen], kind="stable")].tolist() if len(chosen) >= budget else [-1]
    found: tuple[float, int, int, Trial] | None = None
    for i in np.flatnonzero(~best).tolist():
        swaps = ((out, with_swap(best, i, out)) for out in outs)
        swap = next(((out, trial) for out, trial in swaps if allowed(trial)), None)
        if swap is None:
            continue
        out, trial = swap
        behind = max((float(score[out]) if out >= 0 else 0.0) - float(score[i]), 0.0)
        compared = np.zeros(len(best))
        compared[i] = 1.0
        if out >= 0:
            compared[out] = -1.0
        for rounds in LENGTHS:
            gain = value_of_learning(
                effects.covariance, compared, trial - effects.average, behind, effects.noise / rounds
            )
            brings, cost = (HORIZON - rounds) * gain, rounds * behind
            net = brings - cost
            if net > least and (found is None or net > found[0]):
                found = net, i, out, Trial("", None, rounds, cost, brings)
    return None if found is None else found[1:]


def with_swap(best: BoolArray, into: int, out: int) -> BoolArray:
    """A set with one arm instead of another (-1: beside the others)."""
    found = best.copy()
    if out >= 0:
        found[out] = False
    found[into] = True
    return found


def value_of_learning(covariance: Array, compared: Array, shown: Array, behind: float, noise: float) -> float:
    """The expected gain of one round from knowing better which of two arms is better.

    compared: (n,), 1 for the arm, -1 for the one it replaces. shown: (n,), by how much the trial differs from the
    average round: only that shows something, as the baseline is learned, too; of an arm that was always chosen nothing.
    behind: by how much the arm is expected to be worse. noise: variance of what the trial shows.
    """
    from scipy.special import ndtr  # imported here, because simulations do not need SciPy

    learned = covariance @ shown
    width = abs(float(compared @ learned)) / np.sqrt(max(float(shown @ learned) + noise, np.finfo(float).tiny))
    if width <= 0.0:
        return 0.0
    z = behind / width
    return float(width * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) - behind * ndtr(-z))

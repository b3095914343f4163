"""What it costs, and what it may bring, to try an arm instead of the one that looks better."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spillover.types import Array, BoolArray, Explanation

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
    known: Explanation, best: BoolArray, budget: int, noise: float, allowed: Callable[[BoolArray], bool]
) -> tuple[int, int, Trial] | None:
    """The swap of one arm that is expected to bring most beyond its cost; None if none pays.

    known: estimates with intervals. best: the set to choose by them. noise: variance of the payoff of a round.
    Returns the positions of the arm and of the one that it replaces (-1: none), and the trial without names.
    """
    if known.total_covariance is None:
        return None
    least = MATERIAL * HORIZON * abs(float(known.score[best].sum()))
    found: tuple[float, int, int, Trial] | None = None
    for i in np.flatnonzero(~best).tolist():
        out = int(min(np.flatnonzero(best), key=lambda j: known.score[j])) if best.sum() >= budget else -1
        trial = best.copy()
        trial[i] = True
        if out >= 0:
            trial[out] = False
        if not allowed(trial):
            continue
        behind = max((float(known.score[out]) if out >= 0 else 0.0) - float(known.score[i]), 0.0)
        for rounds in LENGTHS:
            brings = (HORIZON - rounds) * value_of_learning(known.total_covariance, i, out, behind, noise / rounds)
            cost = rounds * behind
            net = brings - cost
            if cost > 0 and net > least and (found is None or net > found[0]):
                found = net, i, out, Trial("", None, rounds, cost, brings)
    return None if found is None else found[1:]


def value_of_learning(covariance: Array, arm: int, out: int, behind: float, noise: float) -> float:
    """The expected gain of one round from knowing better which of two arms is better.

    behind: by how much the arm is expected to be worse. noise: variance of what a trial shows of the arm's effect.
    """
    from scipy.special import ndtr  # imported here, because simulations do not need SciPy

    shared = covariance[arm, arm] - (covariance[arm, out] if out >= 0 else 0.0)
    width = abs(shared) / np.sqrt(max(covariance[arm, arm] + noise, np.finfo(float).tiny))
    if width <= 0.0:
        return 0.0
    z = behind / width
    return float(width * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) - behind * ndtr(-z))

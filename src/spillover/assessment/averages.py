"""What came out when an arm was chosen and when not: plain averages, before any model."""

from typing import Any, NamedTuple

import numpy as np

from spillover.assessment.data import Data
from spillover.types import Array


class Comparison(NamedTuple):
    """The average outcome of the rounds with an arm and of those without it.

    >>> Comparison(chosen=3.0, others=1.0, difference=2.0, error=0.1).difference
    2.0
    """

    chosen: float
    others: float  # in the rounds without it
    difference: float
    error: float  # standard error of the difference, of two samples with variances of their own

    def to_dict(self) -> dict[str, Any]:
        names = ("when_chosen", "when_not", "difference", "standard_error")
        return {name: float(value) if np.isfinite(value) else None for name, value in zip(names, self, strict=True)}


class ArmAverages(NamedTuple):
    """Averages of one arm.

    >>> from spillover.assessment import assess
    >>> found = assess([[1, 0], [0, 1], [1, 1], [0, 0]] * 5, [[3, 2], [1, 4], [3, 5], [1, 1]] * 5, arms=["web", "shop"])
    >>> found.averages[0].times, found.averages[0].own.difference
    (10, 2.0)
    """

    times: int  # how often it was chosen
    times_known: int  # and in how many of these rounds there is an outcome
    own: Comparison  # its own outcome; NaN where outcomes are not those of arms
    rest: Comparison  # the sum of all other outcomes; NaN likewise
    total: Comparison  # the sum of all outcomes


UNKNOWN = Comparison(np.nan, np.nan, np.nan, np.nan)


def arm_averages(data: Data) -> tuple[ArmAverages, ...]:
    """The averages of each arm."""
    total = data.y.sum(axis=1)  # NaN where an outcome of the round is not known
    found = []
    for j in range(len(data.arms)):
        with_arm = data.x[:, j]
        own = data.y[:, j] if data.own else None
        found.append(
            ArmAverages(
                times=int(with_arm.sum()),
                times_known=int((with_arm & (data.known if own is None else np.isfinite(own))).sum()),
                own=UNKNOWN if own is None else compare(own, with_arm),
                rest=UNKNOWN if own is None else compare(total - own, with_arm),
                total=compare(total, with_arm),
            )
        )
    return tuple(found)


def compare(values: Array, with_arm: Any) -> Comparison:
    """The averages of the known values with and without an arm."""
    known = np.isfinite(values)
    inside, outside = values[known & with_arm], values[known & ~with_arm]
    means = [float(part.mean()) if len(part) else np.nan for part in (inside, outside)]
    variances = [float(part.var(ddof=1)) / len(part) if len(part) > 1 else np.nan for part in (inside, outside)]
    return Comparison(means[0], means[1], means[0] - means[1], float(np.sqrt(sum(variances))))

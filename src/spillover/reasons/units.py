"""Whether rewards z and outcomes y are in different units, from the slopes of each arm's y on its own z."""

import numpy as np

from spillover.formatting import short_number
from spillover.types import Array

FACTOR = 2.0  # a direct effect may differ from 1 by so much for other reasons


def unit_factor(slopes: Array) -> float | None:
    """The median slope, if those of at least half of the arms are far from 1 in the same direction; otherwise None.

    slopes: (n,), 1 where a slope does not clearly differ from 1, NaN where it is not known.

    >>> unit_factor(np.array([1000.0, 998.0, 1.0, np.nan]))
    999.0
    >>> unit_factor(np.array([1.7, 1.0, 0.6])) is None
    True
    """
    known = slopes[np.isfinite(slopes)]
    for far in (known > FACTOR, known < 1.0 / FACTOR):
        if far.any() and 2 * far.sum() >= len(known):
            return float(np.median(known[far]))
    return None


def unit_sentence(factor: float) -> str:
    return (
        f"The rewards z and the outcomes y seem to be in different units: one unit of an arm's z goes with about "
        f"{short_number(factor)} of its own y. Effects are estimated for equal units: convert one of the two."
    )

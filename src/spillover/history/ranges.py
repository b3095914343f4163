"""The range of own rewards, from the data: what a policy takes as the scale of effects.

With own rewards z: from the smallest to the largest reward, 0 included, widened by a tenth. If all of them lie between
0 and 1, that range counts as declared.
Without z: effects are assumed to be no larger than outcomes vary. An outcome varies between its 2.5% and 97.5%
quantiles (four standard deviations where these coincide, as for rare events); the arm that varies most counts, and the
range is as wide in both directions: effects may be negative. Arms are not told apart, as a policy has one range.

A declared range only matters where it is narrower: outside of what the data show it says nothing. So the decision does
not depend on a range that was declared generously, and scaling all outcomes scales the range.
"""

import numpy as np

from spillover.history.check import UNIT
from spillover.history.record import History
from spillover.kernels import NARROWEST_RANGE
from spillover.types import Array

WIDER = 0.1
TAILS = (0.025, 0.975)
DEVIATIONS = 4.0  # standard deviations in the range of an outcome whose quantiles coincide

Range = tuple[float, float]


def reward_range(history: History, declared: Range | None) -> Range:
    """The range of own rewards for a policy."""
    declared = default_range(history) if declared is None else declared
    if history.minimise and declared is not None:
        declared = flipped(declared)
    from_data = range_of_rewards(history) if history.observes == "both" else range_of_effects(history)
    if declared is None:
        return from_data
    low, high = max(from_data[0], declared[0]), min(from_data[1], declared[1])
    return (low, high) if high - low >= NARROWEST_RANGE else declared


def default_range(history: History) -> Range | None:
    """The range that counts as declared if none is: 0 to 1 where the rewards of the table allow it."""
    if history.observes != "both":
        return None
    low, high = flipped(extremes(history)) if history.minimise else extremes(history)
    return UNIT if UNIT[0] <= low and high <= UNIT[1] else None


def flipped(pair: Range) -> Range:
    """The range of negated values."""
    return -pair[1], -pair[0]


def extremes(history: History) -> Range:
    """The smallest and the largest z where arms were chosen, 0 included."""
    known = history.x & history.arrived[:, None] & np.isfinite(history.z)
    return float(history.z.min(where=known, initial=0.0)), float(history.z.max(where=known, initial=0.0))


def range_of_rewards(history: History) -> Range:
    """The range of z where arms were chosen, and 0."""
    low, high = extremes(history)
    if high - low < NARROWEST_RANGE:
        return UNIT
    more = WIDER * (high - low)
    return low - more if low < 0 else 0.0, high + more if high > 0 else 0.0


def range_of_effects(history: History) -> Range:
    """As far in both directions as the outcomes of an arm vary."""
    outcomes = history.y[:, :1] if history.observes == "payoff" else history.y
    widths = [width(column[np.isfinite(column)]) for column in outcomes[history.arrived].T]
    most = max(widths, default=0.0)
    return (-most, most) if most >= NARROWEST_RANGE else (-1.0, 1.0)


def width(values: Array) -> float:
    """How far an outcome varies; its size if it does not vary at all."""
    if not len(values):
        return 0.0
    low, high = np.quantile(values, TAILS)
    return float(high - low) or DEVIATIONS * float(values.std()) or float(np.abs(values).max())
